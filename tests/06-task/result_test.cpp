// SPDX-License-Identifier: MIT
// Task 06.3: the result of a body reaches the coroutine that awaits it.
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "counted.hpp"
#include "driver.hpp"
#include "small_tasks.hpp"
#include "task.hpp"

using course_test::answer;
using course_test::blocks_left_by;
using course_test::boxed;
using course_test::counted;
using course_test::driver;
using course_test::itself;
using course_test::live_scope;
using course_test::nothing;
using course_test::run;
using uring::outcome;
using uring::task;

namespace {

template <typename T, typename Value>
concept can_return =
    requires(typename task<T>::promise_type& promise, Value value) { promise.return_value(value); };

struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

task<std::string> text() {
  co_return "not a std::string yet";
}
task<int> answer_and_hold(counted) {
  co_return 42;
}
task<std::string> copy_of(std::string& line) {
  co_return line;
}
task<const std::string&> read_only(const std::string& line) {
  co_return line;
}
task<const int> constant() {
  co_return 9;
}
task<std::pair<int, int>> braced() {
  co_return {1, 2};
}

task<int> refuse(counted) {
  const counted local;
  if (counted::live() > 0) throw refused{"not today"};
  co_return 1;
}

// A local that is destroyed, and throws, when co_return has already kept the value.
struct throws_at_the_end {
  // NOLINTNEXTLINE(*exception-escape, *noexcept-destructor): to throw is what it is for
  ~throws_at_the_end() noexcept(false) { throw refused{"after co_return"}; }
};

task<int> return_and_throw() {
  const throws_at_the_end local;
  co_return 1;
}

// Made of an int, and counts how often it moves after that.
struct counts_moves {
  static inline int moves = 0;

  // NOLINTNEXTLINE(*explicit*): co_return makes it of a number
  counts_moves(int) noexcept {}
  counts_moves(counts_moves&&) noexcept { ++moves; }
};

// Refuses to become an int.
struct no_number {
  // NOLINTNEXTLINE(*explicit*): co_return makes an int of it
  operator int() const { throw refused{"no number"}; }
};

task<int> catch_while_it_returns() {
  try {
    co_return no_number{};
  } catch (const refused&) {
    co_return 7;
  }
}

struct no_std_exception {};

task<int> refuse_oddly() {
  // NOLINTNEXTLINE(misc-throw-by-value-catch-by-reference): it is thrown by value
  if (counted::live() >= 0) throw no_std_exception{};
  co_return 1;
}

task<> refuse_nothing() {
  if (counted::live() >= 0) throw refused{"not today"};
  co_return;
}

task<int> hand_on(counted parameter, int depth) {
  const counted local;
  if (depth == 0) {
    const int number = co_await refuse(parameter);
    co_return number;
  }
  const int number = co_await hand_on(parameter, depth - 1);
  co_return number;
}

task<int> recover() {
  int recovered = 0;
  try {
    recovered = co_await refuse(counted{});
  } catch (const refused&) {
    recovered = -1;
  }
  const int rest = co_await answer();
  co_return recovered + rest;
}

task<counted> give() {
  counted made;
  co_return made;
}

task<counted> hand_on_moved() {
  counted got = co_await give();
  co_return got;
}

task<int> sum_of(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    const int each = co_await answer();
    sum += each;
  }
  co_return sum;
}

// What an exception says, or "no exception".
template <typename T>
std::string thrown_by(outcome<T> ended) {
  try {
    if constexpr (std::is_void_v<T>) {
      ended.take();
    } else {
      static_cast<void>(ended.take());
    }
  } catch (const refused& error) {
    return error.what();
  } catch (...) {
    return "an exception of another type";
  }
  return "no exception";
}

driver take_from(task<int>& awaited, int& result) {
  result = co_await std::move(awaited);
}

task<std::string> look_at_outcome(task<int> awaited) {
  outcome<int> ended = co_await std::move(awaited).as_outcome();
  co_return ended.has_value() ? std::to_string(ended.take()) : thrown_by(std::move(ended));
}

}  // namespace

TEST_CASE("06.3 a frame stays after its result was taken, until its task is destroyed", "[06.3]") {
  const live_scope before;
  auto awaited = std::make_unique<task<int>>(answer_and_hold(counted{}));
  int result = 0;
  {
    const driver outermost = take_from(*awaited, result);
    outermost.start();
  }
  CHECK(result == 42);
  const bool stays = before.leaked_objects() == 1;
  if (!stays) static_cast<void>(awaited.release());  // to destroy it again would crash
  UNSCOPED_INFO("await_resume() destroyed the frame, which belongs to the task");
  REQUIRE(stays);
  awaited.reset();
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.3 co_await gives the value that the body returned", "[06.3]") {
  CHECK(run(answer()).take() == 42);
  UNSCOPED_INFO("co_return takes every value that a T can be made of");
  CHECK(run(text()).take() == "not a std::string yet");
  CHECK(run(constant()).take() == 9);
  CHECK(run(sum_of(1000)).take() == 42'000);
}

TEST_CASE("06.3 co_return accepts the values that return accepts", "[06.3]") {
  CHECK(run(braced()).take() == std::pair{1, 2});
  UNSCOPED_INFO(
      "std::vector<int> f() { return 5; } does not compile, and nor may this: it needs an explicit "
      "constructor");
  CHECK_FALSE(can_return<std::vector<int>, int>);
}

TEST_CASE("06.3 co_return makes the result out of the value, without a temporary", "[06.3]") {
  task<counts_moves>::promise_type promise;
  const int before = counts_moves::moves;
  promise.return_value(1);
  UNSCOPED_INFO(
      "return_value() made a T and moved it into the result: pass on the value itself, with "
      "std::forward<Value>(value) and no cast. In a task<const std::string&> that T would be a "
      "reference to a temporary, and dangle");
  CHECK(counts_moves::moves == before);
}

TEST_CASE("06.3 a void task ends without a value", "[06.3]") {
  CHECK(run(nothing()).has_value());
}

TEST_CASE("06.3 a value is moved out, never copied", "[06.3]") {
  UNSCOPED_INFO("a move-only value arrives");
  CHECK(*run(boxed()).take() == 7);
  const int before = counted::copies();
  static_cast<void>(run(hand_on_moved()).take());
  UNSCOPED_INFO("a value was copied on its way: forward it in return_value(), move it out after");
  CHECK(counted::copies() == before);
}

TEST_CASE("06.3 co_return copies an object that lives on", "[06.3]") {
  std::string line{"it is needed later, and too long to be stored in place"};
  const std::string as_it_was = line;
  CHECK(run(copy_of(line)).take() == as_it_was);
  UNSCOPED_INFO(
      "co_return emptied an object that is not its own: forward the value, for std::move() "
      "takes from an lvalue too");
  CHECK(line == as_it_was);
}

TEST_CASE("06.3 a reference arrives as a reference to the same object", "[06.3]") {
  int number = 1;
  run(itself(number)).take() = 5;
  UNSCOPED_INFO("task<int&> gave a copy");
  CHECK(number == 5);
  const std::string line{"the one"};
  CHECK(&run(read_only(line)).take() == &line);
}

TEST_CASE("06.3 an exception is thrown where the task is awaited", "[06.3]") {
  UNSCOPED_INFO(
      "the exception of the body did not reach the coroutine that awaits: unhandled_exception() "
      "keeps it, and neither throws it again nor ends the program");
  CHECK(thrown_by(run(refuse(counted{}))) == "not today");
  UNSCOPED_INFO("the exception of a task<void> did not reach the coroutine that awaits");
  CHECK(thrown_by(run(refuse_nothing())) == "not today");
}

TEST_CASE("06.3 an exception of any type arrives", "[06.3]") {
  UNSCOPED_INFO(
      "the body threw an object that is no std::exception: std::current_exception() keeps "
      "an exception of any type");
  CHECK_THROWS_AS(run(refuse_oddly()).take(), no_std_exception);
}

TEST_CASE("06.3 an exception after co_return counts, and the value does not", "[06.3]") {
  const std::string thrown = thrown_by(run(return_and_throw()));
  UNSCOPED_INFO(
      "a local's destructor threw after co_return had kept a value, and the exception is lost: "
      "unhandled_exception() keeps it even if the result is set, as a function that throws returns "
      "nothing");
  CHECK(thrown == "after co_return");
}

TEST_CASE("06.3 an exception while the result is made belongs to the body", "[06.3]") {
  UNSCOPED_INFO(
      "return_value() is called inside the body, so the body may catch what it throws: leave that "
      "alone, and unhandled_exception() gets what the body does not catch");
  CHECK(run(catch_while_it_returns()).take() == 7);
}

TEST_CASE("06.3 an exception keeps its own type", "[06.3]") {
  outcome<int> ended = run(refuse(counted{}));
  UNSCOPED_INFO(
      "a type derived from std::runtime_error was thrown, and another one arrived: a copy as the "
      "base class loses the rest, so keep std::current_exception()");
  CHECK_THROWS_AS(ended.take(), refused);
}

TEST_CASE("06.3 an exception goes up a chain of awaits, and frees every frame", "[06.3]") {
  const live_scope before;
  UNSCOPED_INFO("ten coroutines above the one that threw should each have let it through");
  CHECK(thrown_by(run(hand_on(counted{}, 10))) == "not today");
  UNSCOPED_INFO("an exception left a parameter or a local behind");
  CHECK(before.leaked_objects() == 0);
}

TEST_CASE("06.3 no frame's memory is left when tasks throw", "[06.3]") {
  std::string said;
  const std::ptrdiff_t left = blocks_left_by([&] { said = thrown_by(run(hand_on(counted{}, 3))); });
  CHECK(said == "not today");
  UNSCOPED_INFO("an exception left a frame behind, or itself");
  CHECK(left == 0);
}

TEST_CASE("06.3 a coroutine that catches an exception continues", "[06.3]") {
  CHECK(run(recover()).take() == 41);
}

TEST_CASE("06.3 an outcome has the exception and does not throw it", "[06.3]") {
  CHECK(run(look_at_outcome(answer())).take() == "42");
  CHECK(run(look_at_outcome(refuse(counted{}))).take() == "not today");
}

TEST_CASE("06.3 a result that nobody takes is destroyed with its frame", "[06.3]") {
  const live_scope before;
  {
    outcome<counted> never_taken = run(give());
    CHECK(never_taken.has_value());
    CHECK(before.leaked_objects() == 1);
  }
  UNSCOPED_INFO("the value outlived the frame");
  CHECK(before.leaked_objects() == 0);
}
