// SPDX-License-Identifier: MIT
// Parses HTTP/1.1 requests out of the bytes of a connection, however TCP cuts them into pieces.
// Owns     counts, positions, and the view for data(), through which it never reads. The caller
//          owns the bytes, and may move them between two calls.
// Lifetime the limits must outlive it. The views that a call returns are parts of the bytes that it
//          was given: they are valid until those bytes are moved or overwritten.
// Threads  one at a time.
// Errors   once a request is refused, each next() returns refused, and why() tells the reason.
// Rule     the answer does not depend on how the bytes are cut into calls.
// See      rfc9112
#pragma once

#include <cassert>
#include <cstdint>
#include <string_view>

#include "head_parser.hpp"
#include "head_reader.hpp"
#include "refusal.hpp"
#include "request_body.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"

namespace uring::http {

class request_parser {
 public:
  // --8<-- [start:steps]
  enum class step : std::uint8_t {
    more,     // call again with the rest, when more bytes have come
    head,     // `head` is filled in, and its bytes are taken
    data,     // data() is the next part of the body, and its bytes are taken
    end,      // the request is over, even if it had no body; the next request follows
    refused,  // answer with why().status, and close the connection
  };
  // --8<-- [end:steps]

  explicit request_parser(const request_limits& limits) noexcept : limits_{&limits} {
    assert(limits.fields_max <= field_list::room && "a head has no room for so many fields");
  }

  // `received` is all that has come and was not taken yet. The call takes bytes off its front.
  [[nodiscard]] step next(std::string_view& received, request_head& head) {
    if (why_) return step::refused;
    return is_in_body_ ? next_of_body(received) : next_head(received, head);
  }

  [[nodiscard]] std::string_view data() const noexcept { return data_; }
  [[nodiscard]] const refusal& why() const noexcept { return why_; }

  // False from a whole head to the end of its request. If it is true and no bytes are left, an EOF
  // is a clean end. Otherwise the EOF cuts a request off.
  [[nodiscard]] bool is_between_requests() const noexcept { return !is_in_body_; }

 private:
  // --8<-- [start:head]
  step next_head(std::string_view& received, request_head& head) {
    const head_reader::found found = reader_.look(received, *limits_);
    if (found.refused) return refuse(found.refused);
    if (found.bytes == 0) return step::more;
    const std::string_view text = received.substr(0, found.bytes);
    if (const refusal refused = parse_head(text, *limits_, head)) return refuse(refused);
    received.remove_prefix(found.bytes);
    reader_ = {};
    body_ = request_body{head.body};
    is_in_body_ = true;
    return step::head;
  }
  // --8<-- [end:head]

  step next_of_body(std::string_view& received) {
    const request_body::taken taken = body_.take(received, *limits_);
    data_ = taken.data;
    switch (taken.what) {
      case request_body::step::more:
        return step::more;
      case request_body::step::data:
        return step::data;
      case request_body::step::refused:
        return refuse(taken.refused);
      case request_body::step::end:
        break;
    }
    is_in_body_ = false;
    return step::end;
  }

  step refuse(const refusal& why) noexcept {
    why_ = why;
    return step::refused;
  }

  const request_limits* limits_;
  head_reader reader_;
  request_body body_;
  std::string_view data_;
  refusal why_;
  bool is_in_body_ = false;
};

}  // namespace uring::http
