// SPDX-License-Identifier: MIT
// A TCP client for tests, well behaved or not, with a deadline on each step.
// Owns     one socket; closes it when destroyed (an orderly close, unless reset() was called).
// Lifetime as long as the object.
// Threads  one thread a client.
// Errors   client_error, whose text says what was expected, what came, and how it ended; or, from
//          the functions that return one, an `ending`.
// Rule     bytes are std::string, so that a failed CHECK prints short ones; compare long ones with
//          compare_bytes() from bytes.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "unique_fd.hpp"

namespace course_test {

using std::chrono::milliseconds;

inline constexpr milliseconds step_deadline{5000};

class client_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct client_options {
  int receive_buffer_bytes = 0;  // SO_RCVBUF before connect(); 0 leaves the kernel's default
  int send_buffer_bytes = 0;     // SO_SNDBUF; the kernel doubles both and has a minimum
  milliseconds connect_deadline = step_deadline;
};

// How the server's side of a connection ended.
enum class ending { eof, reset, still_open };
std::ostream& operator<<(std::ostream& out, ending how);

class client {
 public:
  explicit client(std::uint16_t port, const client_options& options = {});  // to 127.0.0.1

  void send_all(std::string_view data, milliseconds deadline = step_deadline);
  void send_byte_by_byte(std::string_view data, milliseconds deadline = step_deadline);
  // Sends what the socket takes now and returns how much that was; 0 if it is full.
  std::size_t send_some(std::string_view data);

  [[nodiscard]] std::string recv_exactly(std::size_t bytes, milliseconds deadline = step_deadline);
  // Everything up to the server's FIN; a reset instead of it is an error.
  [[nodiscard]] std::string recv_until_eof(milliseconds deadline = step_deadline);
  // What has arrived so far, at most `bytes`; empty if nothing has.
  [[nodiscard]] std::string recv_some(std::size_t bytes);
  // Sends and receives at the same time, as an echo larger than all buffers needs it.
  [[nodiscard]] std::string echo(std::string_view data, milliseconds deadline = step_deadline);

  // Reads and drops until the connection ends; still_open if it has not by the deadline.
  [[nodiscard]] ending wait_for_end(milliseconds deadline = step_deadline);

  void shutdown_write();  // FIN: nothing more will come from us
  void reset();           // RST: close with SO_LINGER 0
  void close();           // FIN, or RST if bytes we have not read are waiting

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  // Sent by us and not yet received by the server's kernel: 0 means that all of it has arrived.
  [[nodiscard]] std::size_t unacknowledged_bytes() const;
  // How much more the server's kernel would receive now: it shrinks while the server does not read.
  [[nodiscard]] std::size_t send_window_bytes() const;

 private:
  common::unique_fd socket_;  // non-blocking: every wait is a poll() with a deadline
};

// ---- many at once, on one thread ----

// Raises this process's own limit on descriptors if `count` needs it.
[[nodiscard]] std::vector<client> connect_many(std::uint16_t port, std::size_t count,
                                               const client_options& options = {});

// messages[i] through clients[i], all at the same time; the replies in the same order.
[[nodiscard]] std::vector<std::string> echo_all(std::span<client> clients,
                                                std::span<const std::string> messages,
                                                milliseconds deadline = step_deadline);

}  // namespace course_test
