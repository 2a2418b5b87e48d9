// SPDX-License-Identifier: MIT
// Chapter 08's service with this chapter's streams: of clients, and of each client's bytes.
// Lifetime serve_from_streams() returns when a stop was asked for and every client has gone; the
//          context and the pool must outlive it.
#pragma once

#include <utility>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "echo_service.hpp"
#include "io_context.hpp"
#include "multishot_operations.hpp"
#include "stream_echo.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

// The echo_service takes its clients from an object of this class.
class streamed_clients {
 public:
  streamed_clients(cancel_source& waiting, int listener) : clients_{waiting, {listener}} {}

  auto next() noexcept { return clients_.next(); }
  task<> end() { return clients_.end(); }

 private:
  accept_stream clients_;
};

inline task<> serve_from_streams(io_context& context, common::unique_fd listener, int stop_fd,
                                 buffer_pool& pool) {
  echo_service<stream_echo, streamed_clients> service{context, std::move(listener), stop_fd, pool};
  co_await service.serve_until_stopped();
}

}  // namespace uring
