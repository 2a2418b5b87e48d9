// SPDX-License-Identifier: MIT
// 10-many: shows one request with many completions, and two ways in which it ends.
//
//   ./course run 10:many
#include <liburing.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "io_operation.hpp"
#include "io_queue.hpp"
#include "listen.hpp"
#include "multishot_operations.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "unique_fd.hpp"

namespace {

using common::check;
using uring::accepted;
using uring::completion;

constexpr uring::ring_options small_queues{.sq_entries = 4, .cq_entries = 4};

// Prints each completion, and keeps the clients.
struct printed_accept : uring::io_operation {
  printed_accept() : io_operation{&on_completion} {}

  static void on_completion(io_operation& self, const completion& done) {
    const bool goes_on = (done.flags & IORING_CQE_F_MORE) != 0;
    std::printf("  res %4d   F_MORE %s\n", done.res, goes_on ? "yes" : "no");
    auto& to = static_cast<printed_accept&>(self);
    to.clients.push_back(uring::prepare_accept_stream::result(done));
  }

  std::vector<accepted> clients;
};

// A listener, and clients that come when we say so.
class scene {
 public:
  void arm() { queue_.start(accept_, uring::prepare_accept_stream{listener_.get()}); }

  void come() {
    common::unique_fd client{check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
    ::sockaddr_in to{};
    ::socklen_t bytes = sizeof to;
    auto* const address = reinterpret_cast<::sockaddr*>(&to);
    check(::getsockname(listener_.get(), address, &bytes), "getsockname");
    check(::connect(client.get(), address, bytes), "connect");
    clients_.push_back(std::move(client));
  }

  // Runs the loop until every client that has come was accepted.
  void look() {
    while (accept_.clients.size() < clients_.size()) queue_.turn();
  }

  void cancel() {
    queue_.start_unheard([this](::io_uring_sqe& sqe) {
      ::io_uring_prep_cancel64(&sqe, reinterpret_cast<std::uint64_t>(&accept_), 0);
    });
    while (queue_.in_flight() > 0) queue_.turn();
  }

 private:
  common::unique_fd listener_ = common::listen_on("127.0.0.1", 0);
  std::vector<common::unique_fd> clients_;
  uring::io_queue queue_{small_queues};
  printed_accept accept_;
};

void say(std::string_view what) {
  std::printf("%s\n", what.data());
}

void show() {
  scene here;
  say("one request; three clients come, one after the other");
  here.arm();
  for (int i = 0; i < 3; ++i) {
    here.come();
    here.look();
  }
  say("the completion queue has four entries; five clients come before we look");
  for (int i = 0; i < 5; ++i) here.come();
  here.look();
  say("a ninth client comes: no accept, until a request is armed again");
  here.come();
  here.arm();
  here.look();
  say("canceled");
  here.cancel();
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 10: one request, many completions."};
  return common::program_main(argc, argv, flags, show);
}
