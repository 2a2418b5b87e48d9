# SPDX-License-Identifier: MIT
"""`./course watch`: the tests again at every save, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from course_tool import console
from course_tool.errors import CourseError
from course_tool.testing import Request, run_chapter

SETTLE_MS = 150  # an editor's save is often several changes
TICK_MS = 500


def watch_chapter(request: Request) -> None:
    """Does not return: Ctrl-C (KeyboardInterrupt) ends it.

    What is saved while a build or a test runs is kept by the watcher and starts the next round.
    """
    folder = request.chapter.starter if request.is_students else request.chapter.solution
    if not folder.is_dir():
        raise CourseError(f"{folder} is missing; `./course reset {request.chapter.number}` helps.")
    changes = _changes(folder)  # from before the first run, so that nothing is missed
    while True:
        _run_once(request)
        console.out.print("Waiting for the next save; Ctrl-C ends.", style="dim")
        names = next(changes)
        if console.out.is_terminal:
            console.out.clear()
        console.out.print(f"Saved: {', '.join(names)}")


def _run_once(request: Request) -> None:
    try:
        run_chapter(request)
    except CourseError as error:
        console.out.print(f"{error}")


def _changes(folder: Path) -> Iterator[list[str]]:
    """The names of the files of each save from now on, also of those made while nobody asks."""
    from watchfiles import watch  # here: it takes long to load

    events = watch(
        folder, debounce=SETTLE_MS, step=50, rust_timeout=TICK_MS, yield_on_timeout=True
    )
    next(events)  # empty, and from now on it watches
    saved = ({Path(path).name for _, path in changed} for changed in events)
    return (sorted(names) for each in saved if (names := set(filter(_is_source, each))))


def _is_source(name: str) -> bool:
    """Not one of the files that editors keep beside the real one."""
    return not name.startswith((".", "#")) and not name.endswith(("~", ".orig", ".bak"))
