// SPDX-License-Identifier: MIT
// Counts one character in many files, in three ways that must agree.
// Owns     every file while it is read.
// Threads  count_in_threads() starts and joins threads; the others run on the caller's thread.
// Errors   a file that cannot be read has a sentence in its result; std::system_error if the ring
//          or a thread cannot be made.
// Rule     the results are in the order of the names.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cancel_source.hpp"
#include "errors.hpp"
#include "file_operations.hpp"
#include "in_window.hpp"
#include "io_context.hpp"
#include "path_operations.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace uring {

struct file_count {
  std::uint64_t bytes = 0;
  std::uint64_t matches = 0;
  std::string failure;  // a sentence, or empty

  void add(std::span<const char> data, char wanted) {
    bytes += data.size();
    matches += static_cast<std::uint64_t>(std::ranges::count(data, wanted));
  }

  friend bool operator==(const file_count&, const file_count&) = default;
};

using file_names = std::vector<std::string>;
using file_counts = std::vector<file_count>;

inline constexpr std::size_t count_buffer_bytes = 64 * 1024;

inline file_count count_file(const std::string& name, char wanted) {
  file_count count;
  const common::unique_fd file{::open(name.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.valid()) count.failure = common::describe_errno(errno);
  std::array<char, count_buffer_bytes> buffer;
  while (file.valid()) {
    const ::ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) count.failure = common::describe_errno(errno);
    if (got <= 0) break;
    count.add(std::span{buffer}.first(static_cast<std::size_t>(got)), wanted);
  }
  return count;
}

inline file_counts count_sequentially(const file_names& names, char wanted) {
  file_counts counts;
  counts.reserve(names.size());
  for (const std::string& each : names) counts.push_back(count_file(each, wanted));
  return counts;
}

inline file_counts count_in_threads(const file_names& names, char wanted, std::size_t threads) {
  file_counts counts(names.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < names.size(); i = next++) {
      counts[i] = count_file(names[i], wanted);
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < threads && i < names.size(); ++i) workers.emplace_back(work);
  workers.clear();  // joins
  return counts;
}

inline task<> count_file(io_handle io, const std::string& name, char wanted, file_count& count) {
  const io_result opened = co_await openat_op(io, AT_FDCWD, name.c_str(), O_RDONLY | O_CLOEXEC);
  const common::unique_fd file{opened.fd()};
  if (!opened) count.failure = common::describe_errno(opened.error());
  std::array<char, count_buffer_bytes> buffer;
  while (file.valid()) {
    const io_result got =
        co_await read_op(io, file.get(), std::as_writable_bytes(std::span{buffer}));
    if (got.is_passing()) continue;
    if (!got) count.failure = common::describe_errno(got.error());
    if (!got || got.count() == 0) break;
    count.add(std::span{buffer}.first(got.count()), wanted);
  }
}

inline file_counts count_on_ring(const file_names& names, char wanted, std::size_t window) {
  file_counts counts(names.size());
  io_context context;
  cancel_source source{context};
  const auto work = [&](std::size_t i) { return count_file(source, names[i], wanted, counts[i]); };
  context.run(in_window(source, window, names.size(), work));
  return counts;
}

}  // namespace uring
