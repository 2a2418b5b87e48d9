# SPDX-License-Identifier: MIT
"""The generator of starters, its check, and the lint of marks."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import body, edit, git
from course_tool import marks
from course_tool.chapters import load_chapter
from course_tool.errors import CourseError


def solution(root: Path, name: str) -> Path:
    return root / "solutions" / "01-first" / name


def starter(root: Path, name: str) -> Path:
    return root / "chapters" / "01-first" / name


# The generator


def test_a_task_becomes_a_todo_at_the_bodys_indentation() -> None:
    text = f"// Do it.\nvoid f() {{\n    if (x) {{\n{body('task-01-2b', 2, '      ')}    }}\n}}\n"
    wanted = '// Do it.\nvoid f() {\n    if (x) {\n      COURSE_TODO("01.2");\n    }\n}\n'
    assert marks.starter_text(text) == wanted


def test_the_indentation_is_that_of_the_first_line_with_text() -> None:
    text = "  // --8<-- [start:task-14-10]\n\n      a();\n    b();\n  // --8<-- [end:task-14-10]\n"
    assert marks.starter_text(text) == '      COURSE_TODO("14.10");\n'


def test_a_pages_section_vanishes_and_its_content_stays() -> None:
    text = "a\n\n// --8<-- [start:page]\n\nb\n// --8<-- [end:page]\nc\n"
    assert marks.starter_text(text) == "a\n\nb\nc\n"


def test_sections_of_pages_may_hold_tasks_lie_in_them_and_cross_each_other() -> None:
    inner = "  // --8<-- [start:inner]\n  a();\n  // --8<-- [end:inner]\n"
    task = f"  // --8<-- [start:task-01-1]\n{inner}  b();\n  // --8<-- [end:task-01-1]\n"
    text = (
        f"// --8<-- [start:outer]\nf() {{\n{task}}}\n// --8<-- [start:late]\n"
        "// --8<-- [end:outer]\ng\n// --8<-- [end:late]\n"
    )
    assert marks.starter_text(text) == 'f() {\n  COURSE_TODO("01.1");\n}\ng\n'


def test_parse_gives_bodies_without_marks(course: Path) -> None:
    sections = {each.name: each for each in marks.parse(solution(course, "work.hpp"))}
    assert list(sections) == ["task-01-1", "whole", "task-01-3"]
    assert sections["task-01-3"].task == "01.3"
    assert sections["whole"].task is None
    assert not any("8<" in line for line in sections["whole"].body)
    assert len(sections["task-01-1"].body) == 8


BAD_MARKS = [
    ("// --8<-- [start:a]\n", 1, "section a is started and never ended"),
    ("x\n// --8<-- [end:a]\n", 2, "section a is ended but was not started"),
    (body("a", 1) + body("a", 1), 4, "section a is started a second time"),
    ("// --8<-- [start:1a]\n", 1, "looks like a mark"),
    ("// --8<-- [start:A]\n", 1, "looks like a mark"),
    ("//--8<-- [start:a]\n", 1, "looks like a mark"),
    ("int x;  // --8<-- [start:a]\n", 1, "looks like a mark"),
    ("// -8<- [ end : a ]\n", 1, "looks like a mark"),
    ("// [start:a]\n", 1, "looks like a mark"),
    (body("task-1-1", 1), 1, "a task's is called task-NN-K"),
    (body("task-01-1", 0), 1, "is empty"),
    (
        f"// --8<-- [start:task-01-1]\n{body('task-01-2', 1)}// --8<-- [end:task-01-1]\n",
        2,
        "task section task-01-2 is nested in task-01-1",
    ),
    (
        "// --8<-- [start:task-01-1]\na\n// --8<-- [start:p]\n"
        + "// --8<-- [end:task-01-1]\n// --8<-- [end:p]\n",
        3,
        "section p crosses the task section task-01-1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "said"), BAD_MARKS)
def test_marks_that_are_not_in_order_are_named_with_their_line(
    course: Path, text: str, line: int, said: str
) -> None:
    file = solution(course, "work.hpp")
    file.write_text(text)
    with pytest.raises(CourseError) as caught:
        marks.parse(file)
    assert f"work.hpp:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_starter_files_copies_all_but_the_toml_and_leftovers(course: Path) -> None:
    solution(course, "work.hpp~").write_text("an editor's")
    solution(course, ".work.hpp.swp").write_text("an editor's")
    solution(course, "data.txt").write_text("// --8<-- [start:a]\n")
    files = marks.starter_files(load_chapter(course / "solutions" / "01-first"))
    assert sorted(files) == ["CMakeLists.txt", "data.txt", "more.hpp", "work.hpp"]
    assert files["data.txt"] == b"// --8<-- [start:a]\n"
    assert files["work.hpp"].count(b"COURSE_TODO") == 2
    assert b"8<" not in files["work.hpp"] + files["more.hpp"]


def test_a_folder_in_a_solution_is_an_error(course: Path) -> None:
    solution(course, "detail").mkdir()
    with pytest.raises(CourseError, match="chapter folders are flat"):
        marks.sync_all(check=True, root=course)


# sync and its check


def test_sync_makes_what_check_then_finds_in_order(course: Path) -> None:
    problems = {str(drift.path): drift.problem for drift in marks.sync_all(True, course)}
    assert problems["chapters/01-first/work.hpp"] == "is missing"
    assert not starter(course, "work.hpp").exists(), "a check writes nothing"
    assert len(marks.sync_all(False, course)) == len(problems) == 4
    assert marks.sync_all(True, course) == []
    entries = (course / marks.TASK_ENTRIES).read_text().splitlines()
    assert entries[1:3] == [
        '{"01.1", "Add", "docs/chapters/01-first.md"},',
        '{"01.2", "Say \\"yes\\"", "docs/chapters/01-first.md"},',
    ]


def test_a_drift_names_the_first_line_that_differs(committed: Path) -> None:
    edit(starter(committed, "work.hpp"), "// Add.", "// Add!")
    (drift,) = marks.sync_all(True, committed)
    assert str(drift) == (
        "chapters/01-first/work.hpp:4: is `// Add!`; ./course sync makes it `// Add.`"
    )
    with starter(committed, "more.hpp").open("a") as file:
        file.write("one more\n")
    drift = marks.sync_all(True, committed)[0]
    assert str(drift).endswith("is `one more`; ./course sync makes it the end of the file")


def test_sync_writes_only_what_has_changed(committed: Path) -> None:
    before = starter(committed, "more.hpp").stat().st_mtime_ns
    edit(solution(committed, "work.hpp"), "// Add.", "// Add both.")
    drifts = marks.sync_all(False, committed)
    assert [str(drift.path) for drift in drifts] == ["chapters/01-first/work.hpp"]
    assert drifts[0].kept is None
    assert "// Add both." in starter(committed, "work.hpp").read_text()
    assert starter(committed, "more.hpp").stat().st_mtime_ns == before


def test_sync_keeps_what_a_student_has_written(committed: Path) -> None:
    mine = starter(committed, "work.hpp")
    edit(mine, 'COURSE_TODO("01.1");', "return a + b;")
    text = mine.read_text()
    (drift,) = marks.sync_all(False, committed)
    assert drift.kept is not None
    assert (committed / drift.kept).read_text() == text
    assert "kept in .course/kept/" in str(drift)
    assert "COURSE_TODO" in mine.read_text()


def test_sync_does_not_keep_what_an_earlier_sync_made(committed: Path) -> None:
    for comment in ("// Add one.", "// Add two."):
        text = solution(committed, "work.hpp").read_text()
        solution(committed, "work.hpp").write_text(text.replace("// Add", comment))
        (drift,) = marks.sync_all(False, committed)
        assert drift.kept is None


def test_sync_removes_committed_leftovers_and_no_file_of_a_student(committed: Path) -> None:
    old = committed / "chapters" / "00-old"
    old.mkdir()
    (old / "gone.hpp").write_text("old\n")
    starter(committed, "gone.hpp").write_text("old\n")
    git(committed, "add", "-A")
    git(committed, "commit", "-q", "-m", "leftovers")
    starter(committed, "notes.md").write_text("mine\n")
    stale = [drift.path.as_posix() for drift in marks.sync_all(True, committed)]
    assert stale == ["chapters/00-old/gone.hpp", "chapters/01-first/gone.hpp"]
    marks.sync_all(False, committed)
    assert not old.exists()
    assert not starter(committed, "gone.hpp").exists()
    assert starter(committed, "notes.md").read_text() == "mine\n"


def test_sync_works_without_git(course: Path) -> None:
    marks.sync_all(False, course)
    starter(course, "work.hpp").write_text("mine\n")
    (drift,) = marks.sync_all(False, course)
    assert drift.kept is not None
    assert (course / drift.kept).read_text() == "mine\n"


# The lint


def test_a_course_in_order_has_nothing_to_lint(committed: Path) -> None:
    assert marks.lint(committed) == []


def lint_says(root: Path, said: str) -> bool:
    found = marks.lint(root)
    assert any(said in problem for problem in found), found
    return True


def test_lint_finds_marks_that_do_not_match(committed: Path) -> None:
    edit(solution(committed, "work.hpp"), "// --8<-- [end:whole]\n", "")
    assert lint_says(
        committed,
        "solutions/01-first/work.hpp:18: section whole is started and never ended.",
    )


def test_lint_finds_a_section_that_no_page_uses(committed: Path) -> None:
    page = committed / "docs" / "chapters" / "01-first.md"
    page.write_text("nothing is included: work.hpp:whole\n")
    assert lint_says(committed, "work.hpp:18: section whole is used by no page in docs/.")
    page.write_text("--8<--\nsolutions/01-first/work.hpp:whole\n--8<--\n")
    assert marks.lint(committed) == []


def test_lint_looks_into_the_tests_too(committed: Path) -> None:
    test = committed / "tests" / "01-first" / "x_test.cpp"
    test.parent.mkdir(parents=True)
    test.write_text(body("shown", 2))
    assert lint_says(committed, "tests/01-first/x_test.cpp:1: section shown is used by no page")


def test_lint_finds_a_page_that_includes_what_is_not_there(committed: Path) -> None:
    page = committed / "docs" / "chapters" / "01-first.md"
    edit(page, "work.hpp:whole", "work.hpp:hole")
    assert lint_says(
        committed,
        "docs/chapters/01-first.md:1: includes solutions/01-first/work.hpp:hole, "
        "and there is no such section.",
    )


def test_lint_finds_a_task_section_that_is_no_task(committed: Path) -> None:
    with solution(committed, "more.hpp").open("a") as file:
        file.write(body("task-01-4", 2))
    assert lint_says(committed, "no task in chapter.toml has the section task-01-4 in more.hpp")


def test_lint_finds_chapters_with_too_little_or_too_much(committed: Path) -> None:
    work = solution(committed, "work.hpp")
    text = work.read_text()
    edit(work, body("task-01-1", 8), body("task-01-1", 60))
    assert lint_says(committed, "the tasks' bodies have 75 lines in all; a chapter has 20 to 60.")
    work.write_text(text.replace(body("task-01-1", 8), body("task-01-1", 1)))
    assert lint_says(committed, "the tasks' bodies have 16 lines in all")
    work.write_text(text + "// more\n" * 160)
    assert lint_says(committed, "its starter has 171 lines; 160 at most.")


def test_lint_finds_a_todo_in_a_solution_and_a_mark_in_a_starter(committed: Path) -> None:
    edit(solution(committed, "work.hpp"), "step(0);", 'COURSE_TODO("01.1");')
    with starter(committed, "more.hpp").open("a") as file:
        file.write("// --8<-- [start:a]\n")
    assert lint_says(committed, "a solution leaves nothing to do; this holds COURSE_TODO.")
    assert lint_says(committed, "chapters/01-first/more.hpp: a starter holds a mark.")


@pytest.mark.parametrize(
    ("page", "bad_line"),
    [
        ("```cpp\n" + "x\n" * 7 + "```\n", 1),
        ("text\n\n~~~ {.cpp title='x'}\n" + "x\n" * 7 + "~~~\n", 3),
        ("    ```c++\n" + "    x\n" * 7 + "    ```\n", 1),
        ("```cpp\n" + "x\n" * 6 + "```\n", None),
        ("```cpp\n--8<-- 'x.hpp'\n" + "x\n" * 7 + "```\n", None),
        ("```sh\n" + "x\n" * 9 + "```\n\n```cpp\nx\n```\n", None),
        ("````md\n```cpp\n" + "x\n" * 9 + "```\n````\n", None),
    ],
)
def test_lint_finds_long_cpp_fences(committed: Path, page: str, bad_line: int | None) -> None:
    (committed / "docs" / "other.md").write_text(page)
    wanted = [] if bad_line is None else [f"docs/other.md:{bad_line}: a C++ fence of 7 lines"]
    found = marks.lint(committed)
    assert [problem.partition(";")[0] for problem in found] == wanted
