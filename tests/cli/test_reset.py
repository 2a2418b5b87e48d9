# SPDX-License-Identifier: MIT
"""./course reset: back to the starter, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from course_tool import marks, resetting
from course_tool.chapters import Chapter, load_chapter
from course_tool.errors import CourseError
from course_tool.resetting import reset_chapter, reset_task, with_task_undone
from live_course import LiveCourse


def chapter_of(live: LiveCourse) -> Chapter:
    return load_chapter(live.root / "solutions" / "01-first")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def kept_in(live: LiveCourse) -> list[Path]:
    return sorted((live.root / ".course" / "kept").iterdir())


def test_the_starter_comes_back_and_what_was_there_is_kept(live: LiveCourse) -> None:
    starter = contents(live.yours)
    live.solve()
    (live.yours / "CMakeLists.txt").unlink()
    (live.yours / "notes.md").write_text("mine")
    (live.yours / "sketches").mkdir()
    (live.yours / "sketches" / "loop.txt").write_text("an idea")
    before = contents(live.yours)

    done = live.run("reset", "01")
    assert done.code == 0
    [kept] = kept_in(live)
    assert kept.name.startswith("01-first-")
    assert f"kept in .course/kept/{kept.name}/" in done.out
    assert f"cp -r .course/kept/{kept.name}/. chapters/01-first/" in done.out
    assert contents(kept) == before
    after = contents(live.yours)
    assert {name: after[name] for name in starter} == starter
    assert after["notes.md"] == b"mine" and after["sketches/loop.txt"] == b"an idea"


def test_nothing_to_do_is_said_and_nothing_is_kept(live: LiveCourse) -> None:
    (live.yours / "notes.md").write_text("mine")
    done = live.run("reset", "01")
    assert done.code == 0
    assert "is at its starter already; nothing was changed" in done.out
    assert not (live.root / ".course" / "kept").exists()


def test_a_missing_folder_is_made_again(live: LiveCourse) -> None:
    starter = contents(live.yours)
    live.yours.rename(live.root / "elsewhere")
    done = live.run("reset", "01")
    assert done.code == 0
    assert contents(live.yours) == starter
    assert "kept" not in done.out


def test_a_file_where_the_folder_was_is_said_and_stays(live: LiveCourse) -> None:
    live.yours.rename(live.root / "elsewhere")
    live.yours.write_text("mine")
    live.refused(
        "reset", "01", said="chapters/01-first is a file, and a chapter is a folder. Move it away"
    )
    assert live.yours.read_text() == "mine"


def test_a_folder_where_a_file_was_is_named(live: LiveCourse) -> None:
    (live.yours / "work.hpp").unlink()
    (live.yours / "work.hpp").mkdir()
    live.refused("reset", "01", said="chapters/01-first/work.hpp). Your files are as they were.")


def test_two_resets_in_one_second_keep_both(live: LiveCourse) -> None:
    chapter, state = chapter_of(live), live.root / ".course"
    for text in ("// first\n", "// second\n"):
        (live.yours / "work.hpp").write_text(text)
        reset_chapter(chapter, state)
    assert [(kept / "work.hpp").read_text() for kept in kept_in(live)] == [
        "// first\n",
        "// second\n",
    ]


def test_it_forgets_that_the_tasks_were_green(live: LiveCourse) -> None:
    live.solve()
    live.run("test", "01")
    live.run("hint", "01.1")
    live.run("reset", "01")
    assert live.state()["records"] == {}
    assert live.state()["hints"] == {"01.1": 1}
    assert "01 The first: 0 of 3 tasks done" in live.run("status").out


def test_a_failure_midway_leaves_everything_as_it_was(
    live: LiveCourse, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.solve()
    before = contents(live.yours)
    replaced: list[str] = []

    def fail_at_the_second(source: Path, target: Path) -> None:
        replaced.append(Path(target).name)
        if len(replaced) == 2:
            raise OSError(28, "No space left on device", str(target))
        os.rename(source, target)

    monkeypatch.setattr(resetting.os, "replace", fail_at_the_second)
    with pytest.raises(CourseError, match="No space left .*Your files are as they were"):
        reset_chapter(chapter_of(live), live.root / ".course")
    assert len(replaced) == 3  # the first, the failure, and the first put back
    assert contents(live.yours) == before


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied", "somewhere"),
        shutil.Error([("a", "b", "[Errno 13] Permission denied: 'b'")]),
    ],
)
def test_nothing_is_touched_if_it_cannot_be_kept(
    live: LiveCourse, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    live.solve()
    before = contents(live.yours)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(resetting.shutil, "copytree", fail)
    with pytest.raises(CourseError, match="Permission denied.*Your files are as they were"):
        reset_chapter(chapter_of(live), live.root / ".course")
    assert contents(live.yours) == before


def test_one_task_goes_back_alone(live: LiveCourse) -> None:
    live.solve()
    work = live.yours / "work.hpp"
    work.write_text(work.read_text().replace("#pragma once", "#pragma once\n#include <new>"))
    done = live.run("reset", "01", "-t", "01.1")
    assert done.code == 0
    text = work.read_text()
    assert 'COURSE_TODO("01.1");' in text and 'COURSE_TODO("01.3");' not in text
    assert "#include <new>" in text
    assert "COURSE_TODO" not in (live.yours / "more.hpp").read_text()
    [kept] = kept_in(live)
    assert "solved();" in (kept / "work.hpp").read_text()


def test_one_task_that_nobody_has_begun(live: LiveCourse) -> None:
    assert "Task 01.2 is at its starter already" in live.run("reset", "01", "-t", "01.2").out


def test_a_task_in_two_places_goes_back_in_both(live: LiveCourse) -> None:
    live.solve()
    chapter = chapter_of(live)
    reset_task(chapter, chapter.tasks[1], live.root / ".course")
    assert (live.yours / "more.hpp").read_text().count('COURSE_TODO("01.2")') == 2


def test_a_long_body_with_braces_of_its_own_goes_back_whole(live: LiveCourse) -> None:
    chapter = chapter_of(live)
    starter = marks.starter_files(chapter)["work.hpp"].decode()
    body = "  while (a < b) {\n    if (a == 0) {\n      b = 1;\n    }\n  }\n\n  return a + b;"
    yours = starter.replace('  COURSE_TODO("01.1");', body)
    yours = yours.replace('  COURSE_TODO("01.3");', body.replace("+", "-"))
    undone = with_task_undone(yours, starter, chapter.tasks[0])
    assert undone == starter.replace('  COURSE_TODO("01.3");', body.replace("+", "-"))


def test_a_file_that_is_another_by_now_is_not_guessed_at(live: LiveCourse) -> None:
    (live.yours / "work.hpp").write_text("int main() { return 0; }\n")
    live.refused(
        "reset", "01", "-t", "01.1", said=("too far from its starter", "./course reset 01")
    )
    assert (live.yours / "work.hpp").read_text() == "int main() { return 0; }\n"


def test_bytes_that_are_no_text_survive(live: LiveCourse) -> None:
    live.solve("01.1")
    with (live.yours / "work.hpp").open("ab") as file:
        file.write(b"// \xff\xfe\n")
    live.run("reset", "01", "-t", "01.1")
    assert (live.yours / "work.hpp").read_bytes().endswith(b"// \xff\xfe\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["99"], "There is no chapter 99. Try 01 to 02."),
        (["01", "-t", "01.9"], "Chapter 01 has no task 01.9."),
        (["01", "-t", ""], "Chapter 01 has no task ."),  # an unset variable is not the chapter
    ],
)
def test_bad_input(live: LiveCourse, args: list[str], said: str) -> None:
    before = contents(live.yours)
    live.refused("reset", *args, said=said)
    assert contents(live.yours) == before
