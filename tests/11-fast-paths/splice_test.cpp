// SPDX-License-Identifier: MIT
// Task 11.4: from a file to a socket through a pipe, even if transfers are short.
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "cancel_source.hpp"
#include "fd_scope.hpp"
#include "how_it_ended.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "outcome.hpp"
#include "receiver.hpp"
#include "ring_modes.hpp"
#include "silent_socket.hpp"
#include "socket_pair.hpp"
#include "splice_file.hpp"
#include "task.hpp"
#include "test_folder.hpp"
#include "turns.hpp"
#include "when_all.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::manual_ring;
using course_test::noise;
using course_test::receiver;
using course_test::socket_number;
using course_test::test_folder;
using uring::cancel_source;
using uring::extent;
using uring::file_ref;
using uring::io_context;
using uring::io_handle;
using uring::splice_pipe;
using uring::task;

namespace {

constexpr std::size_t room = 64 * 1024;

task<> send(io_handle io, file_ref file, extent part, const splice_pipe& pipe, int socket,
            std::string& ended) {
  const uring::outcome<void> sent =
      co_await uring::splice_file(io, file, part, pipe, socket).as_outcome();
  ended = course_test::how_it_ended(sent);
}

// One whose requests the test answers itself.
struct splice_sending {
  io_context context;
  manual_ring kernel{context};
  splice_pipe pipe{room};
  std::string ended = "not at all";

  void start(extent part, file_ref file = {.number = 7, .flags = 0}) {
    context.spawn(send(context, file, part, pipe, socket_number, ended));
  }

  // "in 100 at 0" or "out 100", of a request as it should be. It checks, and so clears what
  // UNSCOPED_INFO has said: say that after it, and look at `taken`.
  std::string take() {
    taken = "nothing";
    if (kernel.waiting() == 0) return taken;
    const ::io_uring_sqe sqe = kernel.take();
    const bool is_in = sqe.fd == pipe.write_end();
    CHECK(sqe.opcode == IORING_OP_SPLICE);
    CHECK(sqe.fd == (is_in ? pipe.write_end() : socket_number));
    CHECK(sqe.splice_fd_in == (is_in ? 7 : pipe.read_end()));
    last = {sqe.user_data, sqe.flags, sqe.splice_flags};
    const std::string bytes = std::to_string(sqe.len);
    taken = is_in ? "in " + bytes + " at " + std::to_string(sqe.splice_off_in) : "out " + bytes;
    return taken;
  }
  void answer(std::int32_t res) {
    INFO("no splice is under way; the send has ended: " << ended);
    REQUIRE(taken != "nothing");
    kernel.turn({{last.user_data, res}});
  }

  // The request that was taken last.
  std::string taken;
  struct {
    std::uint64_t user_data;
    std::uint8_t flags;
    std::uint32_t splice_flags;
  } last{};
};

}  // namespace

TEST_CASE("11.4 bytes that have gone into the pipe come out of it before more go in", "[11.4]") {
  splice_sending test;
  test.start({0, 2 * room});
  CHECK(test.take() == "in 65536 at 0");
  test.answer(static_cast<std::int32_t>(room));
  (void)test.take();
  UNSCOPED_INFO("a splice into a full pipe waits for a reader, and nobody else reads from it");
  CHECK(test.taken == "out 65536");
  test.answer(static_cast<std::int32_t>(room));
  CHECK(test.take() == "in 65536 at 65536");
  test.answer(static_cast<std::int32_t>(room));
  CHECK(test.take() == "out 65536");
  test.answer(static_cast<std::int32_t>(room));
  CHECK(test.ended == "well");
}

TEST_CASE("11.4 a short splice is continued where it stopped, on both sides", "[11.4]") {
  splice_sending test;
  test.start({1000, 1500});
  CHECK(test.take() == "in 500 at 1000");
  test.answer(300);
  (void)test.take();
  UNSCOPED_INFO("only bytes that have gone in can come out: a splice for more would wait");
  CHECK(test.taken == "out 300");
  test.answer(100);
  (void)test.take();
  UNSCOPED_INFO("the socket has taken a part; the rest is still in the pipe");
  CHECK(test.taken == "out 200");
  test.answer(200);
  (void)test.take();
  UNSCOPED_INFO("the next piece begins behind what has gone in, not behind what was asked for");
  CHECK(test.taken == "in 200 at 1300");
  test.answer(200);
  CHECK(test.take() == "out 200");
  test.answer(200);
  CHECK(test.ended == "well");
}

TEST_CASE("11.4 no more is asked for than the part has, and no more than the pipe holds",
          "[11.4]") {
  splice_sending small;
  small.start({10, 11});
  CHECK(small.take() == "in 1 at 10");
  small.answer(1);
  CHECK(small.take() == "out 1");
  small.answer(1);
  CHECK(small.ended == "well");

  splice_sending large;
  large.start({0, std::uint64_t{5} << 32});
  (void)large.take();
  UNSCOPED_INFO("a request's length has 32 bits, and a pipe has less");
  CHECK(large.taken == "in 65536 at 0");
}

TEST_CASE("11.4 a splice that was interrupted is made again", "[11.4]") {
  INFO("EINTR and EAGAIN are no failure: nothing was moved, and nothing is lost");
  splice_sending test;
  test.start({0, 10});
  for (const int passing : {-EINTR, -EAGAIN}) {
    CHECK(test.take() == "in 10 at 0");
    test.answer(passing);
  }
  CHECK(test.take() == "in 10 at 0");
  test.answer(10);
  for (const int passing : {-EINTR, -EAGAIN}) {
    CHECK(test.take() == "out 10");
    test.answer(passing);
  }
  CHECK(test.take() == "out 10");
  test.answer(10);
  CHECK(test.ended == "well");
}

TEST_CASE("11.4 an error is thrown, and says on which side", "[11.4]") {
  splice_sending reading;
  reading.start({0, 10});
  CHECK(reading.take() == "in 10 at 0");
  reading.answer(-EIO);
  CHECK_THAT(reading.ended, ContainsSubstring("EIO"));

  splice_sending writing;
  writing.start({0, 10});
  CHECK(writing.take() == "in 10 at 0");
  writing.answer(10);
  CHECK(writing.take() == "out 10");
  writing.answer(-EPIPE);
  CHECK_THAT(writing.ended, ContainsSubstring("EPIPE"));
}

TEST_CASE("11.4 a file that has become shorter is an error, and not an endless loop", "[11.4]") {
  splice_sending test;
  test.start({0, 100});
  CHECK(test.take() == "in 100 at 0");
  test.answer(60);
  CHECK(test.take() == "out 60");
  test.answer(60);
  CHECK(test.take() == "in 40 at 60");
  test.answer(0);
  UNSCOPED_INFO("0 is the end of the file: the client was promised more");
  CHECK_THAT(test.ended, ContainsSubstring("nothing is left at byte 60"));
}

TEST_CASE("11.4 a registered file is named as such on the side that it is on", "[11.4]") {
  splice_sending test;
  test.start({0, 10}, {.number = 7, .flags = IOSQE_FIXED_FILE});
  CHECK(test.take() == "in 10 at 0");
  UNSCOPED_INFO("the slot is the side that splice takes from; IOSQE_FIXED_FILE is about the other");
  CHECK((test.last.splice_flags & SPLICE_F_FD_IN_FIXED) != 0);
  CHECK((test.last.flags & IOSQE_FIXED_FILE) == 0);
  test.answer(10);
  CHECK(test.take() == "out 10");
  CHECK(test.last.splice_flags == 0);
}

TEST_CASE("11.4 files of every size arrive unchanged, on every ring", "[11.4]") {
  const test_folder folder;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, room - 1, room, room + 1, std::size_t{1} << 20}) {
    const std::string content = noise(bytes);
    folder.add("a", content);
    const common::unique_fd file = folder.open("a");
    for (const uring::ring_options& options : course_test::all_rings) {
      io_context context{options};
      receiver peer;
      const splice_pipe pipe{room};
      std::string ended;
      context.run(send(context, {file.get(), 0}, {0, bytes}, pipe, peer.sender(), ended));
      REQUIRE(ended == "well");
      REQUIRE(course_test::compare_bytes(peer.all(), content) == course_test::identical);
    }
  }
}

TEST_CASE("11.4 a peer that is gone ends the send, and not the program", "[11.4]") {
  const test_folder folder;
  folder.add("a", noise(1 << 20));
  const common::unique_fd file = folder.open("a");
  course_test::socket_pair pair = course_test::tcp_pair();
  course_test::reset_on_close(pair.ours.get());
  pair.ours.reset();
  io_context context;
  const splice_pipe pipe{room};
  std::string ended;
  context.run(send(context, {file.get(), 0}, {0, 1 << 20}, pipe, pair.theirs.get(), ended));
  CHECK_THAT(ended, ContainsSubstring("splice to the socket: E"));
}

TEST_CASE("11.4 a cancel ends a send to a peer that does not read", "[11.4]") {
  const test_folder folder;
  const std::size_t bytes = 32 << 20;
  folder.add("a", std::string(bytes, 'x'));
  const common::unique_fd file = folder.open("a");
  for (const uring::ring_options& options : course_test::all_rings) {
    const course_test::silent_socket silent;
    io_context context{options};
    cancel_source source{context};
    cancel_source unused{context};
    const splice_pipe pipe{room};
    std::string ended;
    context.run(uring::when_all(unused,
                                send(source, {file.get(), 0}, {0, bytes}, pipe, silent.fd(), ended),
                                course_test::cancel_after(context, 50, source)));
    UNSCOPED_INFO(
        "ERESTARTSYS (512) is how the kernel says that a splice was interrupted; EPIPE: the cancel "
        "has not ended it within "
        << course_test::silent_socket::rescue_after().count() << " ms");
    CHECK_THAT(ended, ContainsSubstring("ECANCELED"));
  }
}

TEST_CASE("11 a pipe knows its room, and brings its ends home", "[11]") {
  const course_test::fd_scope fds;
  {
    const splice_pipe pipe{200'000};
    UNSCOPED_INFO("the kernel rounds up to a power of two of pages, if the user may have as much");
    CHECK(pipe.room() >= 4096);
    CHECK(::fcntl(pipe.read_end(), F_GETPIPE_SZ) == static_cast<int>(pipe.room()));
    const splice_pipe impossible{std::size_t{1} << 30};
    CHECK(impossible.room() >= 4096);
  }
  CHECK(fds.leaked() == "");
}
