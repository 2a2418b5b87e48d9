// SPDX-License-Identifier: MIT
// The direct kind: clients are accepted into the table of registered files, and have no descriptor.
// Owns     the table, together with every client in it.
// Lifetime the source, the listener and the queue must outlive it.
// Threads  the one that runs the queue.
// Errors   accepted_direct::result; -EMFILE if every slot is taken.
// See      io_uring_prep_accept_direct(3)
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "buffer_pool.hpp"
#include "cancel_source.hpp"
#include "direct_operations.hpp"
#include "echo_service.hpp"
#include "errors.hpp"
#include "io_context.hpp"
#include "io_queue.hpp"
#include "registered_files.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "variant_client.hpp"
#include "variant_kinds.hpp"

namespace uring {

// A client's slot, with the functions of a unique_fd. It shares the table, which has to outlive it.
class direct_client {
 public:
  direct_client(std::shared_ptr<registered_files> table, file_slot slot) noexcept
      : table_{std::move(table)}, slot_{std::move(slot)} {}

  [[nodiscard]] bool valid() const noexcept { return slot_ && slot_.holds_file(); }
  [[nodiscard]] int get() const noexcept { return slot_.index(); }
  void reset() noexcept { slot_ = file_slot{}; }

 private:
  std::shared_ptr<registered_files> table_;
  file_slot slot_;
};

struct [[nodiscard]] accepted_direct {
  io_result result;
  direct_client client;
};

// The kernel refuses a table that has more slots than RLIMIT_NOFILE.
[[nodiscard]] inline unsigned slots_allowed() {
  constexpr ::rlim_t slots_max = 8192;
  ::rlimit files{};
  common::check(::getrlimit(RLIMIT_NOFILE, &files), "getrlimit");
  return static_cast<unsigned>(std::min(files.rlim_cur, slots_max));
}

// An echo_service takes its clients from an object of this class.
class direct_clients {
 public:
  direct_clients(cancel_source& waiting, int listener)
      : waiting_{waiting},
        listener_{listener},
        table_{std::make_shared<registered_files>(waiting.queue(), slots_allowed())} {}

  task<accepted_direct> next() {
    file_slot slot = table_->reserve();
    if (!slot) co_return accepted_direct{io_result{-EMFILE}, {table_, std::move(slot)}};
    const io_result result = co_await accept_direct_op(waiting_, listener_, slot);
    co_return accepted_direct{result, {table_, std::move(slot)}};
  }
  task<> end() { co_return; }

 private:
  cancel_source& waiting_;
  int listener_;
  std::shared_ptr<registered_files> table_;
};

// Each client has a buffer; its socket is a slot.
struct slots_and_own_buffers : own_buffers {
  static constexpr std::uint8_t file_flags = IOSQE_FIXED_FILE;
  using own_buffers::own_buffers;
};

inline task<> echo_direct(variant_client client, slots_and_own_buffers& shared) {
  co_await echo_recv_send(client, shared);
}

}  // namespace uring
