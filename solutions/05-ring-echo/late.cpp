// SPDX-License-Identifier: MIT
// 05-late: a recv completes after its connection was closed and its descriptor's number was given
// to the next client. To which client does the completion lead?
//
//   ./course run 05:late
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

#include "local_pair.hpp"
#include "program_main.hpp"
#include "ring.hpp"
#include "slot_table.hpp"

namespace {

struct tenant {
  const char* name;
  common::unique_fd socket;
};

// Prints which client has that id, and returns its descriptor.
int introduce(uring::slot_table<tenant>& table, const uring::slot_id& id) {
  const tenant* const shown = table.find(id);
  if (shown == nullptr) throw std::logic_error{"find() does not find an id that insert() returned"};
  std::printf("%s has descriptor %d, slot %u, generation %u.\n", shown->name, shown->socket.get(),
              id.index, id.generation);
  return shown->socket.get();
}

void show() {
  std::array<std::byte, 64> buffer{};  // outlives the ring, and so the recv in flight
  uring::slot_table<tenant> table;
  uring::ring ring{{}};

  common::local_pair ada;
  const uring::slot_id adas = table.insert(std::make_unique<tenant>("Ada", std::move(ada.ours)));
  const int descriptor = introduce(table, adas);
  ::io_uring_sqe& sqe = ring.get_sqe();
  ::io_uring_prep_recv(&sqe, descriptor, buffer.data(), buffer.size(), 0);
  ::io_uring_sqe_set_data64(&sqe, uring::pack({uring::operation::recv, adas}));
  (void)ring.submit_and_wait(std::chrono::milliseconds{0});  // in flight: nothing has come yet
  table.erase(adas);                                         // closes the descriptor
  std::printf("Ada's recv is in flight. Her connection is closed.\n");

  common::local_pair bob;  // the kernel gives out the lowest number that is free
  (void)introduce(table, table.insert(std::make_unique<tenant>("Bob", std::move(bob.ours))));

  ada.say("for Ada");
  if (ring.submit_and_wait(std::chrono::seconds{2}) != uring::wake::completions) {
    common::throw_error(ETIMEDOUT, "the wait for Ada's recv");
  }
  const uring::completion late = ring.reap().front();
  const uring::slot_id whose = uring::unpack(late.user_data).whose;
  std::printf("A recv has completed: %d bytes, slot %u, generation %u.\n", late.res, whose.index,
              whose.generation);
  const tenant* const found = table.find(whose);
  std::printf("find() says: %s.\n", found == nullptr ? "nobody" : found->name);
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 05: a completion that comes after its connection was closed."};
  return common::program_main(argc, argv, flags, [] { show(); });
}
