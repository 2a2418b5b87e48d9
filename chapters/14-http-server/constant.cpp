// SPDX-License-Identifier: MIT
// 14-constant: sends the same answer for all bytes that come, without parsing them. It uses the
// sockets as our server does, so the checkpoint compares our server's cost with this one's.
//
//   ./course run 14:constant -- --port 8080
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "announce.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "listen.hpp"
#include "operations.hpp"
#include "program_main.hpp"
#include "ring_options.hpp"
#include "task.hpp"

namespace {

using namespace uring;

constexpr ring_options queues{.mode = ring_mode::defer, .cq_entries = 16'384};

// As large as 14-server's answer with a file of 1 KiB.
std::string constant_answer() {
  return "HTTP/1.1 200 OK\r\nDate: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
         "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 1024\r\n"
         "ETag: \"3b9aca00.0-400\"\r\nLast-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
         "Accept-Ranges: bytes\r\n\r\n" +
         std::string(1024, 'x');
}

// Treats the bytes of each recv as one whole request.
class constant_answers {
 public:
  constant_answers(cancel_source& waiting, cancel_source& given_up) noexcept
      : waiting_{waiting}, given_up_{given_up} {}

  task<> run(int socket) {
    std::array<std::byte, 4096> request;
    for (;;) {
      const io_result received = co_await recv_op(waiting_, socket, request);
      if (!received || received.count() == 0) co_return;
      const io_result sent = co_await send_op(given_up_, socket, std::as_bytes(std::span{answer_}));
      if (!sent) co_return;
    }
  }

 private:
  std::string answer_ = constant_answer();
  cancel_source& waiting_;
  cancel_source& given_up_;
};

task<> serve(io_context& context, common::unique_fd listener, int stop_fd) {
  echo_service<constant_answers> service{context, std::move(listener), stop_fd};
  co_await service.serve_until_stopped();
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14: one answer for every request. Not a server to keep."};
  const ring_command_line ring{flags, queues};
  return common::server_main(
      argc, argv, flags, {.threads_max = 1},
      [&](const common::server_flags& server, const common::stop_signal& stop) {
        common::unique_fd listener = common::listen_on(server.host, server.port);
        io_context context{ring.options()};
        common::announce(listener.get());
        context.run(serve(context, std::move(listener), stop.fd()));
      });
}
