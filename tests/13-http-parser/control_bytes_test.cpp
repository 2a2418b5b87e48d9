// SPDX-License-Identifier: MIT
// Eight bytes at a time: the first control byte is found wherever it stands, and none behind the
// text is read.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "control_bytes.hpp"
#include "guarded_text.hpp"

using course_test::guarded_text;
using uring::http::find_control;
using uring::http::is_control;

namespace {

std::size_t one_by_one(std::string_view text, std::size_t from) {
  while (from < text.size() && !is_control(text[from])) ++from;
  return from;
}

}  // namespace

TEST_CASE("13 each byte is a control byte or is none", "[13]") {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    UNSCOPED_INFO("byte " << byte);
    CHECK(is_control(c) == ((byte < 32 && c != '\t') || byte == 127));
    for (std::size_t place = 0; place < 20; ++place) {
      std::string text(20, 'x');
      text[place] = c;
      CHECK(find_control(text, 0) == one_by_one(text, 0));
    }
  }
}

TEST_CASE("13 the first of two control bytes is found, from any place", "[13]") {
  for (const char first : {'\0', '\t', '\n', '\x1f', ' ', '\x7f', '\x80', '\xff'}) {
    for (const char second : {'\0', '\t', '\r', ' ', '\x7e', '\x7f', '\x9f'}) {
      for (std::size_t place = 0; place < 17; ++place) {
        std::string bytes(18, '~');
        bytes[place] = first;
        bytes[place + 1] = second;
        const guarded_text text{bytes};
        for (std::size_t from = 0; from <= bytes.size(); ++from) {
          CHECK(find_control(text.view(), from) == one_by_one(bytes, from));
        }
      }
    }
  }
}
