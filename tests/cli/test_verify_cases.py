# SPDX-License-Identifier: MIT
"""Which test programs `./course verify` builds for a mistake, and which programs those run."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import edit
from course_tool.chapters import Chapter, all_chapters
from course_tool.verify import layout, mistakes, starters
from course_tool.verify.cases import Case, cases_in, targets_of_cases

ALONE = """\
int three() { return 3; }

TEST_CASE("01.1 a sum is \\"one\\" thing", "[01.1]") {
  CHECK(add(1, 2) == three());
}
"""
WITH_A_PROGRAM = """\
TEST_CASE("01.2 it says yes",
          "[01.2]") {
  run_program(program("01-server"), {});
}

TEST_CASE("01.3 it subtracts", "[01.3]") {
  CHECK(run_anything());
}
"""


@pytest.fixture
def chapter(course: Path) -> Chapter:
    edit(
        course / "solutions" / "01-first" / "chapter.toml",
        "[checkpoint]\n",
        '[[programs]]\nname = "client"\nsummary = "the client"\ncontract = false\n\n[checkpoint]\n',
    )
    tests = course / "tests" / "01-first"
    tests.mkdir(parents=True)
    (tests / "alone_test.cpp").write_text(ALONE)
    (tests / "server_test.cpp").write_text(WITH_A_PROGRAM)
    (tests / "helper.cpp").write_text("int help() { return 1; }\n")
    return all_chapters(course)[0]


def of(task: str, chapter: Chapter) -> list[str]:
    return targets_of_cases(chapter, lambda case: case.task == task)


def test_cases_are_read_with_their_lines_and_tags() -> None:
    assert list(cases_in(WITH_A_PROGRAM)) == [
        Case("01.2 it says yes", '"[01.2]"', 1, WITH_A_PROGRAM.split("\n\n")[0]),
        Case("01.3 it subtracts", '"[01.3]"', 6, WITH_A_PROGRAM.split("\n\n")[1].strip()),
    ]
    assert [case.title for case in cases_in(ALONE)] == ['01.1 a sum is "one" thing']


def test_a_case_needs_its_file_and_the_programs_it_names(chapter: Chapter) -> None:
    assert of("01.1", chapter) == ["01-tests-alone_test"]
    assert of("01.2", chapter) == ["01-tests-server_test", "01-server"]
    assert of("01.3", chapter) == ["01-tests-server_test"]


def test_what_stands_between_the_cases_counts_for_all_of_them(chapter: Chapter) -> None:
    helper = '\nbool run_anything() {\n  return run_program(program("01-client"), {}).ok;\n}\n'
    file = chapter.tests / "server_test.cpp"
    file.write_text(WITH_A_PROGRAM + helper)
    assert of("01.3", chapter) == ["01-tests-server_test", "01-client"]


def test_a_header_of_the_tests_counts_for_the_file_that_includes_it(chapter: Chapter) -> None:
    (chapter.tests / "ready.hpp").write_text('inline auto a = program("01-client");\n')
    assert of("01.1", chapter) == ["01-tests-alone_test"]
    (chapter.tests / "alone_test.cpp").write_text('#include "ready.hpp"\n' + ALONE)
    assert of("01.1", chapter) == ["01-tests-alone_test", "01-client"]


def test_a_program_that_is_not_named_may_be_any(chapter: Chapter) -> None:
    file = chapter.tests / "server_test.cpp"
    file.write_text(WITH_A_PROGRAM.replace('program("01-server")', "course_test::program(name)"))
    assert of("01.2", chapter) == ["01-tests-server_test", "01-server", "01-client"]


def test_a_mistake_builds_what_holds_its_test_or_all(chapter: Chapter, tmp_path: Path) -> None:
    def targets(caught_by: str) -> list[str]:
        entry = mistakes.Mistake(tmp_path / "m.patch", "01.1", "", caught_by, "", "")
        return mistakes.targets_for(entry, chapter)

    assert targets("01.3 it subtracts") == ["01-tests-server_test"]
    assert targets("01.3 nobody is called so") == [
        "01-server", "01-client", "01-tests-alone_test", "01-tests-server_test"
    ]  # fmt: skip


def test_an_open_task_builds_the_tests_of_those_before_it_too(chapter: Chapter) -> None:
    first, second, third = chapter.tasks
    assert starters.targets_up_to(chapter, first) == ["01-tests-alone_test"]
    both = ["01-tests-alone_test", "01-tests-server_test", "01-server"]
    assert starters.targets_up_to(chapter, second) == both
    assert starters.targets_up_to(chapter, third) == both


def test_a_case_in_a_file_that_is_not_looked_at_is_refused(chapter: Chapter) -> None:
    problems = list(layout.test_names(chapter, "tests/01-first/helper.cpp", ALONE))
    assert problems == [
        'tests/01-first/helper.cpp:3: “01.1 a sum is "one" thing” stands in no *_test.cpp; '
        "the mistakes' builds look for it there."
    ]
