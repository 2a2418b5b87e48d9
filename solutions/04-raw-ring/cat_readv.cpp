// SPDX-License-Identifier: MIT
// 04-cat_readv: cat, with a system call for each read.
//
//   ./course run 04:cat_readv -- README.md
#include <errno.h>

#include "cat_files.hpp"

int main(int argc, char** argv) {
  return cat::run(argc, argv, [] {
    // --8<-- [start:read]
    return [](int fd, const cat::blocks& into) {
      const ::ssize_t result = ::readv(fd, into.data(), cat::blocks::count);
      return result == -1 ? -errno : static_cast<int>(result);
    };
    // --8<-- [end:read]
  });
}
