// SPDX-License-Identifier: MIT
// Where the kernel waits for a file: in our thread, or in one of its own.
#include <linux/openat2.h>
#include <sys/stat.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>

#include "file_facts.hpp"
#include "file_requests.hpp"
#include "io_context.hpp"
#include "site_root.hpp"

using uring::http::facts_of;
using uring::http::found_file;

namespace {

template <typename Request>
unsigned flags_of(const Request& request) {
  ::io_uring_sqe sqe{};
  request.prepare(sqe);
  return sqe.flags;
}

found_file file_on(unsigned device_major) {
  struct ::statx now{};
  now.stx_dev_major = device_major;
  return {.status = 200, .facts = facts_of(now)};
}

}  // namespace

TEST_CASE("14 a file is opened by a thread of the kernel", "[14]") {
  uring::io_context context;
  ::open_how how{};
  UNSCOPED_INFO("FUSE waits for its daemon inside io_uring_enter, and with it every client");
  CHECK(flags_of(uring::http::openat2_op(context, 0, "name", how)) == IOSQE_ASYNC);
}

TEST_CASE("14 a file that is on no disk is read by a thread of the kernel", "[14]") {
  uring::io_context context;
  std::array<std::byte, 1> room{};
  UNSCOPED_INFO("device 0:N has no disk: it may be FUSE, whose reads wait inside io_uring_enter");
  CHECK(flags_of(uring::http::read_file_op(context, file_on(0), room, 0)) == IOSQE_ASYNC);
  UNSCOPED_INFO("a file of a disk never waits there, and a thread of the kernel costs time");
  CHECK(flags_of(uring::http::read_file_op(context, file_on(8), room, 0)) == 0);
}
