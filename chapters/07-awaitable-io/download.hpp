// SPDX-License-Identifier: MIT
// Writes a body to standard output, or to a file that gets its name only when it is complete.
// Owns     the file, under NAME.part until keep(); the destructor removes a file that was not kept.
// Lifetime it must outlive its tasks, and the queue must outlive it.
// Threads  the one that runs the queue.
// Errors   std::system_error that names the file; std::runtime_error if the name exists already and
//          is no regular file: a rename over /dev/null would replace it for everybody.
// Rule     a file under its final name is whole: written, synced, then renamed.
// See      rename(2), fsync(2)
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "path_operations.hpp"
#include "task.hpp"
#include "transfers.hpp"
#include "unique_fd.hpp"

namespace uring {

class download {
 public:
  // `name` is empty for standard output.
  download(io_handle io, std::string name)
      : io_{io}, name_{std::move(name)}, part_{name_ + ".part"} {}
  download(download&&) = delete;  // its coroutines hold its address
  ~download() {
    if (file_.valid()) ::unlink(part_.c_str());
  }

  task<> begin() {
    if (name_.empty()) co_return;
    struct ::statx there{};
    const io_result found = co_await statx_op(io_, AT_FDCWD, name_.c_str(), 0, STATX_TYPE, there);
    if (found && !S_ISREG(there.stx_mode)) {
      throw std::runtime_error{name_ + " is no file: redirect standard output to it"};
    }
    const int how = O_WRONLY | O_CREAT | O_TRUNC;
    const io_result opened = co_await openat_op(io_, AT_FDCWD, part_.c_str(), how, 0666);
    opened.or_throw("open " + part_);
    file_ = common::unique_fd{opened.fd()};
  }

  task<> add(std::span<const std::byte> data) {
    co_await write_all(io_, name_.empty() ? STDOUT_FILENO : file_.get(), data);
  }

  // Call this when the whole body has come. Gives the file its final name.
  task<> keep() {
    if (name_.empty()) co_return;
    const io_result synced = co_await fsync_op(io_, file_.get());
    synced.or_throw("fsync " + part_);
    const io_result renamed =
        co_await renameat_op(io_, AT_FDCWD, part_.c_str(), AT_FDCWD, name_.c_str());
    renamed.or_throw("rename " + part_ + " to " + name_);
    file_.reset();
  }

 private:
  io_handle io_;
  std::string name_;
  std::string part_;
  common::unique_fd file_;
};

}  // namespace uring
