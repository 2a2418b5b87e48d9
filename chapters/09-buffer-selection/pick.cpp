// SPDX-License-Identifier: MIT
// 09-pick: shows what a completion says about the buffer that the kernel has picked, with two
// buffers and one socket.
//
//   ./course run 09:pick
#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "buffer_ring.hpp"
#include "io_context.hpp"
#include "io_request.hpp"
#include "local_pair.hpp"
#include "program_main.hpp"
#include "task.hpp"

namespace {

using uring::buffer_ring;
using uring::completion;
using uring::io_context;
using uring::task;

constexpr uring::buffer_group group = 0;
using two_buffers = std::array<std::array<std::byte, 16>, 2>;

// Receives without a buffer, and prints the completion.
struct prepare_select {
  int fd;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_recv(&sqe, fd, nullptr, 0, 0);
    sqe.flags |= IOSQE_BUFFER_SELECT;
    sqe.buf_group = group;
  }
  static completion result(const completion& done) { return done; }
};

task<> receive(io_context& context, int socket) {
  const completion done = co_await uring::io_request{context, prepare_select{socket}};
  const bool has_buffer = (done.flags & IORING_CQE_F_BUFFER) != 0;
  std::printf("res %4d   flags 0x%08x   F_BUFFER %s   upper half %u\n", done.res, done.flags,
              has_buffer ? "yes" : "no ", done.flags >> IORING_CQE_BUFFER_SHIFT);
}

void say_and_receive(io_context& context, const common::local_pair& sockets,
                     std::string_view text) {
  sockets.say(text);
  std::printf("%-22s", text.data());
  context.run(receive(context, sockets.ours.get()));
}

void show() {
  two_buffers memory;
  common::local_pair sockets;
  io_context context;
  buffer_ring ring{context, group, 2};
  ring.give(0, memory[0]);
  ring.give(1, memory[1]);
  say_and_receive(context, sockets, "one");
  say_and_receive(context, sockets, "three");
  say_and_receive(context, sockets, "no buffer");
  ring.give(1, memory[1]);
  std::printf("%-22s", "buffer 1 is back");
  context.run(receive(context, sockets.ours.get()));
  ring.give(0, memory[0]);
  sockets.theirs.reset();
  std::printf("%-22s", "EOF");
  context.run(receive(context, sockets.ours.get()));
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 09: what a completion says of its buffer."};
  return common::program_main(argc, argv, flags, show);
}
