// SPDX-License-Identifier: MIT
// Task 05.1, by experiment: a recv outlives its descriptor, and the number has a new owner.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <memory>
#include <string>

#include "child_process.hpp"
#include "ring.hpp"
#include "slot_table.hpp"
#include "socket_pair.hpp"

using namespace std::chrono_literals;
using course_test::socket_pair;

namespace {

// Each client has a buffer that outlives its connection: only user_data is tested here.
struct peer {
  common::unique_fd socket;
};

struct late_fixture {
  uring::ring ring{{}};
  uring::slot_table<peer> table;
  std::array<char, 64> first_buffer{};
  std::array<char, 64> second_buffer{};

  uring::slot_id enter(common::unique_fd socket) {
    return table.insert(std::make_unique<peer>(peer{std::move(socket)}));
  }

  void recv(const uring::slot_id& whose, std::array<char, 64>& into) {
    ::io_uring_sqe& sqe = ring.get_sqe();
    ::io_uring_prep_recv(&sqe, table.find(whose)->socket.get(), into.data(), into.size(), 0);
    ::io_uring_sqe_set_data64(&sqe, uring::pack({uring::operation::recv, whose}));
  }

  uring::completion next_completion() {
    REQUIRE(ring.submit_and_wait(2000ms) == uring::wake::completions);
    const auto done = ring.reap();
    REQUIRE(done.size() == 1);
    return done.front();
  }
};

void send_text(const common::unique_fd& socket, const std::string& text) {
  const auto sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  REQUIRE(sent == static_cast<::ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("05.1 a late completion does not reach the new owner of its descriptor number",
          "[05.1]") {
  late_fixture loop;
  socket_pair ada = course_test::unix_pair();
  const int number = ada.theirs.get();
  const uring::slot_id ada_id = loop.enter(std::move(ada.theirs));
  loop.recv(ada_id, loop.first_buffer);
  REQUIRE(loop.ring.submit_and_wait(0ms) == uring::wake::timeout);  // in flight: nothing to receive
  loop.table.erase(ada_id);  // closes the descriptor; the request has the file open still

  socket_pair bob = course_test::unix_pair();
  // Either end may have it: the kernel gives out the lowest number that is free.
  if (bob.ours.get() == number) std::swap(bob.ours, bob.theirs);
  REQUIRE(bob.theirs.get() == number);
  const uring::slot_id bob_id = loop.enter(std::move(bob.theirs));

  send_text(ada.ours, "for Ada's connection");
  const uring::completion late = loop.next_completion();
  REQUIRE(late.res == 20);  // the closed descriptor has received
  UNSCOPED_INFO("Ada's bytes would go to Bob: same descriptor, same slot, another generation");
  CHECK(loop.table.find(uring::unpack(late.user_data).whose) == nullptr);

  loop.recv(bob_id, loop.second_buffer);
  send_text(bob.ours, "for Bob");
  const uring::completion own = loop.next_completion();
  UNSCOPED_INFO("Bob's own completion must find Bob");
  REQUIRE(loop.table.find(uring::unpack(own.user_data).whose) != nullptr);
  CHECK(loop.table.find(uring::unpack(own.user_data).whose)->socket.get() == number);
}

TEST_CASE("05.1 the program that shows a late completion finds nobody", "[05.1]") {
  const auto run = course_test::run_program(course_test::program("05-late"), {});
  CHECK(run.status == course_test::exited(0));
  UNSCOPED_INFO(run.stdout_text);
  UNSCOPED_INFO("Bob has Ada's slot, but another generation: find() compares both");
  CHECK(run.stdout_text.ends_with("find() says: nobody.\n"));
}
