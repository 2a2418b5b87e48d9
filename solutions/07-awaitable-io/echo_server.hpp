#pragma once
#include <sys/socket.h>
#include <array>
#include <chrono>
#include <unordered_set>
#include "operations.hpp"
#include "stop_signal.hpp"
#include "unique_fd.hpp"
namespace uring {
class echo_server {
 public:
  static constexpr std::chrono::milliseconds stop_grace_ms{1000};
  static constexpr std::chrono::milliseconds accept_retry_ms{1000};
  static constexpr std::size_t buffer_bytes = 4096;

  echo_server(common::unique_fd listener, const common::stop_signal& stop, const ring_options& options = {})
      : listener_{std::move(listener)}, context_{options} {
    context_.spawn(stop_when(stop.fd()));
    context_.spawn(accept_clients());
  }
  void run() { context_.run(); }
 private:
  task<> accept_clients() {
    while (!stopping_) {
      io_awaitable accepting{accept_op(context_, listener_.get())};
      accepting_ = &accepting;
      const io_result accepted = co_await accepting;
      accepting_ = nullptr;
      common::unique_fd client{accepted.fd()};
      if (stopping_) break;
      if (client.valid()) {
        context_.spawn(serve(std::move(client)));
        continue;
      }
      switch (common::classify_accept_errno(accepted.error())) {
        case common::accept_failure::try_again:
        case common::accept_failure::nothing_waiting: break;
        case common::accept_failure::out_of_descriptors: co_await wait_for_a_client_to_leave(); break;
        case common::accept_failure::listener_broken: accepted.or_throw("accept");
      }
    }
    listener_.reset();
  }
  task<> wait_for_a_client_to_leave() {
    io_awaitable pause{timeout_op(context_, accept_retry_ms)};
    one_left_ = &pause;
    (void)co_await pause;
    one_left_ = nullptr;
  }
  task<> serve(common::unique_fd socket) {
    clients_.insert(socket.get());
    std::array<std::byte, buffer_bytes> buffer;
    for (;;) {
      const io_result received = co_await recv_op(context_, socket.get(), buffer);
      if (received.is_passing()) continue;
      if (!received || received.count() == 0) break;
      std::span<const std::byte> unsent = std::span{buffer}.first(received.count());
      while (!unsent.empty()) {
        const io_result sent = co_await send_op(context_, socket.get(), unsent);
        if (sent.is_passing()) continue;
        if (!sent) break;
        unsent = unsent.subspan(sent.count());
      }
      if (!unsent.empty()) break;
    }
    clients_.erase(socket.get());
    socket.reset();
    if (one_left_ != nullptr) context_.cancel(*one_left_);
    if (clients_.empty() && all_left_ != nullptr) context_.cancel(*all_left_);
  }
  task<> stop_when(int fd) {
    (void)co_await poll_op(context_, fd, POLLIN);
    stopping_ = true;
    if (accepting_ != nullptr) context_.cancel(*accepting_);
    if (one_left_ != nullptr) context_.cancel(*one_left_);
    for (const int how : std::array<int, 2>{SHUT_RD, SHUT_RDWR}) {
      for (int each : clients_) ::shutdown(each, how);
      if (clients_.empty()) break;
      io_awaitable grace{timeout_op(context_, stop_grace_ms)};
      all_left_ = &grace;
      (void)co_await grace;
      all_left_ = nullptr;
    }
    context_.stop();
  }
  common::unique_fd listener_;
  std::unordered_set<int> clients_;
  bool stopping_ = false;
  io_operation* accepting_ = nullptr;
  io_operation* one_left_ = nullptr;
  io_operation* all_left_ = nullptr;
  io_context context_;
};
}
