// SPDX-License-Identifier: MIT
// Writes a line for each answer, in the common log format: address, time, request line, status,
// bytes of the body. Lines are collected, and written from time to time by the ring, so that no
// request waits for the log's disk.
// Owns     the file, and the lines that are not written yet: about lines_bytes_max bytes at most.
// Lifetime the counters must outlive it, and it must outlive every task of write_out().
// Threads  the one that runs the queue. Several threads may write one file: each write is of whole
//          lines, and goes to the end (O_APPEND).
// Errors   std::system_error if the file cannot be opened. A line for which there is no room is
//          lost, and counted; so are lines that cannot be written.
// Rule     the log escapes each quote, backslash and unprintable byte of a client. So no client can
//          end the quotes around its request line, or start a line. A dash stands for bytes that
//          are no valid request.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cancel_source.hpp"
#include "counters.hpp"
#include "errors.hpp"
#include "file_operations.hpp"
#include "request_head.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring::http {

// "127.0.0.1", or "::1"; a dash if the address is not known any more.
[[nodiscard]] inline std::string address_of_client(int socket) {
  ::sockaddr_storage from{};
  ::socklen_t bytes = sizeof from;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::getpeername(socket, reinterpret_cast<::sockaddr*>(&from), &bytes) != 0) return "-";
  const void* const address =
      from.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<::sockaddr_in6*>(&from)->sin6_addr)
          : &reinterpret_cast<::sockaddr_in*>(&from)->sin_addr;
  return ::inet_ntop(from.ss_family, address, text.data(), text.size()) == nullptr ? "-"
                                                                                   : text.data();
}

// "GET /index.html HTTP/1.1". A later minor version counts as 1, as in the head.
[[nodiscard]] inline std::string line_of(const request_head& head) {
  std::string line{head.method_text};
  line.append(" ").append(head.target.text);
  return line.append(head.minor > 0 ? " HTTP/1.1" : " HTTP/1.0");
}

// The text with \xNN for each quote, backslash, and byte that is not printable.
[[nodiscard]] inline std::string escaped_for_log(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string safe;
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each != '"' && each != '\\' && byte >= ' ' && byte < 0x7f) {
      safe += each;
      continue;
    }
    safe.append("\\x").append(1, digits[byte / 16]).append(1, digits[byte % 16]);
  }
  return safe;
}

class access_log {
 public:
  static constexpr std::size_t lines_bytes_max = 8 * 1024 * 1024;

  // If `name` is empty, nothing is logged.
  access_log(const std::string& name, counters& lost) : lost_{lost} {
    if (name.empty()) return;
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    constexpr ::mode_t readable_by_its_group = 0640;
    file_ = common::unique_fd{common::check(::open(name.c_str(), flags, readable_by_its_group),
                                            "open the access log, " + name)};
  }

  [[nodiscard]] bool is_open() const noexcept { return file_.valid(); }

  // `request` is line_of() of the request's head, or "-".
  void add(std::string_view client, std::string_view request, int status, std::uint64_t bytes) {
    if (lines_.size() >= lines_bytes_max) return lost_.add(counted::log_lines_lost);
    const ::time_t now = ::time(nullptr);
    ::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 40> when{};
    (void)std::strftime(when.data(), when.size(), "[%d/%b/%Y:%H:%M:%S +0000]", &utc);
    lines_.append(client).append(" - - ").append(when.data()).append(" \"");
    lines_.append(escaped_for_log(request)).append("\" ").append(std::to_string(status));
    lines_.append(" ").append(std::to_string(bytes)).append("\n");
  }

  // Writes the lines collected so far. While this waits for the disk, more may be added. If the
  // source is canceled, the lines that are left are lost, and counted.
  task<> write_out(cancel_source& source) {
    const std::string now = std::exchange(lines_, {});
    std::span<const std::byte> left = std::as_bytes(std::span{now});
    while (!left.empty()) {
      const io_result written = co_await write_op(source, file_.get(), left);
      if (written.is_passing()) continue;
      if (!written) {
        lost_.add(counted::log_lines_lost, lines_in(left));
        co_return;
      }
      left = left.subspan(written.count());
    }
  }

 private:
  static std::uint64_t lines_in(std::span<const std::byte> text) noexcept {
    return static_cast<std::uint64_t>(std::ranges::count(text, std::byte{'\n'}));
  }

  counters& lost_;
  common::unique_fd file_;
  std::string lines_;
};

}  // namespace uring::http
