// SPDX-License-Identifier: MIT
// Writes the answers to one client into link.out, each after those that wait there to be sent.
// Lifetime the site and the link must outlive it.
// Threads  the one that runs the queue.
// Errors   an answer that does not fit into a whole block becomes a 500.
// Rule     an answer is counted and logged when it is written. No answer follows the one that says
//          that it is the last.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "answer_head.hpp"
#include "client_link.hpp"
#include "file_cache.hpp"
#include "file_facts.hpp"
#include "file_head.hpp"
#include "http_site.hpp"
#include "mime_types.hpp"
#include "request_head.hpp"
#include "request_route.hpp"
#include "response_writer.hpp"

namespace uring::http {

class http_answers {
 public:
  // Enough room for every answer that holds no bytes of a file.
  static constexpr std::size_t room_bytes_min = 2048;

  http_answers(http_site& site, client_link& link) : site_{site}, link_{link} {
    if (site.log.is_open()) client_ = address_of_client(link.socket);
  }

  // True if the last answer that was written ends the connection.
  [[nodiscard]] bool is_over() const noexcept { return is_over_; }
  // Makes the next answer end the connection.
  void next_is_last() noexcept { must_end_ = true; }

  // Answers a request, if that needs no wait. Returns false if it has to wait for a body or a file.
  [[nodiscard]] bool at_once(const request_head& head) {
    if (head.body.has_body()) return false;
    const route to = find_route(head, site_.path_room);
    if (to.what == resource::none) return refuse(head, to), true;
    if (to.what == resource::counters) return text(head, to_text(site_.all_counters)), true;
    if (to.what != resource::file) return false;
    const auto* const here = site_.cache.find(to.path, coarse_now());
    if (here == nullptr) return false;
    const small_file& file = **here;
    if (file.text.size() + answer_head_bytes_max > link_.out.room_bytes()) return false;
    site_.counted_here.add(counted::cache_hits);
    small(head, file);
    return true;
  }

  void small(const request_head& head, const small_file& file) {
    const file_selection part =
        select_bytes(head, file.validators, file.facts.bytes, wall_clock_s());
    const answer_frame frame = frame_of(head);
    response_writer writer{link_.out.room()};
    std::string_view rest = file.text;
    if (part.status == 200) {
      begin_answer(writer, 200, frame);
      if (!frame.has_body) rest = rest.substr(0, file.head_bytes);
    } else {
      write_file_head(writer, part, frame, file.type, file.facts.bytes, file.validators);
      rest = file.bytes().substr(part.first, part.bytes);
    }
    link_.out.add(writer.text().size());
    link_.out.append(rest);
    note(head, part.status, writer.text(), part.bytes);
  }

  // The head of a file whose bytes come later.
  void begin_large(const request_head& head, const file_selection& part, std::string_view type,
                   const file_facts& facts) {
    const file_validators has{facts};
    write(head, part.status, part.bytes, [&](response_writer& to, const answer_frame& frame) {
      write_file_head(to, part, frame, type, facts.bytes, has);
    });
  }

  void refuse(const request_head& head, const route& why) {
    short_text(head, why.status, {why.allow.empty() ? "" : "Allow", why.allow});
  }
  void short_text(const request_head& head, int status, const extra_field& extra = {}) {
    write(head, status, 0, [&](response_writer& to, const answer_frame& frame) {
      write_short_answer(to, status, frame, extra);
    });
  }
  void text(const request_head& head, std::string_view body) {
    write(head, 200, 0, [&](response_writer& to, const answer_frame& frame) {
      write_text_answer(to, 200, frame, plain_text, body);
    });
  }
  // The head of a text whose bytes come later.
  void begin_text(const request_head& head, std::size_t bytes) {
    write(head, 200, bytes, [&](response_writer& to, const answer_frame& frame) {
      begin_answer(to, 200, frame);
      to.field("Content-Type", unknown_type).field("Content-Length", bytes).end_head();
    });
  }
  void redirect(const request_head& head, std::string_view path) {
    write(head, 301, 0, [&](response_writer& to, const answer_frame& frame) {
      write_redirect(to, frame, path, head.target.query);
    });
  }

  // Writes the last answer, because after bad bytes or a late request no next one can be found.
  void refuse_all(int status) {
    is_over_ = true;
    response_writer writer{link_.out.room()};
    write_short_answer(writer, status, {.date = site_.date(), .then = afterwards::ends});
    link_.out.add(writer.text().size());
    site_.counted_here.add(counted::refused_requests);
    note_line("-", status, body_bytes_in(writer.text()));
  }

 private:
  [[nodiscard]] answer_frame frame_of(const request_head& head) {
    const bool must_end = must_end_ || site_.is_draining || link_.is_ending;
    const afterwards then = must_end ? afterwards::ends : after_answer(head);
    is_over_ = then == afterwards::ends;
    return {.date = site_.date(), .then = then, .has_body = head.method != request_method::head};
  }

  // `later` bytes of the body follow what write_it() writes.
  template <typename Write>
  void write(const request_head& head, int status, std::uint64_t later, const Write& write_it) {
    const answer_frame frame = frame_of(head);
    response_writer writer{link_.out.room()};
    write_it(writer, frame);
    assert((writer.ok() || status != 500) && "the block has no room for an answer: send it first");
    if (!writer.ok() && status != 500) return short_text(head, 500);
    link_.out.add(writer.text().size());
    note(head, status, writer.text(), later);
  }

  void note(const request_head& head, int status, std::string_view written, std::uint64_t later) {
    site_.counted_here.add(counted::requests);
    if (!site_.log.is_open()) return site_.counted_here.add_answer(status);
    const bool has_body = head.method != request_method::head;
    note_line(line_of(head), status, has_body ? body_bytes_in(written) + later : 0);
  }
  void note_line(std::string_view request, int status, std::uint64_t bytes) {
    site_.counted_here.add_answer(status);
    if (site_.log.is_open()) site_.log.add(client_, request, status, bytes);
  }

  http_site& site_;
  client_link& link_;
  std::string client_;  // its address, if there is a log
  bool must_end_ = false;
  bool is_over_ = false;
};

}  // namespace uring::http
