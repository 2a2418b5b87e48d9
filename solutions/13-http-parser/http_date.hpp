// SPDX-License-Identifier: MIT
// Writes one form of HTTP dates, and reads three. Seconds count from 1970, without leap seconds.
// Errors   for a text that is not a date, the result is empty.
// See      rfc9110, section 5.6.7
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http_grammar.hpp"

namespace uring::http {

inline constexpr std::array<std::string_view, 7> weekday_names{
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
inline constexpr std::array<std::string_view, 12> month_names{
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

using date_text = std::array<char, 29>;

[[nodiscard]] constexpr std::string_view view_of(const date_text& date) noexcept {
  return {date.data(), date.size()};
}

constexpr void write_at(date_text& text, std::size_t at, std::string_view word) noexcept {
  std::ranges::copy(word, text.begin() + static_cast<std::ptrdiff_t>(at));
}

// The last `digits` digits of `number`.
constexpr void write_at(date_text& text, std::size_t at, std::int64_t number, std::size_t digits) {
  for (std::size_t i = digits; i-- > 0; number /= 10) {
    text[at + i] = static_cast<char>('0' + number % 10);
  }
}

// "Sun, 06 Nov 1994 08:49:37 GMT". A year has four digits, so a time before the year 0 becomes the
// first second of that year, and a time after 9999 becomes the last second of 9999.
[[nodiscard]] constexpr date_text to_http_date(std::int64_t seconds_since_1970) noexcept {
  using namespace std::chrono;
  constexpr sys_seconds first = sys_days{year{0} / January / 1};
  constexpr sys_seconds last = sys_days{year{9999} / December / 31} + days{1} - seconds{1};
  const sys_seconds when = std::clamp(sys_seconds{seconds{seconds_since_1970}}, first, last);
  const sys_days day = floor<days>(when);
  const year_month_day date{day};
  const hh_mm_ss time{when - day};
  date_text text;
  write_at(text, 0, "___, __ ___ ____ __:__:__ GMT");
  write_at(text, 0, weekday_names[weekday{day}.c_encoding()].substr(0, 3));
  write_at(text, 5, static_cast<unsigned>(date.day()), 2);
  write_at(text, 8, month_names[static_cast<unsigned>(date.month()) - 1]);
  write_at(text, 12, static_cast<int>(date.year()), 4);
  write_at(text, 17, time.hours().count(), 2);
  write_at(text, 20, time.minutes().count(), 2);
  write_at(text, 23, time.seconds().count(), 2);
  return text;
}

// In a pattern 0 stands for a digit, _ for a digit or a blank, a for a letter.
[[nodiscard]] constexpr bool looks_like(std::string_view text, std::string_view pattern) noexcept {
  return std::ranges::equal(text, pattern, [](char c, char wanted) {
    if (wanted == '0') return is_digit(c);
    if (wanted == '_') return is_digit(c) || c == ' ';
    if (wanted == 'a') return is_letter_or_digit(c) && !is_digit(c);
    return c == wanted;
  });
}

// The number in digits that looks_like() has found; blanks may come before them.
[[nodiscard]] constexpr int number_at(std::string_view text, std::size_t at, std::size_t digits) {
  int number = 0;
  for (const char c : text.substr(at, digits)) number = number * 10 + (c == ' ' ? 0 : c - '0');
  return number;
}

// `year` is complete, `month` has three letters, and `time` has the form of "08:49:37". A leap
// second becomes the second after it.
[[nodiscard]] constexpr std::optional<std::int64_t> seconds_of(int year, std::string_view month,
                                                               int day, std::string_view time) {
  namespace chrono = std::chrono;
  const auto found = std::ranges::find(month_names, month);
  const chrono::year_month_day date{
      chrono::year{year}, chrono::month{static_cast<unsigned>(found - month_names.begin()) + 1},
      chrono::day{static_cast<unsigned>(day)}};
  const int hour = number_at(time, 0, 2);
  const int minute = number_at(time, 3, 2);
  const int second = number_at(time, 6, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::int64_t days = chrono::sys_days{date}.time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

// Completes a year whose last two digits are known. The result is at most 50 years after `now`.
[[nodiscard]] constexpr int complete_year(int last_two_digits, std::int64_t now) noexcept {
  const auto today =
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds{std::chrono::seconds{now}});
  const int this_year = static_cast<int>(std::chrono::year_month_day{today}.year());
  const int year = this_year - this_year % 100 + last_two_digits;
  return year > this_year + 50 ? year - 100 : year;
}

// "Sunday, 06-Nov-94 08:49:37 GMT"
[[nodiscard]] constexpr std::optional<std::int64_t> read_rfc850_date(std::string_view text,
                                                                     std::int64_t now) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view rest = text.substr(comma);
  const bool has_day =
      std::ranges::find(weekday_names, text.substr(0, comma)) != weekday_names.end();
  if (!has_day || !looks_like(rest, ", 00-aaa-00 00:00:00 GMT")) return std::nullopt;
  const int year = complete_year(number_at(rest, 9, 2), now);
  return seconds_of(year, rest.substr(5, 3), number_at(rest, 2, 2), rest.substr(12, 8));
}

// Reads any of the three forms. Only that of RFC 850 needs `now`, because its year has two digits.
// A day of the week that does not belong to the date is no error.
[[nodiscard]] constexpr std::optional<std::int64_t> read_http_date(std::string_view text,
                                                                   std::int64_t now) {
  const bool has_short_day = std::ranges::any_of(
      weekday_names, [&](std::string_view name) { return text.starts_with(name.substr(0, 3)); });
  if (has_short_day && looks_like(text, "aaa, 00 aaa 0000 00:00:00 GMT")) {
    const int year = number_at(text, 12, 4);
    return seconds_of(year, text.substr(8, 3), number_at(text, 5, 2), text.substr(17, 8));
  }
  if (has_short_day && looks_like(text, "aaa aaa _0 00:00:00 0000")) {
    const int year = number_at(text, 20, 4);
    return seconds_of(year, text.substr(4, 3), number_at(text, 8, 2), text.substr(11, 8));
  }
  return read_rfc850_date(text, now);
}

// The time as text. The text is made again only when a second has passed, not for each response.
class date_clock {
 public:
  [[nodiscard]] std::string_view text(std::int64_t now) noexcept {
    if (now != second_) text_ = to_http_date(now);
    second_ = now;
    return view_of(text_);
  }

 private:
  std::int64_t second_ = 0;
  date_text text_ = to_http_date(0);
};

}  // namespace uring::http
