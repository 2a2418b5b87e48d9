// SPDX-License-Identifier: MIT
#include "endpoint.hpp"

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "errors.hpp"

namespace loadgen {
namespace {

using clock = std::chrono::steady_clock;

// A backlog of 128, the smallest in common use, takes two batches before it drops a SYN, and the
// retry of a dropped SYN comes a second later.
constexpr std::size_t batch_max = 64;
constexpr std::chrono::milliseconds batch_pause_ms{1};

void tune(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Loopback has no congestion to control, and BBR, the default on some machines, would slow us
  // down and use CPU time for timers. Every kernel has Reno; if it is refused, the default will do.
  constexpr std::string_view cheapest = "reno";
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, cheapest.data(), cheapest.size());
}

std::string describe_connect_errno(int error) {
  if (error == EADDRNOTAVAIL) {
    return "no local port is free; those of earlier runs are, a minute after they ended";
  }
  return common::describe_errno(error);
}

// One batch of connections under way.
class batch {
 public:
  batch(int stop_fd, connected& result) : result_{result} {
    waiting_.push_back({.fd = stop_fd, .events = POLLIN, .revents = 0});
  }

  void start(const endpoint& server) {
    common::unique_fd socket = server.start_connecting();
    if (!socket.valid()) return fail(errno);
    waiting_.push_back({.fd = socket.get(), .events = POLLOUT, .revents = 0});
    sockets_.push_back(std::move(socket));
  }

  // Waits until every connection was made or has failed. If nothing happens for `patience`, leaves
  // the rest for give_up().
  void wait(std::chrono::nanoseconds patience) {
    auto deadline = clock::now() + patience;
    while (!sockets_.empty() && !result_.interrupted) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
      if (left.count() <= 0) return;
      const int ready = ::poll(waiting_.data(), waiting_.size(), static_cast<int>(left.count()));
      if (ready == -1 && errno != EINTR) common::throw_errno("poll for connections");
      if (ready <= 0) continue;
      if (waiting_[0].revents != 0) result_.interrupted = true;
      collect();
      deadline = clock::now() + patience;
    }
  }

  [[nodiscard]] std::size_t unfinished() const noexcept { return sockets_.size(); }

 private:
  void collect() {
    for (std::size_t i = sockets_.size(); i-- > 0;) {
      if (waiting_[i + 1].revents == 0) continue;
      common::unique_fd socket = std::exchange(sockets_[i], std::move(sockets_.back()));
      sockets_.pop_back();
      waiting_[i + 1] = waiting_.back();
      waiting_.pop_back();
      const int error = connect_error(socket.get());
      if (error != 0) {
        fail(error);
      } else {
        result_.sockets.push_back(std::move(socket));
      }
    }
  }

  void fail(int error) {
    result_.faults.add(classify_socket_errno(error),
                       "while connecting: " + describe_connect_errno(error));
  }

  connected& result_;
  std::vector<::pollfd> waiting_;  // the stop, then one for each of sockets_, in the same order
  std::vector<common::unique_fd> sockets_;
};

std::size_t local_port_count() {
  std::ifstream range{"/proc/sys/net/ipv4/ip_local_port_range"};
  std::size_t first = 0;
  std::size_t last = 0;
  if (!(range >> first >> last) || last < first) return 65'535;  // unknown: connect() will tell
  return last - first + 1;
}

}  // namespace

endpoint::endpoint(const std::string& host, std::uint16_t port) {
  ::addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  ::addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw std::invalid_argument{
        fmt::format("--host {}: not an IPv4 or IPv6 address, such as 127.0.0.1", host)};
  }
  const std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  std::memcpy(&address_, found->ai_addr, found->ai_addrlen);
  address_bytes_ = found->ai_addrlen;
  text_ = address_.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                         : fmt::format("{}:{}", host, port);
}

common::unique_fd endpoint::start_connecting() const {
  constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  common::unique_fd socket{common::check(::socket(address_.ss_family, type, 0), "socket")};
  tune(socket.get());
  const auto* const generic = reinterpret_cast<const ::sockaddr*>(&address_);
  if (::connect(socket.get(), generic, address_bytes_) == -1 && errno != EINPROGRESS) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

int connect_error(int socket) {
  int error = 0;
  ::socklen_t size = sizeof error;
  common::check(::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size), "getsockopt SO_ERROR");
  return error;
}

void prepare_limits(std::size_t connections) {
  constexpr std::size_t own_descriptors = 32;  // standard streams, epoll, /proc files
  const std::size_t needed = connections + own_descriptors;
  ::rlimit limit{};
  common::check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit RLIMIT_NOFILE");
  if (limit.rlim_max < needed) {
    throw std::runtime_error{fmt::format(
        "{} connections need {} descriptors, and this process may have {}: raise the limit "
        "(`ulimit -Hn`, as root) or ask for fewer",
        connections, needed, limit.rlim_max)};
  }
  limit.rlim_cur = limit.rlim_max;
  common::check(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit RLIMIT_NOFILE");
  if (connections > local_port_count()) {
    throw std::runtime_error{
        fmt::format("{} connections need as many local ports, and there are {}: widen "
                    "net.ipv4.ip_local_port_range (sysctl, as root) or ask for fewer",
                    connections, local_port_count())};
  }
}

connected connect_many(const endpoint& server, std::size_t count, std::chrono::nanoseconds patience,
                       int stop_fd) {
  connected result;
  result.sockets.reserve(count);
  std::size_t begun = 0;
  while (begun < count && !result.interrupted) {
    batch now{stop_fd, result};
    const std::size_t target = std::min(count, begun + batch_max);
    for (; begun < target; ++begun) now.start(server);
    now.wait(patience);
    if (now.unfinished() > 0 && !result.interrupted) {
      const auto seconds = std::chrono::duration<double>(patience).count();
      for (std::size_t lost = now.unfinished() + count - begun; lost > 0; --lost) {
        result.faults.add(fault::stalled,
                          fmt::format("while connecting: no answer for {} s", seconds));
      }
      break;
    }
    if (begun < count) std::this_thread::sleep_for(batch_pause_ms);
  }
  return result;
}

}  // namespace loadgen
