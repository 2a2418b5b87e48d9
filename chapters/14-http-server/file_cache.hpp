// SPDX-License-Identifier: MIT
// Small files, ready to be sent: their fields, the empty line and the bytes in one piece.
// Owns     the files, at most options::bytes_max bytes of them. A caller that keeps one shares it.
// Threads  the one that runs the queue: each thread has a cache of its own, and no lock.
// Errors   std::bad_alloc.
// Rule     a file is checked on the disk again after fresh_ms, and no sooner. While one request
//          checks, the others get the cached file, so a slow check delays only one client.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "list_link.hpp"
#include "small_file.hpp"
#include "todo.hpp"
#include "wait_kinds.hpp"

namespace uring::http {

class file_cache {
 public:
  struct options {
    std::size_t bytes_max = 64 * 1024 * 1024;
    std::chrono::milliseconds fresh_ms{1000};
  };

  explicit file_cache(const options& chosen) noexcept : options_{chosen} {}
  file_cache(file_cache&&) = delete;  // entries are in a list
  ~file_cache() { clear(); }

  // Returns the address of the entry's file if the file may be sent now without a look at the disk,
  // and otherwise null. It may be sent if it was checked less than options_.fresh_ms ago, or if
  // another request is checking it now. Each call is a use of the file, whatever it returns, so
  // move the entry to the end of by_use_: call here.unlink(), then by_use_.push_back(here), which
  // does not unlink. make_room() drops the first entry. Leave is_being_checked as it is, because
  // the caller's check sets it.
  [[nodiscard]] const std::shared_ptr<const small_file>* find(std::string_view path,
                                                              limit_clock::time_point now) {
    const auto found = entries_.find(path);
    if (found == entries_.end()) return nullptr;
    entry& here = found->second;
    COURSE_TODO("14.3");
  }

  // Call it before you look at the disk for this path. Then call one function of the result.
  class check;
  [[nodiscard]] check begin_check(std::string_view path);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct entry : list_link {
    std::shared_ptr<const small_file> file;
    limit_clock::time_point checked;
    bool is_being_checked = false;
    const std::string* path = nullptr;  // its key
  };
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  // The bytes of the text and of the path, and the entry's other memory.
  static std::size_t cost(const std::string& path, const small_file& file) noexcept {
    return sizeof(entry) + sizeof(small_file) + path.size() + file.text.size();
  }

  void insert(std::string_view path, std::shared_ptr<const small_file> file,
              limit_clock::time_point now);
  void make_room();
  void drop(std::string_view path) {
    const auto found = entries_.find(path);
    if (found == entries_.end()) return;
    bytes_ -= cost(found->first, *found->second.file);
    found->second.unlink();
    entries_.erase(found);
  }
  void clear() noexcept {
    by_use_.forget();
    entries_.clear();
  }

  options options_;
  std::unordered_map<std::string, entry, hash, std::equal_to<>> entries_;
  linked_list<entry> by_use_;  // the first entry was unused for longest
  std::size_t bytes_ = 0;      // the sum of cost() of all entries; at most bytes_max
};

// One look at the disk. If none of confirm(), keep() and drop() is called, the entry stays as it
// is. The cache must outlive the object.
class [[nodiscard]] file_cache::check {
 public:
  check(file_cache& cache, std::string_view path) : cache_{cache}, path_{path} {
    if (entry* const here = find()) here->is_being_checked = true;
  }
  check(check&&) = delete;
  ~check() {
    if (entry* const here = find()) here->is_being_checked = false;
  }

  // If the cached file is of this version, marks it as checked now, and returns it. Otherwise null.
  [[nodiscard]] std::shared_ptr<const small_file> confirm(const file_facts& facts,
                                                          limit_clock::time_point now) {
    entry* const here = find();
    if (here == nullptr || here->file->facts != facts) return nullptr;
    here->checked = now;
    return here->file;
  }
  void keep(std::shared_ptr<const small_file> file, limit_clock::time_point now) {
    cache_.drop(path_);
    cache_.insert(path_, std::move(file), now);
  }
  // Call it if the file is gone, or is no longer small.
  void drop() { cache_.drop(path_); }

 private:
  [[nodiscard]] entry* find() {
    const auto found = cache_.entries_.find(path_);
    return found == cache_.entries_.end() ? nullptr : &found->second;
  }

  file_cache& cache_;
  std::string path_;
};

inline file_cache::check file_cache::begin_check(std::string_view path) {
  return check{*this, path};
}

// A file that alone is larger than bytes_max is not kept, and removes no other.
inline void file_cache::insert(std::string_view path, std::shared_ptr<const small_file> file,
                               limit_clock::time_point now) {
  const std::string name{path};
  if (cost(name, *file) > options_.bytes_max) return;
  const auto [place, is_new] = entries_.try_emplace(name);
  entry& here = place->second;
  here.path = &place->first;
  here.file = std::move(file);
  here.checked = now;
  by_use_.push_back(here);
  bytes_ += cost(place->first, *here.file);
  if (bytes_ > options_.bytes_max) make_room();
}

// Drops files, always the one that was unused for longest, until bytes_ is at most
// options_.bytes_max. drop() takes an entry's *path, removes the entry from by_use_, and subtracts
// its cost from bytes_.
inline void file_cache::make_room() {
  COURSE_TODO("14.3");
}

}  // namespace uring::http
