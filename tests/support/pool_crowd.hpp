// SPDX-License-Identifier: MIT
// Crowds of clients for an echo server with few buffers: does each get its own echo?
// Errors   a wrong echo is returned as a text from compare_all(); std::system_error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "bytes.hpp"
#include "client.hpp"

namespace course_test {

inline constexpr int crowd_rounds = 10;
inline constexpr std::chrono::milliseconds crowd_deadline{30'000};  // of a round

// A message of a random size for each client, each client's own, and what came back of it.
[[nodiscard]] inline std::string echo_random_messages(std::vector<client>& clients,
                                                      std::mt19937& random) {
  std::uniform_int_distribution<std::size_t> sizes{1, 3000};
  std::vector<std::string> messages;
  messages.reserve(clients.size());
  for (unsigned i = 0; i < clients.size(); ++i) messages.push_back(pattern(i, sizes(random)));
  return compare_all(echo_all(clients, messages, crowd_deadline), messages);
}

// Two hundred clients that stay, and send at the same time.
[[nodiscard]] inline std::string echo_to_two_hundred(std::uint16_t port, std::mt19937& random) {
  auto crowd = connect_many(port, 200);
  for (int round = 0; round < crowd_rounds; ++round) {
    if (std::string came = echo_random_messages(crowd, random); came != identical) return came;
  }
  return std::string{identical};
}

// Twenty that stay, beside forty that send, and leave or reset without reading.
[[nodiscard]] inline std::string echo_beside_leavers(std::uint16_t port, std::mt19937& random) {
  auto staying = connect_many(port, 20);
  for (int round = 0; round < crowd_rounds; ++round) {
    auto leaving = connect_many(port, 40);
    for (client& each : leaving) {
      (void)each.send_some(pattern(90'000, 1 + random() % 4000));
      if (random() % 3 == 0) each.reset();
      if (random() % 3 == 0) each.close();
    }
    if (std::string came = echo_random_messages(staying, random); came != identical) return came;
  }
  return std::string{identical};
}

}  // namespace course_test
