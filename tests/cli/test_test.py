# SPDX-License-Identifier: MIT
"""./course test: what a student sees of green, red, crashing, hanging and broken chapters."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from conftest import alive_with
from course_tool import ctests, reporting
from course_tool.chapters import all_chapters
from course_tool.diagnosis import diagnose
from course_tool.errors import CourseError
from course_tool.groups import Group, targets_of
from course_tool.testing import find_request
from course_tool.verify.cases import cases_in
from live_course import LiveCourse, flat, wait_until


def test_a_starter_is_red_with_one_line_a_task(live: LiveCourse) -> None:
    done = live.run("test", "01")
    assert done.code == 1
    assert "01.1 not written yet: write it at chapters/01-first/work.hpp:6" in done.out
    places = "chapters/01-first/more.hpp:5, 10"
    assert f"01.2 not written yet: write it at {places}" in flat(done.out)
    assert "The tests of the whole chapter wait until these are green." in done.out
    assert "01.1 Add 0 of 2 red: not written yet" in flat(done.out)
    assert "Catch2" not in done.out and "Randomness" not in done.out
    assert "contract: one byte" not in done.out and "greet" not in done.out
    assert live.state()["records"]["01.1"]["result"] == "todo"


def test_a_red_test_says_its_own_diagnosis_first_and_where_to_read(live: LiveCourse) -> None:
    live.solve()
    live.say("01.1: red")
    done = live.run("test", "01")
    assert done.code == 1
    lines = [line.strip() for line in done.out.splitlines()]
    name = lines.index("01.1 adds")
    assert lines[name + 1] == (
        "the carry was added twice: clear it before the next digit comes, "
        "and not after the last one"
    )
    assert lines[name + 2 : name + 5] == [
        "CHECK( add(2, 2) == 4 )", "it was: 5 == 4", "tests/case.py:7",
    ]  # fmt: skip
    assert "01-server (pid 17) is running; its stderr: it said this" in flat(done.out)
    assert "Read: docs/chapters/01-first.md#task-01-1" in done.out
    assert "./course hint 01.1" in done.out
    assert "01.1 Add 1 of 2 red" in flat(done.out) and '"yes" 1 of 1 green' in flat(done.out)


def test_a_task_that_needs_another_ones_code_waits_for_it(live: LiveCourse) -> None:
    live.solve("01.2", "01.3")
    live.say("01.3: waits")
    out = flat(live.run("test", "01").out)
    assert "waits for 01.1, which is not written yet: write it at chapters/01-first/work.hpp" in out
    assert "01.3 Subtract 0 of 1 red: waits for 01.1" in out


def test_only_the_first_two_findings_are_shown_unless_verbose(live: LiveCourse) -> None:
    live.solve()
    live.say("01.3: many")
    brief = live.run("test", "01", "-t", "01.3").out
    assert "1 == 0" in brief and "2 == 0" not in brief and "and 2 more; --verbose" in brief
    everything = live.run("test", "01", "-t", "01.3", "--verbose").out
    assert "3 == 0" in everything and "more; --verbose" not in everything


def test_a_crash_is_said_in_words_with_the_last_that_was_printed(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: crash")
    out = flat(live.run("test", "01").out)
    assert "01.2 says yes It crashed: ended by SIGSEGV: it touched memory" in out
    assert "It printed: about to fall over" in out
    assert "It crashed: ./course test 01 --sanitize names the line" in out
    assert "Unknown expression" not in out


def test_what_failed_is_said_however_much_was_printed_before(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: loud")
    out = live.run("test", "01").out
    assert "CHECK( add(2, 2) == 4 )" in out
    assert len(out) < 5_000


def test_a_red_test_never_stands_there_without_a_word(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: mute")
    out = flat(live.run("test", "01").out)
    assert "01.2 says yes Its program ended before the test did. Read:" in out


def test_a_crash_behind_other_findings_needs_no_word_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    crash = diagnose(
        f"{'-' * 79}\n/t.cpp:7: FAILED:\n  {{Unknown expression after the reported line}}\n"
        "due to a fatal error condition:\n  SIGABRT - Abort (abnormal termination) signal\n"
    )
    crashed = ctests.TestResult("01.1 adds", "crashed", 0.1, "", ("01", "01.1"))
    reporting._show_first_sentence(crashed, crash)
    said = capsys.readouterr().out
    assert "It crashed: ended by SIGABRT" in said and "/t.cpp:7" in said
    assert "without a word" not in said
    failed = ctests.TestResult("01.1 adds", "failed", 0.1, "", ("01", "01.1"))
    reporting._show_first_sentence(failed, diagnose("/t.cpp:7: FAILED:\n\n"))
    assert "red, without a word" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("terminate called after throwing an instance of 'oops'\n  what():  on purpose\n",
         "It crashed by an exception that nobody caught: oops: on purpose"),
        ("01-cases: a.hpp:7: void f(): Assertion `handle && \"a null handle\"' failed.\n",
         "It crashed at an assertion: a.hpp:7: a null handle"),
    ],
    ids=["exception", "assertion"],
)  # fmt: skip
def test_what_ended_the_program_is_said_first(
    printed: str, cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = "\n".join(f"/t.cpp:{line}: FAILED:\n  CHECK( x )\n" for line in (1, 2, 3))
    tests = (
        ctests.TestResult("01.1 adds", "failed", 0.1, findings, ("01", "01.1")),
        ctests.TestResult("01.1 adds large numbers", "crashed", 0.1, printed, ("01", "01.1")),
    )
    reporting._show_tests(Group("01.1", "Add", tests), "student", reporting.FINDINGS_SHOWN)
    said = capsys.readouterr().out
    assert said.index(cause) < said.index("01.1 adds\n")
    assert "/t.cpp:1" in said and "/t.cpp:2" not in said and "and 2 more" in said


def test_a_test_that_hangs_is_said_in_words(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: hang")
    out = flat(live.run("test", "01").out)
    assert re.search(r"Still running after \d+ s, so it was stopped", out)
    assert "waiting for a byte" in out


def test_a_green_chapter_runs_the_contract_and_says_what_is_next(live: LiveCourse) -> None:
    live.solve()
    done = live.run("test", "01")
    assert done.code == 0
    assert "contract The echo contract 1 of 1 green" in flat(done.out)
    assert "Chapter 01 is green" in done.out and "./course bench 01" in done.out
    records = live.state()["records"]
    assert {each["result"] for each in records.values()} == {"green"}
    assert set(records) == {"01.1", "01.2", "01.3", "01 contract"}


def test_a_red_test_of_the_whole_chapter_makes_it_red(live: LiveCourse) -> None:
    live.solve()
    live.say("01 the: red")
    done = live.run("test", "01")
    assert done.code == 1
    out = flat(done.out)
    assert "01 the programs greet the carry was added twice" in out
    assert "whole The chapter as a whole 0 of 1 red" in out
    assert "contract The echo contract 1 of 1 green" in out
    assert "Chapter 01 is green" not in out
    assert live.state()["records"]["01 contract"]["result"] == "red", "for ./course status"


@pytest.mark.reads_course
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("  SIGABRT - Abort (abnormal termination) signal\n", True),
        ("free(): invalid pointer\n  SIGABRT - Abort (abnormal termination) signal\n", True),
        ("01-server (pid 7) was killed by SIGSEGV; it printed nothing on stderr\n", True),
        ("terminate called after throwing an instance of 'oops'\n", False),
        ("  CHECK( x )\n", False),
    ],
)
def test_a_crash_names_the_sanitizer_and_nothing_else_does(
    capsys: pytest.CaptureFixture[str], said: str, told: bool
) -> None:
    output = f"{'-' * 79}\n/t.cpp:7: FAILED:\n{said}{'=' * 79}\n"
    group = Group("01.1", "Add", (ctests.TestResult("01.1 adds", "failed", 0.1, output, ()),))
    chapter = all_chapters()[0]
    reporting.show_red(group, chapter, "student", verbose=False)
    assert ("./course test 01 --sanitize" in flat(capsys.readouterr().out)) == told
    reporting.show_red(group, chapter, "reference", verbose=False)
    assert ("./course test 01 --solution --sanitize" in flat(capsys.readouterr().out)) == told
    reporting.show_red(group, chapter, "student-asan", verbose=False)
    assert "--sanitize" not in capsys.readouterr().out


@pytest.mark.reads_course
def test_every_test_of_a_chapter_belongs_to_a_task_or_to_the_whole() -> None:
    for chapter in all_chapters():
        tasks = {task.id for task in chapter.tasks}
        for file in chapter.tests.glob("*_test.cpp"):
            for case in cases_in(file.read_text()):
                first = case.title.split(" ")[0]
                assert first in {*tasks, chapter.number}, case.title


@pytest.mark.reads_course
def test_one_task_builds_its_cases_and_what_they_run() -> None:
    sixth = next(each for each in all_chapters() if each.number == "06")
    programs = {f"06-{program.name}" for program in sixth.programs}
    assert targets_of(sixth, sixth.tasks[1]) == ["06-cases"]
    assert programs < set(targets_of(sixth))


def test_a_red_contract_makes_the_chapter_red(live: LiveCourse) -> None:
    live.solve()
    live.say("01 contract: red")
    done = live.run("test", "01")
    assert done.code == 1
    assert "01 contract The echo contract" in flat(done.out)
    assert "Read: docs/reference/servers.md" in done.out


def test_one_task_alone(live: LiveCourse) -> None:
    live.solve("01.2")
    done = live.run("test", "1", "-t", "01.2")
    assert done.code == 0
    assert "Task 01.2 is green" in done.out and "01.1" not in done.out
    assert not (live.root / "build" / "student" / "bin" / "01-server").exists(), "no case runs it"
    assert set(live.state()["records"]) == {"01.2"}


def test_a_skip_is_shown_with_its_reason_and_is_not_green(live: LiveCourse) -> None:
    live.solve()
    live.say("01.2: skip")
    done = live.run("test", "01")
    assert done.code == 1
    assert "skipped: 01.2 says yes: this machine has no ring: EPERM" in done.out
    assert "01.3 Subtract 1 of 1 green" in flat(done.out)


def test_the_solution_is_tested_and_not_remembered(live: LiveCourse) -> None:
    done = live.run("test", "02", "--solution")
    assert done.code == 0, done.out
    assert "The solution of chapter 02 is green" in done.out
    assert not (live.root / ".course" / "state.json").exists()


@pytest.mark.parametrize("flags", [["--sanitize"], ["--carry"], ["--solution", "--sanitize"]])
def test_each_kind_of_build_has_its_own_folder(live: LiveCourse, flags: list[str]) -> None:
    live.solve()
    assert live.run("test", "01", "-t", "1", *flags).code == 0
    folders = {("--sanitize",): "student-asan", ("--carry",): "student-carry"}
    wanted = folders.get(tuple(flags), "asan")
    assert (live.root / "build" / wanted / "build.ninja").is_file()


def test_the_compilers_first_error_is_on_top(live: LiveCourse) -> None:
    live.solve()
    live.say("SYNTAX ERROR")
    done = live.run("test", "01")
    assert done.code == 1
    error = [line for line in done.err.splitlines() if not line.startswith("Building")]
    assert any("chapters/01-first/work.hpp:12:5: error: expected ';'" in line for line in error[:3])
    assert "full log: build/student/" in done.err


def test_the_compilers_warnings_about_the_students_files_are_shown(live: LiveCourse) -> None:
    live.solve()
    log = live.root / "build" / "student" / "course-build.log"
    for _ in range(5):
        live.say("WARNS")
    done = live.run("test", "01")
    assert done.code == 0
    lines = done.out.splitlines()
    shown = [line for line in lines if "unused variable" in line]
    assert shown == [
        f"  chapters/01-first/work.hpp:{number}: unused variable 'x' [-Wunused-variable]"
        for number in shown_numbers(live)
    ]
    assert "  …and 2 more in build/student/course-build.log" in lines
    assert log.read_text().count("warning: unused variable") == 10

    file = live.yours / "work.hpp"
    file.write_text(file.read_text().replace("// WARNS\n", ""))
    assert "The compiler warns" not in live.run("test", "01").out
    assert "unused variable" not in log.read_text(), "written again by a build that went well"


def shown_numbers(live: LiveCourse) -> list[int]:
    lines = (live.yours / "work.hpp").read_text().splitlines()
    return [number for number, line in enumerate(lines, start=1) if "WARNS" in line][:3]


# (arguments, exit code, what is said)
BAD_INPUT = [
    (["99"], 1, "There is no chapter 99. Try 01 to 02."),
    (["09"], 1, "There is no chapter 09. Try 01 to 02."),
    (["abc"], 1, "There is no chapter abc. Try 01 to 02."),
    (["-1"], 2, "No such option"),
    ([], 2, "Missing argument"),
    (["01", "-t", "01.9"], 1, "Chapter 01 has no task 01.9. It has: 01.1 Add 01.2 Say"),
    (["01", "-t", "02.1"], 1, "Chapter 01 has no task 02.1."),
    (["01", "-t", "one"], 1, "Chapter 01 has no task one."),
    (["01", "--solution", "--carry"], 1, "--carry and --solution do not go together"),
    (["01", "--sanitize", "--carry"], 1, "--carry and --sanitize do not go together"),
    (["01", "--sanitize-threads", "--carry"], 1, "--carry and --sanitize-threads do not go"),
    (["01", "--sanitize", "--sanitize-threads"], 1, "--sanitize-threads do not go together"),
    (["01", "--fast"], 2, "No such option"),
]


@pytest.mark.parametrize(("args", "code", "said"), BAD_INPUT)
def test_bad_input(live: LiveCourse, args: list[str], code: int, said: str) -> None:
    done = live.run("test", *args)
    assert done.code == code
    assert said in flat(done.err)
    assert not (live.root / "build").exists()


@pytest.mark.reads_course
def test_threads_are_not_sanitized_beside_a_ring() -> None:
    for chapter in ("06", "12"):  # 12 has rings, and what its threads share is in order without
        assert find_request(chapter, None, "student-tsan", False).preset == "student-tsan"
    with pytest.raises(CourseError, match="does not see the kernel's side of a ring"):
        find_request("05", None, "student-tsan", False)


@pytest.mark.parametrize("folder", ["01-first", "02-second"])
def test_a_missing_chapter_folder_is_said(live: LiveCourse, folder: str) -> None:
    (live.root / "chapters" / folder).rename(live.root / "elsewhere")
    done = live.run("test", "01")
    assert done.code == 1
    said = f"chapters/{folder}/ is missing. `./course reset {folder[:2]}` makes it again"
    assert said in flat(done.err)


@pytest.mark.parametrize("where", ["SLOW", "01.2: hang"])
def test_ctrl_c_leaves_no_process(live: LiveCourse, where: str, tmp_path: Path) -> None:
    live.solve()
    live.say(where)
    script = "compile.py" if where == "SLOW" else "case.py"
    path = str(live.root / ("cmake" if where == "SLOW" else "tests") / script)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tool = live.start("test", "01", env={"TMPDIR": str(scratch)})
    wait_until(lambda: alive_with(path), f"{script} to run")
    tool.send_signal(signal.SIGINT)
    _, err = tool.communicate(timeout=60)
    assert tool.returncode == 130
    assert [line for line in err.splitlines() if "interrupted" in line] == ["course: interrupted"]
    wait_until(lambda: not alive_with(path), "its processes to be gone")
    assert not list(scratch.iterdir())


def test_results_are_shown_even_if_they_cannot_be_remembered(live: LiveCourse) -> None:
    (live.root / ".course").write_text("not a folder")
    done = live.run("test", "01", "-t", "1")
    assert done.code == 1
    assert "01.1 Add 0 of 2 red: not written yet" in flat(done.out)
    assert "Could not write .course" in done.err and "will not know of this run" in flat(done.err)


def test_two_at_once_both_end_well(live: LiveCourse) -> None:
    live.solve()
    tools = [live.start("test", number, "-t", "1") for number in ("01", "01")]
    for tool in tools:
        tool.communicate(timeout=40)
        assert tool.returncode == 0
    assert json.loads((live.root / ".course" / "state.json").read_text())["version"] == 1
