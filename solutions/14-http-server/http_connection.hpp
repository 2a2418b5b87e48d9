// SPDX-License-Identifier: MIT
// One client's connection: answers its requests in their order, until either side ends it.
// Owns     the link, and what has been read of the current request.
// Lifetime it must not move before the task of run() has ended. The site, `given_up` and the socket
//          must outlive it.
// Threads  the one that runs the queue.
// Errors   none: how a client's connection ends concerns that client only.
// Rule     it answers all requests that have come whole, and then sends all of these answers with
//          one send. An HTTP request that is answered at once needs at most one request to the
//          kernel, no coroutine frame, and no memory from the heap.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "cancel_source.hpp"
#include "client_link.hpp"
#include "finally.hpp"
#include "http_answers.hpp"
#include "http_site.hpp"
#include "request_parser.hpp"
#include "slow_answer.hpp"
#include "slow_waits.hpp"
#include "task.hpp"
#include "todo.hpp"

namespace uring::http {

class http_connection {
 public:
  // When `given_up` is canceled, every wait of the connection ends.
  http_connection(http_site& site, cancel_source& given_up, int socket)
      : site_{site},
        link_{site, given_up, socket},
        answers_{site, link_},
        parser_{site.options.requests} {}

  task<> run() { return finally(converse(), link_.end()); }

 private:
  // What the connection needs before the next request can be answered.
  enum class needs {
    bytes,    // of a request
    room,     // in the block: the answers in it have to be sent
    a_wait,   // the request whose head is slow_head_ waits for its body, or for a file
    goodbye,  // no next request: the last answer was written
  };

  task<> converse() {
    for (;;) {
      const needs next = answer_what_is_here();
      if (!link_.out.empty()) {
        const io_result sent = co_await link_.send_now();
        if (!link_.has_sent_all(sent)) {
          const bool all = co_await send_rest(link_, sent);
          if (!all) co_return;
        }
      }
      if (next == needs::goodbye) break;
      if (next == needs::bytes) {
        if (!link_.input.rest().empty() && has_reset(link_)) co_return;
        start_limit();
        received got = co_await link_.next();
        const int error = got.result.error();
        if (link_.took(std::move(got))) continue;
        const bool more = co_await receive_after(link_, error);
        if (more) continue;
        if (!is_too_late()) co_return;
        answers_.refuse_all(408);
      }
      if (next == needs::a_wait) {
        slow_answer slow{site_, link_, parser_, answers_};
        const bool goes_on = co_await slow.run(std::move(slow_head_));
        if (!goes_on && !answers_.is_over()) co_return;
      }
    }
    co_await say_goodbye(link_);
  }

  // Answers the requests in link_.input.rest(), one after the other, into link_.out. Returns what
  // the connection needs when this loop cannot go on.
  //
  // Check two things before each call to parser_.next(). If the last answer was written
  // (answers_.is_over()), answer no other request. If link_.out.room_bytes() is less than
  // http_answers::room_bytes_min, the answers in the block have to be sent first. (Do not look at
  // room() instead, because room() takes a block.)
  //
  // Then parser_.next(rest, site_.head) returns a request_parser::step:
  //   head     A head has come. Stop its time limit with link_.limit.stop(). Then call
  //            answers_.at_once(site_.head). If it returns true, the answer is written: go on. If
  //            not, the request has to wait: copy its head to slow_head_. The head is what next()
  //            took from the front of `rest`, so keep a view of `rest` from before each call.
  //   data     Never here, because a request with a body has to wait. Handle it like `end`.
  //   end      A request is over. Go on.
  //   more     `rest` does not begin with a whole head.
  //   refused  Call answers_.refuse_all(parser_.why().status), and return needs::goodbye. Then
  //            converse() calls say_goodbye().
  needs answer_what_is_here() {
    std::string_view& rest = link_.input.rest();
    // --8<-- [start:task-14-2]
    for (;;) {
      if (answers_.is_over()) return needs::goodbye;
      if (link_.out.room_bytes() < http_answers::room_bytes_min) return needs::room;
      const std::string_view before = rest;
      switch (parser_.next(rest, site_.head)) {
        case request_parser::step::head:
          link_.limit.stop();
          if (answers_.at_once(site_.head)) break;
          slow_head_ = before.substr(0, before.size() - rest.size());
          return needs::a_wait;
        case request_parser::step::refused:
          answers_.refuse_all(parser_.why().status);
          return needs::goodbye;
        case request_parser::step::more:
          return needs::bytes;
        default:
          break;
      }
    }
    // --8<-- [end:task-14-2]
  }

  // Between two requests a client may be silent for long, but a head that has begun must end soon.
  void start_limit() {
    if (is_between_requests()) return link_.limit.start(wait_for::request);
    link_.limit.start_once(wait_for::head);
  }
  // The empty line that some clients send after a body does not begin a head (rfc9112, 2.2).
  [[nodiscard]] bool is_between_requests() noexcept {
    constexpr std::string_view empty_line = "\r\n";
    return parser_.is_between_requests() && empty_line.starts_with(link_.input.rest());
  }

  [[nodiscard]] bool is_too_late() {
    if (!link_.limit.is_over() || link_.limit.what() != wait_for::head) return false;
    site_.counted_here.add(counted::timed_out);
    return true;
  }

  http_site& site_;
  client_link link_;
  http_answers answers_;
  request_parser parser_;
  std::string slow_head_;
};

}  // namespace uring::http
