# SPDX-License-Identifier: MIT
"""`./course status`: how far a student is, from the files and from what is remembered of test runs.

No build and no test is run here, so it is quick; what a run would say is never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rich.text import Text

from course_tool import console
from course_tool.chapters import Chapter, Task
from course_tool.groups import contract_key, has_contract, whole_of
from course_tool.places import fingerprints
from course_tool.state import State


class Standing(Enum):
    """Of a task; the value is what the reader sees."""

    DONE = "done"
    CHANGED = "changed since it was green"
    RED = "red"
    SKIPPED = "skipped on this machine"
    STARTED = "started, not tested"
    NOT_STARTED = "not started"


_STYLES = {
    Standing.DONE: "green",
    Standing.CHANGED: "yellow",
    Standing.RED: "red",
    Standing.SKIPPED: "yellow",
    Standing.STARTED: "yellow",
    Standing.NOT_STARTED: "dim",
}


@dataclass(frozen=True)
class Progress:
    """Of a chapter."""

    chapter: Chapter
    tasks: dict[str, Standing]  # by task id, in order
    whole: Standing | None  # of what is tried once the tasks are done; None: nothing is
    checkpoint_run: bool

    @property
    def green(self) -> bool:
        """Every test of the chapter was green when it was last run, on the code of now."""
        return all(standing is Standing.DONE for standing in self._all())

    @property
    def started(self) -> bool:
        return any(standing is not Standing.NOT_STARTED for standing in self.tasks.values())

    @property
    def minutes_left(self) -> int:
        """A page is read before its first task; a task counts until it is done."""
        minutes = self.chapter.minutes
        open_tasks = sum(standing is not Standing.DONE for standing in self.tasks.values())
        reading = 0 if self.started else minutes.reading
        tasks = round(minutes.tasks * open_tasks / len(self.tasks))
        return reading + tasks + (0 if self.checkpoint_run else minutes.checkpoint)

    def next_task(self) -> Task | None:
        """The first one that is not done."""
        for task in self.chapter.tasks:
            if self.tasks[task.id] is not Standing.DONE:
                return task
        return None

    def _all(self) -> list[Standing]:
        return [*self.tasks.values(), *([self.whole] if self.whole else [])]


def progress_of(chapter: Chapter, state: State) -> Progress:
    now = fingerprints(chapter)
    tasks = {
        task.id: Standing.NOT_STARTED
        if _untouched(chapter, task)
        else _standing(state, task.id, now[task.id])
        for task in chapter.tasks
    }
    whole = None
    if whole_of(chapter):
        whole = _standing(state, contract_key(chapter), now[contract_key(chapter)])
        if whole is Standing.STARTED:
            whole = Standing.NOT_STARTED
    return Progress(chapter, tasks, whole, chapter.number in state.checkpoints)


def _untouched(chapter: Chapter, task: Task) -> bool:
    """Every place of the task still holds its COURSE_TODO."""
    if not chapter.starter.is_dir():
        return True
    file = chapter.starter / task.file
    if not file.is_file():
        return False
    text = file.read_text(encoding="utf-8", errors="replace")
    return text.count(f'COURSE_TODO("{task.id}")') >= len(task.sections)


def _standing(state: State, key: str, now: str) -> Standing:
    record = state.records.get(key)
    if record is None or record.result == "todo":
        return Standing.STARTED
    if record.result == "green":
        return Standing.DONE if record.fingerprint == now else Standing.CHANGED
    return Standing.SKIPPED if record.result == "skipped" else Standing.RED


def show(progresses: Sequence[Progress]) -> None:
    """Prints every chapter and task, the minutes left, and what comes next."""
    for progress in progresses:
        _show_chapter(progress)
    left = sum(progress.minutes_left for progress in progresses)
    total = sum(progress.chapter.minutes.total for progress in progresses)
    console.out.print()
    console.out.print(f"Left: {duration(left)} of {duration(total)}.")
    console.out.print(f"Next: {_next(progresses)}")


def _show_chapter(progress: Progress) -> None:
    chapter = progress.chapter
    done = sum(standing is Standing.DONE for standing in progress.tasks.values())
    console.out.print(
        f"{chapter.number} {chapter.title}: {done} of {len(chapter.tasks)} tasks done, "
        f"{duration(progress.minutes_left)} left",
        style="bold",
    )
    width = max(len(task.title) for task in chapter.tasks)
    for task in chapter.tasks:
        _show_line(f"{task.id}  {task.title:<{width}}", progress.tasks[task.id])
    whole = whole_of(chapter)
    if whole and progress.whole:
        _show_line(f"{'':4}  {whole[1]:<{width}}", progress.whole)


def _show_line(label: str, standing: Standing) -> None:
    console.out.print(Text.assemble(f"  {label}  ", (standing.value, _STYLES[standing])))


def _next(progresses: Sequence[Progress]) -> str:
    for progress in progresses:
        number = progress.chapter.number
        task = progress.next_task()
        if task:
            return f"task {task.id}, {task.title}: ./course test {number} -t {task.id}"
        if not progress.green:
            what = "the echo contract" if has_contract(progress.chapter) else "the whole"
            return f"{what} of chapter {number}: ./course test {number}"
        if not progress.checkpoint_run:
            return f"the checkpoint of chapter {number}: ./course bench {number}"
    return "nothing. You have been through the whole course."


def duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    if not hours:
        return f"{rest} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"
