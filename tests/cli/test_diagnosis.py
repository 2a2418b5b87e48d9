# SPDX-License-Identifier: MIT
"""What is read out of the output of a red test, as tests/support/test_main.cpp prints it."""

from __future__ import annotations

import pytest
from course_tool.diagnosis import Finding, SanitizerReport, Todo, diagnose, shorten
from course_tool.paths import ROOT
from live_course import dedent

BAR = "-" * 79
ENDS = "=" * 79


def output(body: str, before: str = "") -> str:
    """A red run of one case, as CTest hands it on."""
    title = f"{BAR}\n01.1 a case\n{BAR}\n"
    return f"{before}{title}{dedent(body)}\n{ENDS}\ntest cases: 1 | 0 passed | 1 failed\n"


def test_each_failed_assertion_is_a_finding() -> None:
    found = diagnose(
        output(f"""
            {ROOT}/tests/01-x/a_test.cpp:7: FAILED:
              CHECK( 1 + 1 == 3 )
            with expansion:
              2 == 3
            with message:
              the usual cause: you forgot
              and a second line

            {ROOT}/tests/01-x/a_test.cpp:8: FAILED:
              CHECK_FALSE( true )
            with expansion:
              !true

            {ROOT}/tests/01-x/a_test.cpp:10: FAILED:
            explicitly with message:
              recv returned, but nothing was written
        """)
    )
    message = "the usual cause: you forgot\nand a second line"
    assert found.findings == (
        Finding("tests/01-x/a_test.cpp:7", "CHECK( 1 + 1 == 3 )", "2 == 3", "", message, ""),
        Finding("tests/01-x/a_test.cpp:8", "CHECK_FALSE( true )", "!true", "", "", ""),
        Finding(
            "tests/01-x/a_test.cpp:10", "", "", "", "recv returned, but nothing was written", ""
        ),
    )
    assert (found.todo, found.signal, found.children, found.tail) == (None, None, (), ())


def test_sections_do_not_run_into_each_other() -> None:
    found = diagnose(
        output(f"""
            /elsewhere/t.cpp:17: FAILED:
            explicitly with message:
              first

            {BAR}
            01.1 a case
              in a section
            {BAR}
            /elsewhere/t.cpp:19: FAILED:
              CHECK( second )
            with expansion:
              false
        """)
    )
    assert [finding.message for finding in found.findings] == ["first", ""]
    assert [finding.where for finding in found.findings] == [
        "/elsewhere/t.cpp:17",
        "/elsewhere/t.cpp:19",
    ]
    assert found.findings[1].expression == "CHECK( second )"


def test_exceptions_that_came_and_that_did_not_come() -> None:
    came, missing = diagnose(
        output("""
            /t.cpp:18: FAILED:
              CHECK_NOTHROW( go() )
            due to unexpected exception with message:
              got 0 of 6 bytes
              then nothing more

            /t.cpp:19: FAILED:
              CHECK_THROWS_AS( 1, std::runtime_error )
            because no exception was thrown where one was expected:
        """)
    ).findings
    assert came.exception == "got 0 of 6 bytes\nthen nothing more"
    assert missing.reason == "because no exception was thrown where one was expected"
    assert missing.expression == "CHECK_THROWS_AS( 1, std::runtime_error )"


def test_the_authors_message_follows_an_exception_that_did_not_come_without_a_label() -> None:
    first, second = diagnose(
        output("""
            /t.cpp:7: FAILED:
              CHECK_THROWS_MATCHES( 1, std::system_error, Message("bind 127.0.0.1:33959") )
            because no exception was thrown where one was expected:
              bind() fails here: check its result

            /t.cpp:10: FAILED:
              CHECK_THROWS_AS( 1, std::system_error )
            because no exception was thrown where one was expected:
              one
              two
        """)
    ).findings
    assert first.message == "bind() fails here: check its result"
    assert first.reason == "because no exception was thrown where one was expected"
    assert first.expression.startswith("CHECK_THROWS_MATCHES( 1, std::system_error")
    assert second.message == "one\ntwo"


TODO = (
    f"TODO 01.2: Send all of it\n  write it at {ROOT}/chapters/01-x/echo.hpp:33\n"
    "  read     docs/chapters/01-x.md\n"
)


@pytest.mark.parametrize(
    "text",
    [
        output("/t.cpp:1: FAILED:\ndue to unexpected exception with message:\n  TODO 01.2", TODO),
        output("", "terminate called after throwing\n" + TODO),
        output("/t.cpp:1: FAILED:\n  CHECK( x )\n")
        + "01-server (pid 5) ended by itself: it exited with status 1; its stderr:\n"
        + "".join(f"    {line}\n" for line in TODO.splitlines()),
    ],
    ids=["thrown", "in a noexcept function", "in a server"],
)
def test_an_unwritten_task_is_found_wherever_it_was_met(text: str) -> None:
    assert diagnose(text).todo == Todo(
        "01.2", "Send all of it", "chapters/01-x/echo.hpp:33", "docs/chapters/01-x.md"
    )


@pytest.mark.parametrize(
    ("before", "uncaught"),
    [
        ("terminate called after throwing an instance of 'oops'\n", "oops"),
        (
            "terminate called after throwing an instance of 'std::runtime_error'\n"
            f"  what():  no {ROOT}/file\n",
            "std::runtime_error: no file",
        ),
        (
            "terminate called after throwing an instance of 'a::(anonymous namespace)::oops'\n"
            "  what():  epoll_ctl: EBADF\n",
            "epoll_ctl: EBADF",
        ),
        ("01-server (pid 5) ended by itself: it was killed by SIGABRT; its stderr:\n"
         "    terminate called after throwing an instance of 'oops'\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_an_exception_that_ended_the_test_program_is_found(
    before: str, uncaught: str | None
) -> None:
    assert diagnose(output("/t.cpp:1: FAILED:\n  CHECK( x )\n", before)).uncaught == uncaught


@pytest.mark.parametrize(
    ("printed", "assertion"),
    [
        (f"08-cases: {ROOT}/solutions/08-x/join.hpp:24: void a::b(int): "
         "Assertion `left_ > 0 && \"more arrivals than were waited for\"' failed.",
         "solutions/08-x/join.hpp:24: more arrivals than were waited for"),
        ("01-cases: a.cpp:7: int main(): Assertion `left == 0' failed.", "a.cpp:7: left == 0"),
        ("/usr/include/c++/12/span:279: constexpr T& std::span<T>::operator[](size_t) const: "
         "Assertion '__idx < size()' failed.", "/usr/include/c++/12/span:279: __idx < size()"),
        ("it failed.", None),
    ],
)  # fmt: skip
def test_an_assertion_that_ended_the_test_program_is_found(
    printed: str, assertion: str | None
) -> None:
    before = f"about to fall over\n{printed}\n"
    assert diagnose(output("/t.cpp:1: FAILED:\n  CHECK( x )\n", before)).assertion == assertion


def test_a_signal_is_said_with_what_it_means() -> None:
    found = diagnose(
        output(
            """
            /t.cpp:62: FAILED:
              {Unknown expression after the reported line}
            due to a fatal error condition:
              SIGPIPE was raised: pass MSG_NOSIGNAL to send()
              SIGSEGV - Segmentation violation signal
            """,
            "sanitizers say nothing\n",
        )
    )
    assert found.signal == "SIGSEGV: it touched memory that is not its own"
    [finding] = found.findings
    assert finding.expression == ""
    assert finding.message == "SIGPIPE was raised: pass MSG_NOSIGNAL to send()"
    assert found.tail == ("sanitizers say nothing",)


def test_reports_on_children_are_kept_apart() -> None:
    found = diagnose(
        output("""
            /t.cpp:62: FAILED:
              CHECK( server.stop() == exited(0) )
            with expansion:
              is still running == exited with status 0

            01-server (pid 17) ended by itself: it was killed by signal 11; its stderr:
                first line
                second line
            01-client (pid 18) is running; it printed nothing on stderr
        """)
    )
    server, client = found.children
    assert server.stderr == ("first line", "second line") and server.tells
    assert client.state == "01-client (pid 18) is running" and not client.tells
    assert found.findings[0].expansion == "is still running == exited with status 0"
    assert found.tail == ()


def test_without_a_report_there_is_what_was_printed() -> None:
    printed = [f"line {number}" for number in range(40)]
    found = diagnose("\n".join(printed))
    assert found.findings == () and found.tail == tuple(printed[-12:])
    assert diagnose("").tail == ()


def test_of_a_sanitizers_report_it_is_what_is_about_the_course() -> None:
    report = f"""
        before
        {"=" * 65}
        ==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1 at pc 0x2
        READ of size 1 at 0x1 thread T1
            #0 0x2 in blocking::send_all(int, std::span<char>) {ROOT}/chapters/01-x/echo.hpp:33:42
            #1 0x3 in std::__invoke_impl<a, b>(std::__invoke_other) /usr/include/c++/12/invoke.h:61
            #2 0x4 in operator new[](unsigned long) (/tmp/build/01-tests+0x3)

        SUMMARY: AddressSanitizer: heap-use-after-free
        Shadow bytes around the buggy address:
    """
    wanted = SanitizerReport(
        "ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
        ("chapters/01-x/echo.hpp:33:42 in blocking::send_all",),
    )
    assert diagnose(dedent(report)).sanitizer == wanted
    in_server = "01-server (pid 5) ended by itself: it was killed by signal 6; its stderr:\n"
    in_server += "".join(f"    {line}\n" for line in dedent(report).splitlines())
    assert diagnose(output("/t.cpp:1: FAILED:\n  CHECK( x )\n") + in_server).sanitizer == wanted


def test_the_other_sanitizers_are_understood_too() -> None:
    race = dedent(f"""
        WARNING: ThreadSanitizer: data race (pid=7)
          Write of size 4 at 0x7b by thread T1:
            #0 std::thread::_Invoker /usr/include/c++/12/bits/std_thread.h:258:20 (01-tests+0x1)
            #1 serve(int) {ROOT}/chapters/01-x/echo.hpp:9:3 (01-tests+0x12)
    """)
    assert diagnose(race).sanitizer == SanitizerReport(
        "WARNING: ThreadSanitizer: data race", ("chapters/01-x/echo.hpp:9:3 in serve",)
    )
    overflow = f"{ROOT}/chapters/01-x/echo.hpp:9:3: runtime error: signed integer overflow: 1 + 2\n"
    assert diagnose(overflow).sanitizer == SanitizerReport(
        "chapters/01-x/echo.hpp:9:3: runtime error: signed integer overflow: 1 + 2", ()
    )
    assert diagnose("no sanitizer, and no error").sanitizer is None


def test_of_a_race_the_student_reads_the_own_side_first() -> None:
    race = dedent(f"""
        WARNING: ThreadSanitizer: data race (pid=7)
          Write of size 8 at 0x7b by main thread:
            #0 operator delete(void*) <null> (12-cases)
            #1 task<void>::~task() {ROOT}/solutions/06-task/task.hpp:51:24 (12-cases)
            #2 io_context::run() {ROOT}/solutions/07-awaitable-io/io_context.hpp:109:8 (12-cases)
            #3 way_home::on_message(message const&) {ROOT}/chapters/12-x/pool.hpp:65:49 (12-cases)

          Previous read of size 8 at 0x7b by thread T2:
            #0 way_home::await_suspend(handle) {ROOT}/chapters/12-x/pool.hpp:54:7 (12-cases)
            #1 thread_pool::work() {ROOT}/chapters/12-x/thread_pool.hpp:98:10 (12-cases)

          Location is heap block of size 264 at 0x7a allocated by main thread:
            #0 operator new(unsigned long) <null> (12-cases)
            #1 look_around(pool&) {ROOT}/chapters/12-x/look.hpp:44:19 (12-cases)
    """)
    found = diagnose(race).sanitizer
    assert found is not None
    assert found.frames == (
        "chapters/12-x/pool.hpp:54:7 in way_home::await_suspend",
        "chapters/12-x/pool.hpp:65:49 in way_home::on_message",
        "solutions/06-task/task.hpp:51:24 in task<void>::~task",
    )


def test_the_clones_folder_is_left_out_of_paths() -> None:
    assert shorten(f"see {ROOT}/a.hpp:3 and /b.hpp") == "see a.hpp:3 and /b.hpp"
