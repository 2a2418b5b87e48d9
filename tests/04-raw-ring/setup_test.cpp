// SPDX-License-Identifier: MIT
// Task 04.1: a ring, its mappings, and where in them its queues are.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "fd_scope.hpp"
#include "feature.hpp"
#include "refuse_calls.hpp"
#include "ring_memory.hpp"

namespace {

constexpr std::uint64_t page_bytes = 4096;

// A mapping of a ring of ours, as /proc/self/maps has it.
struct mapped {
  std::uint64_t start;
  std::uint64_t offset;
  std::uint64_t bytes;
};

std::vector<mapped> ring_mappings() {
  std::vector<mapped> found;
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    if (line.find("anon_inode:[io_uring]") == std::string::npos) continue;
    std::istringstream words{line};
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    char dash = 0;
    std::string rights;
    words >> std::hex >> start >> dash >> end >> rights >> offset;
    found.push_back({start, offset, end - start});
  }
  return found;
}

// How many bytes of that part of a ring are mapped; 0 if none.
std::uint64_t mapped_bytes(std::uint64_t offset) {
  for (const mapped& each : ring_mappings()) {
    if (each.offset == offset) return each.bytes;
  }
  return 0;
}

// Returns which part of a ring the address is in, as the offset of its mapping.
std::uint64_t part_of(const void* address) {
  const auto where = reinterpret_cast<std::uint64_t>(address);
  for (const mapped& each : ring_mappings()) {
    if (where >= each.start && where < each.start + each.bytes) return each.offset;
  }
  return UINT64_MAX;
}

std::uint64_t in_pages(std::uint64_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

std::uint64_t sq_ring_bytes(const ::io_uring_params& params) {
  return params.sq_off.array + params.sq_entries * sizeof(std::uint32_t);
}

std::uint64_t cq_ring_bytes(const ::io_uring_params& params) {
  return params.cq_off.cqes + params.cq_entries * sizeof(::io_uring_cqe);
}

// What create() throws, as its errno and its sentence.
struct refusal {
  int error = 0;
  std::string sentence;
};

refusal refusal_of(unsigned entries) {
  ::io_uring_params params{};
  try {
    const common::unique_fd ring = uring::ring_memory::create(entries, params);
  } catch (const std::system_error& error) {
    return {error.code().value(), error.what()};
  }
  return {};
}

// The same in a thread that a seccomp filter is put on first.
refusal refusal_under_filter(int error) {
  refusal got;
  std::exception_ptr other;
  std::thread filtered{[&] {
    try {
      course_test::refuse_io_uring_setup(error);
      got = refusal_of(8);
    } catch (...) {
      other = std::current_exception();
    }
  }};
  filtered.join();
  if (other) std::rethrow_exception(other);
  return got;
}

}  // namespace

TEST_CASE("04.1 a ring has the entries that were asked for, rounded up", "[04.1]") {
  course_test::require_feature("raw_ring");
  ::io_uring_params params{};
  const common::unique_fd ring = uring::ring_memory::create(5, params);
  UNSCOPED_INFO("create() returns the descriptor that setup() returned");
  CHECK(ring.valid());
  UNSCOPED_INFO("the kernel answers in params: pass the caller's own, not a copy");
  CHECK(params.sq_entries == 8);
  CHECK(params.cq_entries == 16);
}

TEST_CASE("04.1 the params of the caller reach the kernel", "[04.1]") {
  course_test::require_feature("raw_ring");
  ::io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE;
  params.cq_entries = 64;
  const common::unique_fd ring = uring::ring_memory::create(4, params);
  UNSCOPED_INFO(
      "64 CQEs were asked for, by IORING_SETUP_CQSIZE: the caller's flags are lost if create() "
      "clears the params");
  CHECK(params.cq_entries == 64);
}

TEST_CASE("04.1 a refusal carries the kernel's errno", "[04.1]") {
  course_test::require_feature("raw_ring");
  const refusal got = refusal_of(0);
  UNSCOPED_INFO(
      "setup() with 0 entries returned -EINVAL, -22: every negative result is a refusal, and not "
      "only -1, which is -EPERM");
  CHECK(got.error == EINVAL);
  UNSCOPED_INFO("say what was refused: refused{\"io_uring_setup\", result}");
  CHECK(got.sentence.starts_with("io_uring_setup"));
  UNSCOPED_INFO(got.sentence);
  CHECK(got.sentence.find("EINVAL (Invalid argument)") != std::string::npos);
}

TEST_CASE("04.1 a ring may get descriptor 0", "[04.1]") {
  course_test::require_feature("raw_ring");
  const common::unique_fd input{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  ::close(STDIN_FILENO);  // as in a program that was started without input
  ::io_uring_params params{};
  common::unique_fd ring;
  UNSCOPED_INFO("0 is a descriptor, too: only a negative result of setup() is a refusal");
  CHECK_NOTHROW(ring = uring::ring_memory::create(4, params));
  UNSCOPED_INFO("create() returns the descriptor that setup() returned");
  CHECK(ring.get() == STDIN_FILENO);
  ring.reset();
  (void)::dup2(input.get(), STDIN_FILENO);
}

TEST_CASE("04.1 a machine that forbids rings gets the cause and what to do", "[04.1]") {
  const refusal forbidden = refusal_under_filter(EPERM);
  UNSCOPED_INFO("`refused` takes what setup() returned, with its sign");
  CHECK(forbidden.error == EPERM);
  UNSCOPED_INFO(forbidden.sentence);
  CHECK(forbidden.sentence.find(": EPERM (Operation not permitted): ") != std::string::npos);
  UNSCOPED_INFO(forbidden.sentence);
  CHECK(forbidden.sentence.find(". To do: ") != std::string::npos);
  CHECK(refusal_under_filter(ENOSYS).error == ENOSYS);
  const refusal no_memory = refusal_under_filter(ENOMEM);
  UNSCOPED_INFO(no_memory.sentence);
  CHECK(no_memory.sentence.find("memory") != std::string::npos);
}

TEST_CASE("04.1 each mapping reaches to the end of its queue", "[04.1]") {
  course_test::require_feature("raw_ring");
  std::unique_ptr<uring::ring_memory> memory;
  UNSCOPED_INFO(
      "if mmap failed, is a mapping's size too large? That of the SQEs is "
      "sq_entries * sizeof(io_uring_sqe)");
  REQUIRE_NOTHROW(memory = std::make_unique<uring::ring_memory>(1000));
  const ::io_uring_params& params = memory->params();
  const std::uint64_t rings = std::max(sq_ring_bytes(params), cq_ring_bytes(params));
  UNSCOPED_INFO(
      "the SQ's ring ends with its array, sq_entries * sizeof(std::uint32_t) bytes; the CQ's, in "
      "the same mapping, with its CQEs");
  CHECK(mapped_bytes(IORING_OFF_SQ_RING) == in_pages(rings));
  UNSCOPED_INFO(
      "the SQEs have a mapping of their own, at IORING_OFF_SQES, of "
      "sq_entries * sizeof(io_uring_sqe) bytes");
  CHECK(mapped_bytes(IORING_OFF_SQES) == in_pages(params.sq_entries * sizeof(::io_uring_sqe)));
  UNSCOPED_INFO("with IORING_FEAT_SINGLE_MMAP both rings are one mapping");
  CHECK(ring_mappings().size() == 2);
}

TEST_CASE("04.1 the one mapping is as large as the larger of its two rings", "[04.1]") {
  course_test::require_feature("raw_ring");
  ::io_uring_params params{};
  common::unique_fd ring = uring::ring_memory::create(1000, params);
  REQUIRE((params.features & IORING_FEAT_SINGLE_MMAP) != 0);
  params.sq_off.array = 64;  // a kernel may lay out the mapping so, with the CQEs last
  REQUIRE(sq_ring_bytes(params) < cq_ring_bytes(params));
  const uring::ring_memory memory{std::move(ring), params};
  UNSCOPED_INFO(
      "here the CQ's ring reaches further than the SQ's: take the larger of both sizes. The CQ has "
      "cq_entries CQEs, not sq_entries");
  CHECK(mapped_bytes(IORING_OFF_SQ_RING) == in_pages(cq_ring_bytes(params)));
}

TEST_CASE("04.1 without the single mapping each ring has its own", "[04.1]") {
  course_test::require_feature("raw_ring");
  ::io_uring_params params{};
  common::unique_fd ring = uring::ring_memory::create(1000, params);
  params.features &= ~static_cast<std::uint32_t>(IORING_FEAT_SINGLE_MMAP);  // as before Linux 5.4
  const uring::ring_memory memory{std::move(ring), params};
  UNSCOPED_INFO("IORING_FEAT_SINGLE_MMAP is a bit of params_.features, and here it is not set");
  REQUIRE(ring_mappings().size() == 3);
  UNSCOPED_INFO("the SQ's ring ends with its array, sq_entries * sizeof(std::uint32_t) bytes");
  CHECK(mapped_bytes(IORING_OFF_SQ_RING) == in_pages(sq_ring_bytes(params)));
  UNSCOPED_INFO("the CQ's ring ends with its CQEs: cq_entries of them, not sq_entries");
  CHECK(mapped_bytes(IORING_OFF_CQ_RING) == in_pages(cq_ring_bytes(params)));
  UNSCOPED_INFO("completion() looks into cq_, if that is mapped");
  CHECK(part_of(memory.view().cq.cqes) == IORING_OFF_CQ_RING);
  CHECK(part_of(memory.view().sq.array) == IORING_OFF_SQ_RING);
  CHECK(memory.view().cq.mask == params.cq_entries - 1);
}

TEST_CASE("04.1 the view points at the kernel's own numbers", "[04.1]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{8};
  const uring::ring_view view = memory.view();
  CHECK(view.sq.mask == 7);
  UNSCOPED_INFO("the CQ's offsets are in params_.cq_off, and its mask is not the SQ's");
  REQUIRE(view.cq.mask == 15);
  CHECK(view.cq.entries == 16);
  UNSCOPED_INFO("head and tail of a new ring are 0: is an offset mistaken for another?");
  CHECK((*view.cq.head == 0 && *view.cq.tail == 0));
  const auto distance = reinterpret_cast<const std::byte*>(view.cq.tail) -
                        reinterpret_cast<const std::byte*>(view.cq.head);
  const ::io_cqring_offsets& offsets = memory.params().cq_off;
  UNSCOPED_INFO("head is at cq_off.head, tail at cq_off.tail, the CQEs at cq_off.cqes");
  CHECK(distance == static_cast<std::ptrdiff_t>(offsets.tail) - offsets.head);
  CHECK(reinterpret_cast<const std::byte*>(view.cq.cqes) -
            reinterpret_cast<const std::byte*>(view.cq.head) ==
        static_cast<std::ptrdiff_t>(offsets.cqes) - offsets.head);
}

TEST_CASE("04.1 every SQE and every CQE can be touched", "[04.1]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{1000};
  const uring::ring_view view = memory.view();
  UNSCOPED_INFO("a crash here means that a mapping ends before its queue does");
  for (std::uint32_t i = 0; i < view.sq.entries; ++i) view.sq.sqes[i].user_data = i;
  for (std::uint32_t i = 0; i < view.sq.entries; ++i) view.sq.array[i] = i;
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < view.cq.entries; ++i) sum += view.cq.cqes[i].user_data;
  CHECK(sum == 0);
}

TEST_CASE("04.1 a ring leaves neither descriptor nor mapping behind", "[04.1]") {
  course_test::require_feature("raw_ring");
  const course_test::fd_scope fds;
  const std::size_t before = ring_mappings().size();
  for (int i = 0; i < 10; ++i) {
    const uring::ring_memory memory{64};
    REQUIRE(ring_mappings().size() > before);
  }
  CHECK(ring_mappings().size() == before);
  CHECK(fds.leaked() == "");
}
