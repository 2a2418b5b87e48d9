// SPDX-License-Identifier: MIT
// What all kinds of echo share: the client, and the end of a client at a stop. Most kinds share the
// loop echo_by(), too.
// Owns     nothing.
// Lifetime the sources, the queue and the Shared object must outlive every task.
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// Rule     a kind differs from the others only in how it receives and sends, and in what it needs
//          for that: a slot, a pipe, or its own loop. So a measurement shows only that difference.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "io_request.hpp"
#include "operations.hpp"
#include "registered_files.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

// A socket, and the sources that end the waits for it.
struct variant_client {
  cancel_source& waiting;   // ends the waits for bytes, at a stop
  cancel_source& given_up;  // also ends the waits to send, when the grace period of a stop is over
  file_ref file;            // a descriptor, or a slot

  [[nodiscard]] int socket() const noexcept { return file.number; }
};

// The Shared object of most kinds: it has only the size of each client's own buffer.
struct own_buffers {
  static constexpr std::uint8_t file_flags = 0;

  own_buffers(io_queue&, const buffer_options& options) : bytes{options.bytes} {}

  std::size_t bytes;
};

// Echoes until the client sends no more, until it is lost, or until a stop. `receive`, `send` and,
// in a kind that waits by a request of its own, `ready` make the requests.
template <auto receive, auto send, auto... ready>
task<> echo_by(variant_client client, std::span<std::byte> buffer) {
  while (true) {
    if constexpr (sizeof...(ready) == 1) {
      const io_result is_ready = co_await (ready(client), ...);
      if (is_ready.is_passing()) continue;
      if (!is_ready) co_return;
    }
    const io_result received = co_await receive(client, buffer);
    if (received.is_passing()) continue;
    if (!received || received.count() == 0) co_return;
    std::span<std::byte> unsent = buffer.first(received.count());
    while (!unsent.empty()) {
      const io_result sent = co_await send(client, unsent);
      if (sent.is_passing()) continue;
      if (!sent) co_return;
      unsent = unsent.subspan(sent.count());
    }
  }
}

// Receives the bytes that have arrived, and then EOF: a stop does not wait for further bytes.
struct prepare_last_recv {
  int socket;
  std::span<std::byte> into;

  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_recv(&sqe, socket, into.data(), into.size(), MSG_DONTWAIT);
  }
  static io_result result(const completion& done) {
    return io_result{done.res == -EAGAIN ? 0 : done.res};
  }
};

inline auto recv_last(const variant_client& client, std::span<std::byte> into) {
  return with_flags(
      io_request{io_handle{client.given_up}, prepare_last_recv{client.socket(), into}},
      client.file.flags);
}

inline auto recv_plain(const variant_client& client, std::span<std::byte> into) {
  return with_flags(recv_op(client.waiting, client.socket(), into), client.file.flags);
}

inline auto send_plain(const variant_client& client, std::span<const std::byte> data) {
  return with_flags(send_op(client.given_up, client.socket(), data), client.file.flags);
}

template <typename Shared>
using echo_function = task<>(variant_client client, Shared& shared);

// Makes a kind into an Echo for echo_service. After a stop it echoes the bytes that have arrived.
template <typename Shared, echo_function<Shared>* echo>
class variant_echo {
 public:
  variant_echo(Shared& shared, cancel_source& waiting, cancel_source& given_up) noexcept
      : shared_{shared}, waiting_{waiting}, given_up_{given_up} {}

  task<> run(int socket) {
    const variant_client client{waiting_, given_up_, {socket, Shared::file_flags}};
    if (!waiting_.is_canceled()) co_await echo(client, shared_);
    if (waiting_.is_canceled()) co_await echo_what_has_arrived(client);
  }

 private:
  static constexpr std::size_t last_bytes = 4096;

  static task<> echo_what_has_arrived(variant_client client) {
    std::vector<std::byte> buffer(last_bytes);
    co_await echo_by<recv_last, send_plain>(client, buffer);
  }

  Shared& shared_;
  cancel_source& waiting_;
  cancel_source& given_up_;
};

template <typename Shared, echo_function<Shared>* echo, typename Clients = accept_each>
task<> serve_variant(io_context& context, common::unique_fd listener, int stop_fd,
                     buffer_options buffers) {
  Shared shared{context, buffers};
  echo_service<variant_echo<Shared, echo>, Clients> service{context, std::move(listener), stop_fd,
                                                            shared};
  co_await service.serve_until_stopped();
}

}  // namespace uring
