// SPDX-License-Identifier: MIT
// 03-ticks: two tickers on one thread, as callbacks and then as coroutines.
//
//   ./course run 03:ticks
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <system_error>

#include "program_main.hpp"

namespace {

constexpr int ticks = 3;
constexpr std::chrono::milliseconds pause_ms{50};

class ticker : public std::enable_shared_from_this<ticker> {
 public:
  ticker(asio::io_context& io, char name) : timer_{io}, name_{name} {}

  void wait() {
    timer_.expires_after(pause_ms);
    timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
      if (!error) self->tick();
    });
  }

 private:
  void tick() {
    std::cout << name_ << ' ' << count_ << '\n';
    if (++count_ <= ticks) wait();
  }

  asio::steady_timer timer_;
  char name_;
  int count_ = 1;
};

asio::awaitable<void> tick(char name) {
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer{executor};
  for (int count = 1; count <= ticks; ++count) {
    timer.expires_after(pause_ms);
    co_await timer.async_wait(asio::use_awaitable);
    std::cout << name << ' ' << count << '\n';
  }
}

void run_callbacks() {
  asio::io_context io{1};
  std::make_shared<ticker>(io, 'a')->wait();
  std::make_shared<ticker>(io, 'b')->wait();
  std::cout << "callbacks: both have been started\n";
  io.run();
}

void run_coroutines() {
  asio::io_context io{1};
  const auto rethrow = [](const std::exception_ptr& escaped) {
    if (escaped) std::rethrow_exception(escaped);
  };
  asio::co_spawn(io, tick('a'), rethrow);
  asio::co_spawn(io, tick('b'), rethrow);
  std::cout << "coroutines: both have been started\n";
  io.run();
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 03: two tickers on one thread, in two styles."};
  return common::program_main(argc, argv, flags, [] {
    run_callbacks();
    run_coroutines();
  });
}
