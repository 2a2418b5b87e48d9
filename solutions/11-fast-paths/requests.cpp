// SPDX-License-Identifier: MIT
// 11-requests: measures single requests, one after the other: a NOP, a timer, or a read into an
// ordinary or a registered buffer, in one system call or in two.
//
//   ./course run 11:requests -- --request read-fixed --count 100000
#include <fcntl.h>
#include <liburing.h>
#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "errors.hpp"
#include "program_main.hpp"
#include "ring.hpp"
#include "ring_options.hpp"
#include "unique_fd.hpp"

namespace {

constexpr unsigned block = 4096;
alignas(block) std::array<char, block> memory;
int file = -1;  // its first block is in the page cache

void nop(::io_uring_sqe& sqe) {
  ::io_uring_prep_nop(&sqe);
}

// Unlike a NOP, a timer has not completed when it has been submitted.
void timer(::io_uring_sqe& sqe) {
  static ::__kernel_timespec soon{.tv_sec = 0, .tv_nsec = 1'000'000};
  ::io_uring_prep_timeout(&sqe, &soon, 0, 0);
}

void read(::io_uring_sqe& sqe) {
  ::io_uring_prep_read(&sqe, file, memory.data(), block, 0);
}

void read_fixed(::io_uring_sqe& sqe) {
  ::io_uring_prep_read_fixed(&sqe, file, memory.data(), block, 0, 0);
}

void in_one_call(::io_uring& ring) {
  const int submitted = ::io_uring_submit_and_wait(&ring, 1);
  if (submitted < 0) common::throw_error(submitted, "io_uring_submit_and_wait");
}

// The second call is made only if nothing has completed by then: liburing looks first.
void in_two_calls(::io_uring& ring) {
  const int submitted = ::io_uring_submit(&ring);
  if (submitted < 0) common::throw_error(submitted, "io_uring_submit");
  ::io_uring_cqe* cqe = nullptr;
  const int waited = ::io_uring_wait_cqe(&ring, &cqe);
  if (waited < 0) common::throw_error(waited, "io_uring_wait_cqe");
}

using prepare = void(::io_uring_sqe& sqe);
using submit_and_wait = void(::io_uring& ring);

const std::map<std::string, prepare*> requests{
    {"nop", nop}, {"timer", timer}, {"read", read}, {"read-fixed", read_fixed}};
const std::map<std::string, submit_and_wait*> calls{{"one", in_one_call}, {"two", in_two_calls}};

double ns_per_request(uring::ring& ring, std::int64_t count, prepare* request,
                      submit_and_wait* wait) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t done = 0; done < count;) {
    ::io_uring_sqe& sqe = ring.get_sqe();
    request(sqe);
    ::io_uring_sqe_set_data64(&sqe, 0);
    wait(ring.handle());
    done += static_cast<std::int64_t>(ring.reap().size());
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(count);
}

double measure(const uring::ring_options& options, std::int64_t count, prepare* request,
               submit_and_wait* wait) {
  // Not a file in /tmp: a worker thread of the kernel does the reads from a tmpfs.
  const common::unique_fd own_program{
      common::check(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "open")};
  file = own_program.get();
  uring::ring ring{options};
  const ::iovec registered{.iov_base = memory.data(), .iov_len = memory.size()};
  const int result = ::io_uring_register_buffers(&ring.handle(), &registered, 1);
  if (result < 0) common::throw_error(result, "io_uring_register_buffers");
  return ns_per_request(ring, count, request, wait);
}

template <typename Value>
std::vector<std::string> names(const std::map<std::string, Value>& of) {
  std::vector<std::string> all;
  all.reserve(of.size());
  for (const auto& [name, value] : of) all.push_back(name);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = "one";
  std::string request = "nop";
  std::int64_t count = 100'000;
  common::flag_set flags{"Chapter 11: what one request costs, and its wait."};
  const uring::ring_command_line ring{flags};
  flags.add("--calls", how, names(calls), "System calls to submit and to wait");
  flags.add("--request", request, names(requests), "What is submitted");
  flags.add("--count", count, 1, 1'000'000'000, "How often");
  return common::program_main(argc, argv, flags, [&] {
    const double ns = measure(ring.options(), count, requests.at(request), calls.at(how));
    std::cout << "ns per request: " << std::fixed << std::setprecision(1) << ns << '\n';
  });
}
