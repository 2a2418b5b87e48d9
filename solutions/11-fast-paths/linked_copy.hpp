// SPDX-License-Identifier: MIT
// Copies parts of a file, with chains of linked requests: read a block, write it, read the next,
// all into and out of one buffer.
// Lifetime files, buffer and queue must outlive the tasks.
// Threads  the one that runs the queue.
// Errors   std::system_error that says what was tried and at which byte; std::runtime_error if the
//          source ends too early. A cancel is thrown, too (ECANCELED).
// Rule     a request's length is fixed before the previous request has run. So a chain reads only
//          bytes that the file must have. If a chain breaks, single requests show why.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "copy_step.hpp"
#include "file_extents.hpp"
#include "file_operations.hpp"
#include "io_request.hpp"
#include "linked.hpp"
#include "registered_buffers.hpp"
#include "registered_files.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring {

class linked_copy {
 public:
  linked_copy(const io_handle& io, const file_ref& source, const file_ref& target) noexcept
      : io_{io}, source_{source}, target_{target} {}

  // Copies all of `part` with chains, in blocks of the buffer's size. If a chain breaks before its
  // end, single requests move the next bytes, or find out what is wrong.
  task<> copy(extent part, fixed_buffer buffer) {
    while (part.begin < part.end) {
      const extent next = part_of_a_chain(part, buffer);
      linked_steps chain{io_, steps_of(next, buffer), chain_answers::one};
      co_await chain;
      part.begin += bytes_copied(chain);
      if (part.begin == next.end) continue;
      const std::size_t some = co_await copy_some(part, buffer);
      if (some == 0) throw_source_ended(part.begin);
      part.begin += some;
    }
  }

  // Returns two steps for each block of `part`, in order: a read from source_ into the buffer, and
  // a write from the buffer to target_ at the same offset. A step is a copy_step{what, file, block,
  // offset}, and `what` is copy_step::action::read or write. `block` is a fixed_buffer with the
  // buffer's index and the bytes that the step moves: all bytes of the buffer, or in the last block
  // only as many of its first bytes as the part has left.
  [[nodiscard]] std::vector<copy_step> steps_of(extent part, const fixed_buffer& buffer) const {
    std::vector<copy_step> steps;
    // --8<-- [start:task-11-3]
    while (part.begin < part.end) {
      const std::size_t bytes = std::min<std::uint64_t>(buffer.bytes.size(), part.bytes());
      const fixed_buffer block{.bytes = buffer.bytes.first(bytes), .index = buffer.index};
      steps.push_back({copy_step::action::read, source_, block, part.begin});
      steps.push_back({copy_step::action::write, target_, block, part.begin});
      part.begin += bytes;
    }
    // --8<-- [end:task-11-3]
    return steps;
  }

  // Copies the source from `at` to its present end: a file may grow, and a /proc file has no size.
  // Returns where the source ends.
  task<std::uint64_t> copy_rest(std::uint64_t at, fixed_buffer buffer) {
    while (true) {
      const extent next{at, at + buffer.bytes.size()};
      const std::size_t some = co_await copy_some(next, buffer);
      if (some == 0) co_return at;
      at += some;
    }
  }

  // Copies as much of the first block of `part` as one read and one write move. Returns the number
  // of bytes: at least 1, or 0 at the end of the source.
  task<std::size_t> copy_some(extent part, fixed_buffer buffer) const;

 private:
  // The beginning of `part` that one chain can copy: each block takes two requests.
  [[nodiscard]] extent part_of_a_chain(const extent& part, const fixed_buffer& buffer) const {
    const std::size_t blocks = chain_requests_max(io_.queue()) / 2;
    assert(blocks > 0 && "no room for a read and its write: with_room_for_pairs()");
    return {part.begin, std::min(part.end, part.begin + blocks * buffer.bytes.size())};
  }

  // Returns how many bytes a chain of steps_of() has brought into the target. Of chain.steps() only
  // one step has posted a completion: the step with the index chain.answered(). Every step before
  // it has moved all bytes of its block, and no step after it has done anything. The result of this
  // step is chain.result(chain.answered()): an error, or a count of bytes, which may be fewer than
  // its block has. Bytes that were only read are not in the target.
  [[nodiscard]] static std::uint64_t bytes_copied(const linked_steps<copy_step>& chain) {
    std::uint64_t copied = 0;
    // --8<-- [start:task-11-3b]
    for (std::size_t i = 0; i < chain.answered(); ++i) {
      const copy_step& step = chain.steps()[i];
      if (step.what == copy_step::action::write) copied += step.block.bytes.size();
    }
    const io_result ended = chain.result(chain.answered());
    const bool was_write = chain.steps()[chain.answered()].what == copy_step::action::write;
    if (was_write && ended) copied += ended.count();
    // --8<-- [end:task-11-3b]
    return copied;
  }

  task<std::size_t> read_some(std::uint64_t at, fixed_buffer into) const;
  task<std::size_t> write_some(std::uint64_t at, fixed_buffer data) const;

  [[noreturn]] static void throw_source_ended(std::uint64_t at) {
    throw std::runtime_error{
        "the source ends before the size that it had (has it become shorter?): at byte " +
        std::to_string(at)};
  }

  io_handle io_;
  file_ref source_;
  file_ref target_;
};

inline task<std::size_t> linked_copy::copy_some(extent part, fixed_buffer buffer) const {
  buffer.bytes = buffer.bytes.first(std::min<std::uint64_t>(buffer.bytes.size(), part.bytes()));
  const std::size_t read = co_await read_some(part.begin, buffer);
  if (read == 0) co_return 0;
  buffer.bytes = buffer.bytes.first(read);
  const std::size_t written = co_await write_some(part.begin, buffer);
  co_return written;
}

inline task<std::size_t> linked_copy::read_some(std::uint64_t at, fixed_buffer into) const {
  while (true) {
    const io_result read =
        co_await with_flags(read_fixed_op(io_, source_.number, into, at), source_.flags);
    if (!read.is_passing()) co_return read.or_throw("read at byte " + std::to_string(at));
  }
}

inline task<std::size_t> linked_copy::write_some(std::uint64_t at, fixed_buffer data) const {
  while (true) {
    const io_result written =
        co_await with_flags(write_fixed_op(io_, target_.number, data, at), target_.flags);
    if (!written.is_passing()) co_return written.or_throw("write at byte " + std::to_string(at));
  }
}

}  // namespace uring
