// SPDX-License-Identifier: MIT
// The folder that is served, and what is at a path in it. The kernel keeps every path inside, so
// there is no check of names that a new spelling could get around.
// Owns     the folder's descriptor.
// Errors   std::system_error if there is no such folder. What is wrong with a path is its status.
// Rule     a path may be anything, and is served only if it is a regular file. Opening it must
//          neither wait (a FIFO without a writer) nor have an effect (a terminal).
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

// What is at a path, as the status of the answer.
struct found_file {
  int status = 404;           // 200: a file. 301: a folder. Else why it is not served.
  common::unique_fd fd = {};  // of a file
  file_facts facts = {};      // of a file
};

// For openat2: reading; closed on exec; without waiting; and no terminal becomes ours. `resolve`
// keeps the path beneath the folder that it begins at, symbolic links included, and refuses the
// magic links of /proc. A disk that is mounted beneath the folder belongs to it. The names are in
// openat2(2) and open(2).
[[nodiscard]] inline ::open_how how_to_open() noexcept {
  ::open_how how{};
  COURSE_TODO("14.1");
  return how;
}

// The status for a path that openat2 has refused with `error`, an errno. If we have no descriptors
// or memory at present, it is 503. There are three more kinds. 404: nothing has this name (ENOENT,
// ENOTDIR), or the name is too long (ENAMETOOLONG). 403: something is there that is not for
// clients: no permission (EACCES, EPERM), outside of the root (EXDEV), a circle of links or a magic
// one (ELOOP), a socket (ENXIO). 500: any other, such as a broken disk.
[[nodiscard]] inline int status_of_refusal(int error) noexcept {
  if (error == EMFILE || error == ENFILE || error == ENOMEM) return 503;
  COURSE_TODO("14.1");
}

// Takes what openat2 has opened, and says what it is. A regular file (S_ISREG of stx_mode): 200,
// its descriptor, and facts_of() it. A folder (S_ISDIR): 301, the client forgot the slash. Anything
// else, such as a FIFO or a device: 403.
//
// statx() is a plain call here. The file is open, and AT_STATX_DONT_SYNC takes what the kernel
// knows already, so it waits for no disk and no network; through the ring a worker would do it.
[[nodiscard]] inline found_file examine(common::unique_fd opened) {
  struct ::statx now{};
  const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(opened.get(), "", flags, facts_mask, &now) != 0) return {.status = 500};
  COURSE_TODO("14.1");
}

class site_root {
 public:
  explicit site_root(const std::string& folder)
      : fd_{common::check(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC),
                          "open the root, " + folder)} {}

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  // Blocks the thread while it waits for the disk, as in a server without a ring.
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

  // The kernel says EAGAIN if a folder was renamed while it looked up the path.
  static constexpr int tries_max = 3;

 private:
  common::unique_fd fd_;
};

// The name of a plain path in the root: without the first slash, and a folder's page is its
// index.html.
[[nodiscard]] inline std::string name_in_root(std::string_view path) {
  std::string name{path.substr(1)};
  if (name.empty() || name.ends_with('/')) name += "index.html";
  return name;
}

}  // namespace uring::http
