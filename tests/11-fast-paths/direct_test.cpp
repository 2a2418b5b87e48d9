// SPDX-License-Identifier: MIT
// Direct descriptors: files that are in the table and have no number of their own.
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>

#include "bytes.hpp"
#include "client.hpp"
#include "direct_operations.hpp"
#include "eventually.hpp"
#include "fd_scope.hpp"
#include "feature.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "registered_files.hpp"
#include "ring_modes.hpp"
#include "slot_text.hpp"
#include "socket_pair.hpp"
#include "task.hpp"
#include "test_folder.hpp"

using course_test::client;
using course_test::fd_scope;
using course_test::test_folder;
using course_test::text_of;
using uring::file_ref;
using uring::file_slot;
using uring::io_context;
using uring::io_result;
using uring::registered_files;
using uring::task;

namespace {

// Accepts one client into a slot, echoes one message and closes.
task<std::string> serve_one(io_context& context, registered_files& table, int listener) {
  file_slot slot = table.reserve();
  const io_result accepted = co_await uring::accept_direct_op(context, listener, slot);
  if (!accepted) co_return "accept: error " + std::to_string(accepted.error());
  if (!slot.holds_file()) co_return "the slot does not know that it holds a file";
  const file_ref file = uring::file_of(slot, -1);
  std::array<std::byte, 64> buffer;
  const io_result received =
      co_await uring::with_flags(uring::recv_op(context, file.number, buffer), file.flags);
  const std::span<std::byte> bytes = std::span{buffer}.first(received.or_throw("recv"));
  const io_result sent =
      co_await uring::with_flags(uring::send_op(context, file.number, bytes), file.flags);
  sent.or_throw("send");
  const io_result closed = co_await uring::close_direct_op(context, slot);
  closed.or_throw("close");
  if (slot.holds_file()) co_return "the slot does not know that it is empty";
  co_return text_of(bytes);
}

task<int> open_into(io_context& context, const char* path, int flags, file_slot& slot) {
  const io_result opened = co_await uring::openat_direct_op(context, AT_FDCWD, path, flags, slot);
  co_return opened ? 0 : -opened.error();
}

}  // namespace

TEST_CASE("11 a client is accepted into a slot, and no descriptor is used", "[11]") {
  course_test::require_feature("accept_direct");
  for (const uring::ring_options& options : course_test::all_rings) {
    const course_test::tcp_listener listener = course_test::listen_on_any_port();
    io_context context{options};
    registered_files table{context, 1};
    for (int round = 0; round < 20; ++round) {
      client talks{listener.port};
      talks.send_all("hello");
      const fd_scope fds;
      REQUIRE(context.run(serve_one(context, table, listener.socket.get())) == "hello");
      CHECK(fds.leaked() == "");
      CHECK(talks.recv_until_eof() == "hello");
      CHECK(table.used() == 0);
    }
  }
}

TEST_CASE("11 a file is opened into a slot", "[11]") {
  const test_folder folder;
  const std::string path = folder.add("a", "hello");
  io_context context;
  registered_files table{context, 1};
  const fd_scope fds;
  {
    file_slot slot = table.reserve();
    REQUIRE(context.run(open_into(context, path.c_str(), O_RDONLY, slot)) == 0);
    CHECK(slot.holds_file());
    CHECK(course_test::text_in(context, slot) == "hello");
  }
  CHECK(fds.leaked() == "");
  UNSCOPED_INFO("the slot that ended was cleared, and can be filled again");
  file_slot again = table.reserve();
  CHECK(context.run(open_into(context, path.c_str(), O_RDONLY, again)) == 0);
}

TEST_CASE("11 a slot whose open has failed holds no file", "[11]") {
  const test_folder folder;
  folder.add("a", "hello");
  io_context context;
  registered_files table{context, 1};
  file_slot slot = table.reserve();
  CHECK(context.run(open_into(context, folder.path("b").c_str(), O_RDONLY, slot)) == -ENOENT);
  CHECK_FALSE(slot.holds_file());
  UNSCOPED_INFO("O_CLOEXEC is a property of a descriptor's number");
  CHECK(context.run(open_into(context, folder.path("a").c_str(), O_RDONLY | O_CLOEXEC, slot)) ==
        -EINVAL);
  CHECK_FALSE(slot.holds_file());
}
