// SPDX-License-Identifier: MIT
// Dates, ranges and entity tags: what a server reads and writes for conditional requests.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "byte_ranges.hpp"
#include "entity_tags.hpp"
#include "http_date.hpp"

using uring::http::byte_range;
using uring::http::list_has_tag;
using uring::http::range_outcome;
using uring::http::read_http_date;
using uring::http::tag_comparison;
using uring::http::to_http_date;
using uring::http::view_of;

namespace {

constexpr std::int64_t example = 784'111'777;    // that of RFC 9110, 5.6.7
constexpr std::int64_t in_2026 = 1'790'000'000;  // for two digits of a year

// What the C library makes of it.
std::string by_library(std::int64_t seconds) {
  const std::time_t when = seconds;
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  std::array<char, 64> text;
  return {text.data(),
          std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

std::string ranges_of(std::string_view value, std::uint64_t size) {
  std::array<byte_range, 3> into;
  const auto read = uring::http::read_byte_ranges(value, size, into);
  if (read.outcome == range_outcome::ignored) return "ignored";
  if (read.outcome == range_outcome::unsatisfiable) return "416";
  std::string text;
  for (std::size_t i = 0; i < read.count; ++i) {
    text += std::to_string(into[i].first) + "-" + std::to_string(into[i].last) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("13 a date is written as RFC 9110 wants it", "[13]") {
  CHECK(view_of(to_http_date(example)) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(view_of(to_http_date(0)) == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(view_of(to_http_date(951'782'400)) == "Tue, 29 Feb 2000 00:00:00 GMT");
  UNSCOPED_INFO("a year has four digits, whatever a file's time is");
  CHECK(view_of(to_http_date(253'402'300'800)) == "Fri, 31 Dec 9999 23:59:59 GMT");
  CHECK(view_of(to_http_date(std::numeric_limits<std::int64_t>::max())) ==
        "Fri, 31 Dec 9999 23:59:59 GMT");
  CHECK(view_of(to_http_date(std::numeric_limits<std::int64_t>::min())) ==
        "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST_CASE("13 dates are those of the C library, and are read back", "[13]") {
  std::mt19937_64 random{13};
  std::uniform_int_distribution<std::int64_t> seconds{-2'208'988'800, 253'402'300'799};
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t when = seconds(random);
    const std::string text{view_of(to_http_date(when))};
    CHECK(text == by_library(when));
    CHECK(read_http_date(text, in_2026) == when);
  }
}

TEST_CASE("13 all three forms of a date are read", "[13]") {
  CHECK(read_http_date("Sun, 06 Nov 1994 08:49:37 GMT", in_2026) == example);
  CHECK(read_http_date("Sunday, 06-Nov-94 08:49:37 GMT", in_2026) == example);
  CHECK(read_http_date("Sun Nov  6 08:49:37 1994", in_2026) == example);
  CHECK(read_http_date("Sun Nov 16 08:49:37 1994", in_2026) == example + 10 * 86'400);
  UNSCOPED_INFO("a leap second is the second behind it");
  CHECK(read_http_date("Sat, 31 Dec 2016 23:59:60 GMT", in_2026) == 1'483'228'800);
}

TEST_CASE("13 two digits of a year are at most fifty years ahead", "[13]") {
  const auto year_of = [](std::string_view digits) {
    const std::string text = "Monday, 01-Jan-" + std::string{digits} + " 00:00:00 GMT";
    const auto when = read_http_date(text, in_2026);
    return when ? std::string{view_of(to_http_date(*when))}.substr(12, 4) : "none";
  };
  CHECK(year_of("26") == "2026");
  CHECK(year_of("76") == "2076");
  CHECK(year_of("77") == "1977");
  CHECK(year_of("00") == "2000");
}

TEST_CASE("13 what is no date is none", "[13]") {
  for (const std::string_view text :
       {"", "0", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        "Sun Nov    08:49:37 1994"}) {
    UNSCOPED_INFO("“" << text << "”");
    CHECK_FALSE(read_http_date(text, in_2026).has_value());
  }
}

TEST_CASE("13 a date is made anew once a second", "[13]") {
  uring::http::date_clock clock;
  CHECK(clock.text(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(clock.text(example) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(clock.text(example) == "Sun, 06 Nov 1994 08:49:37 GMT");
  UNSCOPED_INFO("a clock that was set back");
  CHECK(clock.text(example - 1) == "Sun, 06 Nov 1994 08:49:36 GMT");
}

TEST_CASE("13 ranges are read as RFC 9110 says", "[13]") {
  CHECK(ranges_of("bytes=0-4", 10) == "0-4 ");
  CHECK(ranges_of("bytes=0-0", 10) == "0-0 ");
  CHECK(ranges_of("bytes=5-", 10) == "5-9 ");
  CHECK(ranges_of("bytes=-3", 10) == "7-9 ");
  CHECK(ranges_of("BYTES=0-4", 10) == "0-4 ");
  CHECK(ranges_of("bytes=0-1, 3-4 ,, -1", 10) == "0-1 3-4 9-9 ");
  UNSCOPED_INFO("what lies behind the end is left out");
  CHECK(ranges_of("bytes=5-99", 10) == "5-9 ");
  CHECK(ranges_of("bytes=-99", 10) == "0-9 ");
  CHECK(ranges_of("bytes=10-,2-2", 10) == "2-2 ");
  CHECK(ranges_of("bytes=0-99999999999999999999", 10) == "0-9 ");
  UNSCOPED_INFO("nothing of it is in the file (15.5.17)");
  CHECK(ranges_of("bytes=10-", 10) == "416");
  CHECK(ranges_of("bytes=10-11,12-", 10) == "416");
  CHECK(ranges_of("bytes=-0", 10) == "416");
  CHECK(ranges_of("bytes=99999999999999999999-", 10) == "416");
  UNSCOPED_INFO("what cannot be understood, or is too much, is ignored (14.2)");
  for (const std::string_view value :
       {"", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=1", "bytes=2-1", "bytes=a-b",
        "bytes=0-x", "bytes=--1", "bytes=+1-2", "bytes=1 - 2", "bytes = 0-1", "lines=0-1",
        "bytes=0-1,x", "bytes=0-0,1-1,2-2,3-3", "bytes=-1-2"}) {
    UNSCOPED_INFO("“" << value << "”");
    CHECK(ranges_of(value, 10) == "ignored");
  }
  CHECK(ranges_of("bytes=0-0", 0) == "ignored");
  CHECK(ranges_of("bytes=-1", 0) == "ignored");
}

TEST_CASE("13 a list of entity tags has a tag or not", "[13]") {
  const auto weak = tag_comparison::weak;
  const auto strong = tag_comparison::strong;
  CHECK(list_has_tag("\"a\"", "\"a\"", strong));
  CHECK(list_has_tag(" \"b\" , \"a\"", "\"a\"", strong));
  CHECK(list_has_tag(",\"a\"", "\"a\"", weak));
  CHECK(list_has_tag("*", "\"a\"", strong));
  UNSCOPED_INFO("a weak tag matches in a weak comparison only (rfc9110, 8.8.3)");
  CHECK(list_has_tag("W/\"a\"", "\"a\"", weak));
  CHECK(list_has_tag("\"a\"", "W/\"a\"", weak));
  CHECK_FALSE(list_has_tag("W/\"a\"", "\"a\"", strong));
  CHECK_FALSE(list_has_tag("W/\"a\"", "W/\"a\"", strong));
  UNSCOPED_INFO("a comma in a tag is no end of it");
  CHECK(list_has_tag("\"a,b\", \"c\"", "\"c\"", strong));
  CHECK_FALSE(list_has_tag("\"a,b\"", "\"b\"", strong));
  for (const std::string_view list : {"", "a", "\"b\"", "\"A\"", "\"a", "a\"", "\"b\" \"a\"",
                                      "\"\"", "w/\"a\"", "x, \"a\"", "\"b c\", \"a\"", "**"}) {
    UNSCOPED_INFO("“" << list << "”");
    CHECK_FALSE(list_has_tag(list, "\"a\"", weak));
  }
  CHECK(uring::http::is_entity_tag("W/\"\""));
  CHECK_FALSE(uring::http::is_entity_tag("\"a\" "));
  CHECK_FALSE(uring::http::is_entity_tag("W/a"));
}
