// SPDX-License-Identifier: MIT
// Turns a host's name into the addresses that a client may try.
// Owns     nothing; an address is a value.
// Threads  any. It blocks its thread, for seconds if a name server is silent, because the ring has
//          no operation for names. A program with clients to serve calls it on another thread.
// Errors   std::runtime_error with the resolver's message.
// See      getaddrinfo(3), getnameinfo(3)
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace uring {

struct peer_address {
  ::sockaddr_storage storage{};
  ::socklen_t bytes = 0;
  std::string text;  // "127.0.0.1", "::1"

  [[nodiscard]] const ::sockaddr* generic() const noexcept {
    return reinterpret_cast<const ::sockaddr*>(&storage);
  }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

inline peer_address to_peer_address(const ::sockaddr& address, ::socklen_t bytes) {
  peer_address peer;
  std::memcpy(&peer.storage, &address, bytes);
  peer.bytes = bytes;
  char text[NI_MAXHOST] = "?";
  ::getnameinfo(&address, bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  peer.text = text;
  return peer;
}

// Returns at least one address, in the order in which a client should try them.
inline std::vector<peer_address> resolve(const std::string& host, std::uint16_t port) {
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  ::addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw std::runtime_error{"resolve " + host + ": " + ::gai_strerror(error)};
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> list{found, &::freeaddrinfo};
  std::vector<peer_address> addresses;
  for (const ::addrinfo* each = found; each != nullptr; each = each->ai_next) {
    addresses.push_back(to_peer_address(*each->ai_addr, each->ai_addrlen));
  }
  return addresses;
}

}  // namespace uring
