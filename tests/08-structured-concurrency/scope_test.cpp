// SPDX-License-Identifier: MIT
// Task 08.5: a scope counts its tasks, ends them together, and is left last.
#include "scope.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <stdexcept>
#include <string>
#include <utility>

#include "bounded_io.hpp"
#include "counted.hpp"
#include "ending_process.hpp"
#include "operations.hpp"
#include "silent_socket.hpp"
#include "turns.hpp"

using namespace std::chrono_literals;
using course_test::counted;
using course_test::pass_turns;
using course_test::silent_socket;
using uring::io_context;
using uring::io_result;
using uring::scope;
using uring::task;

namespace {

task<> note_after(io_context& context, int turns, std::string& log, char what, counted) {
  co_await pass_turns(context, turns);
  log += what;
}

task<> listen(io_context& context, int fd, uring::cancel_source& source, int& canceled, counted) {
  std::array<std::byte, 16> buffer;
  const io_result received =
      co_await uring::cancelable(uring::recv_op(context, fd, buffer), source);
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

task<> own_what_tasks_use(io_context& context, counted) {
  std::string log;
  scope tasks{context};
  for (int i = 0; i < 10; ++i) tasks.spawn(wait_for_nobody(log));
  co_await tasks.join();
}

task<std::string> what_join_throws(scope& joined) {
  try {
    co_await joined.join();
  } catch (const std::runtime_error& error) {
    co_return error.what();
  }
  co_return "nothing";
}

}  // namespace

TEST_CASE("08.5 join waits for every task", "[08.5]") {
  struct check {
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      tasks.spawn(note_after(context, 3, log, 'c', {}));
      tasks.spawn(note_after(context, 1, log, 'a', {}));
      tasks.spawn(note_after(context, 2, log, 'b', {}));
      UNSCOPED_INFO("each task counts from its start to its end");
      CHECK(tasks.size() == 3);
      co_await tasks.join();
      UNSCOPED_INFO("join went on before the last task had ended");
      CHECK(log == "abc");
      CHECK(tasks.size() == 0);
    }
  };
  io_context context;
  UNSCOPED_INFO("the last task to end resumes who joins; if nobody does, every task waits");
  context.run(check::run(context));
  CHECK(counted::live() == 0);
}

TEST_CASE("08.5 nothing of a task outlives the join, its parameters neither", "[08.5]") {
  struct check {
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      for (int turns = 0; turns < 4; ++turns) {
        tasks.spawn(note_after(context, turns, log, 'x', {}));
      }
      co_await tasks.join();
      UNSCOPED_INFO(
          "a parameter lives in the task's frame until that is destroyed: destroy it before the "
          "joiner goes on");
      CHECK(counted::live() == 0);
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 a scope whose tasks have all ended is joined at once", "[08.5]") {
  struct check {
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      tasks.spawn(note_after(context, 0, log, 'x', {}));
      CHECK(tasks.size() == 0);
      UNSCOPED_INFO("nobody is left who could resume the joiner: it must not suspend");
      co_await tasks.join();
      scope empty{context};
      co_await empty.join();
      CHECK(log == "x");
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 a task may spawn another while the scope is being joined", "[08.5]") {
  struct check {
    static task<> spawn_more(io_context& context, scope& into, std::string& log, int depth) {
      co_await pass_turns(context, 1);
      log += static_cast<char>('0' + depth);
      if (depth > 0) into.spawn(spawn_more(context, into, log, depth - 1));
    }
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      tasks.spawn(spawn_more(context, tasks, log, 5));
      co_await tasks.join();
      UNSCOPED_INFO("join went on while a task of the scope was still there");
      CHECK(log == "543210");
    }
  };
  io_context context;
  context.run(check::run(context));
}

TEST_CASE("08.5 an exception cancels the other tasks, and join throws it", "[08.5]") {
  struct check {
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      tasks.spawn(listen(context, fd, tasks.source(), canceled, {}));
      tasks.spawn(fail_after(context, 2, "the first", {}));
      tasks.spawn(fail_after(context, 3, "the second", {}));
      tasks.spawn(listen(context, fd, tasks.source(), canceled, {}));
      const std::string thrown = co_await what_join_throws(tasks);
      UNSCOPED_INFO("the first exception that escaped a task is what join throws");
      CHECK(thrown == "the first");
      UNSCOPED_INFO("the siblings wait for nothing: an exception ends them");
      CHECK(canceled == 2);
      const std::string again = co_await what_join_throws(tasks);
      UNSCOPED_INFO("thrown once, and then over");
      CHECK(again == "nothing");
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
  CHECK(counted::live() == 0);
  CHECK(context.in_flight() == 0);
}

TEST_CASE("08.5 a task that fails before it waits cancels those spawned after it", "[08.5]") {
  struct check {
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope tasks{context};
      tasks.spawn(fail_after(context, 0, "at once", {}));
      tasks.spawn(listen(context, fd, tasks.source(), canceled, {}));
      const std::string thrown = co_await what_join_throws(tasks);
      CHECK(thrown == "at once");
      UNSCOPED_INFO("what the scope's source was given to after the failure must end at once");
      CHECK(canceled == 1);
    }
  };
  io_context context;
  const silent_socket silent;
  context.run(check::run(context, silent.fd()));
}

TEST_CASE("08.5 cancel ends every task of the scope, and of the scopes below it", "[08.5]") {
  struct check {
    static task<> inner(io_context& context, int fd, uring::cancel_source& above, int& canceled) {
      scope tasks{context, uring::child_of{above}};
      for (int i = 0; i < 5; ++i) tasks.spawn(listen(context, fd, tasks.source(), canceled, {}));
      co_await tasks.join();
    }
    static task<> run(io_context& context, int fd) {
      int canceled = 0;
      scope outer{context};
      for (int i = 0; i < 3; ++i) {
        outer.spawn(inner(context, fd, outer.source(), canceled));
      }
      outer.spawn(listen(context, fd, outer.source(), canceled, {}));
      outer.cancel();
      co_await outer.join();
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
    static task<> run(io_context& context, int fd, bool& joined) {
      int canceled = 0;
      scope tasks{context};
      for (int i = 0; i < 10; ++i) tasks.spawn(listen(context, fd, tasks.source(), canceled, {}));
      context.stop();
      co_await tasks.join();
      joined = canceled == 10;
    }
  };
  io_context context;
  const silent_socket silent;
  bool joined = false;
  context.run(check::run(context, silent.fd(), joined));
  CHECK(joined);
}

TEST_CASE("08.5 a hundred thousand tasks come and go", "[08.5]") {
  struct check {
    static task<> run(io_context& context) {
      std::string log;
      scope tasks{context};
      for (int i = 0; i < 100'000; ++i) {
        tasks.spawn(note_after(context, i % 2, log, 'x', {}));
      }
      co_await tasks.join();
      CHECK(log.size() == 100'000);
    }
  };
  io_context context;
  context.run(check::run(context));
  CHECK(counted::live() == 0);
}

#ifndef NDEBUG
TEST_CASE("08.5 a scope that is left before its tasks have ended says so", "[08.5]") {
  struct check {
    static task<> leave(io_context& context) {
      std::string log;
      scope tasks{context};
      tasks.spawn(note_after(context, 1, log, 'x', {}));
      co_return;
    }
  };
  const course_test::ending_process child = course_test::run_to_its_end([] {
    io_context context;
    context.run(check::leave(context));
  });
  UNSCOPED_INFO("its tasks refer to what is gone: nothing good can follow");
  CHECK(child.status == course_test::killed_by(SIGABRT));
  CHECK_THAT(child.stderr_text, Catch::Matchers::ContainsSubstring("co_await join() first"));
}
#endif

TEST_CASE("08 tasks of a scope that nothing can wake go before what they refer to", "[08]") {
  io_context context;
  context.spawn(own_what_tasks_use(context, {}));
  UNSCOPED_INFO("run() should say what is wrong, and no assert of the scope's instead");
  CHECK_THROWS_WITH(context.run(), Catch::Matchers::ContainsSubstring("in flight"));
  CHECK(counted::live() == 0);
}
