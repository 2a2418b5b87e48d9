# SPDX-License-Identifier: MIT
"""./course grade: points for what a student's chapters do, whatever else was edited."""

from __future__ import annotations

import json
import signal
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from conftest import alive_with, git
from live_course import LiveCourse, flat, wait_until


@pytest.fixture
def cloned(live: LiveCourse) -> LiveCourse:
    live.link_dependencies()
    live.commit()
    return live


def graded(live: LiveCourse, *args: str) -> dict[str, Any]:
    done = live.run("grade", "--out", "result.json", *args)
    assert done.code == 0, done.err
    return json.loads((live.root / "result.json").read_text())


def parts_of(result: dict[str, Any], number: str) -> dict[str, dict[str, Any]]:
    [chapter] = [each for each in result["chapters"] if each["number"] == number]
    return {part["id"]: part for part in chapter["parts"]}


def test_a_starter_has_no_points(cloned: LiveCourse) -> None:
    result = graded(cloned)
    assert (result["points"], result["points_max"]) == (0, 80)
    assert [each["number"] for each in result["chapters"]] == ["01", "02"]
    adds = parts_of(result, "01")["01.1"]
    assert (adds["passed"], adds["failed"], adds["points_max"]) == (0, 2, 10)
    assert "01.1 not written yet: chapters/01-first/work.hpp:6" in adds["tests"][0]["message"]
    assert parts_of(result, "01")["01 contract"]["note"] == "it runs once all tasks are whole"


def test_a_chapter_that_is_done_has_all_of_them(cloned: LiveCourse) -> None:
    cloned.solve()
    result = graded(cloned)
    assert [each["points"] for each in result["chapters"]] == [40, 0]
    assert [part["points"] for part in parts_of(result, "01").values()] == [10, 10, 10, 10]


def test_a_chapter_without_a_contract_is_tried_as_a_whole(live: LiveCourse) -> None:
    live.take_the_contract_away()
    live.link_dependencies()
    live.commit()
    waiting = parts_of(graded(live), "01")["01 whole"]
    assert (waiting["points_max"], waiting["note"]) == (10, "it runs once all tasks are whole")
    live.solve()
    live.say("01 the: red")
    result = graded(live, "--chapters", "01")
    assert (result["points"], result["points_max"]) == (30, 40)
    whole = parts_of(result, "01")["01 whole"]
    assert (whole["title"], whole["passed"], whole["failed"]) == ("The chapter as a whole", 0, 1)
    assert whole["tests"][0]["name"] == "01 the programs greet"


def test_part_of_a_task_is_part_of_its_points(cloned: LiveCourse) -> None:
    cloned.solve()
    cloned.say("01.1: red")
    adds = parts_of(graded(cloned), "01")["01.1"]
    assert (adds["points"], adds["passed"], adds["failed"]) == (5, 1, 1)
    assert adds["tests"][0]["status"] == "failed"
    assert adds["tests"][0]["message"].startswith("the carry was added twice: clear it")


def test_the_shape_never_varies(cloned: LiveCourse) -> None:
    cloned.solve()
    cloned.say("01.2: crash")
    cloned.say("SYNTAX ERROR", chapter="02-second")
    result = graded(cloned)
    assert list(result) == ["schema", "commit", "points", "points_max", "seconds", "chapters"]
    assert result["schema"] == 1
    assert result["commit"] == git(cloned.root, "rev-parse", "HEAD").strip()
    for chapter in result["chapters"]:
        assert list(chapter) == [
            "number", "slug", "title", "points", "points_max", "compiled", "error", "seconds",
            "parts",
        ]  # fmt: skip
        assert len(chapter["parts"]) == 4
        for part in chapter["parts"]:
            assert list(part) == [
                "id", "title", "points", "points_max", "passed", "failed", "seconds", "note",
                "tests",
            ]  # fmt: skip
            for test in part["tests"]:
                assert list(test) == ["name", "status", "seconds", "message"]
    crash = parts_of(result, "01")["01.2"]["tests"][0]
    assert crash["status"] == "crashed" and crash["message"].startswith("crashed: SIGSEGV")


def test_a_chapter_that_does_not_compile_scores_zero_and_the_others_count(
    cloned: LiveCourse,
) -> None:
    cloned.solve(chapter="02-second")
    cloned.say("SYNTAX ERROR")
    result = graded(cloned)
    first, second = result["chapters"]
    assert (first["points"], first["compiled"]) == (0, False)
    assert first["error"].startswith("chapters/01-first/work.hpp:12:5: error: expected ';'")
    assert {part["note"] for part in first["parts"]} == {"the chapter does not compile"}
    assert (second["points"], second["compiled"], second["error"]) == (40, True, None)


def test_edits_outside_chapters_do_not_count(cloned: LiveCourse) -> None:
    (cloned.root / "tests" / "case.py").write_text("print('all is well')\n")
    (cloned.root / "cmake" / "compile.py").write_text("")
    (cloned.root / "CMakeLists.txt").write_text("nonsense(\n")
    tool = cloned.root / "common" / "tool" / "course_tool" / "groups.py"
    tool.write_text(tool.read_text().replace('return "todo"', 'return "green"'))
    assert graded(cloned)["points"] == 0


def test_another_commit_may_hold_the_tests(cloned: LiveCourse) -> None:
    git(cloned.root, "tag", "handed-out")
    (cloned.root / "tests" / "case.py").write_text("print('all is well')\n")
    git(cloned.root, "commit", "-q", "-a", "-m", "a student was here")
    assert graded(cloned)["points"] == 80
    assert graded(cloned, "--course", "handed-out")["points"] == 0


def test_a_broken_cmakelists_of_one_chapter_spoils_nothing(cloned: LiveCourse) -> None:
    cloned.solve(chapter="02-second")
    (cloned.yours / "CMakeLists.txt").write_text("nonsense(\n")
    assert [each["points"] for each in graded(cloned)["chapters"]] == [0, 40]


def test_a_chapter_that_is_gone_is_graded_as_empty(cloned: LiveCourse) -> None:
    for file in cloned.yours.iterdir():
        file.unlink()
    cloned.yours.rmdir()
    cloned.solve(chapter="02-second")
    assert graded(cloned)["chapters"][1]["points"] == 40


def test_a_skip_counts_as_failed(cloned: LiveCourse) -> None:
    cloned.solve()
    cloned.say("01.2: skip")
    part = parts_of(graded(cloned), "01")["01.2"]
    assert (part["points"], part["failed"]) == (0, 1)
    assert part["tests"][0]["status"] == "failed"


def test_junit_stands_beside_it(cloned: LiveCourse) -> None:
    cloned.solve()
    cloned.say("01.2: red")
    graded(cloned, "--chapters", "01")
    root = ElementTree.parse(cloned.root / "result.xml").getroot()
    [suite] = root.findall("testsuite")
    assert suite.get("name") == "01-first"
    assert (suite.get("tests"), suite.get("failures")) == ("5", "2")
    failed = [case.get("name") for case in suite.iterfind("testcase[failure]")]
    assert failed == ["01.2 says yes", "01 contract The echo contract"]
    text = suite.findtext("testcase[@name='01.2 says yes']/failure")
    assert text is not None and "the carry was added twice" in text


def test_only_the_chapters_that_are_asked_for(cloned: LiveCourse) -> None:
    result = graded(cloned, "--chapters", "2")
    assert [each["number"] for each in result["chapters"]] == ["02"]


def test_the_clone_itself_is_left_alone(cloned: LiveCourse, tmp_path: Path) -> None:
    cloned.solve()
    before = git(cloned.root, "status", "--porcelain")
    out = tmp_path / "graded here" / "result.json"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = cloned.run("grade", "--out", out, cwd=tmp_path, env={"TMPDIR": str(scratch)})
    assert done.code == 0
    assert f"40 of 80 points: {out}" in done.out
    assert sorted(file.name for file in out.parent.iterdir()) == ["result.json", "result.xml"]
    assert git(cloned.root, "status", "--porcelain") == before
    assert not (cloned.root / "build").exists() and not (cloned.root / ".course").exists()
    assert not list(scratch.iterdir())
    assert git(cloned.root, "worktree", "list").count("\n") == 1


def test_ctrl_c_leaves_nothing(cloned: LiveCourse, tmp_path: Path) -> None:
    cloned.solve()
    cloned.say("SLOW")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tool = cloned.start("grade", "--out", "result.json", env={"TMPDIR": str(scratch)})
    compiles = "compile.py " + str(scratch)
    wait_until(lambda: alive_with(compiles), "the build")
    tool.send_signal(signal.SIGINT)
    _, err = tool.communicate(timeout=60)
    assert tool.returncode == 130
    assert err.count("interrupted") == 1
    wait_until(lambda: not alive_with(str(scratch)), "its processes to be gone")
    assert not list(scratch.iterdir())
    assert not (cloned.root / "result.json").exists()


def test_outside_of_git_it_says_why_not(live: LiveCourse) -> None:
    done = live.run("grade", "--out", "result.json")
    assert done.code == 1
    assert "Grading takes the tests from git, and git rev-parse failed: fatal: not a git" in flat(
        done.err
    )
    assert not (live.root / "result.json").exists()


def test_inside_of_another_clone_it_says_so(live: LiveCourse) -> None:
    git(live.root.parent, "init", "-q")
    live.refused("grade", "--out", "result.json", said="this folder is not a git clone of its own")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 2, "Missing option '--out'"),
        (["--out", "tests"], 1, "--out tests is a folder; name a file in it"),
        (["--out", "CMakeLists.txt/x.json"], 1, "--out CMakeLists.txt/x.json: "),
        (["--out", "r.json", "--chapters", "01,99"], 1, "There is no chapter 99. Try 01 to 02."),
        (["--out", "r.json", "--course", "nowhere"], 1, "git rev-parse failed: fatal"),
        (["--out", "r.json", "--course", "--all"], 1, "git rev-parse failed: fatal"),
    ],
)
def test_bad_input(cloned: LiveCourse, args: list[str], code: int, said: str) -> None:
    cloned.refused("grade", *args, said=said, code=code)
    assert not (cloned.root / "r.json").exists()
