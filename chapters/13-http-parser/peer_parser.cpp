// SPDX-License-Identifier: MIT
#include "peer_parser.hpp"

#ifdef COURSE_HAS_HTTP_PARSER
#include <http_parser.h>
#endif

#include <algorithm>
#include <stdexcept>

#ifdef COURSE_HAS_HTTP_PARSER

namespace {

// Counts the parts that a server would keep: the target, the names and the values.
struct noted {
  std::size_t parts = 0;
  std::size_t bytes = 0;
  std::int64_t requests = 0;
};

noted& of(::http_parser* parser) {
  return *static_cast<noted*>(parser->data);
}

int on_part(::http_parser* parser, const char*, std::size_t bytes) {
  ++of(parser).parts;
  of(parser).bytes += bytes;
  return 0;
}

int on_end(::http_parser* parser) {
  ++of(parser).requests;
  return 0;
}

}  // namespace

void uring::http::parse_many_by_peer(std::string_view sample, std::size_t piece,
                                     std::int64_t count) {
  ::http_parser_settings settings;
  ::http_parser_settings_init(&settings);
  settings.on_url = on_part;
  settings.on_header_field = on_part;
  settings.on_header_value = on_part;
  settings.on_body = on_part;
  settings.on_message_complete = on_end;
  noted all;
  ::http_parser parser;
  ::http_parser_init(&parser, HTTP_REQUEST);
  parser.data = &all;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t at = 0; at < sample.size(); at += piece) {
      const std::string_view part = sample.substr(at, piece);
      const auto taken = ::http_parser_execute(&parser, &settings, part.data(), part.size());
      if (taken != part.size()) throw std::runtime_error{"http_parser refused the sample"};
    }
  }
  if (all.requests != count) throw std::runtime_error{"http_parser lost a request"};
}

#else

void uring::http::parse_many_by_peer(std::string_view, std::size_t, std::int64_t) {
  throw std::runtime_error{
      "this was built without http_parser: apt install libhttp-parser-dev, then "
      "cmake --preset release"};
}

#endif
