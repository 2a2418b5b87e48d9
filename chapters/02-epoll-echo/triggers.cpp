// SPDX-License-Identifier: MIT
// 02-triggers: ten bytes, read four at a time, once level-triggered and once edge-triggered.
//
//   ./course run 02:triggers
//
// Watch how many times epoll_wait reports the pipe, and how many bytes are left in it at the end.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <string_view>

#include "errors.hpp"
#include "program_main.hpp"
#include "unique_fd.hpp"

namespace {

constexpr std::string_view message = "0123456789";
constexpr std::size_t read_bytes = 4;
constexpr int wait_ms = 100;  // how long epoll_wait waits for an event

void watch(std::string_view name, std::uint32_t trigger) {
  std::array<int, 2> ends{};
  common::check(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  const common::unique_fd reader{ends[0]};
  const common::unique_fd writer{ends[1]};
  const common::unique_fd epoll{common::check(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")};
  ::epoll_event interest{.events = EPOLLIN | trigger, .data = {.fd = reader.get()}};
  common::check(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, reader.get(), &interest), "epoll_ctl");

  common::check(::write(writer.get(), message.data(), message.size()), "write");
  std::size_t left = message.size();
  ::epoll_event event{};
  while (common::check(::epoll_wait(epoll.get(), &event, 1, wait_ms), "epoll_wait") == 1) {
    std::array<char, read_bytes> buffer{};
    const auto got = common::check(::read(reader.get(), buffer.data(), buffer.size()), "read");
    left -= static_cast<std::size_t>(got);
    std::cout << name << ": ready, read " << got << ", " << left << " left\n";
  }
  std::cout << name << ": no news, " << left << " left in the pipe\n";
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 02: level-triggered and edge-triggered readiness, side by side."};
  return common::program_main(argc, argv, flags, [] {
    watch("level", 0);
    watch("edge", EPOLLET);
  });
}
