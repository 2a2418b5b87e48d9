// SPDX-License-Identifier: MIT
// The parts of the load generator that can be wrong without a server's help.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "byte_loop.hpp"
#include "bytes.hpp"
#include "echo_exchange.hpp"
#include "fault.hpp"
#include "http_exchange.hpp"
#include "http_response.hpp"
#include "latency_histogram.hpp"
#include "measurement.hpp"
#include "pattern.hpp"

using Catch::Matchers::ContainsSubstring;
using course_test::bytes_of;
using loadgen::byte_loop;
using loadgen::echo_exchange;
using loadgen::http_response;
using loadgen::latency_histogram;
using loadgen::verdict;

namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

// --- The pattern

TEST_CASE("a byte_loop repeats its period without a seam", "[loadgen]") {
  const byte_loop loop{copy_of(bytes_of("abcde"))};
  const auto piece = loop.piece(3, 9);
  CHECK(std::ranges::equal(piece, bytes_of("deabcdeab")));
  CHECK(loop.advance(3, 9) == 2);
  CHECK(loop.advance(4, 1) == 0);
  CHECK(loop.piece(4, byte_loop::piece_bytes_max + 1).size() == byte_loop::piece_bytes_max);
}

TEST_CASE("no two connections start at the same place of the pattern", "[loadgen]") {
  for (const std::size_t connections : {1u, 50u, 8'190u, 8'191u, 60'000u}) {
    const std::size_t period = loadgen::pattern_period(connections);
    std::set<std::size_t> starts;
    for (std::size_t i = 0; i < connections; ++i) {
      starts.insert(loadgen::pattern_start(i, period));
    }
    CHECK(starts.size() == connections);
    CHECK(*starts.rbegin() < period);
  }
}

TEST_CASE("eight bytes of the pattern tell their place", "[loadgen]") {
  const byte_loop pattern = loadgen::make_pattern(60'000);
  for (std::size_t at = 0; at < pattern.period(); at += 997) {
    UNSCOPED_INFO("the pattern repeats inside its period: is its generator random enough?");
    CHECK(pattern.find(pattern.piece(at, 8)) == at);
  }
  std::vector<int> counts(256);
  for (const std::byte each : pattern.piece(0, pattern.period())) ++counts[std::size_t(each)];
  const auto [rarest, commonest] = std::ranges::minmax(counts);
  CHECK(rarest > 150);  // 256 each, give or take six standard deviations of 16
  CHECK(commonest < 362);
}

// --- Echoes

TEST_CASE("an echo is accepted however it is cut, and only as sent", "[loadgen]") {
  const byte_loop pattern = loadgen::make_pattern(3);
  constexpr std::size_t message_bytes = 100;
  for (std::size_t cut = 1; cut < message_bytes; ++cut) {
    echo_exchange talk{pattern, message_bytes, 0, 2};
    const auto message = pattern.piece(talk.first_request(1), message_bytes);
    CHECK(talk.take(1, message.first(cut)).result == verdict::unfinished);
    CHECK(talk.take(1, message.subspan(cut)).result == verdict::answered);
    auto spoiled = copy_of(pattern.piece(talk.first_request(0), message_bytes));
    spoiled[cut] ^= std::byte{0x80};
    CHECK(talk.take(0, spoiled).result == verdict::wrong);
    CHECK_THAT(talk.why(), ContainsSubstring("at offset " + std::to_string(cut) + ": expected"));
  }
}

TEST_CASE("two echoes at once are taken one by one", "[loadgen]") {
  const byte_loop pattern = loadgen::make_pattern(3);
  echo_exchange talk{pattern, 10, 5, 1};
  const auto both = pattern.piece(talk.first_request(0), 20);
  const loadgen::taken first = talk.take(0, both);
  CHECK(first.bytes == 10);
  CHECK(first.result == verdict::answered);
  CHECK(talk.take(0, both.subspan(10)).result == verdict::answered);
}

TEST_CASE("another connection's echo names that connection", "[loadgen]") {
  const byte_loop pattern = loadgen::make_pattern(3);
  echo_exchange talk{pattern, 64, 100, 3};
  CHECK(talk.take(0, pattern.piece(talk.first_request(2), 64)).result == verdict::wrong);
  CHECK_THAT(talk.why(), ContainsSubstring("these bytes belong to connection 102"));
}

// --- The histogram

TEST_CASE("a percentile is at most 2 % above the exact one, and never below it", "[loadgen]") {
  std::mt19937_64 random{1};
  std::lognormal_distribution<double> latency_ns{12, 2};
  latency_histogram histogram;
  std::vector<std::uint64_t> exact(20'000);
  for (std::uint64_t& each : exact) {
    each = static_cast<std::uint64_t>(latency_ns(random));
    histogram.add(static_cast<std::int64_t>(each));
  }
  std::ranges::sort(exact);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * 20'000));
    const auto wanted = static_cast<double>(exact[rank - 1]);
    const auto got = static_cast<double>(histogram.percentile_ns(share));
    UNSCOPED_INFO("the percentile of " << share << " is " << got << ", exactly it is " << wanted);
    CHECK((got >= wanted && got <= wanted * 1.02));
  }
  CHECK(histogram.max_ns() == exact.back());
}

TEST_CASE("every value falls into a bucket that holds it", "[loadgen]") {
  for (std::uint64_t value = 1; value < (std::uint64_t{1} << 40); value += value / 7 + 1) {
    latency_histogram histogram;
    histogram.add(static_cast<std::int64_t>(value));
    histogram.add(std::numeric_limits<std::int64_t>::max());  // so that max_ns() caps nothing
    const auto upper = static_cast<double>(histogram.percentile_ns(0.5));
    CHECK((upper >= static_cast<double>(value) && upper <= static_cast<double>(value) * 1.016));
  }
}

TEST_CASE("merged histograms are one histogram", "[loadgen]") {
  latency_histogram left;
  latency_histogram right;
  latency_histogram both;
  for (std::int64_t value = 0; value < 100'000; value += 37) {
    (value % 2 == 0 ? left : right).add(value);
    both.add(value);
  }
  left.merge(right);
  CHECK(left.count() == both.count());
  CHECK(left.max_ns() == both.max_ns());
  CHECK(left.mean_ns() == Catch::Approx(both.mean_ns()));
  CHECK(left.percentile_ns(0.9) == both.percentile_ns(0.9));
  std::uint64_t count = 0;
  left.for_each_bucket([&](std::uint64_t, std::uint64_t in_bucket) { count += in_bucket; });
  CHECK(count == left.count());
}

TEST_CASE("an empty histogram is all zeros", "[loadgen]") {
  const latency_histogram none;
  CHECK(none.percentile_ns(0.99) == 0);
  CHECK(none.max_ns() == 0);
  CHECK(none.mean_ns() == 0);
}

// --- What a run says of itself

TEST_CASE("a client that had no time to wait limited the run", "[loadgen]") {
  loadgen::measurement result;
  result.cpu_utilization = 0.5;
  result.ready_share = 0.949;
  CHECK_FALSE(result.limited());
  result.ready_share = 0.95;  // half of the time running, the other half kept from it
  CHECK(result.limited());
}

TEST_CASE("one busy thread of several limits the run", "[loadgen]") {
  loadgen::measurement idle;
  idle.ready_share = 0.1;
  loadgen::measurement busy;
  busy.ready_share = 0.99;
  idle.merge(busy);
  CHECK(idle.limited());
}

TEST_CASE("each kind of fault is one sentence with its count and its first case", "[loadgen]") {
  loadgen::fault_tally tally;
  tally.add(loadgen::fault::reset, "connection 3");
  tally.add(loadgen::fault::reset, "connection 4");
  loadgen::fault_tally other;
  other.add(loadgen::fault::stalled, "connection 9");
  other.add(loadgen::fault::reset, "connection 8");
  tally.merge(other);
  CHECK(tally.total() == 4);
  CHECK(tally.count(loadgen::fault::reset) == 3);
  const std::vector<std::string> said = tally.sentences();
  REQUIRE(said.size() == 2);
  CHECK(said[0] == "3 connections were reset by the server (the first: connection 3)");
  CHECK(said[1] == "1 connection stalled: the server neither answered nor closed (connection 9)");
}

// --- HTTP

namespace {

struct read_response {
  int status;
  std::string body;
  bool closes;
  bool operator==(const read_response&) const = default;
};

// Everything that `pieces` hold, or what is wrong with it.
struct read_result {
  std::vector<read_response> responses;
  std::string error;
  bool operator==(const read_result&) const = default;
};

read_result read_all(const std::vector<std::string_view>& pieces) {
  http_response reader;
  read_result result;
  std::string body;
  for (const std::string_view piece : pieces) {
    std::span<const std::byte> data = bytes_of(piece);
    while (true) {
      const auto now = reader.read(data);
      if (now == http_response::progress::more) break;
      if (now == http_response::progress::malformed) {
        result.error = reader.error();
        return result;
      }
      if (now == http_response::progress::body) {
        body.append(reinterpret_cast<const char*>(reader.body().data()), reader.body().size());
        continue;
      }
      result.responses.push_back({reader.status(), body, reader.closes()});
      body.clear();
    }
  }
  return result;
}

constexpr std::string_view conversation =
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    "HTTP/1.1 100 Continue\r\n\r\n"
    "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n"
    "HTTP/1.1 204 No Content\r\nconnection: Keep-Alive\r\n\r\n"
    "HTTP/1.0 200 OK\r\nCONTENT-LENGTH:0\r\n\r\n"
    "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nhi";

}  // namespace

TEST_CASE("responses read the same at every split", "[loadgen]") {
  const read_result whole = read_all({conversation});
  CHECK(whole.error.empty());
  const std::vector<read_response> expected = {{200, "hello", false},
                                               {404, "abc0123456789", false},
                                               {204, "", false},
                                               {200, "", true},
                                               {200, "hi", true}};
  REQUIRE(whole.responses == expected);
  for (std::size_t cut = 1; cut < conversation.size(); ++cut) {
    UNSCOPED_INFO("the cut before byte " << cut << " made a difference");
    CHECK(read_all({conversation.substr(0, cut), conversation.substr(cut)}) == whole);
  }
  std::vector<std::string_view> single;
  single.reserve(conversation.size());
  for (std::size_t at = 0; at < conversation.size(); ++at) {
    single.push_back(conversation.substr(at, 1));
  }
  CHECK(read_all(single) == whole);
}

TEST_CASE("bytes that are no HTTP response are refused at every split", "[loadgen]") {
  const std::vector<std::pair<std::string, std::string_view>> table = {
      {"HTTP/1.1 2x0 OK\r\n\r\n", "no HTTP/1 status line"},
      {"HTTP/1.1\r\n\r\n", "no HTTP/1 status line"},
      {"\r\n\r\n", "no HTTP/1"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "that differ"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", "content-length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "a chunk without its size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "longer than it said"},
      {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "is no header"},
  };
  for (const auto& [text, complaint] : table) {
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
      const std::string_view view = text;
      const read_result result = read_all({view.substr(0, cut), view.substr(cut)});
      UNSCOPED_INFO("cut before byte " << cut << " of " << text);
      CHECK_THAT(result.error, ContainsSubstring(std::string{complaint}));
    }
  }
}

TEST_CASE("a head is limited, and so is a chunk's line", "[loadgen]") {
  const std::string head = "HTTP/1.1 200 OK\r\nX: ";
  const std::string rest(http_response::head_bytes_max - head.size(), 'y');
  CHECK(read_all({head, rest}).error.empty());  // not one byte too many yet
  CHECK_THAT(read_all({head, rest, "y"}).error, ContainsSubstring("a head of more than"));
  const std::string chunk(http_response::head_bytes_max + 1, '1');
  CHECK_THAT(read_all({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk}).error,
             ContainsSubstring("a chunk's line without an end"));
}

TEST_CASE("bodies are compared while the first is still coming", "[loadgen]") {
  loadgen::http_exchange talk{"host", "/", 3};
  const auto take = [&](std::size_t slot, std::string_view text) {
    return talk.take(slot, bytes_of(text)).result;
  };
  constexpr std::string_view head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
  for (std::size_t slot = 0; slot < 3; ++slot) CHECK(take(slot, head) == verdict::unfinished);
  CHECK(take(0, "abc") == verdict::unfinished);
  CHECK(take(1, "abcde") == verdict::unfinished);  // further than the first
  CHECK(take(0, "def") == verdict::answered);
  CHECK(take(2, "abcdXf") == verdict::wrong);
  CHECK_THAT(talk.why(), ContainsSubstring("at offset 4"));
  CHECK(take(1, "f") == verdict::answered);
  CHECK(talk.body() == "abcdef");
  CHECK(talk.statuses().at(200) == 2);
}
