// SPDX-License-Identifier: MIT
#include "cat_files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "shell_quoted.hpp"
#include "unique_fd.hpp"

namespace cat {
namespace {

// Standard output failed, so there is no point in reading further files.
class output_failed : public std::exception {
 public:
  explicit output_failed(std::string text) : text_{std::move(text)} {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

void complain(const std::string& sentence) {
  std::cerr << ::program_invocation_short_name << ": " << sentence << std::endl;
}

struct ::stat status_of_output() {
  struct ::stat status{};
  if (::fstat(STDOUT_FILENO, &status) == -1) {
    throw output_failed{std::string{"standard output: "} + std::strerror(errno)};
  }
  return status;
}

// `cat x >> x` would read what it writes until the disk is full.
bool feeds_itself(int fd, const struct ::stat& output) {
  struct ::stat input{};
  if (!S_ISREG(output.st_mode) || ::fstat(fd, &input) == -1) return false;
  return input.st_dev == output.st_dev && input.st_ino == output.st_ino &&
         ::lseek(fd, 0, SEEK_CUR) < input.st_size;
}

// --8<-- [start:copy]
// Copies to standard output until the end of the file. A read that brings fewer bytes than there
// is room for does not mean the end, because pipes, terminals and /proc often bring fewer. Only 0
// means the end.
int copy(int fd, const blocks& memory, const read_some& read) {
  while (true) {
    const int result = read(fd, memory);
    if (result == 0) return 0;
    if (result == -EINTR) continue;
    if (result < 0) return result;
    memory.write_out(static_cast<std::size_t>(result));
  }
}
// --8<-- [end:copy]

// Returns whether all of the file was copied.
bool show(const std::string& name, const struct ::stat& output, const blocks& memory,
          const read_some& read) {
  const bool standard_input = name == "-";
  const common::unique_fd file{standard_input ? -1 : ::open(name.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!standard_input && !file.valid()) {
    complain(shell_quoted(name) + ": " + std::strerror(errno));
    return false;
  }
  const int fd = standard_input ? STDIN_FILENO : file.get();
  if (feeds_itself(fd, output)) {
    complain(shell_quoted(name) + ": input file is output file");
    return false;
  }
  const int result = copy(fd, memory, read);
  if (result < 0) complain(shell_quoted(name) + ": " + std::strerror(-result));
  return result == 0;
}

// A new descriptor gets the lowest free number. If standard input is closed, the ring would get 0,
// and be read as input. So this opens a descriptor whose read gives EBADF, which cat(1) gets, too.
common::unique_fd hold_place_of_closed_input() {
  if (::fcntl(STDIN_FILENO, F_GETFD) != -1) return {};
  return common::unique_fd{::open("/", O_PATH | O_CLOEXEC)};
}

}  // namespace

blocks::blocks() : memory_(count * block_bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    pieces_[i] = {.iov_base = memory_.data() + i * block_bytes, .iov_len = block_bytes};
  }
}

void blocks::write_out(std::size_t bytes) const {
  for (std::size_t sent = 0; sent < bytes;) {
    const ::ssize_t taken = ::write(STDOUT_FILENO, memory_.data() + sent, bytes - sent);
    if (taken >= 0) {
      sent += static_cast<std::size_t>(taken);
    } else if (errno != EINTR) {
      throw output_failed{std::string{"write error: "} + std::strerror(errno)};
    }
  }
}

int run(int argc, char** argv, const std::function<read_some()>& make_reader) {
  std::vector<std::string> names;
  bool flags_allowed = true;
  for (const std::string& argument : std::vector<std::string>{argv + 1, argv + argc}) {
    if (flags_allowed && argument == "--") {
      flags_allowed = false;
    } else if (flags_allowed && argument == "--help") {
      std::cout << "Usage: " << ::program_invocation_short_name << " [FILE]...\n"
                << "Copies every FILE to standard output; no FILE, or -, is standard input.\n";
      return 0;
    } else if (flags_allowed && argument.size() > 1 && argument.front() == '-') {
      complain("takes no flags but --help; a file of such a name is ./" + argument);
      return 1;
    } else {
      names.push_back(argument);
    }
  }
  if (names.empty()) names.emplace_back("-");
  try {
    const struct ::stat output = status_of_output();
    const common::unique_fd closed_input = hold_place_of_closed_input();
    const blocks memory;  // outlives the reader's ring
    const read_some read = make_reader();
    bool all = true;
    for (const std::string& name : names) all = show(name, output, memory, read) && all;
    if (closed_input.valid() && std::ranges::find(names, "-") != names.end()) {
      complain(std::string{"closing standard input: "} + std::strerror(EBADF));
    }
    return all ? 0 : 1;
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}

}  // namespace cat
