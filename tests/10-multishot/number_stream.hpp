// SPDX-License-Identifier: MIT
// A stream whose items are numbers, of requests that never reach the kernel, and its consumers:
// each writes down what it has seen, such as "1 2 canceled".
// Owns     an item counts itself, so that one that is dropped can be told from one that leaks.
// Lifetime the context outlives the stream.
// Threads  the one that runs the context.
#pragma once

#include <liburing.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "finally.hpp"
#include "io_context.hpp"
#include "manual_ring.hpp"
#include "operations.hpp"
#include "stream.hpp"
#include "task.hpp"

namespace course_test {

struct number {
  std::int32_t res;
  counted owned = {};
};

struct prepare_numbers {
  void operator()(::io_uring_sqe& sqe) const {
    ::io_uring_prep_poll_multishot(&sqe, 99, 0);  // nobody's descriptor
  }
  static number result(const uring::completion& done) { return {.res = done.res}; }
};

using number_stream = uring::stream<prepare_numbers>;

struct story {
  std::string text;
  void note(const std::string& what) { text += (text.empty() ? "" : " ") + what; }
  void note(const number& got) {
    note(got.res == -ECANCELED ? std::string{"canceled"} : std::to_string(got.res));
  }
};

// Takes `count` items, or fewer if it is canceled.
inline uring::task<> take_some(number_stream& from, int count, story& seen) {
  for (int i = 0; i < count; ++i) {
    const number got = co_await from.next();
    seen.note(got);
    if (got.res == -ECANCELED) co_return;
  }
}

// Takes the items that come, until it is canceled.
inline uring::task<> take_all(number_stream& from, story& seen) {
  co_await take_some(from, 1'000'000, seen);
}

// Waits for a NOP after each item: items that come meanwhile have to wait.
inline uring::task<> take_slowly(uring::io_context& context, number_stream& from, story& seen) {
  for (;;) {
    const number got = co_await from.next();
    seen.note(got);
    if (got.res == -ECANCELED) co_return;
    (void)co_await uring::nop_op(context);
  }
}

// A loop without a kernel, and a source that cancels: what each case needs.
struct scene {
  uring::io_context context;
  manual_ring kernel{context};
  uring::cancel_source source{context};
  story seen;
};

}  // namespace course_test
