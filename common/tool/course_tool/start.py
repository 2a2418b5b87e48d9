# SPDX-License-Identifier: MIT
"""`./course start`: from a fresh clone to the first chapter's red tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from course_tool import builds, console, doctor, packages, processes
from course_tool.chapters import Chapter, all_chapters
from course_tool.groups import targets_of
from course_tool.serving import HOST, PORT
from course_tool.state import load
from course_tool.status import progress_of
from course_tool.testing import Request, run_chapter

STEPS = 4
PRESET = "student"


def set_up(*, yes: bool) -> None:
    """Every step finds out what is done already, so the second run is quick."""
    chapter = all_chapters()[0]
    with _step(1, "What the course needs from the system, and Catch2"):
        packages.ensure("start", yes)
    with _step(2, "What this machine can do"):
        console.out.print(f"  {doctor.short_verdict()}")
    with _step(3, f"Build chapter {chapter.number}"):
        builds.build(PRESET, targets_of(chapter))
    with _step(4, f"Run the tests of chapter {chapter.number}"):
        run_chapter(Request(chapter, PRESET))
    console.out.print()
    console.out.print(f"The set-up is complete, after {processes.own_age_s():.0f} s.")
    _say_what_next(chapter)


@contextmanager
def _step(number: int, text: str) -> Iterator[None]:
    console.out.print(f"[{number}/{STEPS}] {text}", style="bold")
    started = time.monotonic()
    yield
    console.out.print(f"[{number}/{STEPS}] done in {time.monotonic() - started:.1f} s")


def _say_what_next(chapter: Chapter) -> None:
    task = progress_of(chapter, load()).next_task()
    if task is None:
        console.out.print(f"Chapter {chapter.number} is done; ./course status says what is next.")
        return
    if task is chapter.tasks[0]:
        console.out.print(
            "The red above is the starting point: the tests wait for what you are going to write."
        )
    page = f"http://{HOST}:{PORT}/chapters/{chapter.folder}/"
    console.out.print(f"  1. Read   ./course serve, then {page}")
    console.out.print(f"  2. Edit   chapters/{chapter.folder}/{task.file}: {task.id} {task.title}")
    console.out.print(f"  3. Test   ./course test {chapter.number}")
    console.out.print(f"Stuck? ./course hint {task.id}      Where am I? ./course status")
