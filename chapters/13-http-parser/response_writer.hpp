// SPDX-License-Identifier: MIT
// Writes a response into a buffer: the status line, the fields, the empty line, a short body.
// Lifetime the buffer must outlive it; text() is a view of the buffer.
// Errors   ok() is false once something did not fit, or a value had a control byte. Then text() is
//          empty, so that half a response is never sent.
// See      rfc9112, sections 4 and 5; rfc9110, section 5.5
#pragma once

#include <array>
#include <cassert>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "control_bytes.hpp"
#include "http_grammar.hpp"
#include "status_reasons.hpp"
#include "todo.hpp"

namespace uring::http {

class response_writer {
 public:
  explicit response_writer(std::span<char> into) noexcept : into_{into} {}

  // "HTTP/1.1 200 OK"
  response_writer& status(int code) {
    put("HTTP/1.1 ");
    put_number(static_cast<std::uint64_t>(code));
    put(" ");
    put(reason_of(code));
    put("\r\n");
    return *this;
  }

  // The server chooses `name`. The value may come from anywhere: a file's name, or the request.
  response_writer& field(std::string_view name, std::string_view value) {
    assert(is_token(name) && "the name of a field is a token");
    put(name);
    put(": ");
    put_value(value);
    put("\r\n");
    return *this;
  }

  response_writer& field(std::string_view name, std::uint64_t value) {
    std::array<char, 20> digits{};
    return field(name, to_text(value, digits));
  }

  response_writer& end_head() {
    put("\r\n");
    return *this;
  }

  response_writer& body(std::string_view bytes) {
    put(bytes);
    return *this;
  }

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] std::string_view text() const noexcept { return {into_.data(), ok_ ? size_ : 0}; }

 private:
  // Copies `text` into into_, after the size_ bytes that were written before, and adds the size of
  // `text` to size_. If `text` does not fit whole, copy nothing, and set ok_ to false. Once ok_ is
  // false, copy nothing more, because the response would have a gap. An empty `text` may have a
  // null address, which std::memcpy() must not get.
  void put(std::string_view text) {
    COURSE_TODO("13.5");
  }

  // A value with a CR LF would end its field and begin another field, or another response. So do
  // not write a value in which find_control() finds a control byte, but set ok_ to false. Write any
  // other value with put().
  void put_value(std::string_view value) {
    COURSE_TODO("13.5");
  }

  void put_number(std::uint64_t number) {
    std::array<char, 20> digits{};
    put(to_text(number, digits));
  }

  // The largest number has 20 digits.
  static std::string_view to_text(std::uint64_t number, std::array<char, 20>& digits) noexcept {
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    return {digits.data(), static_cast<std::size_t>(end - digits.data())};
  }

  std::span<char> into_;
  std::size_t size_ = 0;
  bool ok_ = true;
};

}  // namespace uring::http
