// SPDX-License-Identifier: MIT
// The part that the three cat programs share: it handles arguments, files, output and errors.
// Owns     each file it opens, and four blocks of memory to read into.
// Lifetime a `blocks` object must live until no request in flight points into it.
// Threads  one.
// Errors   a file that cannot be read is reported on stderr, and the next file follows. If standard
//          output cannot be written, the program ends. The exit code is 1 in both cases.
// Rule     SIGPIPE keeps its default, so that `cat big | head -1` ends without a message.
// See      cat(1), readv(2)
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

namespace cat {

// Memory for one read, in pieces, as readv(2) and IORING_OP_READV take it.
class blocks {
 public:
  static constexpr unsigned count = 4;
  static constexpr std::size_t block_bytes = 32 * 1024;

  blocks();
  blocks(blocks&&) = delete;  // pieces_ points into memory_

  [[nodiscard]] const ::iovec* data() const noexcept { return pieces_.data(); }

  // Writes the first `bytes` bytes of the blocks to standard output.
  void write_out(std::size_t bytes) const;

 private:
  std::vector<std::byte> memory_;
  std::array<::iovec, count> pieces_;
};

// Reads into the blocks, from the descriptor's own offset. Returns how many bytes came, 0 at the
// end of the file, or -errno. The three programs differ only in this function.
using read_some = std::function<int(int fd, const blocks& into)>;

// The main() of `cat [FILE]...`: no FILE, or -, means standard input. Calls make_reader() once.
[[nodiscard]] int run(int argc, char** argv, const std::function<read_some()>& make_reader);

}  // namespace cat
