// SPDX-License-Identifier: MIT
// The service out of streams: what a full descriptor table and a stop do to its accept, where the
// test is the kernel; and the program that stops accepting.
#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client.hpp"
#include "eventually.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "recorded_supply.hpp"
#include "server_process.hpp"
#include "socket_pair.hpp"
#include "stream_server.hpp"
#include "unique_fd.hpp"

using namespace std::chrono_literals;
using course_test::client;
using course_test::cqe_more;
using course_test::scripted_answer;
using course_test::server_process;
using uring::io_context;

namespace {

constexpr int stop_number = 98;  // nobody's: no request reaches the kernel

// The service, whose accept and whose wait for a stop are in flight.
struct scripted_service {
  scripted_service() {
    auto listener = course_test::listen_on_any_port();
    context.spawn(
        uring::serve_from_streams(context, std::move(listener.socket), stop_number, pool));
    accept = kernel.take().user_data;
    stop = kernel.take().user_data;
  }

  // What the kernel says of a client that has come.
  scripted_answer client_comes() {
    course_test::socket_pair pair = course_test::unix_pair();
    others.push_back(std::move(pair.ours));
    return {accept, pair.theirs.release(), cqe_more};
  }

  // Cancels and waits that are not at issue end, until nothing is in flight.
  void finish() {
    while (context.in_flight() > 0 && kernel.waiting() > 0) {
      const ::io_uring_sqe next = kernel.take();
      const bool receives = next.opcode == IORING_OP_RECV;
      kernel.answer(next, receives ? -EAGAIN : -ECANCELED);
    }
    CHECK(context.in_flight() == 0);
  }

  io_context context;
  course_test::recorded_supply supply;
  uring::buffer_pool pool{context, supply, {4, 64}};
  course_test::manual_ring kernel{context};
  std::uint64_t accept = 0;
  std::uint64_t stop = 0;
  std::vector<common::unique_fd> others;  // the clients' own ends
};

}  // namespace

TEST_CASE("10 at the descriptor limit it waits for a client to leave, and accepts again", "[10]") {
  scripted_service here;
  here.kernel.turn({here.client_comes()});
  const std::uint64_t receiving = here.kernel.take().user_data;
  here.kernel.turn({{here.accept, -EMFILE}});
  UNSCOPED_INFO("an accept that is armed again at once ends at once: the loop spins");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe pause = here.kernel.take();
  REQUIRE(pause.opcode == IORING_OP_TIMEOUT);
  here.kernel.turn({{receiving, 0}});  // the client leaves
  const ::io_uring_sqe cancel = here.kernel.take();
  CHECK(cancel.addr == pause.user_data);
  here.kernel.turn({{cancel.user_data, 0}, {pause.user_data, -ECANCELED}});
  UNSCOPED_INFO("a descriptor is free, and the server does not accept again");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe again = here.kernel.take();
  CHECK(again.opcode == IORING_OP_ACCEPT);
  here.kernel.turn({{here.stop, POLLIN}, {again.user_data, -ECANCELED}});
  here.finish();
}

TEST_CASE("10 if a client left before the limit was reported, the server accepts again", "[10]") {
  scripted_service here;
  here.kernel.turn({here.client_comes()});
  const std::uint64_t receiving = here.kernel.take().user_data;
  here.kernel.turn({{receiving, 0}, {here.accept, -EMFILE}});
  UNSCOPED_INFO("a descriptor is free already, and the accept waits for the next one to be freed");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe again = here.kernel.take();
  REQUIRE(again.opcode == IORING_OP_ACCEPT);
  here.kernel.answer(again, -EMFILE);
  UNSCOPED_INFO("no client has left since then: a server that tries again spins");
  REQUIRE(here.kernel.waiting() == 1);
  const ::io_uring_sqe pause = here.kernel.take();
  CHECK(pause.opcode == IORING_OP_TIMEOUT);
  here.kernel.turn({{here.stop, POLLIN}, {pause.user_data, -ECANCELED}});
  here.finish();
}

TEST_CASE("10 clients that were accepted before the stop are served", "[10]") {
  scripted_service here;
  here.kernel.turn({{here.stop, POLLIN}});
  // The kernel has accepted two more by the time it hears of the cancel.
  here.kernel.turn({here.client_comes(), here.client_comes(), {here.accept, -ECANCELED}});
  int received = 0;
  while (here.kernel.waiting() > 0) {
    const ::io_uring_sqe next = here.kernel.take();
    if (next.opcode == IORING_OP_RECV) ++received;
    here.kernel.answer(next, next.opcode == IORING_OP_RECV ? -EAGAIN : -ECANCELED);
  }
  UNSCOPED_INFO("a client's connection was taken, and its bytes were not looked at");
  CHECK(received == 2);
  CHECK(here.context.in_flight() == 0);
}

TEST_CASE("10 first-multishot stops accepting at the descriptor limit, and the server does not",
          "[10]") {
  const server_process broken{course_test::program("10-first-multishot"), {"--descriptors", "20"}};
  const server_process mended{course_test::program("10-server"), {}, {.fd_limit = 20}};
  for (const server_process* each : {&broken, &mended}) {
    {
      const auto crowd = course_test::connect_many(each->port(), 40);
    }
    client late{each->port()};
    late.send_all("hello?");
    std::string reply;
    const bool answered = course_test::happens_within(
        each == &broken ? 500ms : 30s, [&] { return (reply += late.recv_some(6)) == "hello?"; });
    UNSCOPED_INFO((each == &broken ? "first-multishot has lost the defect that the page shows"
                                   : "a request has ended, and nobody arms it again"));
    CHECK(answered == (each == &mended));
  }
}
