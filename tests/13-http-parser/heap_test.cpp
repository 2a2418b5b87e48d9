// SPDX-License-Identifier: MIT
// Parsing and answering take nothing from the heap, however the bytes come.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string_view>

#include "allocations.hpp"
#include "http_date.hpp"
#include "plain_path.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"
#include "response_writer.hpp"
#include "sample_requests.hpp"

namespace {

using step = uring::http::request_parser::step;

// True if the whole sample was understood, in pieces of so many bytes, and answered.
bool serve(std::string_view sample, std::size_t piece) {
  const uring::http::request_limits limits;
  uring::http::request_parser parser{limits};
  uring::http::request_head head;
  uring::http::date_clock clock;
  std::array<char, 256> path;
  std::array<char, 256> answer;
  std::size_t come = 0;
  std::size_t taken = 0;
  step what = step::more;
  while (come < sample.size()) {
    come += std::min(piece, sample.size() - come);
    std::string_view received = sample.substr(taken, come - taken);
    for (what = parser.next(received, head); what == step::head || what == step::data;
         what = parser.next(received, head)) {
      (void)uring::http::make_plain(head.target.path, path);
      uring::http::response_writer writer{answer};
      writer.status(200).field("Date", clock.text(784'111'777)).field("A", 5).end_head();
      if (!writer.ok()) return false;
    }
    taken = come - received.size();
  }
  return what == step::end;
}

}  // namespace

TEST_CASE("13 parsing and answering a request take nothing from the heap", "[13]") {
  for (const std::string_view sample : {uring::http::sample_of_load, uring::http::sample_of_browser,
                                        uring::http::sample_of_chunks}) {
    const std::size_t before = course_test::allocations();
    bool is_served = true;
    for (std::size_t piece = 1; piece <= sample.size(); ++piece) {
      is_served = serve(sample, piece) && is_served;
    }
    const std::size_t after = course_test::allocations();
    CHECK(is_served);
    UNSCOPED_INFO("a std::string, a std::vector, or an exception on the way?");
    CHECK(after == before);
  }
}

TEST_CASE("13 a connection keeps few bytes of its parser", "[13]") {
  UNSCOPED_INFO("10,000 idle connections have one each; a head is for a thread");
  CHECK(sizeof(uring::http::request_parser) <= 160);
}
