// SPDX-License-Identifier: MIT
// A file whose whole answer fits into a block, ready to be sent.
// Owns     its bytes, and the fields of its 200 before them.
// Errors   std::bad_alloc.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "answer_head.hpp"
#include "file_facts.hpp"
#include "file_head.hpp"
#include "response_writer.hpp"
#include "send_blocks.hpp"
#include "site_root.hpp"

namespace uring::http {

inline constexpr std::size_t small_file_bytes_max = block_bytes - answer_head_bytes_max;

struct small_file {
  file_facts facts;
  file_validators validators;
  std::string_view type;
  std::string text;        // fields, empty line, bytes
  std::size_t head_bytes;  // where in text the file's own bytes begin

  [[nodiscard]] std::string_view bytes() const noexcept {
    return std::string_view{text}.substr(head_bytes);
  }
};

// The fields of the file's 200 and the empty line, with room after them for the file's bytes.
[[nodiscard]] inline std::unique_ptr<small_file> begin_small_file(const file_facts& facts,
                                                                  std::string_view type) {
  auto file = std::make_unique<small_file>(
      small_file{facts, file_validators{facts}, type, std::string{}, 0});
  file->text.resize(answer_head_bytes_max + facts.bytes);
  response_writer writer{file->text};
  add_fields_of_file(writer, type, facts.bytes, file->validators);
  writer.end_head();
  file->head_bytes = writer.text().size();
  file->text.resize(file->head_bytes + facts.bytes);
  return file;
}

// Whether this is still the version that was found. Call it after the last byte was read.
[[nodiscard]] inline bool is_unchanged(const found_file& found) {
  struct ::statx now{};
  const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  return ::statx(found.fd.get(), "", flags, facts_mask, &now) == 0 && facts_of(now) == found.facts;
}

}  // namespace uring::http
