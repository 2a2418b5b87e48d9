# SPDX-License-Identifier: MIT
"""./course status, and the state file that it reads."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import edit
from course_tool import state
from course_tool.chapters import load_chapter
from course_tool.errors import CourseError
from course_tool.places import fingerprints
from course_tool.state import Record, State, changing, load
from course_tool.status import Standing, duration, progress_of
from live_course import LiveCourse, flat


def test_a_fresh_clone_has_everything_to_do(live: LiveCourse) -> None:
    done = live.run("status")
    assert done.code == 0
    assert done.out.count("not started") == 8  # 3 tasks and a contract, twice
    assert "01 The first: 0 of 3 tasks done, 35 min left" in done.out
    assert "Left: 1 h 10 min of 1 h 10 min." in done.out
    assert "Next: task 01.1, Add: ./course test 01 -t 01.1" in done.out


def test_it_follows_a_student_through_a_chapter(live: LiveCourse) -> None:
    live.solve("01.1", "01.2")
    live.say("01.2: red")
    assert flat(live.run("status").out).count("started, not tested") == 2
    live.run("test", "01")
    out = flat(live.run("status").out)
    assert "01.1 Add done" in out
    assert '01.2 Say "yes" red' in out
    assert "01.3 Subtract not started" in out
    assert "1 of 3 tasks done, 18 min left" in out  # the page is read; 2/3 of 20, and 5
    edit(live.yours / "work.hpp", "solved();", "solved_otherwise();")
    assert "01.1 Add changed since it was green" in flat(live.run("status").out)


def test_a_comment_elsewhere_and_the_next_task_change_nothing_that_was_green(
    live: LiveCourse,
) -> None:
    live.solve("01.1", "01.2")
    live.run("test", "01")
    live.say("a comment behind both tasks of this file")
    edit(live.yours / "more.hpp", "#pragma once", "#pragma once\n/* one in\n   another */")
    live.solve("01.3")
    out = flat(live.run("status").out)
    assert "01.1 Add done" in out and '01.2 Say "yes" done' in out
    assert "01.3 Subtract started, not tested" in out
    edit(live.yours / "work.hpp", "inline int add", "int helper();\n\ninline int add")
    assert flat(live.run("status").out).count("changed since it was green") == 2


def test_a_comment_leaves_the_contract_green_and_code_does_not(live: LiveCourse) -> None:
    live.solve()
    live.run("test", "01")
    live.say("a comment")
    assert "3 of 3 tasks done, 5 min left" in live.run("status").out
    edit(live.yours / "more.hpp", "solved();", "solved_otherwise();")
    out = flat(live.run("status").out)
    assert '01.1 Add done 01.2 Say "yes" changed since it was green' in out
    assert "The echo contract changed since it was green" in out


def test_what_a_sanitizer_finds_takes_nothing_back(live: LiveCourse) -> None:
    live.solve()
    live.run("test", "01")
    before = live.state()["records"]
    live.say("01.2: red")
    assert live.run("test", "01", "--sanitize").code == 1
    assert live.state()["records"] == before
    edit(live.yours / "work.hpp", "// 01.2: red", "// 01 contract: red")
    assert live.run("test", "01", "--sanitize").code == 1
    assert live.state()["records"] == before
    assert "3 of 3 tasks done" in live.run("status").out


def test_a_chapter_without_a_contract_is_tried_as_a_whole(live: LiveCourse) -> None:
    live.take_the_contract_away()
    live.solve()
    live.say("01 the: red")
    live.run("test", "01")
    out = flat(live.run("status").out)
    assert "The chapter as a whole red" in out
    assert "Next: the whole of chapter 01: ./course test 01" in out
    edit(live.yours / "work.hpp", "// 01 the: red", "")
    live.run("test", "01")
    out = flat(live.run("status").out)
    assert "The chapter as a whole done" in out and "Next: the checkpoint of chapter 01" in out


def test_green_under_a_sanitizer_is_green(live: LiveCourse) -> None:
    live.solve()
    assert live.run("test", "01", "--sanitize").code == 0
    assert "3 of 3 tasks done" in live.run("status").out


def test_a_green_chapter_has_its_checkpoint_left(live: LiveCourse) -> None:
    live.solve()
    live.run("test", "01")
    out = live.run("status").out
    assert "3 of 3 tasks done, 5 min left" in out
    assert "Next: the checkpoint of chapter 01: ./course bench 01" in out
    state.remember_checkpoint("01", live.root / ".course")
    out = live.run("status").out
    assert "3 of 3 tasks done, 0 min left" in out
    assert "Next: task 02.1" in out


def test_it_imports_nothing_that_takes_long(live: LiveCourse) -> None:
    done = live.run("status", env={"PYTHONPROFILEIMPORTTIME": "1"})
    names = re.findall(r"^import time:.*\| +(\w+)", done.err, re.MULTILINE)
    assert "course_tool" in names
    assert not set(names) & {"matplotlib", "mkdocs", "numpy", "playwright", "pytest", "watchfiles"}


def test_from_any_folder_and_with_spaces_in_the_path(live: LiveCourse, tmp_path: Path) -> None:
    assert " " in str(live.root)
    for folder in (tmp_path, live.yours, Path("/")):
        assert "01 The first" in live.run("status", cwd=folder).out


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_a_terminal_there_are_no_colors(live: LiveCourse, env: dict[str, str]) -> None:
    assert "\x1b" not in live.run("status", env=env).out


def test_colors_where_they_are_forced_and_not_with_no_color(live: LiveCourse) -> None:
    forced = {"FORCE_COLOR": "1", "TERM": "xterm"}
    colored = live.run("status", env=forced).out
    plain = live.run("status", env={**forced, "NO_COLOR": "1"}).out
    assert re.search("\x1b\\[[0-9;]*3[0-9]m|\x1b\\[[0-9;]*2m", colored)
    assert not re.search("\x1b\\[[0-9;]*3[0-9]m", plain)


CORRUPT = [
    "",
    "{",
    "[]",
    '{"version": 2}',
    '{"version": 1, "records": {"01.1": "green"}}',
    '{"version": 1, "records": {"01.1": {"result": "blue", "fingerprint": ""}}}',
    '{"version": 1, "hints": {"01.1": "two"}}',
    '{"version": 1, "hints": {"01.1": -1}}',
    '{"version": 1, "checkpoints": "01"}',
    "\xff\xfe",
    pytest.param("[" * 100_000, id="nested"),
]


@pytest.mark.parametrize("text", CORRUPT)
def test_a_corrupt_state_is_set_aside_and_said_once(live: LiveCourse, text: str) -> None:
    folder = live.root / ".course"
    folder.mkdir()
    (folder / "state.json").write_bytes(text.encode("latin-1"))
    done = live.run("status")
    assert done.code == 0
    assert "01 The first: 0 of 3 tasks done" in done.out
    said = done.err.splitlines()
    assert len(said) == 1 and "state.json.corrupt-1" in said[0]
    assert (folder / "state.json.corrupt-1").read_bytes() == text.encode("latin-1")
    assert live.run("status").err == ""


def test_the_second_corrupt_state_gets_the_second_name(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "state.json").write_text(f"broken {number}")
        assert load(tmp_path) == State()
    assert (tmp_path / "state.json.corrupt-1").read_text() == "broken 1"
    assert (tmp_path / "state.json.corrupt-2").read_text() == "broken 2"


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    with changing(tmp_path) as remembered:
        remembered.records["01.1"] = Record("green", "abc")
        remembered.hints["01.2"] = 2
    state.remember_checkpoint("01", tmp_path)
    state.remember_checkpoint("01", tmp_path)
    assert load(tmp_path) == State({"01.1": Record("green", "abc")}, {"01.2": 2}, ["01"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state.json", "state.lock"]


def test_changes_made_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with changing(tmp_path) as remembered:
            remembered.hints[f"01.{number}"] = number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert len(json.loads((tmp_path / "state.json").read_text())["hints"]) == 40


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    with changing(tmp_path) as remembered:
        remembered.hints["01.1"] = 1
    with pytest.raises(RuntimeError), changing(tmp_path) as remembered:
        remembered.hints["01.1"] = 2
        raise RuntimeError
    assert load(tmp_path).hints == {"01.1": 1}


def test_a_state_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CourseError, match="Could not write .*file"), changing(tmp_path / "file"):
        pass


def test_the_fingerprints_see_sources_and_nothing_else(live: LiveCourse) -> None:
    chapter = load_chapter(live.root / "solutions" / "01-first")
    first = fingerprints(chapter)
    assert set(first) == {"01.1", "01.2", "01.3", "01 contract"}
    for other in ("a.hpp~", ".a.hpp.swp", "notes.md", ".hidden.hpp"):
        (live.yours / other).write_text("x")
    assert fingerprints(chapter) == first
    (live.yours / "b.cpp").write_text("")
    assert not set(fingerprints(chapter).items()) & set(first.items())
    (live.yours / "b.cpp").unlink()
    (live.yours / "CMakeLists.txt").write_text("two")
    assert not set(fingerprints(chapter).items()) & set(first.items())


# (the new text of work.hpp's two bodies, the keys whose fingerprint changes)
BODIES = [
    (("  x();\n  // why", "  y();"), set()),
    (("x();", "\n  y(); /* why */\n"), set()),
    (("  x();\n  }\n", "  y();"), {"01.1", "01 contract"}),
    (("  x();", '  say("// y();");'), {"01.3", "01 contract"}),
    (("", "  y();"), {"01.1", "01 contract"}),
    (('  COURSE_TODO("01.1");', "  y();"), {"01.1", "01 contract"}),
]


@pytest.mark.parametrize(("bodies", "changed"), BODIES)
def test_a_fingerprint_is_of_the_tasks_own_places(
    live: LiveCourse, bodies: tuple[str, str], changed: set[str]
) -> None:
    chapter = load_chapter(live.root / "solutions" / "01-first")
    file = live.yours / "work.hpp"
    starter = file.read_text()

    def fill(first: str, third: str) -> dict[str, str]:
        text = starter.replace('  COURSE_TODO("01.1");', first)
        file.write_text(text.replace('  COURSE_TODO("01.3");', third))
        return fingerprints(chapter)

    before, after = fill("  x();", "  y();"), fill(*bodies)
    assert {key for key in before if before[key] != after[key]} == changed


def test_a_task_in_two_places_is_begun_when_one_of_them_is(live: LiveCourse) -> None:
    chapter = load_chapter(live.root / "solutions" / "01-first")
    file = live.yours / "more.hpp"
    assert progress_of(chapter, State()).tasks["01.2"] is Standing.NOT_STARTED
    file.write_text(file.read_text().replace('COURSE_TODO("01.2");', "begun();", 1))
    assert progress_of(chapter, State()).tasks["01.2"] is Standing.STARTED


@pytest.mark.parametrize(
    ("minutes", "text"), [(0, "0 min"), (59, "59 min"), (60, "1 h"), (135, "2 h 15 min")]
)
def test_minutes_in_words(minutes: int, text: str) -> None:
    assert duration(minutes) == text
