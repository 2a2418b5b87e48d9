// SPDX-License-Identifier: MIT
// The answers of 14's peers, one after the other, as a text to send. A large file comes one block
// at a time.
// Owns     the text, and the large file whose rest is still to be sent.
// Lifetime the site must outlive it.
// Threads  one at a time.
// Errors   std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "answer_head.hpp"
#include "file_facts.hpp"
#include "file_head.hpp"
#include "file_selection.hpp"
#include "http_date.hpp"
#include "mime_types.hpp"
#include "peer_site.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_route.hpp"
#include "response_writer.hpp"
#include "send_blocks.hpp"
#include "site_root.hpp"
#include "small_file.hpp"

namespace uring::http {

class peer_answers {
 public:
  explicit peer_answers(peer_site& site) noexcept : site_{site} {}

  [[nodiscard]] std::string_view unsent() const noexcept {
    return std::string_view{out_}.substr(sent_);
  }
  void sent(std::size_t bytes) noexcept { sent_ += bytes; }

  // True if no more answers may be added until this text has been sent.
  [[nodiscard]] bool is_full() const { return left_.bytes > 0 || out_.size() >= block_bytes; }

  // Call it when all has been sent: gets the next block of a large file, if there is one. False if
  // the file has become shorter since its head was written.
  [[nodiscard]] bool go_on() {
    out_.clear();
    sent_ = 0;
    if (left_.bytes == 0) return true;
    out_.resize(std::min<std::uint64_t>(left_.bytes, block_bytes));
    if (!read_part(large_.fd.get(), out_, left_.first)) return false;
    left_.first += out_.size();
    left_.bytes -= out_.size();
    if (left_.bytes == 0) large_ = {};
    return true;
  }

  void add(std::string_view text) { out_.append(text); }

  void answer(const request_head& head, std::string_view body, afterwards then) {
    const bool has_body = head.method != request_method::head;
    const answer_frame frame{.date = date(), .then = then, .has_body = has_body};
    const route to = route_of(head);
    if (to.what == resource::file) return file(head, frame, to.path);
    if (to.what == resource::echo) return echo(frame, body);
    if (to.what == resource::counters) return short_text(404, frame);  // a peer counts nothing
    short_text(to.status, frame, {to.allow.empty() ? "" : "Allow", to.allow});
  }

  // Answers bytes that are no valid request.
  void refuse(int status) { short_text(status, {.date = date(), .then = afterwards::ends}); }

  // The route's path is valid until the next call.
  [[nodiscard]] static route route_of(const request_head& head) {
    static thread_local std::array<char, request_limits{}.head_bytes_max> room;
    return find_route(head, room);
  }

 private:
  void file(const request_head& head, const answer_frame& frame, std::string_view path) {
    peer_file got = site_.look_up(path);
    if (got.small != nullptr) return small(head, frame, *got.small);
    const int status = status_at(path, got.found);
    if (status == 301) return redirect(head, frame, path);
    if (status != 200) return short_text(status, frame);
    const file_validators has{got.found.facts};
    const std::uint64_t bytes = got.found.facts.bytes;
    const file_selection part = select_bytes(head, has, bytes, wall_clock_s());
    write(answer_head_bytes_max, [&](response_writer& to) {
      write_file_head(to, part, frame, type_of(name_in_root(path)), bytes, has);
    });
    if (!frame.has_body || part.bytes == 0) return;
    left_ = part;
    large_ = std::move(got.found);
  }

  void small(const request_head& head, const answer_frame& frame, const small_file& file) {
    const std::uint64_t bytes = file.facts.bytes;
    const file_selection part = select_bytes(head, file.validators, bytes, wall_clock_s());
    const bool is_whole = part.status == 200;
    write(answer_head_bytes_max, [&](response_writer& to) {
      if (is_whole) return begin_answer(to, 200, frame);
      write_file_head(to, part, frame, file.type, bytes, file.validators);
    });
    if (is_whole) out_.append(file.text, 0, frame.has_body ? file.text.size() : file.head_bytes);
    if (!is_whole) out_.append(file.bytes().substr(part.first, part.bytes));
  }

  void redirect(const request_head& head, const answer_frame& frame, std::string_view path) {
    const std::size_t room = 3 * path.size() + head.target.query.size();  // a byte may become "%20"
    write(room + answer_head_bytes_max,
          [&](response_writer& to) { write_redirect(to, frame, path, head.target.query); });
  }

  void echo(const answer_frame& frame, std::string_view body) {
    write(answer_head_bytes_max, [&](response_writer& to) {
      begin_answer(to, 200, frame);
      to.field("Content-Type", unknown_type).field("Content-Length", body.size()).end_head();
    });
    out_.append(body);
  }

  void short_text(int status, const answer_frame& frame, const extra_field& extra = {}) {
    write(answer_head_bytes_max,
          [&](response_writer& to) { write_short_answer(to, status, frame, extra); });
  }

  // Appends to the text.
  template <typename Write>
  void write(std::size_t room, const Write& write_it) {
    const std::size_t before = out_.size();
    out_.resize(before + room);
    response_writer writer{std::span{out_}.subspan(before)};
    write_it(writer);
    out_.resize(before + writer.text().size());
  }

  [[nodiscard]] static std::string_view date() {
    static thread_local date_clock clock;
    return clock.text(wall_clock_s());
  }

  peer_site& site_;
  std::string out_;
  std::size_t sent_ = 0;      // bytes of out_
  found_file large_ = {};     // the file that is being sent
  file_selection left_ = {};  // of large_
};

}  // namespace uring::http
