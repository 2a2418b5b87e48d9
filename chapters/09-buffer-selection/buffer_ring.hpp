// SPDX-License-Identifier: MIT
// A ring of buffers, the third ring that we share with the kernel. We put buffers in, and the
// kernel takes them out. Neither side needs a request or a system call.
// Owns     the ring's memory and its registration; the caller owns the buffers.
// Lifetime the queue and every buffer that was given must outlive the ring. When the ring is
//          destroyed, no request that selects from its group may be in flight.
// Threads  the one that runs the queue.
// Errors   std::system_error: EINVAL on a kernel before 5.19, EEXIST if the group has a ring
//          already, ENOMEM.
// Rule     the tail is a 16-bit counter: it only grows, and 0 follows 65,535. The masked tail is
//          the index of the next entry.
// See      io_uring_register_buf_ring(3), io_uring_buf_ring_add(3)
#pragma once

#include <liburing.h>
#include <sys/mman.h>

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "buffer_supply.hpp"
#include "errors.hpp"
#include "io_queue.hpp"
#include "todo.hpp"

namespace uring {

// The ring's tail lies in unused bytes of the first entry. In C++, the kernel's header of Debian 12
// lets the entries begin at byte 8, not at byte 0, so that every entry would be eight bytes off.
static_assert(offsetof(::io_uring_buf_ring, bufs) == 0,
              "include <liburing.h> before other headers");
static_assert(sizeof(::io_uring_buf) == 16);

class buffer_ring final : public buffer_supply {
 public:
  // Room for `count` buffers; the kernel requires a power of two.
  buffer_ring(io_queue& queue, buffer_group group, std::size_t count)
      : queue_{queue}, group_{group}, entries_{std::bit_ceil(count)} {
    assert(count > 0 && count <= buffers_max && "a buffer ring has 1 to 32768 entries");
    map();
    register_it();
  }
  buffer_ring(buffer_ring&&) = delete;  // the kernel holds the address of its memory
  ~buffer_ring() {
    ::io_uring_unregister_buf_ring(&queue_.handle(), group_);
    ::munmap(ring_, bytes());
  }

  [[nodiscard]] buffer_group group() const noexcept override { return group_; }

  // Gives one buffer to the kernel, with two functions of liburing. io_uring_buf_ring_add() writes
  // one entry. Its arguments are ring_, the buffer's address, length and id, the mask, which
  // io_uring_buf_ring_mask() makes from entries_, and 0, the entry's offset from the tail. Then
  // io_uring_buf_ring_advance() moves the tail by 1, with release order. From then on the kernel
  // may write to the buffer.
  void give(buffer_id id, std::span<std::byte> bytes) override {
    COURSE_TODO("09.1");
  }

  // For tests: what the kernel reads.
  [[nodiscard]] const ::io_uring_buf_ring& shared() const noexcept { return *ring_; }
  [[nodiscard]] std::size_t entries() const noexcept { return entries_; }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept { return entries_ * sizeof(::io_uring_buf); }

  // Maps zeroed memory that begins at a page, as the kernel demands.
  void map() {
    constexpr int access = PROT_READ | PROT_WRITE;
    void* const memory = ::mmap(nullptr, bytes(), access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) common::throw_errno("mmap of a buffer ring");
    ring_ = static_cast<::io_uring_buf_ring*>(memory);
  }

  // Registers the ring with the kernel. Make a zeroed io_uring_buf_reg. Set its ring_addr to the
  // ring's address as a number, its ring_entries to the number of entries, and its bgid to the
  // group. Pass its address to io_uring_register_buf_ring(), with &queue_.handle() and no flags. If
  // the result is negative, it is -errno. In this case leave nothing behind, and throw with
  // common::throw_error(result, "io_uring_register_buf_ring").
  void register_it() {
    COURSE_TODO("09.1");
  }

  io_queue& queue_;
  buffer_group group_;
  std::size_t entries_;
  ::io_uring_buf_ring* ring_ = nullptr;
};

}  // namespace uring
