// SPDX-License-Identifier: MIT
// Task 08.5: a scope starts its tasks, ends them together, and is left last.
#include "scope.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "cancel_source.hpp"
#include "counted.hpp"
#include "ending_process.hpp"
#include "operations.hpp"
#include "silent_socket.hpp"
#include "stack_use.hpp"
#include "turns.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::pass_turns;
using course_test::silent_socket;
using course_test::stack_use;
using uring::io_context;
using uring::io_result;
using uring::scope;
using uring::task;

namespace {

task<> note_after(io_context& context, int turns, std::string& log, char what, counted) {
  co_await pass_turns(context, turns);
  log += what;
}

task<> listen(int fd, uring::cancel_source& source, int& canceled, counted) {
  std::array<std::byte, 16> buffer;
  const io_result received = co_await uring::recv_op(source, fd, buffer);
  if (received) FAIL_CHECK("recv returned, but nothing was written: it was not canceled");
  if (received.error() == ECANCELED) ++canceled;
}

task<> fail_after(io_context& context, int turns, std::string what, counted) {
  co_await pass_turns(context, turns);
  throw std::runtime_error{what};
}

// Writes when its frame goes, which must be before that of the scope's owner.
class last_words {
 public:
  explicit last_words(std::string& written_to) noexcept : written_to_{written_to} {}
  last_words(last_words&&) = delete;
  ~last_words() { written_to_ += "a rather long farewell"; }

 private:
  std::string& written_to_;
};

task<> wait_for_nobody(std::string& log) {
  const last_words local{log};
  co_await std::suspend_always{};
}

task<> spawn_waits_for_nobody(scope& tasks, std::string& log) {
  for (int i = 0; i < 10; ++i) tasks.spawn(wait_for_nobody(log));
  co_return;
}

task<> own_what_tasks_use(io_context& context, counted) {
  std::string log;
  scope tasks{context};
  co_await tasks.run(spawn_waits_for_nobody(tasks, log));
}

task<std::string> what_run_throws(scope& running, task<> body) {
  try {
    co_await running.run(std::move(body));
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
  co_return "nothing";
}

task<> do_nothing() {
  co_return;
}

}  // namespace

TEST_CASE("08.5 run returns when the body and every spawned task have ended", "[08.5]") {
  struct notes {
    std::string log;
    std::size_t tasks = 0;
    bool is_over = false;
  };
  struct check {
    static task<> body(io_context& context, scope& tasks, notes& into) {
      tasks.spawn(note_after(context, 3, into.log, 'c', {}));
      tasks.spawn(note_after(context, 1, into.log, 'a', {}));
      tasks.spawn(note_after(context, 2, into.log, 'b', {}));
      into.tasks = tasks.size();
      co_return;
    }
    static task<> run(io_context& context, notes& into) {
      scope tasks{context};
      co_await tasks.run(body(context, tasks, into));
      UNSCOPED_INFO("run() returned before the last task had ended");
      CHECK(into.log == "abc");
      CHECK(tasks.size() == 0);
      into.is_over = true;
    }
  };
  io_context context;
  notes noted;
  std::string thrown;
  try {
    context.run(check::run(context, noted));
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  UNSCOPED_INFO(
      "if every task waits, nobody resumed the coroutine that awaits run(): on_empty() has its "
      "handle in continuation_, and returning that handle resumes it");
  CHECK(thrown == "");
  CHECK(noted.is_over);
  UNSCOPED_INFO("three tasks, and the body itself: run() spawns it as the first task of its scope");
  CHECK(noted.tasks == 4);
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 a body that goes on after its tasks have ended keeps the scope open", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, std::string& log) {
      tasks.spawn(note_after(context, 0, log, 'a', {}));
      co_await pass_turns(context, 2);
      tasks.spawn(note_after(context, 1, log, 'b', {}));
      co_await pass_turns(context, 3);
      log += 'c';
    }
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, log));
      CHECK(log == "abc");
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 no part of a task outlives run, not even a parameter", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, std::string& log) {
      for (int turns = 0; turns < 4; ++turns) {
        tasks.spawn(note_after(context, turns, log, 'x', {}));
      }
      co_return;
    }
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, log));
      UNSCOPED_INFO(
          "a parameter lives in its task's frame: run() returned while such a frame was there");
      CHECK(counted::live() == 0);
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 the body's parameters go when the body ends, as any task's", "[08.5]") {
  struct check {
    static task<> look_later(io_context& context, int& parameters) {
      co_await pass_turns(context, 2);
      parameters = counted::live();
    }
    static task<> body(io_context& context, scope& tasks, int& parameters, counted) {
      tasks.spawn(look_later(context, parameters));
      co_return;
    }
    static task<> run(io_context& context, int& parameters) {
      scope tasks{context};
      task<> first = body(context, tasks, parameters, {});
      co_await tasks.run(std::move(first));
    }
  };
  io_context context;
  int parameters = -1;
  context.run(check::run(context, parameters));
  UNSCOPED_INFO(
      "the body had ended, but its frame was there as long as another task ran: run() spawns the "
      "body like any other task, and does not await it itself");
  CHECK(parameters == 0);
}

TEST_CASE("08.5 a scope whose tasks end at once is left at once", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, std::string& log) {
      tasks.spawn(note_after(context, 0, log, 'x', {}));
      co_return;
    }
    static task<> run(io_context& context, bool& is_over) {
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, log));
      scope empty{context};
      co_await empty.run(do_nothing());
      CHECK(log == "x");
      is_over = true;
    }
  };
  io_context context;
  bool is_over = false;
  UNSCOPED_INFO(
      "every task had ended before the coroutine waited: then no task is left that could resume "
      "it, and it must not suspend (await_ready)");
  CHECK_NOTHROW(context.run(check::run(context, is_over)));
  CHECK(is_over);
}

TEST_CASE("08.5 a scope can be run again", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, int turns, std::string& log) {
      tasks.spawn(note_after(context, turns, log, static_cast<char>('0' + turns), {}));
      co_return;
    }
    static task<> run(io_context& context, std::string& log) {
      scope tasks{context};
      for (const int turns : {2, 0, 1, 0}) {
        co_await tasks.run(body(context, tasks, turns, log));
        UNSCOPED_INFO("run() has ended well, and canceled the scope's own source");
        CHECK_FALSE(tasks.source().is_canceled());
      }
    }
  };
  io_context context;
  std::string log;
  INFO(
      "on_empty() gave a handle that it had given before: continuation_ must be null again when it "
      "is used up (std::exchange). Or, if the assert says \"one run() of a scope at a time\": an "
      "earlier run() did not await all_ended, whose await_resume() notes that the run is over");
  context.run(check::run(context, log));
  CHECK(log == "2010");
}

TEST_CASE("08.5 a scope that was canceled before runs its body, and throws what it throws",
          "[08.5]") {
  struct check {
    static task<> run(io_context& context, std::string& log) {
      scope tasks{context};
      tasks.cancel();
      co_await tasks.run(note_after(context, 0, log, 'x', {}));
      UNSCOPED_INFO(
          "the scope was canceled before, and the body did not run: a cancel ends the waits of its "
          "source, and the body still has to tidy up");
      CHECK(log == "x");
      const std::string thrown =
          co_await what_run_throws(tasks, fail_after(context, 0, "the first", {}));
      UNSCOPED_INFO("the scope was canceled before, and the exception of its body is lost");
      CHECK(thrown == "the first");
    }
  };
  io_context context;
  std::string log;
  context.run(check::run(context, log));
}

TEST_CASE("08.5 a task may spawn another while run waits", "[08.5]") {
  struct check {
    static task<> spawn_more(io_context& context, scope& into, std::string& log, int depth) {
      co_await pass_turns(context, 1);
      log += static_cast<char>('0' + depth);
      if (depth > 0) into.spawn(spawn_more(context, into, log, depth - 1));
    }
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      co_await tasks.run(spawn_more(context, tasks, log, 5));
      UNSCOPED_INFO("run() returned while a task of the scope was still there");
      CHECK(log == "543210");
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 an exception cancels the other tasks, and run throws it", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, int fd, int& canceled) {
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      tasks.spawn(fail_after(context, 2, "the first", {}));
      tasks.spawn(fail_after(context, 3, "the second", {}));
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      co_return;
    }
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      const std::string thrown =
          co_await what_run_throws(tasks, body(context, tasks, fd, canceled));
      UNSCOPED_INFO("the first exception that escaped a task is what run() throws");
      CHECK(thrown == "the first");
      UNSCOPED_INFO("the siblings would wait in vain: an exception ends them");
      CHECK(canceled == 2);
      const std::string again = co_await what_run_throws(tasks, do_nothing());
      UNSCOPED_INFO("the exception is thrown once");
      CHECK(again == "nothing");
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 an exception does not cancel tasks outside the scope", "[08.5]") {
  struct check {
    static task<> fail_inside(io_context& context, std::string& thrown) {
      scope tasks{context};
      thrown = co_await what_run_throws(tasks, fail_after(context, 1, "inside", {}));
    }
    static task<> tick(io_context& context, int& error) {
      const io_result ended = co_await uring::timeout_op(context, 30ms);
      error = ended.error();
    }
  };
  io_context context;
  std::string thrown;
  int error = 0;
  context.spawn(check::tick(context, error));
  context.spawn(check::fail_inside(context, thrown));
  context.run();
  CHECK(thrown == "inside");
  UNSCOPED_INFO(
      "a timer outside the scope was canceled: an exception ends the tasks of its own scope, "
      "through source_, and not the whole queue");
  CHECK(error == ETIME);
  CHECK_FALSE(context.is_stopping());
}

TEST_CASE("08.5 a task that fails before it waits cancels those spawned after it", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, int fd, int& canceled) {
      tasks.spawn(fail_after(context, 0, "at once", {}));
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      co_return;
    }
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      const std::string thrown =
          co_await what_run_throws(tasks, body(context, tasks, fd, canceled));
      CHECK(thrown == "at once");
      UNSCOPED_INFO("a task that uses the scope's source after the failure must end at once");
      CHECK(canceled == 1);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
}

TEST_CASE("08.5 an exception between two spawns ends the task that was spawned before", "[08.5]") {
  struct check {
    static task<> body(scope& tasks, std::string what_tasks_use, int fd, int& canceled, counted) {
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      if (!what_tasks_use.empty()) throw std::runtime_error{what_tasks_use};
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      co_return;
    }
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      const std::string thrown =
          co_await what_run_throws(tasks, body(tasks, "between two", fd, canceled, {}));
      CHECK(thrown == "between two");
      UNSCOPED_INFO(
          "run() must wait for the task that was spawned, though the body has thrown: it refers to "
          "the frame around the scope");
      CHECK(canceled == 1);
      CHECK(tasks.size() == 0);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 cancel ends every task of the scope, and of the scopes below it", "[08.5]") {
  struct check {
    static task<> listen_to_all(scope& tasks, int fd, int& canceled) {
      for (int i = 0; i < 5; ++i) tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      co_return;
    }
    static task<> inner(io_context& context, int fd, uring::cancel_source& above, int& canceled) {
      scope tasks{context, uring::child_of{above}};
      co_await tasks.run(listen_to_all(tasks, fd, canceled));
    }
    static task<> outer(io_context& context, scope& tasks, int fd, int& canceled) {
      for (int i = 0; i < 3; ++i) tasks.spawn(inner(context, fd, tasks.source(), canceled));
      tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      tasks.cancel();
      co_return;
    }
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      co_await tasks.run(outer(context, tasks, fd, canceled));
      CHECK(canceled == 16);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 stop() of the context ends a scope's tasks, and then its owner", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, int fd, int& canceled) {
      for (int i = 0; i < 10; ++i) tasks.spawn(listen(fd, tasks.source(), canceled, {}));
      context.stop();
      co_return;
    }
    static task<> run(io_context& context, int fd, int& canceled) {
      scope tasks{context};
      co_await tasks.run(body(context, tasks, fd, canceled));
    }
  };
  io_context context;
  const silent_socket silent;
  int canceled = 0;
  context.run(check::run(context, silent.fd(), canceled));
  CHECK(canceled == 10);
}

TEST_CASE("08.5 a hundred thousand tasks come and go", "[08.5]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, std::string& log) {
      for (int i = 0; i < 100'000; ++i) tasks.spawn(note_after(context, i % 2, log, 'x', {}));
      co_return;
    }
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, log));
      CHECK(log.size() == 100'000);
    }
  };
  io_context context;
  context.run(check::run(context));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 a hundred thousand scopes, each in the one before, need no deep stack", "[08.5]") {
  struct check {
    static task<> run_in_run(io_context& context, int depth, stack_use& stack) {
      stack.look();
      if (depth == 0) co_await pass_turns(context, 1);
      if (depth == 0) co_return;
      scope tasks{context};
      co_await tasks.run(run_in_run(context, depth - 1, stack));
      stack.look();
    }
    static task<> spawn_inside(io_context& context, scope& above, int depth, stack_use& stack) {
      stack.look();
      if (depth > 0) above.spawn(run_one(context, depth, stack));
      co_return;
    }
    static task<> run_one(io_context& context, int depth, stack_use& stack) {
      scope tasks{context};
      co_await tasks.run(spawn_inside(context, tasks, depth - 1, stack));
      stack.look();
    }
  };
  io_context context;
  stack_use stack;
  for (const int depth :
       {5'000, 100'000}) {  // a stack that grows too much at 5,000 overflows at 100,000
    context.run(check::run_in_run(context, depth, stack));
    UNSCOPED_INFO(
        "run() in run(): the ends are calls in calls. on_empty() does not resume the coroutine "
        "that waits, it returns its handle");
    REQUIRE(stack.bytes() < stack_use::little);
    context.run(check::run_one(context, depth, stack));
    UNSCOPED_INFO("spawn() in a body: starts or ends are calls in calls");
    REQUIRE(stack.bytes() < stack_use::little);
  }
}

#ifndef NDEBUG
TEST_CASE("08 a spawn outside run is refused with a sentence", "[08]") {
  const course_test::ending_process child = course_test::run_to_its_end([] {
    io_context context;
    scope tasks{context};
    tasks.spawn(do_nothing());
  });
  UNSCOPED_INFO("nobody would wait for this task");
  CHECK(child.status == course_test::killed_by(SIGABRT));
  CHECK_THAT(child.stderr_text, Catch::Matchers::ContainsSubstring("while run() is awaited"));
}
#endif

TEST_CASE(
    "08 tasks of a scope that nothing can wake are destroyed before the objects they refer to",
    "[08]") {
  io_context context;
  context.spawn(own_what_tasks_use(context, {}));
  UNSCOPED_INFO("run() should say what is wrong, and not an assert of the scope");
  CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("in flight"));
  CHECK(counted::live() == 0);
}

TEST_CASE("08 scopes in scopes are destroyed from the inside when run gives up", "[08]") {
  struct check {
    static task<> body(io_context& context, scope& tasks, std::string& log, int depth) {
      const last_words local{log};
      for (int i = 0; i < 2; ++i) {
        if (depth > 0) tasks.spawn(nest(context, log, depth - 1, {}));
      }
      co_await std::suspend_always{};
    }
    static task<> nest(io_context& context, std::string& above, int depth, counted) {
      const last_words local{above};
      std::string log;
      scope tasks{context};
      co_await tasks.run(body(context, tasks, log, depth));
    }
  };
  std::string log;
  {
    io_context context;
    context.spawn(check::nest(context, log, 4, {}));
    context.spawn(check::nest(context, log, 4, {}));
    CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("in flight"));
    CHECK(counted::live() == 0);
  }
  UNSCOPED_INFO("each frame was destroyed once");
  CHECK(log == "a rather long farewella rather long farewell");
}
