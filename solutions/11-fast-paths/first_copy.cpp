// SPDX-License-Identifier: MIT
// 11-first-copy: a copy by linked requests as many programs make it at first, with a defect that is
// often copied. The page explains the defect, and a test in tests/11-fast-paths shows it. Do not
// base your own code on this file.
//
//   ./course run 11:first-copy --solution -- SOURCE TARGET
#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "errors.hpp"
#include "program_main.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

namespace {

constexpr std::size_t block_bytes = 8192;

struct files {
  common::unique_fd source;
  common::unique_fd target;
  std::uint64_t bytes;
};

files open_both(const std::string& from, const std::string& to) {
  files both{common::unique_fd{common::check(::open(from.c_str(), O_RDONLY | O_CLOEXEC), from)},
             common::unique_fd{common::check(
                 ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), to)},
             0};
  struct ::stat found{};
  common::check(::fstat(both.source.get(), &found), from);
  both.bytes = static_cast<std::uint64_t>(found.st_size);
  return both;
}

// --8<-- [start:first-copy]
// Prepares a read and a write for each block. Each request is linked to the one before it, so that
// all blocks can go through one buffer. Returns the number of requests.
std::uint64_t request_copy(uring::ring& ring, const files& both, std::vector<std::byte>& buffer) {
  std::uint64_t requests = 0;
  for (std::uint64_t at = 0; at < both.bytes; at += block_bytes) {
    const auto bytes = static_cast<unsigned>(std::min(block_bytes, both.bytes - at));
    ::io_uring_sqe& read = ring.get_sqe();
    ::io_uring_prep_read(&read, both.source.get(), buffer.data(), bytes, at);
    read.flags |= IOSQE_IO_LINK;
    ::io_uring_sqe& write = ring.get_sqe();
    ::io_uring_prep_write(&write, both.target.get(), buffer.data(), bytes, at);
    if (at + bytes < both.bytes) write.flags |= IOSQE_IO_LINK;
    requests += 2;
  }
  return requests;
}
// --8<-- [end:first-copy]

void wait_for(uring::ring& ring, std::uint64_t requests) {
  while (requests > 0) {
    (void)ring.submit_and_wait();
    for (const uring::completion& done : ring.reap()) {
      if (done.res < 0) common::throw_error(done.res, "a read or a write");
      --requests;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: the first copy, defect included. Not a program to keep."};
  std::string from;
  std::string to;
  flags.add_argument("SOURCE", from, "The file to copy");
  flags.add_argument("TARGET", to, "The copy's name");
  return common::program_main(argc, argv, flags, [&] {
    const files both = open_both(from, to);
    std::vector<std::byte> buffer(block_bytes);
    uring::ring ring{{.sq_entries = 64, .cq_entries = 128}};
    wait_for(ring, request_copy(ring, both, buffer));
  });
}
