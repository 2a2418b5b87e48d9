// SPDX-License-Identifier: MIT
#include "captured_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "errors.hpp"
#include "pipe_ends.hpp"

namespace course_test {

captured_output::captured_output()
    : out_{make_stream()},
      err_{make_stream()},
      finishing_{common::check(::eventfd(0, EFD_CLOEXEC), "eventfd for a child's output")} {}

captured_output::stream captured_output::make_stream() {
  pipe_ends ends = make_pipe();
  stream made;
  made.reader = std::move(ends.read);
  made.writer = std::move(ends.write);
  // Only our end: the child gets the blocking pipe that every program expects.
  common::check(::fcntl(made.reader.get(), F_SETFL, O_NONBLOCK), "fcntl O_NONBLOCK");
  return made;
}

void captured_output::start() {
  out_.writer.reset();  // or we would never see the end of the child's output
  err_.writer.reset();
  thread_ = std::thread{[this] { drain(); }};
}

void captured_output::finish() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(finishing_.get(), &one, sizeof one);
  thread_.join();
  out_.reader.reset();
  err_.reader.reset();
  finishing_.reset();
}

// Ends when both streams have; or, once finish() was called, when nothing is left to read. A
// grandchild may hold a pipe open for longer than anyone wants to wait.
void captured_output::drain() {
  std::array<::pollfd, 3> waits{::pollfd{.fd = out_.reader.get(), .events = POLLIN, .revents = 0},
                                ::pollfd{.fd = err_.reader.get(), .events = POLLIN, .revents = 0},
                                ::pollfd{.fd = finishing_.get(), .events = POLLIN, .revents = 0}};
  bool finishing = false;
  while (waits[0].fd != -1 || waits[1].fd != -1) {
    const int ready = ::poll(waits.data(), waits.size(), finishing ? 0 : -1);
    if (ready == 0) return;
    if (ready == -1) continue;  // EINTR
    if (waits[0].revents != 0 && !take_some(out_, mutex_)) waits[0].fd = -1;
    if (waits[1].revents != 0 && !take_some(err_, mutex_)) waits[1].fd = -1;
    if (waits[2].revents != 0) {
      finishing = true;
      waits[2].fd = -1;
    }
  }
}

// False at the stream's end.
bool captured_output::take_some(stream& from, std::mutex& mutex) {
  std::array<char, 16 * 1024> buffer;
  const ::ssize_t got = ::read(from.reader.get(), buffer.data(), buffer.size());
  if (got == -1) return errno == EAGAIN || errno == EINTR;
  const std::lock_guard lock{mutex};
  keep(from, {buffer.data(), static_cast<std::size_t>(got)});
  return got != 0;
}

void captured_output::keep(stream& to, std::string_view text) {
  const std::string_view first = text.substr(0, bytes_max - to.head.size());
  to.head += first;
  to.tail += text.substr(first.size());
  if (to.tail.size() <= 2 * bytes_max) return;  // cut rarely: a cut moves all of it
  const std::size_t excess = to.tail.size() - bytes_max;
  to.tail.erase(0, excess);
  to.dropped_bytes += excess;
}

std::string captured_output::text_of(const stream& from) const {
  const std::lock_guard lock{mutex_};
  if (from.dropped_bytes == 0) return from.head + from.tail;
  return from.head + "\n[… " + std::to_string(from.dropped_bytes) + " bytes left out …]\n" +
         from.tail;
}

}  // namespace course_test
