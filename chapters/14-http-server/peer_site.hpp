// SPDX-License-Identifier: MIT
// The files that a peer serves: 14's root and 14's cache, for servers that wait for the disk.
// Owns     the root and the cache.
// Lifetime it must outlive every dialog.
// Threads  any. A thread that waits for the disk delays no other: the mutex is free meanwhile.
// Errors   std::system_error if there is no such root; std::bad_alloc. An error of a path becomes
//          its status.
// Rule     as in file_loading.hpp, but without the ring: a file that changed while it was read is
//          sent, but not kept in the cache.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "file_cache.hpp"
#include "mime_types.hpp"
#include "site_root.hpp"
#include "small_file.hpp"
#include "wait_kinds.hpp"

namespace uring::http {

struct peer_file {
  found_file found = {};                              // if it is large, with its descriptor
  std::shared_ptr<const small_file> small = nullptr;  // if it is small
};

// Fills `room` from the file, from byte `at` on. False if the file ends first, or cannot be read.
[[nodiscard]] inline bool read_part(int file, std::span<char> room, std::size_t at) {
  while (!room.empty()) {
    const ::ssize_t count = ::pread(file, room.data(), room.size(), static_cast<::off_t>(at));
    if (count == -1 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<std::size_t>(count);
    room = room.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

class peer_site {
 public:
  explicit peer_site(const std::string& folder) : root_{folder}, cache_{{}} {}

  [[nodiscard]] peer_file look_up(std::string_view path) {
    std::unique_lock lock{mutex_};
    if (const auto* const here = cache_.find(path, coarse_now())) return {.small = *here};
    file_cache::check check{cache_, path};  // destroyed before the lock
    const std::string name = name_in_root(path);
    peer_file got;
    {
      const unlocked meanwhile{lock};
      got.found = root_.find(name);
    }
    const bool is_small = got.found.status == 200 && got.found.facts.bytes <= small_file_bytes_max;
    if (!is_small) {
      if (got.found.status < 500) check.drop();
      return got;
    }
    got.small = check.confirm(got.found.facts, coarse_now());
    if (got.small != nullptr) return got;
    bool is_whole = false;
    {
      const unlocked meanwhile{lock};
      got.small = read_small(got.found, type_of(name));
      is_whole = got.small != nullptr && is_unchanged(got.found);
    }
    if (got.small == nullptr) got.found.status = 500;
    if (is_whole) check.keep(got.small, coarse_now());
    return got;
  }

 private:
  struct unlocked {
    explicit unlocked(std::unique_lock<std::mutex>& held) : lock{held} { lock.unlock(); }
    unlocked(unlocked&&) = delete;
    ~unlocked() { lock.lock(); }
    std::unique_lock<std::mutex>& lock;
  };

  // Null if the file cannot be read whole.
  [[nodiscard]] static std::shared_ptr<const small_file> read_small(const found_file& found,
                                                                    std::string_view type) {
    std::unique_ptr<small_file> file = begin_small_file(found.facts, type);
    const std::span<char> room = std::span{file->text}.subspan(file->head_bytes);
    if (!read_part(found.fd.get(), room, 0)) return nullptr;
    return file;
  }

  site_root root_;
  std::mutex mutex_;  // guards the cache
  file_cache cache_;
};

}  // namespace uring::http
