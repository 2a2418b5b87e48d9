// SPDX-License-Identifier: MIT
// Memory for answers on their way out. A connection has a block only while it has something to
// send. So there are about as many blocks as clients that are being answered at this moment.
// Owns     the blocks that are not in use; a block that was taken belongs to its send_block.
// Lifetime it must outlive every send_block.
// Threads  the one that runs the queue.
// Errors   std::bad_alloc.
// Rule     the block that was returned last is taken first: it may still be in the CPU's cache.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace uring::http {

inline constexpr std::size_t block_bytes = 64 * 1024;

class send_blocks {
 public:
  // At most this many unused blocks are kept; blocks beyond that are freed when they are returned.
  static constexpr std::size_t kept_max = 256;

  send_blocks() { kept_.reserve(kept_max); }
  send_blocks(send_blocks&&) = delete;  // blocks hold its address

 private:
  friend class send_block;

  using memory = std::unique_ptr<char[]>;

  // A new block is not initialized, because pages that were never written to cost no memory.
  [[nodiscard]] memory take() {
    if (kept_.empty()) return std::make_unique_for_overwrite<char[]>(block_bytes);
    memory last = std::move(kept_.back());
    kept_.pop_back();
    return last;
  }
  void take_back(memory block) noexcept {
    if (block != nullptr && kept_.size() < kept_max) kept_.push_back(std::move(block));
  }

  std::vector<memory> kept_;
};

// The bytes that are to be sent next. room() takes a block if there is none yet, and clear() gives
// it back.
class send_block {
 public:
  explicit send_block(send_blocks& from) noexcept : from_{from} {}
  send_block(send_block&&) = delete;
  ~send_block() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }
  [[nodiscard]] std::string_view text() const noexcept { return {memory_.get(), bytes_}; }
  [[nodiscard]] std::size_t room_bytes() const noexcept { return block_bytes - bytes_; }

  // The room after the text: write to it, then add() the number of bytes that you have written.
  [[nodiscard]] std::span<char> room() {
    if (memory_ == nullptr) memory_ = from_.take();
    return {memory_.get() + bytes_, room_bytes()};
  }
  void add(std::size_t bytes) noexcept {
    assert(bytes <= room_bytes());
    bytes_ += bytes;
  }
  // The caller must have checked room_bytes().
  void append(std::string_view text) {
    std::memcpy(room().data(), text.data(), text.size());
    add(text.size());
  }

  void clear() noexcept {
    from_.take_back(std::move(memory_));
    bytes_ = 0;
  }

 private:
  send_blocks& from_;
  send_blocks::memory memory_;
  std::size_t bytes_ = 0;
};

}  // namespace uring::http
