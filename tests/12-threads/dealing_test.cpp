// SPDX-License-Identifier: MIT
// Task 12.3: a client goes from one worker to another in a message. Where a message is refused, or
// comes late, the test is the kernel.
#include "dealing.hpp"

#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <list>
#include <new>
#include <string>
#include <system_error>

#include "feature.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "message.hpp"
#include "ring_worker.hpp"
#include "scripted_calls.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "watchdog.hpp"

using namespace std::chrono_literals;
using course_test::manual_ring;
using course_test::watchdog;
using uring::accepted;
using uring::arrivals;
using uring::io_context;
using uring::task;

namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

// A socket that nobody serves.
common::unique_fd some_client() {
  return common::unique_fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
}

enum class went { not_yet, gone, stayed, threw };

task<> give(io_context& context, arrivals& to, common::unique_fd& client, went& how) {
  try {
    const bool is_gone = co_await uring::hand_over(context, to, client);
    how = is_gone ? went::gone : went::stayed;
  } catch (const std::system_error&) {
    how = went::threw;
  }
}

// A client on its way to another worker, whose ring is real: nothing is sent there.
struct giving {
  giving() { context.spawn(give(context, to, client, how)); }

  common::unique_fd client = some_client();
  int number = client.get();
  went how = went::not_yet;
  uring::io_queue other;
  arrivals to{other};
  io_context context;
  manual_ring kernel{context};
};

// What comes out of arrivals, as text: "7 8 end".
task<> take_all(arrivals& from, std::string& seen) {
  from.begin();
  for (;;) {
    const accepted got = co_await from.next();
    if (!got.client.valid()) break;
    seen += std::to_string(got.result.fd()) + " ";
  }
  seen += "end";
}

// A worker to which messages come, that nobody has sent.
struct receiving {
  void come(int value) { here.on_message({.word = 0, .value = value}); }
  int come() {
    const int fd = some_client().release();
    come(fd);
    return fd;
  }
  // Says whether keep() failed, as it has to.
  bool come_without_memory(int fd) {
    const course_test::refused_memory none_left;
    try {
      come(fd);
    } catch (const std::bad_alloc&) {
      return true;
    }
    return false;
  }

  io_context context;
  manual_ring kernel{context};
  arrivals here{context};
  std::string seen;
};

}  // namespace

TEST_CASE("12.3 a client is sent to the other worker's ring, and to its arrivals", "[12.3]") {
  giving here;
  const ::io_uring_sqe sqe = here.kernel.take();
  CHECK(sqe.opcode == IORING_OP_MSG_RING);
  UNSCOPED_INFO("the message goes to the ring of `to`, and not to our own");
  CHECK(sqe.fd == here.other.handle().ring_fd);
  UNSCOPED_INFO("the word is the address of `to`: who else would hear of the client?");
  CHECK(sqe.off == (uring::address_of(here.to) | uring::message_bit));
  UNSCOPED_INFO("the value is the client's descriptor");
  CHECK(sqe.len == static_cast<unsigned>(here.number));
  here.kernel.answer(sqe, 0);
  UNSCOPED_INFO("the message was sent, and hand_over() does not say so");
  CHECK(here.how == went::gone);
  ::close(here.number);
}

TEST_CASE("12.3 a client that was sent is not closed here", "[12.3]") {
  giving here;
  here.kernel.answer(here.kernel.take(), 0);
  here.client.reset();  // what becomes of it when the accepting loop goes on
  UNSCOPED_INFO(
      "the other worker serves it, and the descriptor was closed here as well: release()");
  CHECK(is_open(here.number));
  ::close(here.number);
}

TEST_CASE("12.3 a client that could not be sent is served here", "[12.3]") {
  for (const int error : {EOVERFLOW, EBADFD, EBADF}) {
    giving here;
    here.kernel.answer(here.kernel.take(), -error);
    UNSCOPED_INFO("hand_over() threw, and a refused message is no exception here: return false");
    CHECK(here.how != went::threw);
    UNSCOPED_INFO("the message was refused, and hand_over() says that the client has gone");
    CHECK(here.how == went::stayed);
    UNSCOPED_INFO("nobody has got it, and nobody closes it: it has to be the caller's again");
    CHECK(here.client.get() == here.number);
    CHECK(is_open(here.number));
  }
}

TEST_CASE("12 a client whose message finds no room is not lost") {
  course_test::require_feature("r_disabled");
  uring::worker full{{.sq_entries = 1}};  // nobody enables its ring, so it submits nothing
  full.context().start_unheard([](::io_uring_sqe& sqe) { ::io_uring_prep_nop(&sqe); });
  uring::io_queue other;
  arrivals to{other};
  common::unique_fd client = some_client();
  const int number = client.get();
  CHECK_THROWS_AS(full.context().run(uring::hand_over(full.context(), to, client)),
                  std::system_error);
  UNSCOPED_INFO(
      "nothing could be sent, so it has to be the caller's still: reserve() comes before "
      "release()");
  CHECK(client.get() == number);
}

TEST_CASE("12.3 a client in a message belongs to nobody here", "[12.3]") {
  giving here;
  const ::io_uring_sqe sqe = here.kernel.take();
  UNSCOPED_INFO(
      "the other worker may have served and closed it by now: if this frame is destroyed before "
      "it hears how the message went, it closes a stranger's descriptor");
  CHECK_FALSE(here.client.valid());
  CHECK(is_open(here.number));
  here.kernel.answer(sqe, -EOVERFLOW);
}

TEST_CASE("12.3 a frame that ends while the message is under way closes nothing", "[12.3]") {
  int number = -1;
  {
    giving here;
    number = here.number;
    (void)here.kernel.take();  // it is sent, and this worker's ring fails before it hears of that
  }
  UNSCOPED_INFO(
      "the other worker serves this number, and hand_over()'s frame has closed it: a unique_fd in "
      "the frame owns it as much as `client` did. release() before you wait");
  CHECK(is_open(number));
  ::close(number);
}

TEST_CASE("12.3 clients are taken in the order in which they came", "[12.3]") {
  receiving here;
  const int first = here.come();  // before anybody waits
  const int second = here.come();
  here.context.spawn(take_all(here.here, here.seen));
  const int third = here.come();  // while somebody waits
  UNSCOPED_INFO("a client has come in a message, and nobody was told");
  CHECK(here.seen ==
        std::to_string(first) + " " + std::to_string(second) + " " + std::to_string(third) + " ");
  here.come(arrivals::no_more_than(3));
  UNSCOPED_INFO("all three have come: nobody else will");
  CHECK(here.seen.ends_with(" end"));
}

TEST_CASE("12.3 a client may have descriptor 0", "[12.3]") {
  receiving here;
  here.context.spawn(take_all(here.here, here.seen));
  const common::unique_fd input{::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  REQUIRE(::dup2(some_client().get(), STDIN_FILENO) == STDIN_FILENO);
  here.come(STDIN_FILENO);  // a program that was started without input has it free
  (void)::dup2(input.get(), STDIN_FILENO);
  here.come(arrivals::no_more_than(1));
  UNSCOPED_INFO("0 is a descriptor like any other: only a negative value is a count");
  CHECK(here.seen == "0 end");
}

TEST_CASE("12.3 the last message may overtake a client", "[12.3]") {
  receiving here;
  here.context.spawn(take_all(here.here, here.seen));
  const std::string first = std::to_string(here.come());
  here.come(arrivals::no_more_than(2));
  UNSCOPED_INFO("one of two has come: a worker that leaves now loses the other one");
  CHECK(here.seen == first + " ");
  UNSCOPED_INFO(
      "the loop no longer waits: begin() expects one message for all clients, so "
      "message_has_come() is called once, when all have come, and keep() does not call it");
  CHECK(here.context.in_flight() > 0);
  const std::string second = std::to_string(here.come());
  CHECK(here.seen == first + " " + second + " end");
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("12.3 a worker that gets no client ends as well", "[12.3]") {
  receiving here;
  here.context.spawn(take_all(here.here, here.seen));
  CHECK(here.seen.empty());
  here.come(arrivals::no_more_than(0));
  UNSCOPED_INFO("none of none has come: ~0 is negative, and no descriptor");
  CHECK(here.seen == "end");
}

TEST_CASE("12.3 a client that nobody takes is closed", "[12.3]") {
  int number = -1;
  {
    io_context context;
    arrivals here{context};
    number = some_client().release();
    REQUIRE(is_open(number));
    here.on_message({.word = 0, .value = number});
    UNSCOPED_INFO("it waits to be taken");
    CHECK(is_open(number));
  }
  UNSCOPED_INFO("its descriptor leaks: it has to be a unique_fd from the moment on that it comes");
  CHECK_FALSE(is_open(number));
}

TEST_CASE("12.3 a client for which no memory is left is closed", "[12.3]") {
  receiving here;
  here.come(some_client().release());  // a TODO needs memory to say that it is one
  const int number = some_client().release();
  CHECK(here.come_without_memory(number));
  UNSCOPED_INFO(
      "its descriptor leaks: emplace_back(number) fails before a unique_fd has the number, so make "
      "the unique_fd first: push_back(common::unique_fd{number})");
  CHECK_FALSE(is_open(number));
}

TEST_CASE("12 a worker that fails to keep a client waits for no other") {
  receiving here;
  here.context.spawn(take_all(here.here, here.seen));
  CHECK(here.come_without_memory(some_client().release()));
  UNSCOPED_INFO("this client is in no count, and so the loop would wait forever");
  CHECK(here.context.in_flight() == 0);
  here.come(arrivals::no_more_than(0));
  UNSCOPED_INFO("the loop has been told already that nothing is expected");
  CHECK(here.context.in_flight() == 0);
}

namespace {

task<> deal_all(uring::dealer& deals, int clients, int& kept) {
  for (int i = 0; i < clients; ++i) {
    common::unique_fd client = some_client();
    const bool is_gone = co_await deals.deal(client);
    if (!is_gone) ++kept;
  }
}

}  // namespace

TEST_CASE("12 clients are dealt in turns, and the last message ends the wait for more") {
  course_test::require_feature("msg_ring");
  course_test::require_feature("r_disabled");
  const watchdog deadline{5s, "the last word says how many clients have to come"};
  constexpr int turns = 5;
  for (const uring::ring_mode mode : {uring::ring_mode::plain, uring::ring_mode::defer}) {
    uring::worker own{{.mode = mode}};
    uring::worker other{{.mode = mode}};
    std::list<arrivals> others;
    others.emplace_back(other.context());
    uring::dealer deals{own.context(), others};
    other.enable();
    own.enable();
    int kept = 0;
    own.context().run(deal_all(deals, 2 * turns, kept));
    deals.end();
    std::string seen;
    other.context().run(take_all(others.front(), seen));
    CHECK(kept == turns);
    CHECK(std::ranges::count(seen, ' ') == turns);
    CHECK(seen.ends_with("end"));
  }
}
