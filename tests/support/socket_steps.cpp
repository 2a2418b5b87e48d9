// SPDX-License-Identifier: MIT
#include "socket_steps.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "errors.hpp"

namespace course_test {
namespace {

transfer transfer_of(::ssize_t result) {
  if (result > 0) return {outcome::some, static_cast<std::size_t>(result)};
  if (result == 0) return {outcome::eof};
  if (errno == EAGAIN || errno == EINTR) return {outcome::none_now};
  return {outcome::broken, 0, errno};
}

}  // namespace

milliseconds time_limit::left() const {
  const auto left = std::chrono::ceil<milliseconds>(end_ - std::chrono::steady_clock::now());
  return std::max(left, milliseconds{0});
}

bool wait_for(std::span<::pollfd> sockets, const time_limit& limit) {
  while (true) {
    const int ready =
        ::poll(sockets.data(), sockets.size(), static_cast<int>(limit.left().count()));
    if (ready != -1) return ready > 0;
    if (errno != EINTR) common::throw_errno("poll");
  }
}

bool wait_for(int fd, short events, const time_limit& limit) {
  ::pollfd socket{.fd = fd, .events = events, .revents = 0};
  return wait_for(std::span{&socket, 1}, limit);
}

transfer try_send(int fd, std::string_view data) {
  return transfer_of(::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

transfer try_recv(int fd, std::string& to, std::size_t bytes_max) {
  if (bytes_max == 0) return {};  // recv(2) would answer 0, which reads as EOF
  std::array<char, chunk_bytes> buffer;
  const std::size_t wanted = std::min(bytes_max, buffer.size());
  const transfer got = transfer_of(::recv(fd, buffer.data(), wanted, MSG_DONTWAIT));
  to.append(buffer.data(), got.bytes);
  return got;
}

std::string how_it_ended(const transfer& last) {
  if (last.what == outcome::eof) return "then the server closed the connection (EOF)";
  return "then the connection broke: " + common::describe_errno(last.error);
}

std::string of_bytes(std::size_t done, std::size_t all) {
  return std::to_string(done) + " of " + std::to_string(all) + " bytes";
}

}  // namespace course_test
