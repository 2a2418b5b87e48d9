// SPDX-License-Identifier: MIT
// 13-requests: measures the processor time that it takes to parse a request.
//
//   ./course run 13:requests -- --by ours --sample browser
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "errors.hpp"
#include "peer_parser.hpp"
#include "program_main.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"
#include "sample_requests.hpp"

namespace {

using uring::http::request_head;
using uring::http::request_limits;
using uring::http::request_parser;
using step = request_parser::step;

constexpr std::int64_t count_max = 1'000'000'000'000;

std::string_view sample_named(const std::string& name) {
  if (name == "load") return uring::http::sample_of_load;
  if (name == "chunks") return uring::http::sample_of_chunks;
  return uring::http::sample_of_browser;
}

// Parses all of `sample` in pieces of `piece` bytes; the bytes stay where they are.
void parse(request_parser& parser, request_head& head, std::string_view sample, std::size_t piece) {
  std::size_t come = 0;
  std::size_t taken = 0;
  step what = step::more;
  while (come < sample.size()) {
    come += std::min(piece, sample.size() - come);
    std::string_view received = sample.substr(taken, come - taken);
    do {
      what = parser.next(received, head);
    } while (what == step::head || what == step::data);
    taken = come - received.size();
  }
  if (what != step::end) throw std::runtime_error{"the sample was not understood"};
}

void parse_many(std::string_view sample, std::size_t piece, std::int64_t count) {
  const request_limits limits;
  request_parser parser{limits};
  request_head head;
  for (std::int64_t i = 0; i < count; ++i) parse(parser, head, sample, piece);
}

// The processor time of this program alone, whatever else the machine does.
std::chrono::duration<double, std::nano> cpu_time() {
  ::timespec used{};
  common::check(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), "clock_gettime");
  return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

}  // namespace

int main(int argc, char** argv) {
  std::string by = "ours";
  std::string sample_name = "browser";
  std::int64_t piece = 0;
  std::int64_t count = 1'000'000;
  common::flag_set flags{"Chapter 13: the processor time that it takes to parse a request."};
  flags.add("--by", by, {"ours", "http_parser"}, "Which parser");
  flags.add("--sample", sample_name, {"load", "browser", "chunks"}, "Which request");
  flags.add("--piece", piece, 0, 1'000'000, "Bytes that come at a time; 0 for all of them");
  flags.add("--count", count, 1, count_max, "How many requests");
  return common::program_main(argc, argv, flags, [&] {
    const std::string_view sample = sample_named(sample_name);
    const std::size_t bytes = piece > 0 ? static_cast<std::size_t>(piece) : sample.size();
    const auto start = cpu_time();
    if (by == "ours") {
      parse_many(sample, bytes, count);
    } else {
      uring::http::parse_many_by_peer(sample, bytes, count);
    }
    const double each = (cpu_time() - start).count() / static_cast<double>(count);
    std::cout << "bytes of a request: " << sample.size() << '\n'
              << "ns per request: " << each << '\n'
              << "MB per second: " << 1e3 * static_cast<double>(sample.size()) / each << '\n';
  });
}
