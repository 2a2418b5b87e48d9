// SPDX-License-Identifier: MIT
// Finds the owner of a completion: the 64 bits that a request carries lead to an entry of a table.
// Owns     its tenants: the objects in its slots, at most one in each.
// Lifetime a tenant stays at its address until erase(), because the kernel may hold that address.
// Threads  one.
// Errors   std::length_error if user_data has no room for another slot; std::bad_alloc.
// Rule     user_data holds no descriptor's number, because the kernel gives a free number to the
//          next client. A slot that is used again has a new generation, so an old id finds nothing.
// See      io_uring_sqe_set_data64(3)
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "todo.hpp"

namespace uring {

enum class operation : std::uint8_t { accept, recv, send, stop_poll, cancel };

// A place in a slot_table, and the generation of the tenant that the id stands for.
struct slot_id {
  static constexpr std::uint32_t index_max = (1U << 24) - 1;  // 24 bits in user_data

  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // how many tenants the slot had before

  friend bool operator==(const slot_id&, const slot_id&) = default;
};

struct tag {
  operation what = operation::accept;
  slot_id whose;  // for recv and send only; the other operations belong to the server

  friend bool operator==(const tag&, const tag&) = default;
};

// Returns 64 bits. From the top: 8 bits for the operation, 24 for the index, 32 for the generation.
[[nodiscard]] inline std::uint64_t pack(const tag& from) {
  COURSE_TODO("05.1");
}

// The reverse of pack(): unpack(pack(t)) == t for every t whose index is at most index_max.
[[nodiscard]] inline tag unpack(std::uint64_t user_data) {
  COURSE_TODO("05.1");
}

template <typename Tenant>
class slot_table {
 public:
  slot_id insert(std::unique_ptr<Tenant> tenant) {
    assert(tenant != nullptr && "a free slot is one without a tenant");
    if (free_.empty()) add_slot();
    const std::uint32_t index = free_.back();
    free_.pop_back();
    slots_[index].tenant = std::move(tenant);
    return {index, slots_[index].generation};
  }

  // Returns the tenant to which insert() gave this id. Returns nullptr if that tenant was erased;
  // the slot is then empty, or has another tenant. Returns nullptr, too, for an id that insert()
  // never returned; its index may be past the end of slots_.
  [[nodiscard]] Tenant* find(const slot_id& id) {
    COURSE_TODO("05.1");
  }

  // `id` must belong to a tenant that is in the table.
  void erase(const slot_id& id) noexcept {
    assert(slots_[id.index].tenant && slots_[id.index].generation == id.generation);
    slot& left = slots_[id.index];
    left.tenant.reset();
    ++left.generation;  // unsigned, so after 2^32 tenants it starts again: far later than any CQE
    free_.push_back(id.index);
  }

  template <typename Function>
  void for_each(const Function& function) {
    for (slot& each : slots_) {
      if (each.tenant != nullptr) function(*each.tenant);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - free_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

 private:
  struct slot {
    std::unique_ptr<Tenant> tenant;  // null while the slot is free
    std::uint32_t generation = 0;    // of the tenant, or of the next one
  };

  void add_slot() {
    if (slots_.size() > slot_id::index_max) throw std::length_error{"slot_table: 2^24 slots"};
    free_.reserve(slots_.size() + 1);  // so that erase() never has to allocate
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }

  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;  // the slot freed last is used first: it may be in the cache
};

}  // namespace uring
