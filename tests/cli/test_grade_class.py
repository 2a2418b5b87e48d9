# SPDX-License-Identifier: MIT
"""./course grade --class: many clones, the same points, and nobody pays for anybody else."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import alive_with
from course_tool.class_grading import Ticks, others_share
from live_course import LiveCourse, flat, wait_until

COLUMNS = ["student", "points", "of", "01.1", "01.2", "01.3", "01 contract", "note"]


class Class:
    """The folder in which a teacher collects what was handed in."""

    def __init__(self, live: LiveCourse, folder: Path) -> None:
        self.live = live
        self.folder = folder
        self.folder.mkdir()

    def student(self, name: str, *says: str, solved: bool = True) -> Path:
        """Their chapter 01, where each of `says` is a comment that the tests heed."""
        clone = self.folder / name
        shutil.copytree(self.live.root / "chapters", clone / "chapters")
        work = clone / "chapters" / "01-first"
        for file in work.glob("*.hpp"):
            text = file.read_text()
            if solved:
                text = re.sub(r'COURSE_TODO\("\d\d\.\d"\);', "solved();", text)
            file.write_text(text)
        with (work / "work.hpp").open("a") as file:
            file.writelines(f"// {each}\n" for each in says)
        return work

    def command(self, *more: str) -> list[str | Path]:
        chapters = more or ("--chapters", "01")
        return ["grade", "--class", self.folder, "--out", "grades.csv", *chapters]

    def grade(self, *more: str) -> dict[str, list[str]]:
        """By student, the rest of their row."""
        done = self.live.run(*self.command(*more))
        assert done.code == 0, done.err
        self.said = done.out
        with (self.live.root / "grades.csv").open(newline="") as file:
            self.columns, *rows = csv.reader(file)
        return {row[0]: row[1:] for row in rows}

    def result(self, name: str) -> dict[str, Any]:
        return json.loads((self.live.root / "grades" / f"{name}.json").read_text())


@pytest.fixture
def taught(live: LiveCourse, tmp_path: Path) -> Class:
    live.link_dependencies()
    live.commit()
    return Class(live, tmp_path / "handed in")


def test_everybody_has_a_row_in_the_csv_and_in_the_table(taught: Class) -> None:
    taught.student("ada")
    taught.student("bob", solved=False)
    taught.student("cyd", "01.1: red")
    assert taught.grade() == {
        "ada": ["40", "40", "10", "10", "10", "10", ""],
        "bob": ["0", "40", "0", "0", "0", "0", ""],
        "cyd": ["25", "40", "5", "10", "10", "0", ""],
    }
    assert taught.columns == COLUMNS
    assert "cyd 25 40 5 10 10 0" in flat(taught.said)


def test_the_points_are_those_of_grade(taught: Class) -> None:
    live = taught.live
    for says in ("01.1: red", "01.2: crash", "01.3: mute", "01 contract: red", "SYNTAX ERROR"):
        work = taught.student("ada", says)
        taught.grade()
        shutil.rmtree(live.yours)
        shutil.move(work, live.yours)
        assert live.run("grade", "--out", "alone.json", "--chapters", "01").code == 0
        alone = json.loads((live.root / "alone.json").read_text())
        assert without_times(taught.result("ada")) == without_times(alone), says
        shutil.rmtree(taught.folder / "ada")


def without_times(result: Any) -> Any:
    if isinstance(result, list):
        return [without_times(each) for each in result]
    if isinstance(result, dict):
        return {key: without_times(each) for key, each in result.items() if key != "seconds"}
    return result


def test_who_hangs_crashes_or_does_not_compile_costs_the_others_nothing(taught: Class) -> None:
    taught.student("a", "01.1: hang")
    taught.student("b", "01.2: crash")
    taught.student("c", "SYNTAX ERROR")
    taught.student("d", "01.3: loud")
    taught.student("e")
    taught.student("f", "01.1: spins")
    rows = taught.grade()
    assert [row[0] for row in rows.values()] == ["25", "20", "0", "20", "40", "25"]
    [spun, _] = cases_of(taught.result("f"), "01.1")
    assert "ended after too much processor time: a loop without end?" in spun["message"]
    error = "chapters/01-first/work.hpp:12:5: error: expected ';' before '}' token"
    assert rows["c"][-1] == f"01 does not compile: {error}"
    assert f"c: 01 does not compile: {error}" in flat(taught.said)
    assert "timeout" in {test["status"] for test in cases_of(taught.result("a"), "01.1")}
    assert {test["status"] for test in cases_of(taught.result("b"), "01.2")} == {"crashed"}


def cases_of(result: dict[str, Any], part: str) -> list[dict[str, Any]]:
    parts = {each["id"]: each for chapter in result["chapters"] for each in chapter["parts"]}
    return parts[part]["tests"]


def test_what_is_missing_is_missing_to_its_owner_alone(taught: Class) -> None:
    (taught.student("a file") / "more.hpp").unlink()
    shutil.rmtree(taught.student("a chapter"))
    taught.student("everything")
    shutil.rmtree(taught.folder / "everything" / "chapters")
    (taught.student("a build") / "CMakeLists.txt").write_text("nonsense(\n")
    rows = taught.grade()
    assert [row[0] for row in rows.values()] == ["40", "0", "0", "0"]
    missing = '01 does not compile: chapters/01-first/more.hpp:1:5: error: expected'
    assert rows["a file"][-1].startswith(missing)
    assert rows["everything"][-1].startswith("there is no chapters/ in it; 01 does not compile")


def test_links_end_at_the_clone_and_what_is_no_source_is_left_out(taught: Class) -> None:
    inside = taught.student("inside")
    inside.rename(taught.folder / "inside" / "mine")
    inside.symlink_to("../mine")
    outside = taught.student("outside")
    shutil.rmtree(outside)
    outside.symlink_to("../../inside/mine")
    odd = taught.student("odd")
    os.mkfifo(odd / "pipe.hpp")
    (odd / "zero.hpp").symlink_to("/dev/zero")
    (odd / "self.hpp").symlink_to("self.hpp")
    (odd / "core").write_bytes(bytes(2_000_000))
    (odd / "folder.hpp").mkdir()
    rows = taught.grade()
    assert [row[0] for row in rows.values()] == ["40", "40", "0"]
    left_out = "of its files: links that lead out of the clone, or larger than 1 MiB."
    assert rows["inside"][-1] == ""
    assert rows["odd"][-1] == f"01: left out 1 {left_out}"
    assert rows["outside"][-1].startswith(f"01: left out 3 {left_out}; 01 does not compile")


def test_names_may_be_anything(taught: Class) -> None:
    names = ["=1+1|'x'", 'a "b", c', "line\nbreak", "[red]bold[]", "x" * 200, os.fsdecode(b"\xff")]
    for name in names:
        work = taught.student(name)
        (work / "a\nb.hpp").write_text("// nothing\n")
        (work / os.fsdecode(b"-\xff.hpp")).write_text("// nothing\n")
    rows = taught.grade()
    shown = ["'=1+1|'x'", 'a "b", c', "line\N{REPLACEMENT CHARACTER}break", "[red]bold[]"]
    assert set(rows) == {*shown, "x" * 200, "\N{REPLACEMENT CHARACTER}"}
    assert {row[0] for row in rows.values()} == {"40"}
    files = [file.name for file in (taught.live.root / "grades").glob("*.json")]
    assert len([name for name in files if not name.startswith(".")]) == len(names)
    assert "[red]bold[]" in taught.said


def test_what_is_graded_is_not_graded_again(taught: Class) -> None:
    taught.student("ada")
    changed = taught.student("bob", "01.1: red")
    assert taught.grade()["bob"][0] == "25"
    assert "2 students, 0 of them graded before" in taught.said
    was = (taught.live.root / "grades" / "ada.json").stat().st_mtime_ns
    (changed / "work.hpp").write_text((changed / "work.hpp").read_text().replace("red", "green"))
    taught.student("cyd", solved=False)
    assert [row[0] for row in taught.grade().values()] == ["40", "40", "0"]
    assert "3 students, 1 of them graded before" in taught.said
    assert (taught.live.root / "grades" / "ada.json").stat().st_mtime_ns == was
    taught.grade("--chapters", "01,02")
    assert "3 students, 0 of them graded before" in taught.said


def test_many_chapters_have_their_sums_in_the_table(taught: Class) -> None:
    taught.student("ada")
    rows = taught.grade("--chapters", "1,2")
    assert rows == {"ada": ["40", "80", "10", "10", "10", "10", "0", "0", "0", "0", ""]}
    assert re.search(r"student points of 01 02 .*ada 40 80 40 0", flat(taught.said))


def test_it_can_be_stopped_and_goes_on(taught: Class) -> None:
    taught.student("ada")
    slow = taught.student("bob", "SLOW")
    copy = taught.live.root / "build" / "class" / "course"
    first = taught.live.root / "grades" / ".graded.json"  # of ada, once her result is whole
    tool = taught.live.start(*taught.command())
    wait_until(lambda: first.is_file() and alive_with(f"compile.py {copy}"), "bob's build")
    tool.send_signal(signal.SIGINT)
    _, err = tool.communicate(timeout=60)
    assert tool.returncode == 130
    assert err.count("interrupted") == 1
    wait_until(lambda: not alive_with(str(copy)), "its processes to be gone")
    assert not (taught.live.root / "grades.csv").exists()
    (slow / "work.hpp").write_text((slow / "work.hpp").read_text().replace("SLOW", ""))
    assert [row[0] for row in taught.grade().values()] == ["40", "40"]
    assert "2 students, 1 of them graded before" in taught.said


def test_what_a_students_program_leaves_behind_is_ended(taught: Class) -> None:
    taught.student("ada", "01.1: stays")
    assert taught.grade()["ada"][0] == "40"
    wait_until(lambda: not alive_with("left behind"), "it to be gone")
    aside = taught.live.root / "build" / "class" / "course" / "build" / "class"
    assert not list(aside.iterdir())


def test_nobody_is_graded_where_the_solution_has_not_all_points(taught: Class) -> None:
    solution = taught.live.root / "solutions" / "01-first" / "work.hpp"
    solution.write_text(solution.read_text() + "// 01.2: skip\n")
    taught.live.commit()
    taught.student("ada")
    said = (
        "Chapter 01: on this machine the course's own solution has 20 of 40 points, so nobody is",
        "01.2 says yes: this machine has no ring: EPERM",
    )
    taught.live.refused(*taught.command(), said=said)
    assert not (taught.live.root / "grades.csv").exists()


def test_another_commit_is_another_course(taught: Class) -> None:
    taught.student("ada")
    assert taught.grade()["ada"][0] == "40"
    case = taught.live.root / "tests" / "case.py"
    case.write_text(case.read_text().replace('if kind == "red":', 'if "large" in name:'))
    taught.live.commit()
    said = "the course's own solution has 25 of 40 points"
    taught.live.refused(*taught.command(), said=said)


def test_what_others_use_is_told_from_our_own() -> None:
    before = Ticks(idle=1000, all=5000, own=10)
    assert others_share(before, Ticks(idle=1500, all=6000, own=110)) == pytest.approx(0.4)
    assert others_share(before, Ticks(idle=1000, all=6000, own=1200)) == 0.0
    assert others_share(before, before) == 0.0


def test_bad_input(taught: Class) -> None:
    refused = taught.live.refused
    out = ("--out", "grades.csv")
    refused("grade", "--class", taught.folder, *out, said="there is no folder in it")
    refused("grade", "--class", taught.live.root, *out, said="that is a clone. It takes the folder")
    refused("grade", "--class", "nowhere", *out, said="nowhere: No such file or directory")
    refused("grade", "--class", taught.folder, "--out", "grades", said="a name such as grades.csv")
    taught.student("ada")
    refused(*taught.command("--chapters", "99"), said="There is no chapter 99")
