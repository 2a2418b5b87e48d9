// SPDX-License-Identifier: MIT
// A request without its body: what it asks for, and what its fields say.
// Lifetime all views are parts of the bytes that the head was read from: the views are valid until
//          those bytes are moved or overwritten.
// Rule     it is large. One for each thread is enough if no coroutine awaits between the moment it
//          is filled in and its last use.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>

#include "body_framing.hpp"
#include "http_grammar.hpp"
#include "request_target.hpp"

namespace uring::http {

enum class expectation : std::uint8_t {
  none,
  to_continue,  // the client waits for a 100 before it sends the body (rfc9110, 10.1.1)
  unknown,      // the client expects something else: the answer is 417
};

class field_list {
 public:
  static constexpr std::size_t room = 100;

  const field& add(const field& read) noexcept {
    assert(size_ < room && "request_limits::fields_max is at most field_list::room");
    return fields_[size_++] = read;
  }
  void clear() noexcept { size_ = 0; }

  [[nodiscard]] std::span<const field> all() const noexcept { return {fields_.data(), size_}; }

  // The fields of that name, whatever the case of its letters.
  [[nodiscard]] auto named(std::string_view name) const noexcept {
    return all() |
           std::views::filter([name](const field& each) { return same_word(each.name, name); });
  }
  // The value of the first of them.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    for (const field& each : named(name)) return each.value;
    return std::nullopt;
  }

 private:
  std::array<field, room> fields_;
  std::size_t size_ = 0;
};

struct request_head {
  request_method method = request_method::other;
  std::string_view method_text;
  request_target target;
  int minor = 1;          // of HTTP/1.minor; a number above 1 counts as 1 (rfc9110, 2.5)
  std::string_view host;  // "name:port", from the target if it has an authority, else from Host
  body_framing body;
  bool keep_alive = true;  // what the client wants
  expectation expects = expectation::none;
  field_list fields;
};

}  // namespace uring::http
