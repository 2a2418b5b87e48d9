// SPDX-License-Identifier: MIT
// One GET: how it ends when it is canceled, and how much of a body it keeps.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "bounded_get.hpp"
#include "cancel_source.hpp"
#include "http_address.hpp"
#include "http_town.hpp"
#include "io_context.hpp"
#include "io_result.hpp"
#include "operations.hpp"
#include "task.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using course_test::http_town;
using uring::cancel_source;
using uring::io_context;
using uring::task;
using uring::http::body_in_memory;

namespace {

struct attempt {
  explicit attempt(io_context& context) : ended{context} {}

  std::string said = "nothing";  // the body, or what was thrown instead
  cancel_source ended;
};

task<> get(std::string address, cancel_source& source, attempt& into) {
  const uring::http::get_request request = uring::http::parse_address(address);
  try {
    into.said = co_await uring::http::bounded_get(source, request);
  } catch (const std::exception& error) {
    into.said = error.what();
  }
  into.ended.cancel();
}

// What does not end by the cancel is stopped, a while later.
task<> cancel_soon(io_context& context, cancel_source& source, attempt& waiting) {
  (void)co_await uring::timeout_op(context, 20ms);
  source.cancel();
  const uring::io_result ended = co_await uring::timeout_op(waiting.ended, 3s);
  UNSCOPED_INFO("a wait of the GET does not listen to the source");
  CHECK(ended.error() == ECANCELED);
  if (ended.error() == ETIME) context.stop();
}

task<> add(body_in_memory& to, const std::vector<std::byte>& bytes) {
  co_await to.add(bytes);
}

}  // namespace

TEST_CASE("08 a GET ends when it is canceled, before it connects and while it receives", "[08]") {
  const http_town town;
  io_context context;
  cancel_source source{context};
  attempt waiting{context};
  context.spawn(get(town.at("/never"), source, waiting));
  context.spawn(cancel_soon(context, source, waiting));
  context.run();
  CHECK_THAT(waiting.said, ContainsSubstring("recv: ECANCELED"));
  attempt late{context};
  context.spawn(get(town.at("/bytes/1"), source, late));
  context.run();
  CHECK_THAT(late.said, ContainsSubstring("connect: 127.0.0.1: ECANCELED"));
}

TEST_CASE("08 a body in memory is kept up to its limit, and not a byte more", "[08]") {
  io_context context;
  body_in_memory body;
  const std::vector<std::byte> most(body_in_memory::body_bytes_max);
  context.run(add(body, most));
  const std::vector<std::byte> one_more(1);
  CHECK_THROWS_WITH(context.run(add(body, one_more)), ContainsSubstring("its body is too large"));
  const std::string taken = std::move(body).take();
  CHECK(taken.size() == body_in_memory::body_bytes_max);
}
