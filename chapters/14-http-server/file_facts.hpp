// SPDX-License-Identifier: MIT
// The facts about a file that are known without reading it, and those that tell its versions apart.
// Errors   none. A file that is no regular file is refused where it is opened, see site_root.hpp.
// Rule     the entity tag is made of the time of the last change and of the size, and of nothing
//          that differs between two machines with the same files. A change that keeps time and
//          size goes unnoticed: two changes in a tick of the clock (a few ms) may have equal times.
// See      statx(2); rfc9110, section 8.8
#pragma once

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "http_date.hpp"

namespace uring::http {

struct file_facts {
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0;  // since 1970
  std::uint32_t modified_ns = 0;
  std::uint64_t inode = 0;  // these tell a cache that another file has taken the name
  std::int64_t changed_s = 0;
  std::uint32_t changed_ns = 0;
  bool is_on_disk = true;  // on a device; not in memory, on a network, or of a program (FUSE)

  friend bool operator==(const file_facts&, const file_facts&) = default;
};

inline constexpr unsigned facts_mask =
    STATX_TYPE | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_INO;

[[nodiscard]] inline file_facts facts_of(const struct ::statx& now) noexcept {
  return {.bytes = now.stx_size,
          .modified_s = now.stx_mtime.tv_sec,
          .modified_ns = now.stx_mtime.tv_nsec,
          .inode = now.stx_ino,
          .changed_s = now.stx_ctime.tv_sec,
          .changed_ns = now.stx_ctime.tv_nsec,
          .is_on_disk = now.stx_dev_major != 0};
}

// Seconds since 1970, by the clock that Date shows.
[[nodiscard]] inline std::int64_t wall_clock_s() noexcept {
  ::timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec;
}

// The two validators of a file, as its answers show them. No answer may say that a file was changed
// after the answer's own Date, so a change in the future counts as a change now.
class file_validators {
 public:
  explicit file_validators(const file_facts& facts) noexcept
      : modified_s_{std::min(facts.modified_s, wall_clock_s())},
        modified_text_{to_http_date(modified_s_)} {
    put("\"");
    put_hexadecimal(static_cast<std::uint64_t>(facts.modified_s));
    put(".");
    put_hexadecimal(facts.modified_ns);
    put("-");
    put_hexadecimal(facts.bytes);
    put("\"");
  }

  [[nodiscard]] std::string_view tag() const noexcept { return {tag_.data(), tag_bytes_}; }
  [[nodiscard]] std::int64_t modified_s() const noexcept { return modified_s_; }
  [[nodiscard]] std::string_view modified_text() const noexcept { return view_of(modified_text_); }

 private:
  void put(std::string_view text) noexcept { tag_bytes_ += text.copy(end(), text.size()); }
  void put_hexadecimal(std::uint64_t number) noexcept {
    char* const after = std::to_chars(end(), tag_.data() + tag_.size(), number, 16).ptr;
    tag_bytes_ = static_cast<std::size_t>(after - tag_.data());
  }
  [[nodiscard]] char* end() noexcept { return tag_.data() + tag_bytes_; }

  std::int64_t modified_s_;
  date_text modified_text_;
  std::array<char, 48> tag_{};  // room for numbers of 16, 8 and 16 digits, and four other bytes
  std::size_t tag_bytes_ = 0;
};

}  // namespace uring::http
