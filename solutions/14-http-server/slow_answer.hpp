// SPDX-License-Identifier: MIT
// The answer to a request that has to wait for its body or for a file on the disk. It may take a
// coroutine frame, and memory of its own, because a request answered at once never comes here.
// Owns     the bytes of the request's head, because those in the buffer may be gone after a wait.
// Lifetime everything that the constructor takes must outlive the task of run().
// Threads  the one that runs the queue.
// Errors   none: returns false if the connection is over, whether or not a last answer was written.
// Rule     a body is read to its end before the answer is written, so that the next request can be
//          found. If a request expects something, a refusal comes before the body, because the
//          client may wait for the answer before it sends the body (rfc9110, 10.1.1).
#pragma once

#include <string>
#include <string_view>

#include "client_link.hpp"
#include "file_facts.hpp"
#include "file_loading.hpp"
#include "file_streaming.hpp"
#include "http_answers.hpp"
#include "http_site.hpp"
#include "request_parser.hpp"
#include "request_route.hpp"
#include "site_root.hpp"
#include "slow_waits.hpp"
#include "task.hpp"

namespace uring::http {

class slow_answer {
 public:
  // `parser` has parsed the head, and continues with the body.
  slow_answer(http_site& site, client_link& link, request_parser& parser,
              http_answers& answers) noexcept
      : site_{site}, link_{link}, parser_{parser}, answers_{answers} {}

  task<bool> run(std::string text) {
    request_head head;
    std::string_view unread = text;
    request_parser again{site_.options.requests};
    (void)again.next(unread, head);
    std::string path_room(text.size(), '\0');
    const route to = find_route(head, path_room);
    if (answers_.at_once(head)) co_return true;  // the file was in memory, but the block was full
    if (head.body.has_body()) {
      const bool went_on = co_await read_body(head, to);
      if (!went_on) co_return false;
    }
    if (to.what == resource::file) {
      const bool went_on = co_await answer_with_file(head, std::string{to.path});
      co_return went_on;
    }
    if (to.what == resource::echo) {
      const bool went_on = co_await answer_with_echo(head);
      co_return went_on;
    }
    if (to.what == resource::none) answers_.refuse(head, to);
    if (to.what == resource::counters) answers_.text(head, to_text(site_.all_counters));
    co_return true;
  }

 private:
  // False if the connection is over: the client left, or was refused.
  task<bool> read_body(const request_head& head, const route& to) {
    if (head.expects != expectation::none) {  // if it is unknown, `to` is a refusal: 417
      if (to.what == resource::none) {
        answers_.next_is_last();
        answers_.refuse(head, to);
        co_return false;
      }
      link_.out.append("HTTP/1.1 100 Continue\r\n\r\n");
      const bool sent = co_await send_out(link_);
      if (!sent) co_return false;
    }
    for (;;) {
      switch (parser_.next(link_.input.rest(), site_.head)) {
        case request_parser::step::data:
          if (to.what == resource::echo) body_.append(parser_.data());
          break;
        case request_parser::step::refused:
          answers_.refuse_all(parser_.why().status);
          co_return false;
        case request_parser::step::more: {
          if (has_reset(link_)) co_return false;
          link_.limit.start_once(wait_for::body);
          const bool more = co_await receive(link_);
          if (more) break;
          if (link_.limit.is_over()) answers_.refuse_all(408);
          co_return false;
        }
        default:
          link_.limit.stop();
          co_return true;
      }
    }
  }

  task<bool> answer_with_echo(const request_head& head) {
    answers_.begin_text(head, body_.size());
    std::string_view left = body_;
    while (!left.empty()) {
      if (link_.out.room_bytes() == 0) {
        const bool sent = co_await send_out(link_);
        if (!sent) co_return false;
      }
      const std::string_view part = left.substr(0, link_.out.room_bytes());
      link_.out.append(part);
      left.remove_prefix(part.size());
    }
    co_return true;
  }

  task<bool> answer_with_file(const request_head& head, std::string path) {
    link_.input.keep();
    site_.counted_here.add(counted::cache_loads);
    link_.limit.start(wait_for::file);
    const looked_up got = co_await look_up(link_.limit.source(), site_.root, site_.cache, path);
    link_.limit.stop();
    const int status = status_at(path, got.found);
    if (got.file != nullptr) {
      answers_.small(head, *got.file);
    } else if (status == 301) {
      answers_.redirect(head, path);
    } else if (status != 200) {
      answers_.short_text(head, status);
    } else {
      const file_validators has{got.found.facts};
      const file_selection part = select_bytes(head, has, got.found.facts.bytes, wall_clock_s());
      answers_.begin_large(head, part, type_of(name_in_root(path)), got.found.facts);
      if (head.method == request_method::head) co_return true;
      const bool all = co_await send_large_file(link_, got.found, part);
      co_return all;
    }
    co_return true;
  }

  http_site& site_;
  client_link& link_;
  request_parser& parser_;
  http_answers& answers_;
  std::string body_;  // for an echo; at most request_limits::body_bytes_max
};

}  // namespace uring::http
