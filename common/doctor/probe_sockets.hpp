// SPDX-License-Identifier: MIT
// Sockets on 127.0.0.1 for a try.
// Owns     the descriptors; they close with the object.
// Errors   std::system_error that names the call.
// Rule     blocking sockets, as everywhere in the course; only the kernel is asked to wait on them.
#pragma once

#include <string_view>

#include "unique_fd.hpp"

namespace doctor {

class loopback_listener {
 public:
  loopback_listener();
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  // A client that the listener has yet to accept.
  [[nodiscard]] common::unique_fd connect() const;

 private:
  common::unique_fd socket_;
};

// Two ends of one TCP connection.
struct loopback_pair {
  loopback_pair();
  common::unique_fd here;
  common::unique_fd there;
};

// Two ends of one pipe.
struct pipe_ends {
  pipe_ends();
  common::unique_fd read;
  common::unique_fd write;
};

// Writes all of `text`, which is short enough for any socket buffer and for any pipe.
void put(int fd, std::string_view text);

}  // namespace doctor
