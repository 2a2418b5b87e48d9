// SPDX-License-Identifier: MIT
// What a child prints, read as it comes, so that a talkative child never waits for the test.
// Owns     two pipes and the thread that empties them.
// Lifetime make it before fork(); start() in the parent after it; finish() when the child has ended
//          closes all descriptors, and the texts stay.
// Threads  the text functions: any. The rest: the thread that made it.
// Errors   std::system_error from the constructor.
// Rule     beyond bytes_max a stream is still read, but only its first and last parts are kept.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "unique_fd.hpp"

namespace course_test {

class captured_output {
 public:
  static constexpr std::size_t bytes_max = 128 * 1024;  // for each half of each stream

  captured_output();
  captured_output(captured_output&&) = delete;  // the thread knows our address
  ~captured_output() { finish(); }

  [[nodiscard]] int stdout_writer() const noexcept { return out_.writer.get(); }
  [[nodiscard]] int stderr_writer() const noexcept { return err_.writer.get(); }

  void start();
  void finish();  // reads what the child has left behind; safe to call twice

  [[nodiscard]] std::string stdout_text() const { return text_of(out_); }
  [[nodiscard]] std::string stderr_text() const { return text_of(err_); }

 private:
  struct stream {
    common::unique_fd reader;
    common::unique_fd writer;
    std::string head;  // the first bytes_max
    std::string tail;  // the last bytes_max of what came after
    std::size_t dropped_bytes = 0;
  };

  static stream make_stream();
  static bool take_some(stream& from, std::mutex& mutex);
  static void keep(stream& to, std::string_view text);
  [[nodiscard]] std::string text_of(const stream& from) const;
  void drain();

  mutable std::mutex mutex_;  // guards the strings
  stream out_;
  stream err_;
  common::unique_fd finishing_;  // an eventfd: the child has ended, take what there is and return
  std::thread thread_;
};

}  // namespace course_test
