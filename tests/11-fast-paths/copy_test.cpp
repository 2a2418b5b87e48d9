// SPDX-License-Identifier: MIT
// Task 11.3: parts of a file, copied by chains that may break anywhere.
#include <liburing.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "how_it_ended.hpp"
#include "io_context.hpp"
#include "linked_copy.hpp"
#include "manual_ring.hpp"
#include "outcome.hpp"
#include "ring_modes.hpp"
#include "scripted_ring.hpp"
#include "task.hpp"
#include "test_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::manual_ring;
using course_test::noise;
using course_test::scripted_answer;
using course_test::scripted_ring;
using course_test::test_folder;
using uring::extent;
using uring::file_ref;
using uring::io_context;
using uring::linked_copy;
using uring::task;

namespace {

constexpr file_ref source_slot{.number = 3, .flags = IOSQE_FIXED_FILE};
constexpr file_ref target_slot{.number = 4, .flags = IOSQE_FIXED_FILE};
constexpr int buffer_index = 2;

// A copy whose requests the test answers itself.
struct copying {
  io_context context;
  manual_ring kernel{context};
  std::array<std::byte, 100> bytes{};
  linked_copy copy{context, source_slot, target_slot};
  std::string ended = "not at all";

  void start(extent part) { context.spawn(run(part)); }

  // A chain's requests, one after the other.
  [[nodiscard]] std::vector<::io_uring_sqe> take_chain() {
    std::vector<::io_uring_sqe> chain(kernel.waiting());
    REQUIRE_FALSE(chain.empty());
    for (::io_uring_sqe& each : chain) each = kernel.take();
    return chain;
  }

 private:
  task<> run(extent part) {
    const uring::outcome<void> copied =
        co_await copy.copy(part, {.bytes = bytes, .index = buffer_index}).as_outcome();
    ended = course_test::how_it_ended(copied);
  }
};

// "read 3: 100 at 200", as a failed check shows it.
std::string words_for(const ::io_uring_sqe& sqe) {
  std::string words = sqe.opcode == IORING_OP_READ_FIXED    ? "read "
                      : sqe.opcode == IORING_OP_WRITE_FIXED ? "write "
                                                            : "something else ";
  words += std::to_string(sqe.fd) + ": " + std::to_string(sqe.len) + " at ";
  return words + std::to_string(sqe.off);
}

std::vector<std::string> words_for(const std::vector<::io_uring_sqe>& chain) {
  std::vector<std::string> words;
  words.reserve(chain.size());
  for (const ::io_uring_sqe& each : chain) words.push_back(words_for(each));
  return words;
}

}  // namespace

TEST_CASE("11.3 each block is read and written, and the last is as long as the rest", "[11.3]") {
  copying test;
  test.start({1000, 1250});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  UNSCOPED_INFO(
      "file, length and offset of each step. A write goes to target_, at the offset of its read; a "
      "read that asks for more than there is comes back short, and breaks the chain");
  CHECK(words_for(chain) == std::vector<std::string>{"read 3: 100 at 1000", "write 4: 100 at 1000",
                                                     "read 3: 100 at 1100", "write 4: 100 at 1100",
                                                     "read 3: 50 at 1200", "write 4: 50 at 1200"});
  for (const ::io_uring_sqe& each : chain) {
    UNSCOPED_INFO(
        "slots are named with IOSQE_FIXED_FILE; the buffer is registered under its index");
    CHECK((each.flags & IOSQE_FIXED_FILE) != 0);
    CHECK(each.buf_index == buffer_index);
    CHECK(each.addr == reinterpret_cast<std::uint64_t>(test.bytes.data()));
  }
  test.kernel.answer(chain.back(), 50);
  UNSCOPED_INFO("all of it is in the target; its last write has completed, with all of its bytes");
  CHECK(test.ended == "well");
}

TEST_CASE("11.3 a part may be as short as one byte, or exactly one block", "[11.3]") {
  for (const std::uint64_t bytes : {1U, 99U, 100U}) {
    copying test;
    test.start({0, bytes});
    const std::vector<::io_uring_sqe> chain = test.take_chain();
    REQUIRE(chain.size() == 2);
    CHECK(chain[0].len == bytes);
    CHECK(chain[1].len == bytes);
    test.kernel.answer(chain[1], static_cast<std::int32_t>(bytes));
    UNSCOPED_INFO(
        "all of it is in the target; its last write has completed, with all of its bytes");
    CHECK(test.ended == "well");
  }
}

TEST_CASE("11.3 after a short read the copy goes on with the bytes that are not in the target",
          "[11.3]") {
  copying test;
  test.start({0, 400});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  test.kernel.answer(chain[4], 30);  // the third read
  const ::io_uring_sqe single = test.kernel.take();
  UNSCOPED_INFO(
      "two blocks are written in full; the 30 bytes were read and not written: they are not in the "
      "target");
  CHECK(words_for(single) == "read 3: 100 at 200");
  test.kernel.answer(single, 100);
  const ::io_uring_sqe write = test.kernel.take();
  CHECK(words_for(write) == "write 4: 100 at 200");
  test.kernel.answer(write, 100);
  const std::vector<::io_uring_sqe> rest = test.take_chain();
  CHECK(words_for(rest) == std::vector<std::string>{"read 3: 100 at 300", "write 4: 100 at 300"});
  test.kernel.answer(rest.back(), 100);
  CHECK(test.ended == "well");
}

TEST_CASE("11.3 after a short write the copy goes on behind the written bytes", "[11.3]") {
  copying test;
  test.start({0, 300});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  test.kernel.answer(chain[3], 60);  // the second write
  const ::io_uring_sqe single = test.kernel.take();
  UNSCOPED_INFO("60 bytes of the second block are in the target: its own count says so");
  CHECK(words_for(single) == "read 3: 100 at 160");
  test.kernel.answer(single, 100);
  test.kernel.answer(test.kernel.take(), 100);
  const std::vector<::io_uring_sqe> rest = test.take_chain();
  CHECK(words_for(rest) == std::vector<std::string>{"read 3: 40 at 260", "write 4: 40 at 260"});
  test.kernel.answer(rest.back(), 40);
  CHECK(test.ended == "well");
}

TEST_CASE("11.3 a short write at the very end of a chain does not end the copy", "[11.3]") {
  copying test;
  test.start({0, 200});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  test.kernel.answer(chain.back(), 1);
  UNSCOPED_INFO("the last write took one byte of a hundred, and the copy ended with success");
  REQUIRE(test.kernel.waiting() == 1);
  CHECK(words_for(test.kernel.take()) == "read 3: 99 at 101");
}

TEST_CASE("11.3 a write that fails is tried alone, and its error is thrown", "[11.3]") {
  copying test;
  test.start({0, 300});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  test.kernel.answer(chain[3], -ENOSPC);  // the second write
  const ::io_uring_sqe single = test.kernel.take();
  UNSCOPED_INFO("an error is no count of bytes");
  CHECK(words_for(single) == "read 3: 100 at 100");
  test.kernel.answer(single, 100);
  test.kernel.answer(test.kernel.take(), -ENOSPC);
  CHECK_THAT(test.ended, ContainsSubstring("write at byte 100: ENOSPC"));
}

TEST_CASE("11.3 a read that fails is tried alone, and its error is thrown", "[11.3]") {
  copying test;
  test.start({0, 300});
  test.kernel.answer(test.take_chain()[0], -EIO);
  test.kernel.answer(test.kernel.take(), -EIO);
  CHECK_THAT(test.ended, ContainsSubstring("read at byte 0: EIO"));
}

TEST_CASE("11.3 an error that is gone at the second try does no harm", "[11.3]") {
  copying test;
  test.start({0, 100});
  test.kernel.answer(test.take_chain()[1], -EINTR);
  test.kernel.answer(test.kernel.take(), -EINTR);
  test.kernel.answer(test.kernel.take(), -EAGAIN);
  test.kernel.answer(test.kernel.take(), 100);
  test.kernel.answer(test.kernel.take(), -EINTR);
  test.kernel.answer(test.kernel.take(), 100);
  CHECK(test.ended == "well");
}

TEST_CASE("11.3 a source that has become shorter is an error, not a short copy", "[11.3]") {
  copying test;
  test.start({0, 300});
  const std::vector<::io_uring_sqe> chain = test.take_chain();
  test.kernel.answer(chain[2], 0);  // the second read: EOF
  test.kernel.answer(test.kernel.take(), 0);
  CHECK_THAT(test.ended, ContainsSubstring("at byte 100"));
}

// ---- the same, against a kernel that is as awkward as it may be ----

namespace {

// Runs chains as the kernel does, and cuts transfers short or lets them fail as chance will have
// it. Answers once a chain.
class awkward_kernel {
 public:
  awkward_kernel(std::string source, unsigned seed)
      : source_{std::move(source)}, target_(source_.size(), '?'), chance_{seed} {}

  std::vector<scripted_answer> play(const std::vector<::io_uring_sqe>& submitted) {
    std::vector<scripted_answer> answers;
    bool is_broken = false;
    for (const ::io_uring_sqe& each : submitted) {
      if (!is_broken) {
        const std::int32_t res = run(each);
        is_broken = res != static_cast<std::int32_t>(each.len);
        if (is_broken || (each.flags & IOSQE_CQE_SKIP_SUCCESS) == 0) {
          answers.push_back({each.user_data, res});
        }
      }
      if ((each.flags & IOSQE_IO_LINK) == 0) is_broken = false;
    }
    return answers;
  }

  [[nodiscard]] const std::string& target() const { return target_; }

 private:
  std::int32_t run(const ::io_uring_sqe& sqe) {
    const std::size_t fate = chance_() % 12;
    if (fate == 0) return chance_() % 2 == 0 ? -EINTR : -EAGAIN;
    std::size_t bytes = std::min<std::size_t>(sqe.len, source_.size() - sqe.off);
    if (fate == 1) bytes = 1 + chance_() % bytes;
    auto* const memory = reinterpret_cast<char*>(sqe.addr);
    if (sqe.opcode == IORING_OP_READ_FIXED) {
      source_.copy(memory, bytes, sqe.off);
    } else {
      target_.replace(sqe.off, bytes, memory, bytes);
    }
    return static_cast<std::int32_t>(bytes);
  }

  std::string source_;
  std::string target_;
  std::minstd_rand chance_;
};

}  // namespace

TEST_CASE("11.3 whatever is short or interrupted, the copy is whole", "[11.3]") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    awkward_kernel kernel{noise(1 + seed * 7), seed};
    const std::string source = noise(1 + seed * 7);
    const scripted_ring ring{
        [&kernel](const std::vector<::io_uring_sqe>& submitted) { return kernel.play(submitted); }};
    io_context context;
    std::array<std::byte, 64> buffer{};
    linked_copy copy{context, source_slot, target_slot};
    context.run(copy.copy({0, source.size()}, {.bytes = buffer, .index = buffer_index}));
    INFO("seed " << seed);
    REQUIRE(course_test::compare_bytes(kernel.target(), source) == course_test::identical);
  }
}

TEST_CASE("11.3 parts of every size are copied on every ring", "[11.3]") {
  const test_folder folder;
  const std::string content = noise(10'000);
  folder.add("source", content);
  const common::unique_fd source = folder.open("source");
  for (const uring::ring_options& options : course_test::all_rings) {
    for (const std::uint64_t end : {1U, 63U, 64U, 65U, 127U, 128U}) {
      io_context context{options};
      folder.add("target", "");
      const common::unique_fd target = folder.open("target");
      std::array<std::byte, 64> memory{};
      const std::array<std::span<std::byte>, 1> one{memory};
      const uring::registered_buffers buffers{context, one};
      linked_copy copy{context, {source.get(), 0}, {target.get(), 0}};
      context.run(copy.copy({0, end}, buffers[0]));
      CHECK(folder.content("target") == content.substr(0, end));
    }
  }
}
