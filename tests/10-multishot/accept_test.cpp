// SPDX-License-Identifier: MIT
// Task 10.1: one request that accepts every client, and what its completions bring.
#include <fcntl.h>
#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "client.hpp"
#include "descriptor_limit.hpp"
#include "errors.hpp"
#include "heard_items.hpp"
#include "io_context.hpp"
#include "multishot_operations.hpp"
#include "socket_pair.hpp"

using course_test::client;
using course_test::heard_items;
using uring::accepted;
using uring::prepare_accept_stream;

namespace {

accepted result_of(std::int32_t res, std::uint32_t flags = IORING_CQE_F_MORE) {
  return prepare_accept_stream::result({.user_data = 0, .res = res, .flags = flags});
}

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("10.1 one request asks for all clients", "[10.1]") {
  ::io_uring_sqe sqe{};
  prepare_accept_stream{42}(sqe);
  CHECK(sqe.opcode == IORING_OP_ACCEPT);
  CHECK(sqe.fd == 42);
  UNSCOPED_INFO("an accept that ends with its first client: io_uring_prep_multishot_accept()");
  CHECK((sqe.ioprio & IORING_ACCEPT_MULTISHOT) != 0);
  UNSCOPED_INFO("the kernel would write every client's address to the same place");
  CHECK((sqe.addr == 0 && sqe.addr2 == 0));
  UNSCOPED_INFO("programs that this one starts would inherit the clients: SOCK_CLOEXEC");
  CHECK((sqe.accept_flags & SOCK_CLOEXEC) != 0);
  UNSCOPED_INFO("sockets stay blocking: the kernel waits in our stead");
  CHECK((sqe.accept_flags & SOCK_NONBLOCK) == 0);
}

TEST_CASE("10.1 an item owns its client, and closes it if nobody takes it", "[10.1]") {
  const int fd = common::check(::dup(0), "dup");
  {
    const accepted got = result_of(fd);
    CHECK(got.result.error() == 0);
    UNSCOPED_INFO("the descriptor in res belongs to nobody: make a unique_fd of it");
    CHECK(got.client.get() == fd);
    CHECK(is_open(fd));
  }
  UNSCOPED_INFO("an item was dropped, and its client is still open");
  CHECK_FALSE(is_open(fd));
}

TEST_CASE("10.1 the last completion brings its client like any other", "[10.1]") {
  const int fd = common::check(::dup(0), "dup");
  const accepted got = result_of(fd, 0);
  UNSCOPED_INFO(
      "IORING_CQE_F_MORE says whether more will come, and not whether this one is good: nobody "
      "would "
      "close this client");
  CHECK(got.client.get() == fd);
}

TEST_CASE("10.1 a failed accept brings no client, and says why", "[10.1]") {
  const accepted got = result_of(-EMFILE);
  CHECK_FALSE(got.client.valid());
  UNSCOPED_INFO("result keeps the kernel's answer");
  CHECK(got.result.error() == EMFILE);
}

TEST_CASE("10.1 descriptor 0 is a client like any other", "[10.1]") {
  accepted got = result_of(0);
  UNSCOPED_INFO("0 is a descriptor; an error is negative");
  CHECK(got.client.valid());
  (void)got.client.release();  // it is this process's own
}

TEST_CASE("10.1 three clients are three completions of one request", "[10.1]") {
  uring::io_context context;
  const course_test::tcp_listener listener = course_test::listen_on_any_port();
  heard_items all{prepare_accept_stream{listener.socket.get()}};
  REQUIRE(context.start(all, all.prepare));
  {
    std::vector<client> clients;
    for (std::size_t count = 1; count <= 3; ++count) {
      clients.emplace_back(listener.port);
      context.turn();
      REQUIRE(all.items.size() == count);
      CHECK(all.items.back().client.valid());
      UNSCOPED_INFO("the request has ended with this client");
      REQUIRE(all.is_in_flight);
    }
  }
  REQUIRE(context.close());
}

TEST_CASE("10.1 at the descriptor limit the request ends", "[10.1]") {
  uring::io_context context;
  const course_test::tcp_listener listener = course_test::listen_on_any_port();
  heard_items all{prepare_accept_stream{listener.socket.get()}};
  const course_test::room_for_descriptors room{1};
  // The kernel reads the limit when the request is submitted.
  REQUIRE(context.start(all, all.prepare));
  const client first{listener.port};  // takes the only number that was free
  context.turn();
  REQUIRE(all.items.size() == 1);
  CHECK(all.items.back().result.error() == EMFILE);
  CHECK_FALSE(all.is_in_flight);
}
