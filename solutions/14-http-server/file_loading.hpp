// SPDX-License-Identifier: MIT
// Loads files by the ring, because finding a name and reading may wait for a disk or a network.
// Owns     nothing; each result owns its file's descriptor or bytes.
// Lifetime everything that is passed by reference must outlive the task.
// Threads  the one that runs the queue.
// Errors   found_file::status; a small file that cannot be read is null. std::bad_alloc.
// Rule     if a file changes while it is read, the bytes that were read are sent, but the cache
//          does not keep them.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cancel_source.hpp"
#include "file_cache.hpp"
#include "file_requests.hpp"
#include "mime_types.hpp"
#include "site_root.hpp"
#include "small_file.hpp"
#include "task.hpp"

namespace uring::http {

// Like site_root::find(), but only this task waits. The status is 503 if `source` was canceled, for
// example at its time limit.
inline task<found_file> find_file(cancel_source& source, const site_root& root,
                                  const std::string& name) {
  ::open_how how = how_to_open();
  int error = EAGAIN;
  for (int tries = 0; tries < site_root::tries_max; ++tries) {
    const io_result opened = co_await openat2_op(source, root.fd(), name.c_str(), how);
    if (opened) co_return examine(common::unique_fd{opened.fd()});
    error = opened.error();
    if (!opened.is_passing()) break;
  }
  const int status = error == ECANCELED || error == EAGAIN ? 503 : status_of_refusal(error);
  co_return found_file{.status = status};
}

// All of a file that is small. Null if it cannot be read whole.
inline task<std::shared_ptr<const small_file>> read_small_file(cancel_source& source,
                                                               const found_file& found,
                                                               std::string_view type) {
  std::unique_ptr<small_file> file = begin_small_file(found.facts, type);
  const std::span<char> room = std::span{file->text}.subspan(file->head_bytes);
  std::size_t done = 0;
  while (done < room.size()) {
    const io_result read =
        co_await read_file_op(source, found, std::as_writable_bytes(room.subspan(done)), done);
    if (read.is_passing()) continue;
    if (!read || read.count() == 0) co_return nullptr;
    done += read.count();
  }
  co_return file;
}

// The result of a look at the disk, for a path whose file is not fresh in the cache.
struct looked_up {
  found_file found;                        // if it is large, with its descriptor
  std::shared_ptr<const small_file> file;  // if it is small
};

inline task<looked_up> look_up(cancel_source& source, const site_root& root, file_cache& cache,
                               const std::string& path) {
  file_cache::check check{cache, path};
  const std::string name = name_in_root(path);
  looked_up got;
  got.found = co_await find_file(source, root, name);
  const bool is_small = got.found.status == 200 && got.found.facts.bytes <= small_file_bytes_max;
  if (!is_small) {
    if (got.found.status < 500) check.drop();
    co_return got;
  }
  got.file = check.confirm(got.found.facts, coarse_now());
  if (got.file != nullptr) co_return got;
  got.file = co_await read_small_file(source, got.found, type_of(name));
  if (got.file == nullptr) {
    got.found.status = source.is_canceled() ? 503 : 500;
  } else if (is_unchanged(got.found)) {
    check.keep(got.file, coarse_now());
  }
  co_return got;
}

}  // namespace uring::http
