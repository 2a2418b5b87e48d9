// SPDX-License-Identifier: MIT
// Several GETs, a window of them at the same time. Each has one deadline from beginning to end.
// Owns     every connection while it is used, and the results.
// Lifetime `context` must outlive it.
// Threads  the one that runs `context`; resolving a name blocks it.
// Errors   a fetch that failed has a sentence in its result; run() does not throw for that.
// Rule     a deadline or a cancel ends a fetch at any point, because every operation in it was
//          started through one source.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "bounded_get.hpp"
#include "cancel_source.hpp"
#include "http_get.hpp"
#include "in_window.hpp"
#include "io_context.hpp"
#include "operations.hpp"
#include "task.hpp"
#include "when_any.hpp"

namespace uring {

struct fetched {
  std::string body;
  std::string failure;  // a sentence, or empty
};

enum class on_failure { go_on, cancel_the_others };

struct fetch_options {
  std::size_t window = 4;
  std::chrono::milliseconds timeout{10'000};  // for one fetch, from its connect to its last byte
  on_failure after = on_failure::go_on;
};

class fetching {
 public:
  fetching(io_context& context, const fetch_options& options) noexcept
      : context_{context}, options_{options} {}
  fetching(fetching&&) = delete;  // its tasks hold its address

  // Returns the results in the order of `requests`, whichever ends first.
  task<std::vector<fetched>> run(std::vector<http::get_request> requests) {
    std::vector<fetched> results(requests.size(), fetched{{}, "not begun: another one failed"});
    cancel_source all{context_};
    const auto fetch_one = [&](std::size_t i) { return fetch(requests[i], results[i], all); };
    co_await in_window(all, options_.window, requests.size(), fetch_one);
    co_return results;
  }

 private:
  // Runs the GET and the deadline. When one of them has ended, the other is canceled.
  task<> fetch(const http::get_request& request, fetched& into, cancel_source& all) {
    cancel_source own{child_of{all}};
    into = co_await first_of(own, get(request, own), give_up(own));
    if (own_failure(into) && options_.after == on_failure::cancel_the_others) all.cancel();
  }

  task<fetched> give_up(cancel_source& own) {
    const io_result waited = co_await timeout_op(own, options_.timeout);
    if (waited.error() != ETIME) co_return fetched{{}, canceled};  // its time was not up
    const std::string limit = std::to_string(options_.timeout.count());
    co_return fetched{{}, "no complete answer within " + limit + " ms"};
  }

  static task<fetched> first_of(cancel_source& own, task<fetched> answer, task<fetched> deadline) {
    first_result<fetched> first = co_await when_any(own, std::move(answer), std::move(deadline));
    co_return std::move(first.value);
  }

  // True if the fetch failed, but not because another failure had canceled it.
  static bool own_failure(const fetched& result) {
    return !result.failure.empty() && result.failure != canceled;
  }

  task<fetched> get(const http::get_request& request, cancel_source& own) {
    fetched result;
    try {
      result.body = co_await http::bounded_get(own, request);
    } catch (const std::exception& error) {
      result.failure = own.is_canceled() ? canceled : error.what();
    }
    co_return result;
  }

  static constexpr const char* canceled = "canceled: another one failed";

  io_context& context_;
  fetch_options options_;
};

}  // namespace uring
