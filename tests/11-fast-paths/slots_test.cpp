// SPDX-License-Identifier: MIT
// Task 11.1: a table of files, and slots that bring their files home.
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "eventually.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "pipe_ends.hpp"
#include "registered_files.hpp"
#include "ring_modes.hpp"
#include "slot_text.hpp"
#include "socket_pair.hpp"
#include "task.hpp"
#include "test_folder.hpp"
#include "turns.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::eventually;
using course_test::make_pipe;
using course_test::pipe_ends;
using course_test::read_file;
using course_test::test_folder;
using course_test::text_in;
using course_test::text_of;
using uring::file_ref;
using uring::file_slot;
using uring::io_context;
using uring::io_result;
using uring::registered_files;
using uring::task;

namespace {

// Nothing, or what read(2) gives: "" is the end of the stream.
std::string what_comes_out(const common::unique_fd& pipe) {
  char byte = 0;
  const ::ssize_t got = ::read(pipe.get(), &byte, 1);
  if (got < 0) return errno == EAGAIN ? "nothing, and no end" : "an error";
  return std::string(static_cast<std::size_t>(got), byte);
}

}  // namespace

TEST_CASE("11.1 a file is read through its slot", "[11.1]") {
  for (const uring::ring_options& options : course_test::all_rings) {
    const test_folder folder;
    folder.add("a", "hello");
    const common::unique_fd fd = folder.open("a");
    INFO("the update returns how many files it has put there: 1 is success, and no error number");
    io_context context{options};
    registered_files table{context, 4};
    const file_slot slot = table.add(fd.get());
    REQUIRE(slot);
    UNSCOPED_INFO("take_back() clears a slot only if add() has noted that it holds a file");
    CHECK(slot.holds_file());
    UNSCOPED_INFO("error 9 is EBADF: the slot is empty; was the file put at the slot's index?");
    CHECK(text_in(context, slot) == "hello");
    CHECK(table.used() == 1);
  }
}

TEST_CASE("11.1 each file has a slot of its own", "[11.1]") {
  const test_folder folder;
  io_context context;
  registered_files table{context, 3};
  std::vector<file_slot> slots;
  for (const char* const name : {"a", "b", "c"}) {
    folder.add(name, name);
    const common::unique_fd fd = folder.open(name);
    slots.push_back(table.add(fd.get()));
  }
  UNSCOPED_INFO("two slots read the same file: the update goes to the index of the slot");
  CHECK(text_in(context, slots[0]) + text_in(context, slots[1]) + text_in(context, slots[2]) ==
        "abc");
}

TEST_CASE("11.1 when every slot is taken, the descriptor itself is used", "[11.1]") {
  const test_folder folder;
  folder.add("a", "hello");
  const common::unique_fd fd = folder.open("a");
  io_context context;
  registered_files table{context, 1};
  const file_slot first = table.add(fd.get());
  file_slot second;
  UNSCOPED_INFO("a full table is not an error: add() returns an empty slot");
  REQUIRE_NOTHROW(second = table.add(fd.get()));
  CHECK_FALSE(second);
  const file_ref file = uring::file_of(second, fd.get());
  CHECK(file.flags == 0);
  CHECK(context.run(read_file(context, file)) == "hello");
  CHECK(table.used() == 1);
}

TEST_CASE("11.1 a slot that has ended can be used again", "[11.1]") {
  const test_folder folder;
  io_context context;
  registered_files table{context, 1};
  for (int i = 0; i < 100; ++i) {
    const std::string text = "round " + std::to_string(i);
    folder.add("a", text);
    const common::unique_fd fd = folder.open("a");
    const file_slot slot = table.add(fd.get());
    UNSCOPED_INFO("no slot is left: when one ends, its index belongs into free_ again");
    REQUIRE(slot);
    REQUIRE(text_in(context, slot) == text);
  }
  CHECK(table.used() == 0);
}

TEST_CASE("11.1 a slot that has ended has let go of its file", "[11.1]") {
  io_context context;
  registered_files table{context, 2};
  pipe_ends pipe = make_pipe(O_CLOEXEC | O_NONBLOCK);
  {
    const file_slot slot = table.add(pipe.write.get());
    REQUIRE(slot);
    pipe.write.reset();
    UNSCOPED_INFO("the slot keeps the file open, although its descriptor is closed");
    CHECK(what_comes_out(pipe.read) == "nothing, and no end");
  }
  UNSCOPED_INFO(
      "the peer waits for an end that never comes: the table still holds the file; clear the "
      "slot, with the descriptor -1, before its index is free");
  CHECK(eventually(2s, [&] { return what_comes_out(pipe.read).empty(); }));
}

TEST_CASE("11.1 a slot outlives the descriptor that it was added by", "[11.1]") {
  const test_folder folder;
  folder.add("a", "hello");
  io_context context;
  registered_files table{context, 1};
  common::unique_fd fd = folder.open("a");
  const file_slot slot = table.add(fd.get());
  fd.reset();
  CHECK(text_in(context, slot) == "hello");
}

TEST_CASE("11.1 a file that the kernel refuses costs no slot", "[11.1]") {
  const test_folder folder;
  folder.add("a", "hello");
  const common::unique_fd fd = folder.open("a");
  const int no_descriptor = 1 << 20;
  io_context context;
  registered_files table{context, 1};
  try {
    const file_slot slot = table.add(no_descriptor);
    FAIL_CHECK("a descriptor that does not exist was added: look at the result of the update");
  } catch (const std::system_error& refused) {
    CHECK(refused.code().value() == EBADF);
    CHECK_THAT(refused.what(), ContainsSubstring("io_uring_register_files_update"));
  }
  UNSCOPED_INFO("the reserved slot has to go back before add() throws: it does if it is a local");
  CHECK(table.used() == 0);
  const file_slot slot = table.add(fd.get());
  UNSCOPED_INFO("a slot that never held a file goes back, too: its index belongs into free_");
  REQUIRE(static_cast<bool>(slot));
  CHECK(text_in(context, slot) == "hello");
}

TEST_CASE("11.1 a slot whose file the kernel keeps is not given out again", "[11.1]") {
  const test_folder folder;
  folder.add("a", "hello");
  const common::unique_fd fd = folder.open("a");
  io_context context;
  registered_files table{context, 1};
  {
    const file_slot slot = table.add(fd.get());
    REQUIRE(static_cast<bool>(slot));
    // Behind its back: the kernel refuses every update from here on.
    REQUIRE(::io_uring_unregister_files(&context.handle()) == 0);
  }
  UNSCOPED_INFO(
      "the update that was to clear the slot has failed, so that the old file may still be in it: "
      "look at its result before free_ gets the index");
  CHECK_FALSE(static_cast<bool>(table.reserve()));
}

TEST_CASE("11.1 a slot that is moved goes back once", "[11.1]") {
  const test_folder folder;
  folder.add("a", "hello");
  const common::unique_fd fd = folder.open("a");
  io_context context;
  registered_files table{context, 2};
  {
    file_slot first = table.add(fd.get());
    file_slot second = std::move(first);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): that is the question
    REQUIRE(second);
    CHECK(text_in(context, second) == "hello");
    CHECK(table.used() == 1);
    second = file_slot{};
    CHECK(table.used() == 0);
  }
  const file_slot one = table.add(fd.get());
  const file_slot two = table.add(fd.get());
  UNSCOPED_INFO("the same index is in use twice: it was put into free_ twice");
  CHECK(one.index() != two.index());
}

TEST_CASE("11.1 a request under way keeps its file when the slot ends", "[11.1]") {
  struct check {
    static task<> receive(io_context& context, file_ref file, std::string& text) {
      std::array<std::byte, 16> buffer;
      const io_result received =
          co_await uring::with_flags(uring::recv_op(context, file.number, buffer), file.flags);
      text = received ? text_of(std::span{buffer}.first(received.count())) : "an error";
    }
    static task<> end_slot_then_say(io_context& context, file_slot slot, int socket) {
      co_await course_test::pass_turns(context, 2);
      slot = file_slot{};
      REQUIRE(::send(socket, "late", 4, MSG_NOSIGNAL) == 4);
    }
  };
  io_context context;
  registered_files table{context, 1};
  const course_test::socket_pair pair = course_test::unix_pair();
  file_slot slot = table.add(pair.theirs.get());
  std::string text;
  context.spawn(check::receive(context, uring::file_of(slot, -1), text));
  context.spawn(check::end_slot_then_say(context, std::move(slot), pair.ours.get()));
  context.run();
  CHECK(text == "late");
}

TEST_CASE("11 a queue has one table of files at a time", "[11]") {
  io_context context;
  {
    const registered_files table{context, 8};
    CHECK(table.size() == 8);
    try {
      const registered_files second{context, 8};
      FAIL_CHECK("two tables on one queue");
    } catch (const std::system_error& refused) {
      CHECK(refused.code().value() == EBUSY);
      CHECK_THAT(refused.what(), ContainsSubstring("io_uring_register_files_sparse"));
    }
  }
  CHECK_NOTHROW(registered_files{context, 8});
}

TEST_CASE("11 a slot that was only reserved goes back without a system call", "[11]") {
  io_context context;
  registered_files table{context, 1};
  {
    const file_slot slot = table.reserve();
    REQUIRE(slot);
    CHECK_FALSE(slot.holds_file());
    CHECK_FALSE(table.reserve());
    CHECK(text_in(context, slot) == "error " + std::to_string(EBADF));
  }
  CHECK(table.reserve());
}
