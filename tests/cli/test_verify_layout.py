# SPDX-License-Identifier: MIT
"""The rules of `./course verify` that are about the tree as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import edit, git
from course_tool.chapters import Chapter, all_chapters
from course_tool.errors import CourseError
from course_tool.verify import layout
from course_tool.verify.sources import Source, listed_files, read_sources


@pytest.fixture
def chapter(course: Path) -> Chapter:
    return all_chapters(course)[0]


def test_a_new_entry_at_the_top_is_refused() -> None:
    names = ["README.md", "tools/new.py", "course", "docs/index.md", "tools/other.py"]
    assert list(layout.unknown_entries(names)) == [
        "tools: the top level has no place for it; put it into one of the folders there."
    ]


@pytest.mark.parametrize(
    ("listed", "folders", "sentence"),
    [
        ("01-a", ["01-a", "02-b"], "COURSE_CHAPTERS lacks 02-b, so nobody builds it"),
        ("01-a 02-b", ["01-a"], "COURSE_CHAPTERS lists 02-b, which solutions/ lacks"),
        ("02-b 01-a", ["01-a", "02-b"], "not in the order of the course"),
    ],
)
def test_the_list_of_chapters_has_to_agree(listed: str, folders: list[str], sentence: str) -> None:
    problems = list(layout.unlisted_chapters(f"set(COURSE_CHAPTERS\n  {listed}\n)\n", folders))
    assert len(problems) == 1
    assert sentence in problems[0]


def test_a_list_that_agrees_passes() -> None:
    cmake = "set(COURSE_CHAPTERS\n  01-a\n  02-b\n)\n"
    assert list(layout.unlisted_chapters(cmake, ["01-a", "02-b"])) == []


def test_two_headers_of_one_name_are_refused() -> None:
    names = ["solutions/01-a/task.hpp", "common/runtime/log.hpp", "solutions/02-b/task.hpp"]
    assert list(layout.repeated_headers(names)) == [
        "solutions/02-b/task.hpp: solutions/01-a/task.hpp has the same name; "
        "an include could not tell them apart."
    ]


def test_a_chapter_without_tests_starter_or_page_is_named(chapter: Chapter) -> None:
    assert list(layout.missing_parts(chapter)) == [
        "tests/01-first: chapter 01 has no tests.",
        "chapters/01-first: chapter 01 has no starter.",
    ]


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ('TEST_CASE("it adds", "[01.1]")', "“it adds” has to start with its task"),
        ('TEST_CASE("01.9 it adds", "[01.9]")', "names task 01.9; chapter.toml has no such task"),
        ('TEST_CASE("01.1 it adds", "[01.2]")', "“01.1 it adds” needs the tag [01.1] alone"),
        ('TEST_CASE("01.1 it adds")', "“01.1 it adds” needs the tag [01.1] alone"),
        ('TEST_CASE("01 it adds", "[01.1]")', "needs no task's tag"),
    ],
)
def test_a_case_is_named_after_its_task(chapter: Chapter, case: str, sentence: str) -> None:
    problems = list(layout.test_names(chapter, "a_test.cpp", f"// one\n{case} {{}}\n"))
    assert len(problems) == 1
    assert problems[0].startswith("a_test.cpp:2: ")
    assert sentence in problems[0]


def test_well_named_cases_pass(chapter: Chapter) -> None:
    text = (
        'TEST_CASE("01.1 a sum is the sum of its parts", "[01.1]") {}\n'
        'TEST_CASE("01.2 a long name "\n          "over two lines", "[01.2][slow]") {}\n'
        'TEST_CASE("01 the chapter as a whole", "[slow]") {}\n'
    )
    assert list(layout.test_names(chapter, "a_test.cpp", text)) == []


def test_ignored_and_starter_files_are_not_read(committed: Path) -> None:
    (committed / ".course" / "state.md").write_text("cancelled \n")
    (committed / "new.md").write_text("new\n")
    (committed / "picture.md").write_bytes(b"\xff\xfe\x00")
    sources = [source.path for source in read_sources(committed, listed_files(committed))]
    assert "new.md" in sources
    assert "solutions/01-first/work.hpp" in sources
    assert not [path for path in sources if path.startswith((".course/", "chapters/"))]
    assert "picture.md" not in sources


def test_a_file_that_git_lost_is_not_read(committed: Path) -> None:
    (committed / "docs" / "chapters" / "01-first.md").unlink()
    assert "docs/chapters/01-first.md" not in listed_files(committed)


def test_outside_of_a_clone_the_rules_say_so(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="git ls-files failed"):
        listed_files(tmp_path)


def test_the_whole_tree_is_checked(committed: Path) -> None:
    (committed / "CMakeLists.txt").write_text("set(COURSE_CHAPTERS 01-first)\n")
    (committed / "notes.md").write_text("mine\n")
    git(committed, "add", "CMakeLists.txt")
    problems = list(layout.check_tree(committed, listed_files(committed), all_chapters(committed)))
    assert problems == [
        "notes.md: the top level has no place for it; put it into one of the folders there.",
        "tests/01-first: chapter 01 has no tests.",
    ]
    edit(committed / "CMakeLists.txt", "01-first", "01-other")
    problems = list(layout.check_tree(committed, [], all_chapters(committed)))
    assert "CMakeLists.txt: COURSE_CHAPTERS lacks 01-first, so nobody builds it." in problems


def test_a_line_is_counted_from_one() -> None:
    assert Source("a.md", "one\ntwo\n").line_of(4) == 2
