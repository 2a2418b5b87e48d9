// SPDX-License-Identifier: MIT
// Two connected stream sockets, for programs that show what a socket does without a network.
// Owns     both sockets.
// Errors   std::system_error.
// See      socketpair(2)
#pragma once

#include <sys/socket.h>

#include <array>
#include <string_view>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace common {

struct local_pair {
  unique_fd ours;
  unique_fd theirs;

  local_pair() {
    std::array<int, 2> fds{};
    check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), "socketpair");
    ours = unique_fd{fds[0]};
    theirs = unique_fd{fds[1]};
  }

  // Sends `text`, which a recv on `ours` will find. Only a short text is sure to be sent whole.
  void say(std::string_view text) const {
    check(::send(theirs.get(), text.data(), text.size(), MSG_NOSIGNAL), "send");
  }
};

}  // namespace common
