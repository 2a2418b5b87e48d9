// SPDX-License-Identifier: MIT
// Echo: the answer to a message is the message.
// Owns     two numbers a connection; the pattern is the caller's.
// Lifetime the pattern must outlive it.
// Threads  its worker's.
// Errors   see exchange.hpp.
// Rule     every byte is compared with the pattern, by memcmp, and none is copied.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange.hpp"

namespace loadgen {

class echo_exchange final : public exchange {
 public:
  // `first_connection` is the number of slot 0 among the connections of all workers.
  echo_exchange(const byte_loop& pattern, std::size_t message_bytes, std::size_t first_connection,
                std::size_t connections);

  [[nodiscard]] const byte_loop& requests() const noexcept override { return pattern_; }
  [[nodiscard]] std::size_t request_bytes() const noexcept override { return message_bytes_; }
  [[nodiscard]] std::size_t first_request(std::size_t slot) const noexcept override;
  taken take(std::size_t slot, std::span<const std::byte> received) override;
  verdict take_end(std::size_t slot) override;
  void reconnect(std::size_t slot) override;
  [[nodiscard]] std::string describe_progress(std::size_t slot) const override;

 private:
  struct progress {
    std::uint64_t received = 0;       // bytes, since the connection was made
    std::uint32_t position = 0;       // of the next byte in the pattern
    std::uint32_t message_taken = 0;  // bytes of the message in progress
  };

  [[nodiscard]] std::string explain(std::size_t slot, std::span<const std::byte> received) const;
  [[nodiscard]] std::string guess_cause(std::size_t slot, std::size_t expected_at,
                                        std::span<const std::byte> received) const;
  [[nodiscard]] std::string guess_origin(std::size_t slot, std::size_t expected_at,
                                         std::size_t found_at) const;

  const byte_loop& pattern_;
  std::size_t message_bytes_;
  std::size_t first_connection_;
  std::vector<progress> progress_;
};

}  // namespace loadgen
