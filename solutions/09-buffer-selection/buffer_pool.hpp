// SPDX-License-Identifier: MIT
// Buffers that a whole server shares. At any time either the kernel has a buffer, or the buffer is
// lent to one coroutine.
// Owns     the memory of all buffers.
// Lifetime the queue and the supply must outlive it. It must outlive every lease and every wait.
// Threads  the one that runs the queue.
// Errors   the constructor throws std::bad_alloc, or what supply.give() throws. If the ring takes
//          no more requests, the return of a buffer terminates the program.
// Rule     never keep a lease while you wait for a client. You may keep a lease during a request
//          that does not wait (MSG_DONTWAIT).
#pragma once

#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "buffer_supply.hpp"
#include "cancel_source.hpp"
#include "io_queue.hpp"
#include "io_result.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "todo.hpp"
#include "waiting_line.hpp"

namespace uring {

class buffer_pool;

// A buffer that the pool has lent. It is returned when this object is destroyed.
class [[nodiscard]] buffer_lease {
 public:
  buffer_lease() noexcept = default;
  buffer_lease(buffer_pool& from, buffer_id id) noexcept : pool_{&from}, id_{id} {}
  buffer_lease(buffer_lease&& other) noexcept
      : pool_{std::exchange(other.pool_, nullptr)}, id_{other.id_} {}
  buffer_lease& operator=(buffer_lease other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~buffer_lease();

  [[nodiscard]] explicit operator bool() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] buffer_id id() const noexcept { return id_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept;  // all of the buffer

 private:
  buffer_pool* pool_ = nullptr;
  buffer_id id_ = 0;
};

struct buffer_options {
  std::size_t count = 1024;
  std::size_t bytes = 4096;
};

class buffer_pool {
 public:
  // Gives all buffers to the kernel.
  buffer_pool(io_queue& queue, buffer_supply& supply, const buffer_options& options);
  buffer_pool(buffer_pool&&) = delete;  // leases hold its address
  ~buffer_pool() { assert(lent_ == 0 && "a buffer is still lent"); }

  [[nodiscard]] buffer_group group() const noexcept { return supply_.group(); }
  [[nodiscard]] std::size_t size() const noexcept { return options_.count; }
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }

  // Call it once when a completion says that the kernel has taken this buffer out of its group.
  [[nodiscard]] buffer_lease lend(buffer_id id) noexcept {
    assert(id < options_.count && "the kernel named a buffer that is not of this pool");
    ++lent_;
    return buffer_lease{*this, id};
  }

  // const buffer_lease next = co_await pool.next_return(source): waits for the next buffer that is
  // returned, first come, first served. The lease is empty if the source was canceled first.
  [[nodiscard]] waiting_line<buffer_lease>::place next_return(cancel_source& source) noexcept {
    return {line_, &source};
  }

 private:
  friend class buffer_lease;

  [[nodiscard]] std::span<std::byte> bytes_of(buffer_id id) const noexcept {
    return {memory_.get() + id * options_.bytes, options_.bytes};
  }

  // A lease has ended. Unless a coroutine waits, the buffer goes back to the kernel.
  void take_back(buffer_id id) {
    if (!line_.empty()) return hand_on(id);
    --lent_;
    supply_.give(id, bytes_of(id));
  }

  // A lease has ended while coroutines wait in line_. Give the buffer to one of them:
  // line_.give_to_first() takes a new buffer_lease{*this, id}. Do not give the buffer to the
  // kernel, because any other recv could take it there first. lent_ is the number of lent buffers.
  // Decide whether this number changes.
  void hand_on(buffer_id id) {
    // --8<-- [start:task-09-3]
    line_.give_to_first(buffer_lease{*this, id});
    // --8<-- [end:task-09-3]
  }

  buffer_supply& supply_;
  buffer_options options_;
  std::unique_ptr<std::byte[]> memory_;
  std::size_t lent_ = 0;
  waiting_line<buffer_lease> line_;
};

// This constructor does not touch the memory, so a buffer costs nothing until it is written to.
inline buffer_pool::buffer_pool(io_queue& queue, buffer_supply& supply,
                                const buffer_options& options)
    : supply_{supply},
      options_{options},
      memory_{std::make_unique_for_overwrite<std::byte[]>(options.count * options.bytes)},
      line_{queue} {
  assert(options.count > 0 && options.count <= buffers_max && options.bytes > 0);
  for (std::size_t id = 0; id < options.count; ++id) {
    supply_.give(static_cast<buffer_id>(id), bytes_of(static_cast<buffer_id>(id)));
  }
}

inline buffer_lease::~buffer_lease() {
  if (pool_ != nullptr) pool_->take_back(id_);
}

inline std::span<std::byte> buffer_lease::bytes() const noexcept {
  assert(pool_ != nullptr && "an empty lease has no bytes: was the wait canceled?");
  return pool_->bytes_of(id_);
}

// How a recv into a buffer of the pool ended.
struct [[nodiscard]] received {
  io_result result;
  buffer_lease lease;

  // The bytes that have come; empty if no bytes have come.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!lease || !result) return {};
    return lease.bytes().first(result.count());
  }
};

// For a client whose bytes came when no buffer was left. First await from.next_return(source),
// which returns a lease. If the lease is empty, `source` was canceled: return -ECANCELED and an
// empty lease. Otherwise receive into the lease's bytes without a wait, with recv_op() of
// operations.hpp and MSG_DONTWAIT. This recv ends with -EAGAIN if the socket has no bytes by then.
// Return the recv's result and the lease, even if the recv has failed.
inline task<received> recv_into_next_return(cancel_source& source, int fd, buffer_pool& from) {
  // --8<-- [start:task-09-3b]
  buffer_lease next = co_await from.next_return(source);
  if (!next) co_return received{io_result{-ECANCELED}, {}};
  const io_result result = co_await recv_op(source, fd, next.bytes(), MSG_DONTWAIT);
  co_return received{result, std::move(next)};
  // --8<-- [end:task-09-3b]
}

}  // namespace uring
