// SPDX-License-Identifier: MIT
// Copies a file. The copy is complete, on the disk and under its name, or it does not exist.
// Owns     the files that it opens, until the task has ended.
// Lifetime `context` and `cancels` must outlive the task.
// Threads  the one that runs the context.
// Errors   std::system_error, std::runtime_error: a sentence about what was tried and what failed.
//          The target is then as it was before. But if its folder cannot be synced, the new file
//          is there, and a power failure may undo that.
// Rule     regular files only: a pipe or a device has no length that a chain could be made for.
// See      cp(1), which copies by copy_file_range(2) and is often faster
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cancel_source.hpp"
#include "errors.hpp"
#include "file_extents.hpp"
#include "io_context.hpp"
#include "linked_copy.hpp"
#include "path_operations.hpp"
#include "registered_buffers.hpp"
#include "registered_files.hpp"
#include "replacement.hpp"
#include "task.hpp"
#include "unique_fd.hpp"
#include "when_all.hpp"

namespace uring {

struct copy_options {
  std::size_t block_bytes = 64 * 1024;
  std::size_t blocks_per_chain = 8;  // at most
  std::size_t chains = 4;            // at a time, each with a buffer of one block
};

// The file to copy: a regular file, open for reading.
struct copy_source {
  common::unique_fd fd;
  struct ::stat found;
};

// O_NONBLOCK lets the open of a FIFO return, so that it can be refused. The flag must not stay:
// with it io_uring does not wait for the disk, and answers EAGAIN.
[[nodiscard]] inline copy_source open_source(const std::string& path) {
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  copy_source opened{common::unique_fd{common::check(::open(path.c_str(), flags), path)}, {}};
  common::check(::fstat(opened.fd.get(), &opened.found), path);
  if (!S_ISREG(opened.found.st_mode)) throw std::runtime_error{path + ": not a regular file"};
  common::check(::fcntl(opened.fd.get(), F_SETFL, 0), path);
  return opened;
}

// Refuses a target that must not be replaced by a copy of `source`.
inline void check_target(const std::string& path, const copy_source& source) {
  if (path.empty()) throw std::runtime_error{"the target's name is empty"};
  const std::optional<struct ::stat> old = find_file(path);
  if (!old.has_value()) return;
  if (!S_ISREG(old->st_mode)) throw std::runtime_error{path + ": not a regular file"};
  if (old->st_dev == source.found.st_dev && old->st_ino == source.found.st_ino) {
    throw std::runtime_error{path + ": the same file as the source"};
  }
}

// The memory for the blocks, one for each chain, and its registration.
class copy_buffers {
 public:
  copy_buffers(io_queue& queue, const copy_options& options)
      : memory_(options.block_bytes * options.chains),
        registered_{queue, parts_of(memory_, options)} {}

  [[nodiscard]] std::size_t size() const noexcept { return registered_.size(); }
  [[nodiscard]] fixed_buffer operator[](std::size_t i) const noexcept { return registered_[i]; }

 private:
  static std::vector<std::span<std::byte>> parts_of(std::span<std::byte> memory,
                                                    const copy_options& options) {
    std::vector<std::span<std::byte>> parts;
    parts.reserve(options.chains);
    for (; !memory.empty(); memory = memory.subspan(options.block_bytes)) {
      parts.push_back(memory.first(options.block_bytes));
    }
    return parts;
  }

  std::vector<std::byte> memory_;
  registered_buffers registered_;
};

// Copies one part after the other until none is left. Other tasks take parts of the same file.
inline task<> copy_extents(linked_copy& copy, file_extents& parts, fixed_buffer buffer) {
  while (const std::optional<extent> part = parts.next()) co_await copy.copy(*part, buffer);
}

// Copies all bytes that the source had when it was opened, and those that were added since.
// If one of the tasks fails, a cancel of `chains` ends the others.
inline task<> copy_content(cancel_source& chains, linked_copy& copy, const copy_source& source,
                           const copy_options& options, const copy_buffers& buffers) {
  const auto size = static_cast<std::uint64_t>(source.found.st_size);
  file_extents parts{source.fd.get(), size, options.block_bytes * options.blocks_per_chain};
  std::vector<task<>> all;
  all.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    all.push_back(copy_extents(copy, parts, buffers[i]));
  }
  co_await when_all(chains, std::move(all));
  co_await copy.copy_rest(size, buffers[0]);
}

// Throws if the source has become shorter. If a hole was cut off, for example, no read fails.
inline void check_size(const copy_source& source) {
  struct ::stat now{};
  common::check(::fstat(source.fd.get(), &now), "fstat of the source");
  if (now.st_size < source.found.st_size) {
    throw std::runtime_error{"the source has become shorter while it was copied"};
  }
}

// When `cancels` is canceled, ends early and throws ECANCELED.
inline task<> copy_file(io_context& context, cancel_source& cancels, std::string from,
                        std::string to, copy_options options) {
  const copy_source source = open_source(from);
  check_target(to, source);
  replacement target{to, source.found.st_mode};
  common::check(::ftruncate(target.fd(), source.found.st_size), to);  // holes stay holes
  const copy_buffers buffers{context, options};
  registered_files files{context, 2};
  const file_slot read_slot = files.add(source.fd.get());
  const file_slot write_slot = files.add(target.fd());
  cancel_source chains{child_of{cancels}};
  linked_copy copy{chains, file_of(read_slot, source.fd.get()), file_of(write_slot, target.fd())};
  co_await copy_content(chains, copy, source, options, buffers);
  check_size(source);
  const io_result synced = co_await fsync_op(cancels, target.fd());
  synced.or_throw("fsync of " + to);
  if (cancels.is_canceled()) common::throw_error(ECANCELED, to);  // even if the copy is complete
  target.commit();
}

}  // namespace uring
