// SPDX-License-Identifier: MIT
// The folder that is served, and what is at a path in it. The kernel keeps every path inside, so
// there is no check of names that a new spelling could get around.
// Owns     the folder's descriptor.
// Errors   std::system_error if there is no such folder. If a path is wrong, its status says why.
// Rule     only a regular file is served, but anything may be at a path. So opening it must neither
//          wait (for a FIFO's writer) nor have an effect (on a terminal).
// See      openat2(2), statx(2), path_resolution(7)
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "errors.hpp"
#include "file_facts.hpp"
#include "todo.hpp"
#include "unique_fd.hpp"

namespace uring::http {

// The result of a look at a path: the status of the answer and, with 200, the file.
struct found_file {
  int status = 404;           // 200: a file. 301: a folder. Any other: why it is not served.
  common::unique_fd fd = {};  // of a file
  file_facts facts = {};      // of a file
};

// How openat2 has to open a path. how.flags (the O_ flags of open(2)): open it to read, close it on
// exec, do not wait, and let no terminal become our controlling terminal ("noctty"). how.resolve
// (the RESOLVE_ flags of openat2(2)): keep the path beneath the folder that it begins at, symbolic
// links included, and refuse magic links, but allow a disk that is mounted beneath the folder. (A
// magic link of /proc, such as /proc/self/cwd, leads to an object of a process, and not to a path.)
[[nodiscard]] inline ::open_how how_to_open() noexcept {
  ::open_how how{};
  // --8<-- [start:task-14-1]
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // --8<-- [end:task-14-1]
  return how;
}

// The status for a path that openat2 has refused with `error`, an errno. The status is 503 if we
// have no descriptors or memory left. Return 404 if nothing has this name (ENOENT, ENOTDIR), or if
// the name is too long (ENAMETOOLONG). Return 403 if clients may not have what is there: we have no
// permission (EACCES, EPERM), the path leads out of the root (EXDEV), it has a circle of links or a
// magic link (ELOOP), or it leads to a socket (ENXIO). Return 500 for any other errno, such as that
// of a broken disk.
[[nodiscard]] inline int status_of_refusal(int error) noexcept {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) return 503;
  // --8<-- [start:task-14-1b]
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
      return 404;
    case EACCES:
    case EPERM:
    case EXDEV:
    case ELOOP:
    case ENXIO:
      return 403;
    default:
      return 500;
  }
  // --8<-- [end:task-14-1b]
}

// Returns the result for what openat2 has opened. A regular file (S_ISREG(now.stx_mode)) has status
// 200, its descriptor, and facts_of(now). A folder (S_ISDIR) has only status 301, because the
// path lacks a slash at its end. Anything else, such as a FIFO or a device, has only status 403.
//
// statx() is a plain call here, because the file is open, and with AT_STATX_DONT_SYNC the kernel
// answers without waiting for a disk, a network or FUSE's daemon. If we used the ring, a thread of
// the kernel would make the call.
[[nodiscard]] inline found_file examine(common::unique_fd opened) {
  struct ::statx now{};
  const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(opened.get(), "", flags, facts_mask, &now) != 0) return {.status = 500};
  // --8<-- [start:task-14-1c]
  if (S_ISDIR(now.stx_mode)) return {.status = 301};
  if (!S_ISREG(now.stx_mode)) return {.status = 403};
  return {.status = 200, .fd = std::move(opened), .facts = facts_of(now)};
  // --8<-- [end:task-14-1c]
}

class site_root {
 public:
  explicit site_root(const std::string& folder)
      : fd_{common::check(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC),
                          "open the root, " + folder)} {}

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Blocks the thread while it waits for the disk, so it is for programs without a ring.
  [[nodiscard]] found_file find(const std::string& name) const {
    const ::open_how how = how_to_open();
    long opened = -EAGAIN;
    for (int tries = 0; opened == -EAGAIN && tries < tries_max; ++tries) {
      opened = ::syscall(SYS_openat2, fd(), name.c_str(), &how, sizeof how);
      if (opened < 0) opened = -errno;
    }
    if (opened < 0) return {.status = status_of_refusal(static_cast<int>(-opened))};
    return examine(common::unique_fd{static_cast<int>(opened)});
  }

  // The kernel returns EAGAIN if a folder was renamed while it looked up the path.
  static constexpr int tries_max = 3;

 private:
  common::unique_fd fd_;
};

// The name of a plain path in the root: the path without its first slash. The name of a folder's
// page ends with index.html.
[[nodiscard]] inline std::string name_in_root(std::string_view path) {
  std::string name{path.substr(1)};
  if (name.empty() || name.ends_with('/')) name += "index.html";
  return name;
}

// The status of the answer for what was found at a plain path. The redirect of a folder adds a
// slash to the path. If the path ends with a slash already, its index.html is a folder, and there
// is no page.
[[nodiscard]] inline int status_at(std::string_view path, const found_file& found) noexcept {
  return found.status == 301 && path.ends_with('/') ? 404 : found.status;
}

}  // namespace uring::http
