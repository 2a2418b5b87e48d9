// SPDX-License-Identifier: MIT
// The parts of client.hpp that move bytes in both directions, or through many clients, at once.
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "bytes.hpp"
#include "client.hpp"
#include "errors.hpp"
#include "socket_steps.hpp"

namespace course_test {
namespace {

// One message on its way through an echo server and back.
struct exchange {
  int fd = -1;
  std::string_view message;
  std::size_t sent_bytes = 0;
  std::string reply = {};

  [[nodiscard]] bool sent() const { return sent_bytes == message.size(); }
  [[nodiscard]] bool done() const { return sent() && reply.size() == message.size(); }
  [[nodiscard]] short events() const { return static_cast<short>(POLLIN | (sent() ? 0 : POLLOUT)); }
  [[nodiscard]] std::string progress() const {
    std::string text = "sent " + of_bytes(sent_bytes, message.size()) + ", got " +
                       std::to_string(reply.size()) + " back";
    if (!message.starts_with(reply)) text += ", and not the same: " + compare_bytes(reply, message);
    return text;
  }

  void advance(short ready) {
    if ((ready & POLLOUT) != 0 && !sent()) {
      const transfer went = try_send(fd, message.substr(sent_bytes, chunk_bytes));
      if (went.what == outcome::broken) throw client_error{progress() + ", " + how_it_ended(went)};
      sent_bytes += went.bytes;
    }
    if ((ready & (POLLIN | POLLHUP | POLLERR)) == 0 || reply.size() == message.size()) return;
    const transfer got = try_recv(fd, reply, message.size() - reply.size());
    if (got.what == outcome::eof || got.what == outcome::broken) {
      throw client_error{progress() + ", " + how_it_ended(got)};
    }
  }
};

void run(std::span<exchange> all, const time_limit& limit) {
  std::vector<::pollfd> sockets(all.size());
  while (true) {
    std::size_t unfinished = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      sockets[i] = {.fd = all[i].done() ? -1 : all[i].fd, .events = all[i].events(), .revents = 0};
      if (all[i].done()) --unfinished;
    }
    if (unfinished == 0) return;
    if (!wait_for(sockets, limit)) {
      const auto first = std::ranges::find_if_not(all, &exchange::done);
      throw client_error{std::to_string(unfinished) + " of " + std::to_string(all.size()) +
                         " echoes are incomplete after " + limit.describe() + "; client " +
                         std::to_string(first - all.begin()) + " " + first->progress()};
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (sockets[i].revents != 0) all[i].advance(sockets[i].revents);
    }
  }
}

// The descriptors that `count` clients need, with room for what else the test has open.
void raise_own_fd_limit(std::size_t count) {
  ::rlimit limit{};
  common::check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit RLIMIT_NOFILE");
  const ::rlim_t needed = count + 64;
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    throw client_error{std::to_string(count) + " clients need " + std::to_string(needed) +
                       " descriptors, but the hard limit here is " +
                       std::to_string(limit.rlim_max) + " (ulimit -Hn)"};
  }
  limit.rlim_cur = needed;
  common::check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit RLIMIT_NOFILE");
}

}  // namespace

std::string client::echo(std::string_view data, milliseconds deadline) {
  exchange only{.fd = fd(), .message = data};
  run({&only, 1}, time_limit{deadline});
  return std::move(only.reply);
}

std::vector<client> connect_many(std::uint16_t port, std::size_t count,
                                 const client_options& options) {
  raise_own_fd_limit(count);
  std::vector<client> clients;
  clients.reserve(count);
  while (clients.size() < count) {
    try {
      clients.emplace_back(port, options);
    } catch (const client_error& error) {
      throw client_error{"client " + std::to_string(clients.size()) + " of " +
                         std::to_string(count) + ": " + error.what()};
    }
  }
  return clients;
}

std::vector<std::string> echo_all(std::span<client> clients, std::span<const std::string> messages,
                                  milliseconds deadline) {
  std::vector<exchange> all;
  all.reserve(clients.size());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    all.push_back({.fd = clients[i].fd(), .message = messages[i]});
  }
  run(all, time_limit{deadline});
  std::vector<std::string> replies;
  replies.reserve(all.size());
  for (exchange& each : all) replies.push_back(std::move(each.reply));
  return replies;
}

}  // namespace course_test
