// SPDX-License-Identifier: MIT
// HTTP/1.1: GET the same path over and over; every 200 must bring the same body.
// Owns     the request, a response reader for each connection, and the body to compare with.
// Lifetime as long as its worker.
// Threads  its worker's.
// Errors   see exchange.hpp.
// Rule     the first body is not waited for: whichever connection is furthest extends it, and all
//          others are compared with what is known. The first complete response fixes its length.
#pragma once

#include <vector>

#include "exchange.hpp"
#include "http_response.hpp"

namespace loadgen {

class http_exchange final : public exchange {
 public:
  static constexpr std::size_t body_bytes_max = 64 * 1024 * 1024;

  // `authority` is what the Host header says, such as 127.0.0.1:8080.
  http_exchange(const std::string& authority, const std::string& path, std::size_t connections);

  [[nodiscard]] const byte_loop& requests() const noexcept override { return requests_; }
  [[nodiscard]] std::size_t request_bytes() const noexcept override { return requests_.period(); }
  [[nodiscard]] std::size_t first_request(std::size_t) const noexcept override { return 0; }
  taken take(std::size_t slot, std::span<const std::byte> received) override;
  verdict take_end(std::size_t slot) override;
  void reconnect(std::size_t slot) override;
  [[nodiscard]] std::string describe_progress(std::size_t slot) const override;

 private:
  // Empty when all is well; otherwise what is not.
  [[nodiscard]] std::string compare_body(const http_response& response);
  [[nodiscard]] std::string finish_body(const http_response& response);

  byte_loop requests_;
  std::vector<http_response> responses_;
  enum class body_is { growing, known } body_state_ = body_is::growing;
};

}  // namespace loadgen
