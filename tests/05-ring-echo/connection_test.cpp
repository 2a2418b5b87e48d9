// SPDX-License-Identifier: MIT
// Task 05.3: one connection, told by the test how its operations ended.
#include <errno.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "errors.hpp"
#include "ring_connection.hpp"

using uring::next;
using uring::ring_connection;

template <>
struct Catch::StringMaker<next> {
  static std::string convert(next wanted) {
    return wanted == next::recv ? "recv" : wanted == next::send ? "send" : "close";
  }
};

namespace {

// A recv of `bytes` has completed, so a send of them is in flight.
void receive(ring_connection& client, std::int32_t bytes) {
  REQUIRE(client.on_recv(bytes) == next::send);
}

constexpr std::int32_t full = ring_connection::buffer_bytes;

}  // namespace

TEST_CASE("05 a connection sends the bytes that it received, and no more") {
  ring_connection client{common::unique_fd{}};
  CHECK(client.on_recv(5) == next::send);
  UNSCOPED_INFO("res is the number of bytes that came; the buffer may be larger");
  CHECK(client.unsent().size() == 5);
  CHECK(client.unsent().data() == client.free_space().data());
}

TEST_CASE("05 a full buffer is sent whole") {
  ring_connection client{common::unique_fd{}};
  CHECK(client.on_recv(full) == next::send);
  CHECK(client.unsent().size() == ring_connection::buffer_bytes);
}

TEST_CASE("05 the end of a client closes its connection") {
  for (const int res : {0, -ECONNRESET, -ETIMEDOUT, -ECANCELED, -EBADF, -ENOMEM}) {
    ring_connection client{common::unique_fd{}};
    const next wanted = client.on_recv(res);
    UNSCOPED_INFO("recv completed with " << (res == 0 ? "0, the EOF" : common::describe_errno(res))
                                         << ": there will be nothing more to receive");
    CHECK(wanted == next::close);
  }
}

TEST_CASE("05 a recv with a passing failure is tried again") {
  for (const int res : {-EINTR, -EAGAIN}) {
    ring_connection client{common::unique_fd{}};
    const next wanted = client.on_recv(res);
    UNSCOPED_INFO("recv completed with " << common::describe_errno(res)
                                         << ": the client is well, ask again");
    CHECK(wanted == next::recv);
  }
}

TEST_CASE("05 after a send that took all bytes comes a recv") {
  ring_connection client{common::unique_fd{}};
  receive(client, full);
  CHECK(client.on_send(full) == next::recv);
}

TEST_CASE("05.3 a send that took a part is followed by a send of the rest", "[05.3]") {
  ring_connection client{common::unique_fd{}};
  receive(client, 1000);
  const std::byte* const first = client.unsent().data();
  std::size_t sent = 0;
  for (const std::int32_t taken : {1, 300, 698}) {
    UNSCOPED_INFO("a short send: res bytes of unsent() have gone, the rest is still ours to send");
    CHECK(client.on_send(taken) == next::send);
    sent += static_cast<std::size_t>(taken);
    UNSCOPED_INFO("go on where it stopped: neither from the start, nor with the bytes behind it");
    CHECK(client.unsent().data() == first + sent);
    CHECK(client.unsent().size() == 1000 - sent);
  }
  UNSCOPED_INFO("now all 1,000 bytes have gone");
  CHECK(client.on_send(1) == next::recv);
}

TEST_CASE("05.3 a send with a passing failure is tried again with the same bytes", "[05.3]") {
  for (const int res : {-EINTR, -EAGAIN}) {
    ring_connection client{common::unique_fd{}};
    receive(client, 100);
    const next wanted = client.on_send(res);
    UNSCOPED_INFO("send completed with " << common::describe_errno(res)
                                         << ": the client is well, and nothing was sent");
    CHECK(wanted == next::send);
    UNSCOPED_INFO(
        "a negative res became a count, and moved unsent_ out of the buffer: look for a failure "
        "before you call subspan()");
    CHECK(client.unsent().size() == 100);
  }
}

TEST_CASE("05.3 a send that failed closes the connection", "[05.3]") {
  for (const int res : {-EPIPE, -ECONNRESET, -ECANCELED}) {
    ring_connection client{common::unique_fd{}};
    receive(client, 100);
    const next wanted = client.on_send(res);
    UNSCOPED_INFO("send completed with " << common::describe_errno(res)
                                         << ": nobody will read the rest, so close the connection");
    CHECK(wanted == next::close);
  }
}
