// SPDX-License-Identifier: MIT
// 13-first-parser: reads requests as many servers do at first, with their defects.
//
//   ./course run 13:first-parser
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "flags.hpp"
#include "program_main.hpp"

namespace {

// --8<-- [start:first-parser]
class first_parser {
 public:
  // A recv has brought `piece`.
  void on_received(std::string_view piece) {
    received_ += piece;
    if (received_.find("\r\n\r\n") == std::string::npos) return;  // the head is not complete
    const std::string line = received_.substr(0, received_.find("\r\n"));
    std::printf("  a request: %s\n", line.c_str());
    received_.clear();
  }

 private:
  std::string received_;
};
// --8<-- [end:first-parser]

// --8<-- [start:sent]
constexpr std::string_view sent =
    "POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    "GET /two HTTP/1.1\r\nHost: a\r\n\r\n";
// --8<-- [end:sent]

void show(const char* title, std::size_t cut) {
  std::printf("%s\n", title);
  first_parser parser;
  parser.on_received(sent.substr(0, cut));
  parser.on_received(sent.substr(cut));
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 13: two requests, read the way many servers do it at first."};
  return common::program_main(argc, argv, flags, [] {
    show("all of it in one piece", sent.size());
    show("cut after the first head", sent.find("hello"));
    show("cut after the first request", sent.find("GET"));
    show("cut inside the first head", 10);
  });
}
