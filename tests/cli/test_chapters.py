# SPDX-License-Identifier: MIT
"""chapter.toml: what it may say, and what is said when it does not keep to that."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import edit
from course_tool.chapters import Chapter, all_chapters, find_chapter, find_task, load_chapter
from course_tool.errors import CourseError


@pytest.fixture
def toml(course: Path) -> Path:
    return course / "solutions" / "01-first" / "chapter.toml"


def rejects(toml: Path, match: str) -> None:
    with pytest.raises(CourseError, match=match):
        load_chapter(toml)


def test_a_chapter_that_keeps_the_rules_is_read_whole(course: Path) -> None:
    chapter = load_chapter(course / "solutions" / "01-first")
    assert (chapter.number, chapter.folder, chapter.minutes.total) == ("01", "01-first", 35)
    assert [task.id for task in chapter.tasks] == ["01.1", "01.2", "01.3"]
    assert chapter.tasks[1].sections == ("task-01-2", "task-01-2b")
    assert chapter.checkpoint.counts[0].at_most == 2.1
    assert chapter.checkpoint.contenders[0].baseline
    assert chapter.checkpoint.load and chapter.checkpoint.load.duration_s == 2.0
    assert chapter.starter == course / "chapters" / "01-first"
    assert chapter.tests == course / "tests" / "01-first"
    assert chapter.page == course / "docs" / "chapters" / "01-first.md"
    assert chapter.page_name == "docs/chapters/01-first.md"


def without_server(toml: Path) -> None:
    """A chapter whose program runs to its end: no clients to count, none to put a load on."""
    edit(toml, "contract = true", "contract = false")
    edit(toml, "syscalls_per_request", "syscalls_per_operation")
    edit(toml, "connections = 1\nsize = 128\ninflight = 1\nrequests = 2000", "operations = 800")
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text[: text.index("[[checkpoint.contenders]]")], encoding="utf-8")


def test_a_chapter_without_a_server_has_counts_alone(toml: Path) -> None:
    without_server(toml)
    checkpoint = load_chapter(toml).checkpoint
    assert (checkpoint.contenders, checkpoint.load) == ((), None)
    assert (checkpoint.counts[0].requests, checkpoint.counts[0].connections) == (800, 0)
    edit(toml, "operations = 800", "operations = 0")
    rejects(toml, r"counts\[1\].operations: is 0; it has to be an integer")
    edit(toml, "operations = 0", "operations = 800\nconnections = 1")
    rejects(toml, r"counts\[1\].connections: is not a key")


TIMING = """
[checkpoint.timing]
operation = "call"
operations = 1000
rounds = 5

[[checkpoint.timing.contenders]]
name = "function"
chapter = "01"
program = "server"
args = ["--how", "function"]
baseline = true

[[checkpoint.timing.contenders]]
name = "coroutine"
chapter = "01"
program = "server"
"""


def test_programs_that_time_themselves_stand_with_or_without_servers(toml: Path) -> None:
    assert load_chapter(toml).checkpoint.timing is None
    toml.write_text(toml.read_text(encoding="utf-8") + TIMING, encoding="utf-8")
    beside = load_chapter(toml).checkpoint
    assert beside.timing and beside.contenders
    assert (beside.timing.value, beside.timing.operations) == ("ns per call", 1000)
    without_server(toml)
    toml.write_text(toml.read_text(encoding="utf-8") + TIMING, encoding="utf-8")
    alone = load_chapter(toml).checkpoint
    assert [each.name for each in alone.timing.contenders] == ["function", "coroutine"]
    edit(toml, "baseline = true", "baseline = false")
    rejects(toml, "timing.contenders: exactly one of them has to say")
    edit(toml, "operations = 1000", "operations = 0")
    rejects(toml, "checkpoint.timing.operations: is 0")


def test_a_number_that_a_program_prints_is_named_and_has_a_unit(toml: Path) -> None:
    edit(toml, "syscalls_per_request", "printed")
    rejects(toml, r"counts\[1\].value: is missing")
    edit(toml, "connections = 1\nsize = 128\ninflight = 1\nrequests = 2000",
         'value = "bytes per frame"\nunit = "bytes"')  # fmt: skip
    count = load_chapter(toml).checkpoint.counts[0]
    assert (count.value, count.unit, count.requests) == ("bytes per frame", "bytes", 0)
    edit(toml, 'unit = "bytes"', 'unit = "bytes"\ncalls = ["read"]')
    rejects(toml, r"counts\[1\].calls: is not a key of this table")


def test_what_a_connection_submits_takes_connections_alone(toml: Path) -> None:
    edit(toml, "syscalls_per_request", "sqes_per_connection")
    rejects(toml, r"counts\[1\].inflight: is not a key of this table")
    edit(toml, "connections = 1\nsize = 128\ninflight = 1\nrequests = 2000", "connections = 50")
    assert load_chapter(toml).checkpoint.counts[0].connections == 50


def test_a_chapter_with_a_server_has_contenders_and_a_load(toml: Path) -> None:
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text[: text.index("[[checkpoint.contenders]]")], encoding="utf-8")
    rejects(toml, "checkpoint.contenders: is missing")


# (what stands there, what is put in its place, what the error has to say)
BREAKS = [
    ('title = "The first"', "", "title: is missing"),
    ('title = "The first"', "title = 3", "title: is 3; it has to be a string"),
    ('title = "The first"', 'title = ""', "title: is ''"),
    ('title = "The first"', 'titel = "The first"', "title: is missing"),
    ('idea = "an idea"', 'idea = "an idea"\nmood = "good"', "mood: is not a key of this table"),
    ('kernel = "6.1"', 'kernel = "new"', "kernel: is 'new'; it has to look like '6.1'"),
    ('number = "01"', "number = 1", "number: is 1"),
    ('number = "01"', 'number = "02"', "tasks[1].id: is '01.1'; ids count up"),
    ('slug = "first"', 'slug = "second"', "slug: number and slug make '01-second'"),
    ("features = []", 'features = "x"', "features: is 'x'; it has to be a list of strings"),
    ("features = []", "features = [1]", "features: is [1]"),
    ("builds_on = []", 'builds_on = ["01"]', "builds_on: holds '01'"),
    ('"more.hpp"]', '"more.hpp", "third.hpp"]', "files: holds 'third.hpp', but no task is in it"),
    ('file = "more.hpp"', 'file = "other.hpp"', "tasks[2].file: is 'other.hpp'"),
    ("reading = 10", "reading = 0", "minutes.reading: is 0; it has to be an integer"),
    ("reading = 10", "reading = true", "minutes.reading: is True"),
    ("reading = 10", "reading = 1.5", "minutes.reading: is 1.5"),
    ("checkpoint = 5", "checkpoint = 5\nbreaks = 5", "minutes.breaks: is not a key"),
    ("[minutes]", "[minuten]", "minutes: is missing; it has to be a table, [minutes]"),
    ('id = "01.2"', 'id = "01.3"', "tasks[2].id: is '01.3'; ids count up in order"),
    ('tag = "01.2"', 'tag = "1.2"', "tasks[2].tag: is '1.2'"),
    ('sections = ["task-01-3"]', "sections = []", "tasks[3].sections: is []"),
    ('sections = ["task-01-3"]', 'sections = ["task-01-4"]', "the first one is 'task-01-3'"),
    ('"task-01-2b"]', '"task-01-3"]', "tasks[2].sections: holds 'task-01-3'"),
    ('"task-01-2b"]', '"task-01-2c"]', "holds 'task-01-2c'; more.hpp has no such mark"),
    ('["What?", "So.", "Thus."]', '["What?", "So."]', "tasks[1].hints: holds 2; it takes 3"),
    ('name = "server"\n', 'name = "The Server"\n', "programs[1].name: is 'The Server'"),
    ("contract = true", 'contract = "yes"', "programs[1].contract: is 'yes'"),
    ("[[programs]]", "[programs]", "one or more tables, [[programs]]"),
    ("[[tasks]]", "[[task]]", "tasks[1].id: is '01.2'"),
    ('question = "How many?"', "", "checkpoint.question: is missing"),
    ("syscalls_per_request", "calls_per_request", "checkpoint.counts[1].metric"),
    ("at_most = 2.1", "", "checkpoint.counts[1].at_most: is missing; it has to be a number"),
    ('why = "because"', "", "checkpoint.counts[1].why: is missing; it has to be a string"),
    ("at_most = 2.1", "at_most = 1.1", "at_least: is 1.9, more than at_most 1.1"),
    ("baseline = true", "baseline = false", "exactly one of them has to say baseline = true"),
    ('chapter = "01"', 'chapter = "02"', "which comes after this chapter"),
    ("[checkpoint.load]", "[checkpoint.loads]", "checkpoint.load: is missing"),
    ("rounds = 5", "rounds = 0", "checkpoint.load.rounds: is 0"),
    ('number = "01"', "number = ", "is not valid TOML"),
]


@pytest.mark.parametrize(("old", "new", "said"), BREAKS)
def test_a_break_of_the_schema_names_file_and_key(
    toml: Path, old: str, new: str, said: str
) -> None:
    edit(toml, old, new)
    with pytest.raises(CourseError) as caught:
        load_chapter(toml)
    assert said in str(caught.value)
    assert "solutions/01-first/chapter.toml" in str(caught.value)


def test_a_task_whose_file_or_mark_is_gone_is_an_error(course: Path) -> None:
    solution = course / "solutions" / "01-first"
    edit(solution / "more.hpp", "// --8<-- [start:task-01-2b]\n", "\n")
    rejects(solution, r"tasks\[2\].sections: holds 'task-01-2b'; more.hpp has")
    (solution / "more.hpp").unlink()
    rejects(solution, "files: holds 'more.hpp', but there is no such file")


def test_chapters_and_tasks_are_found_by_their_short_names(course: Path) -> None:
    def folder(chapter: Chapter) -> str:
        return chapter.folder

    assert [folder(chapter) for chapter in all_chapters(course)] == ["01-first"]
    for name in ("1", "01", "01-first", "01-first/"):
        assert folder(find_chapter(name, course)) == "01-first"
    chapter, task = find_task("1.2", course)
    assert (chapter.number, task.id) == ("01", "01.2")


@pytest.mark.parametrize("name", ["99", "0", "-1", "one", "", "01-fir", "²"])
def test_an_unknown_chapter_is_named_with_those_there_are(course: Path, name: str) -> None:
    with pytest.raises(CourseError) as caught:
        find_chapter(name, course)
    assert str(caught.value) == f"There is no chapter {name}. Try 01."


def test_an_unknown_task_is_named_with_those_there_are(course: Path) -> None:
    with pytest.raises(CourseError, match="There is no task 01.4. Chapter 01 has 01.1 to 01.3"):
        find_task("01.4", course)
    for name in ("01", "01.", ".2", "01.x", "1.2.3"):
        with pytest.raises(CourseError, match="is not a task. A task looks like 01.2"):
            find_task(name, course)


def test_no_chapter_at_all_says_that_the_clone_is_not_whole(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="holds no chapter. Is the clone whole"):
        all_chapters(tmp_path)


@pytest.mark.reads_course
def test_the_chapters_of_the_course_keep_the_schema() -> None:
    numbers = [chapter.number for chapter in all_chapters()]
    assert numbers == [f"{position:02}" for position in range(1, len(numbers) + 1)]
