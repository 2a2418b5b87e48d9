# SPDX-License-Identifier: MIT
"""Chapter 01 itself, built by a real compiler: red, broken and green, as a student meets it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from course_tool import marks
from course_tool.chapters import Chapter, load_chapter
from course_tool.paths import BUILD
from live_course import LiveCourse, flat

pytestmark = [pytest.mark.reads_course, pytest.mark.slow, pytest.mark.timeout(600)]

# It builds this of the copy; see verify/suites.py.
READS = ("solutions/01-", "tests/01-", "tests/13-", "tests/13-http-parser/fuzz_main.cpp")
TREE = ("CMakeLists.txt", "CMakePresets.json", "cmake", "common", "solutions", "tests")


class RealCourse(LiveCourse):
    """The course itself, with fresh starters, in another folder."""

    timeout_s = 500

    def __init__(self, root: Path) -> None:
        self.root = root
        ignored = shutil.ignore_patterns("__pycache__")
        for name in TREE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            more = {"ignore": ignored} if (ROOT / name).is_dir() else {}
            copy(ROOT / name, root / name, **more)
        for solution in sorted((root / "solutions").glob("[0-9][0-9]-*")):
            self._make_starter(solution.name)
        if (ROOT / ".deps").is_dir():
            (root / ".deps").symlink_to(ROOT / ".deps")

    @property
    def chapter(self) -> Chapter:
        return load_chapter(self.root / "solutions" / "01-blocking-echo")

    def write_task(self, task_id: str) -> None:
        """As a student would, but from the solution."""
        chapter = self.chapter
        [task] = [task for task in chapter.tasks if task.id == task_id]
        sections = {each.name: each.body for each in marks.parse(chapter.solution / task.file)}
        file = chapter.starter / task.file
        text = file.read_text()
        todo = re.compile(rf' *COURSE_TODO\("{task_id}"\);')
        for name in task.sections:
            before, after = todo.split(text, maxsplit=1)
            text = before + "\n".join(sections[name]) + after
        file.write_text(text)


@pytest.fixture(scope="module")
def real() -> Iterator[RealCourse]:
    """At the same place each time: what has not changed since comes out of a ccache then."""
    root = BUILD / "tests" / "a clone"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    yield RealCourse(root)
    shutil.rmtree(root)


def test_a_student_goes_from_red_to_green(real: RealCourse) -> None:
    red = real.run("test", "01")
    assert red.code == 1
    for task in real.chapter.tasks:
        where = rf"{task.id} not written yet: write it at chapters/01-blocking-echo/{task.file}:\d+"
        assert re.search(where, red.out), red.out

    for task in real.chapter.tasks[:3]:
        real.write_task(task.id)
    echo = real.chapter.starter / "echo.hpp"
    good = echo.read_text()
    echo.write_text(good.replace("data = data.subspan(", "data = data.nonsense("))
    broken = real.run("test", "01")
    assert broken.code == 1
    assert re.search(
        r"course: chapters/01-blocking-echo/echo.hpp:\d+:\d+: error: .*nonsense", broken.err
    )

    echo.write_text(good.replace("data = data.subspan(static_cast<std::size_t>(taken));", "break;"))
    short = flat(real.run("test", "01", "-t", "01.2").out)
    assert "01.2 a short send is continued where it stopped" in short
    assert "the rest was never sent: go on from where it stopped" in short

    echo.write_text(good)
    green = real.run("test", "01", "-t", "01.2")
    assert (green.code, "Task 01.2 is green" in green.out) == (0, True), green.out


def test_the_fuzzer_runs_on_the_solution_and_finds_an_open_task(real: RealCourse) -> None:
    solved = real.run("fuzz", "13", "--solution", "--seconds", "2")
    assert solved.code == 0, solved.out + solved.err
    assert "nothing found" in solved.out
    open_tasks = real.run("fuzz", "13", "--seconds", "2")
    assert open_tasks.code == 1, open_tasks.out + open_tasks.err
    assert "An input was found: TODO 13." in open_tasks.out
