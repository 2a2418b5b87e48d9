// SPDX-License-Identifier: MIT
// A file whose whole answer fits into a block: ready to be sent.
// Owns     its bytes, and the fields of its 200 before them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "file_facts.hpp"

namespace uring::http {

struct small_file {
  file_facts facts;
  file_validators validators;
  std::string_view type;
  std::string text;        // fields, empty line, bytes
  std::size_t head_bytes;  // of text: up to the file's own bytes

  [[nodiscard]] std::string_view bytes() const noexcept {
    return std::string_view{text}.substr(head_bytes);
  }
};

}  // namespace uring::http
