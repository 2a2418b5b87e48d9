// SPDX-License-Identifier: MIT
// A copy of a text whose last byte is the last one before a page that nobody may read: a parser
// that looks further crashes at once, without any sanitizer.
// Owns     the pages.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "errors.hpp"

namespace course_test {

class guarded_text {
 public:
  explicit guarded_text(std::string_view text) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t readable = (text.size() / page + 1) * page;
    bytes_ = readable + page;
    void* const memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) common::throw_errno("mmap");
    memory_ = static_cast<char*>(memory);
    common::check(::mprotect(memory_ + readable, page, PROT_NONE), "mprotect");
    char* const begin = memory_ + readable - text.size();
    std::ranges::copy(text, begin);
    view_ = {begin, text.size()};
  }
  guarded_text(guarded_text&&) = delete;
  ~guarded_text() { ::munmap(memory_, bytes_); }

  [[nodiscard]] std::string_view view() const noexcept { return view_; }

 private:
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::string_view view_;
};

}  // namespace course_test
