// SPDX-License-Identifier: MIT
// The new content of a file, under a name of its own until it is complete. Then it takes the file's
// place at once: a program that opens the file finds the old content or all of the new one.
// Owns     the new file, and its temporary name until commit().
// Lifetime without commit(), the destructor removes the new file.
// Threads  one at a time.
// Errors   std::system_error, std::runtime_error, with the reason.
// Rule     the file's folder must be writable. Other hard links of the file keep the old content.
//          A file that may not be written to is not replaced, though the folder would allow it.
//          The new file belongs to the program's user, and has the permissions of the old one.
// See      rename(2), mkostemp(3), fsync(2)
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace uring {

// Follows symbolic links, as the kernel does for any program that writes to `path`.
[[nodiscard]] inline std::string resolved(const std::string& path) {
  char real[PATH_MAX];
  if (::realpath(path.c_str(), real) != nullptr) return real;
  const int error = errno;
  struct ::stat link{};
  if (error == ENOENT && ::lstat(path.c_str(), &link) == -1) return path;  // a new file
  common::throw_error(error, path);  // a symbolic link to nothing, for example
}

// The file at `path`, if there is one.
[[nodiscard]] inline std::optional<struct ::stat> find_file(const std::string& path) {
  struct ::stat found{};
  if (::stat(path.c_str(), &found) == 0) return found;
  if (errno != ENOENT) common::throw_errno(path);
  return std::nullopt;
}

class replacement {
 public:
  // If there is no file to replace, the new one gets `mode`, less the umask.
  replacement(const std::string& path, ::mode_t mode) : path_{resolved(path)} {
    const ::mode_t mask = ::umask(0);
    ::umask(mask);
    mode_ = mode & 0777 & ~mask;
    if (const auto old = find_file(path_)) {
      mode_ = old->st_mode & 0777;
      common::unique_fd{common::check(::open(path_.c_str(), O_WRONLY | O_CLOEXEC), path)}.reset();
    }
    const std::size_t slash = path_.rfind('/');
    folder_ = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    temporary_ = folder_ + "/.new-XXXXXX";
    fd_ = common::unique_fd{
        common::check(::mkostemp(temporary_.data(), O_CLOEXEC), "a new file in " + folder_)};
  }
  replacement(replacement&&) = delete;
  ~replacement() {
    if (!is_complete_) ::unlink(temporary_.c_str());
  }

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Makes the content visible. Call it when the content is complete and on the disk (fsync).
  void commit() {
    common::check(::fchmod(fd_.get(), mode_), "chmod of " + temporary_);
    common::check(::rename(temporary_.c_str(), path_.c_str()), "rename to " + path_);
    is_complete_ = true;
    const common::unique_fd folder{
        common::check(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder_)};
    // Now a power failure cannot undo the rename. EINVAL: the file system cannot sync a folder.
    if (::fsync(folder.get()) == -1 && errno != EINVAL) common::throw_errno("fsync of " + folder_);
  }

 private:
  std::string path_;
  std::string folder_;
  std::string temporary_;
  ::mode_t mode_ = 0;
  common::unique_fd fd_;
  bool is_complete_ = false;
};

}  // namespace uring
