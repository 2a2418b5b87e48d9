// SPDX-License-Identifier: MIT
// A buffer_supply that records what it is given, and gives nothing to the kernel.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "buffer_supply.hpp"

namespace course_test {

class recorded_supply final : public uring::buffer_supply {
 public:
  explicit recorded_supply(uring::buffer_group group = 7) : group_{group} {}

  [[nodiscard]] uring::buffer_group group() const noexcept override { return group_; }
  void give(uring::buffer_id id, std::span<std::byte> bytes) override {
    given.push_back(id);
    bytes_of[id] = bytes;
  }

  std::vector<uring::buffer_id> given;  // in this order
  std::map<uring::buffer_id, std::span<std::byte>> bytes_of;

 private:
  uring::buffer_group group_;
};

}  // namespace course_test
