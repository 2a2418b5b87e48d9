// SPDX-License-Identifier: MIT
#include "announce.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <string>

#include "errors.hpp"

namespace common {
namespace {

std::string local_address(int socket) {
  ::sockaddr_storage storage{};
  ::socklen_t size = sizeof storage;
  auto* const any = reinterpret_cast<::sockaddr*>(&storage);
  check(::getsockname(socket, any, &size), "getsockname of the listener");
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const ::sockaddr_in6*>(&storage);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(v6->sin6_port));
  }
  const auto* const v4 = reinterpret_cast<const ::sockaddr_in*>(&storage);
  ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), ntohs(v4->sin_port));
}

}  // namespace

void announce(int listener) {
  fmt::print("listening on {}\n", local_address(listener));
  if (std::fflush(stdout) != 0) throw_errno("write the listening line to stdout");
}

}  // namespace common
