// SPDX-License-Identifier: MIT
// What clients say and how they judge the answers: echo or HTTP.
// Owns     the request bytes, and a few bytes of state for each connection.
// Lifetime as long as its worker.
// Threads  its worker's; every worker has one of its own.
// Errors   a wrong answer is a verdict; nothing throws but std::bad_alloc.
// Rule     a connection is named by its slot: 0 up to the number the exchange was made for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "byte_loop.hpp"

namespace loadgen {

enum class verdict {
  unfinished,     // all bytes were taken, and the answer goes on
  answered,       // an answer is complete
  answered_last,  // the same, and the server will close: connect again for the next
  wrong,          // why() says what is
};

struct taken {
  std::size_t bytes;
  verdict result;
};

class exchange {
 public:
  exchange() = default;
  exchange(exchange&&) = delete;
  virtual ~exchange() = default;

  // requests() holds one request after the other, each request_bytes() long; a connection sends
  // them from first_request() on.
  [[nodiscard]] virtual const byte_loop& requests() const noexcept = 0;
  [[nodiscard]] virtual std::size_t request_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::size_t first_request(std::size_t slot) const noexcept = 0;

  // Judges what was received, up to the end of one answer. `received` is at most one piece long.
  virtual taken take(std::size_t slot, std::span<const std::byte> received) = 0;

  // The server closed: was that the end of an answer that said it would end so?
  virtual verdict take_end(std::size_t slot) = 0;

  // The slot has a new connection.
  virtual void reconnect(std::size_t slot) = 0;

  // For messages: how far the answer in progress is, and what the last wrong one was like.
  [[nodiscard]] virtual std::string describe_progress(std::size_t slot) const = 0;
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // HTTP only: how many responses had each status, and the body that all others had to equal.
  [[nodiscard]] const std::map<int, std::uint64_t>& statuses() const noexcept { return statuses_; }
  [[nodiscard]] const std::string& body() const noexcept { return body_; }

 protected:
  taken wrong(std::string why) {
    why_ = std::move(why);
    return {0, verdict::wrong};
  }

  std::map<int, std::uint64_t> statuses_;
  std::string body_;

 private:
  std::string why_;
};

}  // namespace loadgen
