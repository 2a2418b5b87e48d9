# SPDX-License-Identifier: MIT
"""`./course hint`: a task's three hints, one further each time it is asked for."""

from __future__ import annotations

from enum import Enum, auto

from course_tool import console, state
from course_tool.chapters import Chapter, Task, find_chapter, find_task
from course_tool.status import progress_of


class Which(Enum):
    NEXT = auto()
    AGAIN = auto()  # the one that was shown last
    ALL = auto()


def show_hint(name: str, which: Which) -> None:
    """Accepts a task, 01.2, or a chapter: then it is the first task that is not green."""
    if "." in name:
        chapter, task = find_task(name)
    else:
        chapter = find_chapter(name)
        first_open = progress_of(chapter, state.load()).next_task()
        if first_open is None:
            console.out.print(
                f"Every task of chapter {chapter.number} is green. "
                f"`./course hint {chapter.tasks[0].id} --again` repeats a task's last hint."
            )
            return
        task = first_open
    _show(chapter, task, which)


def _show(chapter: Chapter, task: Task, which: Which) -> None:
    count = len(task.hints)
    last = _advance(task, which)
    console.out.print(f"{task.id} {task.title}", style="bold")
    for number in range(1 if which is Which.ALL else last, last + 1):
        console.out.print(f"Hint {number} of {count}: {task.hints[number - 1]}")
    if last == count:
        console.out.print(
            f"There are no more hints. To compare with the solution: ./course diff {chapter.number}"
        )
    else:
        console.out.print(f"Still stuck? ./course hint {task.id}", style="dim")


def _advance(task: Task, which: Which) -> int:
    """Returns the number of the hint to show, counted from 1, and remembers it."""
    with state.changing() as remembered:
        shown = remembered.hints.get(task.id, 0)
        step = {Which.NEXT: shown + 1, Which.AGAIN: max(1, shown), Which.ALL: len(task.hints)}
        last = min(step[which], len(task.hints))
        remembered.hints[task.id] = last
    return last
