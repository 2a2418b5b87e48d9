// SPDX-License-Identifier: MIT
// Sends a file, and then EOF, to every client that connects. It is an Echo for echo_service.
// Owns     a pipe or a block for each client, until the client's run() has ended.
// Lifetime the file and the sources must outlive every run().
// Threads  the one that runs the queue.
// Errors   how a connection ends concerns that client only.
// Rule     EOF means that the file is complete. If it is not, the connection is reset.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <system_error>
#include <vector>

#include "cancel_source.hpp"
#include "connection_reset.hpp"
#include "errors.hpp"
#include "file_extents.hpp"
#include "file_operations.hpp"
#include "log.hpp"
#include "outcome.hpp"
#include "registered_files.hpp"
#include "splice_file.hpp"
#include "task.hpp"
#include "transfers.hpp"
#include "zero_copy.hpp"

namespace uring {

enum class send_method {
  splice,     // the file's pages go through a pipe
  copy,       // a read into a block, and a send out of it
  zero_copy,  // the same, with a send that leaves the bytes in the block
};

// In the order of send_method.
inline constexpr std::array send_method_names{"splice", "copy", "zero-copy"};

struct served_file {
  int fd;
  file_ref ref;  // the same file, for requests
  send_method method;
  std::size_t piece_bytes = 256 * 1024;  // how much goes through a pipe or a block at a time
};

class file_sender {
 public:
  file_sender(const served_file& file, cancel_source&, cancel_source& given_up) noexcept
      : file_{file}, given_up_{given_up} {}

  task<> run(int socket) {
    const reset_on_cancel hang_up{given_up_, socket};
    const outcome<void> sent = co_await send_to(socket).as_outcome();
    if (sent.error() == nullptr) co_return;
    reset_connection(socket);
    report(sent.error());
  }

 private:
  task<> send_to(int socket) {
    struct ::stat now{};
    common::check(::fstat(file_.fd, &now), "fstat");
    const extent all{0, static_cast<std::uint64_t>(now.st_size)};
    if (file_.method == send_method::splice) {
      const splice_pipe pipe{file_.piece_bytes};
      co_await splice_file(given_up_, file_.ref, all, pipe, socket);
    } else {
      co_await send_blocks(all, socket);
    }
  }

  task<> send_blocks(extent part, int socket) {
    std::vector<std::byte> block(std::min<std::uint64_t>(file_.piece_bytes, part.bytes()));
    while (part.begin < part.end) {
      const std::span<std::byte> into =
          std::span{block}.first(std::min<std::uint64_t>(block.size(), part.bytes()));
      const io_result read = co_await with_flags(
          read_op(given_up_, file_.ref.number, into, part.begin), file_.ref.flags);
      if (read.is_passing()) continue;
      const std::size_t bytes = read.or_throw("read");
      if (bytes == 0) throw_became_shorter(part.begin);
      part.begin += bytes;
      co_await send_block(socket, into.first(bytes));
    }
  }

  task<> send_block(int socket, std::span<const std::byte> data) {
    if (file_.method == send_method::zero_copy) return send_all_zc(given_up_, socket, data);
    return send_all(given_up_, socket, data);
  }

  // Reports a file that cannot be read, and memory that may not be locked; but not a client that
  // leaves or is given up.
  static void report(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::system_error& failed) {
      if (!concerns_the_client(failed.code().value())) common::log(failed.what());
    } catch (const std::exception& broken) {
      common::log(broken.what());
    }
  }

  static bool concerns_the_client(int error) noexcept {
    return error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == ECANCELED;
  }

  const served_file& file_;
  cancel_source& given_up_;
};

}  // namespace uring
