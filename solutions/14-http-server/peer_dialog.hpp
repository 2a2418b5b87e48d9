// SPDX-License-Identifier: MIT
// One client's requests and answers as text: all that 14's peers have in common. It uses no socket
// and waits only for the disk; each peer receives and sends the bytes in its own way.
// Owns     the bytes that have come and are not parsed yet, and the answers.
// Lifetime the site must outlive it.
// Threads  one at a time.
// Errors   std::bad_alloc; a client's mistake becomes an answer.
// Rule     do what next() says, and call it again when that is done. next() requests bytes only
//          when all answers are sent, so nothing is read from a client that does not read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "answer_head.hpp"
#include "peer_answers.hpp"
#include "peer_site.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"
#include "request_route.hpp"

namespace uring::http {

class peer_dialog {
 public:
  // --8<-- [start:wants]
  enum class wants {
    to_receive,  // some bytes, for take()
    to_send,     // unsent(), or a part of it; give sent() the count
    to_leave,    // send a FIN, and then read until the client's FIN has come
    to_break,    // reset the connection: a part of an answer was sent, and the rest is lost
  };
  // --8<-- [end:wants]

  explicit peer_dialog(peer_site& site) : answers_{site} {}
  peer_dialog(peer_dialog&&) = delete;  // the parser holds the limits' address

  [[nodiscard]] wants next() {
    if (unsent().empty()) {
      if (!answers_.go_on()) return wants::to_break;
      if (unsent().empty() && !is_over_) answer_what_is_here();
    }
    if (!unsent().empty()) return wants::to_send;
    return is_over_ ? wants::to_leave : wants::to_receive;
  }

  void take(std::string_view bytes) { in_.append(bytes); }
  [[nodiscard]] std::string_view unsent() const noexcept { return answers_.unsent(); }
  void sent(std::size_t bytes) noexcept { answers_.sent(bytes); }

 private:
  void answer_what_is_here() {
    static thread_local request_head head;  // large, and not used after this function
    std::string_view rest = in_;
    bool goes_on = true;
    while (goes_on && !is_over_ && !answers_.is_full()) {
      const std::string_view before = rest;
      switch (parser_.next(rest, head)) {
        case request_parser::step::head:
          begin(head, before.substr(0, before.size() - rest.size()));
          break;
        case request_parser::step::data:
          if (echoes_) body_.append(parser_.data());
          break;
        case request_parser::step::end:
          end_body(head);
          break;
        case request_parser::step::refused:
          is_over_ = true;
          answers_.refuse(parser_.why().status);
          break;
        case request_parser::step::more:
          goes_on = false;
      }
    }
    in_.erase(0, in_.size() - rest.size());
  }

  // A request without a body is answered now, any other when its body is complete.
  void begin(const request_head& head, std::string_view text) {
    if (!head.body.has_body()) return answer(head);
    const route to = peer_answers::route_of(head);
    if (head.expects != expectation::none) {  // if it is unknown, `to` is a refusal: 417
      must_end_ = to.what == resource::none;
      if (must_end_) return answer(head);
      answers_.add("HTTP/1.1 100 Continue\r\n\r\n");
    }
    echoes_ = to.what == resource::echo;
    head_text_ = text;
  }

  // The bytes of the request's head may be gone, so its copy is parsed again.
  void end_body(request_head& head) {
    if (head_text_.empty()) return;
    const std::string text = std::exchange(head_text_, {});
    std::string_view unread = text;
    request_parser again{limits_};
    (void)again.next(unread, head);
    answer(head);
    body_ = {};
    echoes_ = false;
  }

  void answer(const request_head& head) {
    const afterwards then = must_end_ ? afterwards::ends : after_answer(head);
    is_over_ = then == afterwards::ends;
    answers_.answer(head, body_, then);
  }

  peer_answers answers_;
  request_limits limits_;
  request_parser parser_{limits_};
  std::string in_;         // a part of a head, or pipelined requests
  std::string head_text_;  // of a request whose body is coming
  std::string body_;       // for an echo
  bool echoes_ = false;    // the present request asks for an echo
  bool must_end_ = false;  // the client may wait for an answer before its body, and is refused
  bool is_over_ = false;   // the last answer was written
};

}  // namespace uring::http
