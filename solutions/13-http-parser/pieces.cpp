// SPDX-License-Identifier: MIT
// 13-pieces: prints what single parts of the parser say about a text.
//
//   ./course run 13:pieces -- --line "GET / HTTP/1.1"
//   ./course run 13:pieces -- --path /a/../b%20c
//   ./course run 13:pieces -- --answer 301 --location /new
#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "head_parser.hpp"
#include "parse_transcript.hpp"
#include "plain_path.hpp"
#include "program_main.hpp"
#include "refusal.hpp"
#include "request_head.hpp"
#include "request_target.hpp"
#include "response_writer.hpp"

namespace {

using uring::http::refusal;

void say(const refusal& refused) {
  std::cout << "refused: " << refused.status << ", " << refused.why << '\n';
}

void show_line(std::string_view line) {
  uring::http::request_head head;
  if (const refusal refused = uring::http::read_request_line(line, head)) return say(refused);
  head.method = uring::http::method_of(head.method_text);
  if (const refusal refused = uring::http::read_target(head.method, head.target)) {
    return say(refused);
  }
  std::cout << "method: " << uring::http::printable(head.method_text)
            << "\ntarget: " << uring::http::printable(head.target.text) << "\nversion: 1."
            << head.minor << '\n';
}

void show_path(std::string_view path) {
  if (!path.starts_with('/')) {
    std::cout << "a path begins with a slash\n";
    return;
  }
  std::vector<char> room(path.size());
  const uring::http::plain_path plain = uring::http::make_plain(path, room);
  if (plain.refused) return say(plain.refused);
  std::cout << "path: " << uring::http::printable(plain.path) << '\n';
}

void show_answer(int status, std::string_view location) {
  std::array<char, 160> room;
  uring::http::response_writer writer{room};
  writer.status(status).field("Content-Length", 6);
  if (!location.empty()) writer.field("Location", location);
  writer.end_head().body("hello\n");
  if (writer.ok()) {
    std::cout << writer.text();
  } else {
    std::cout << "not sent: it does not fit, or a value would have ended its line\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string line;
  std::string path;
  std::int64_t answer = 0;
  std::string location;
  common::flag_set flags{"Chapter 13: single pieces of the parser."};
  flags.add("--line", line, "A request line, for read_request_line() and read_target()");
  flags.add("--path", path, "A path, for make_plain()");
  flags.add("--answer", answer, 0, 999, "A status to answer with, for response_writer");
  flags.add("--location", location, "The value of a Location field in that answer");
  return common::program_main(argc, argv, flags, [&] {
    if (!line.empty()) show_line(line);
    if (!path.empty()) show_path(path);
    if (answer > 0) show_answer(static_cast<int>(answer), location);
    if (line.empty() && path.empty() && answer == 0) {
      std::cout << "nothing to show: give a --line, a --path or an --answer\n";
    }
  });
}
