// SPDX-License-Identifier: MIT
// The judge of the exercise takes what is right, and nothing that looks twice at a byte.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "head_end_judge.hpp"

namespace {

using head_end_function = std::size_t (*)(std::string_view, std::size_t&);

// As main() does it on the page.
bool is_accepted(head_end_function head_end) {
  for (std::size_t step = 1; step <= 30; ++step) {
    if (!is_right(head_end, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", step)) return false;
  }
  return true;
}

std::size_t size_of_head(std::size_t end) {
  return end == std::string_view::npos ? 0 : end + 4;
}

std::size_t but_three(std::string_view received) {
  return std::max<std::size_t>(received.size(), 3) - 3;
}

std::size_t goes_on(std::string_view received, std::size_t& seen) {
  const std::size_t end = received.find("\r\n\r\n", seen);
  seen = but_three(received);
  return size_of_head(end);
}

// Three bytes again only if they may be the beginning of the end.
std::size_t goes_on_at_a_cr(std::string_view received, std::size_t& seen) {
  for (; seen + 4 <= received.size(); ++seen) {
    if (received.substr(seen, 4) == "\r\n\r\n") return seen + 4;
  }
  while (seen < received.size() && received[seen] != '\r') ++seen;
  return 0;
}

std::size_t begins_anew(std::string_view received, std::size_t& seen) {
  seen = but_three(received);
  return size_of_head(received.find("\r\n\r\n"));
}

std::size_t begins_anew_and_counts_all(std::string_view received, std::size_t& seen) {
  seen = received.size();
  return size_of_head(received.find("\r\n\r\n"));
}

std::size_t counts_too_much(std::string_view received, std::size_t& seen) {
  const std::size_t end = received.find("\r\n\r\n", seen);
  seen += but_three(received);
  return size_of_head(end);
}

std::size_t forgets_the_cut_end(std::string_view received, std::size_t& seen) {
  const std::size_t end = received.find("\r\n\r\n", seen);
  seen = received.size();
  return size_of_head(end);
}

std::size_t never_counts(std::string_view received, std::size_t&) {
  return size_of_head(received.find("\r\n\r\n"));
}

std::size_t takes_the_last_end(std::string_view received, std::size_t& seen) {
  seen = but_three(received);
  return received.ends_with("\r\n\r\n") ? received.size() : 0;
}

}  // namespace

TEST_CASE("13 the judge of the exercise takes functions that are right", "[13]") {
  CHECK(is_accepted(goes_on));
  CHECK(is_accepted(goes_on_at_a_cr));
}

TEST_CASE("13 the judge of the exercise refuses a function that looks again", "[13]") {
  UNSCOPED_INFO("it begins at 0 each time, and says that it does not");
  CHECK_FALSE(is_accepted(begins_anew));
  UNSCOPED_INFO("it begins at 0 each time, and says that no byte needs a second look");
  CHECK_FALSE(is_accepted(begins_anew_and_counts_all));
  UNSCOPED_INFO("it begins at 0 each time, and says so");
  CHECK_FALSE(is_accepted(never_counts));
}

TEST_CASE("13 the judge of the exercise refuses a function that loses the end", "[13]") {
  UNSCOPED_INFO("seen is added to, from the third piece on too much");
  CHECK_FALSE(is_accepted(counts_too_much));
  UNSCOPED_INFO("an end that is cut is looked for behind its beginning");
  CHECK_FALSE(is_accepted(forgets_the_cut_end));
  UNSCOPED_INFO("the end need not be where a piece ends");
  CHECK_FALSE(is_accepted(takes_the_last_end));
}
