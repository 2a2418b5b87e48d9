# SPDX-License-Identifier: MIT
"""What the reader sees: two consoles, progress that also works without a terminal, tables.

Both consoles print text as it is: `[01.1]` in a compiler's or a test's output is not markup. Style
by `out.print(text, style="bold")`, by rich's Text, or by `markup=True` where no outside text comes
in. rich itself honors NO_COLOR and leaves colors out where there is no terminal.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

# Lines are wrapped by the terminal, not by us: a path in a log stays in one piece.
out = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
err = Console(markup=False, highlight=False, emoji=False, soft_wrap=True, stderr=True)

LINE_EVERY_S = 10.0
SILENT_S = 2.0


class Steps:
    """How far a long piece of work is. `progress()` makes one; this one says nothing."""

    def step(self, text: str = "", count: int = 1) -> None:
        """`count` steps are done; `text` says what comes or came."""

    def at(self, completed: int, total: int | None = None, text: str = "") -> None:
        """Sets where we are, for work that counts by itself (such as a build)."""


class _BarSteps(Steps):
    def __init__(self, bar: Progress, task: TaskID, total: int | None) -> None:
        self._bar = bar
        self._task = task
        self._total = total
        self._done = 0

    def step(self, text: str = "", count: int = 1) -> None:
        self.at(self._done + count, text=text)

    def at(self, completed: int, total: int | None = None, text: str = "") -> None:
        self._done = completed
        self._total = total if total is not None else self._total
        count = f"{completed}/{self._total}" if self._total else ""
        self._bar.update(
            self._task, completed=completed, total=self._total or None, text=text, count=count
        )


class _LineSteps(Steps):
    """Without a terminal: a line a step, and a line now and then for work that counts itself.

    Work that is done at once says nothing: a build in which nothing had changed, for one.
    """

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._total = total
        self._done = 0
        self._next_line_s = time.monotonic() + LINE_EVERY_S
        self._opening = threading.Timer(SILENT_S, err.print, [f"{description} …"])
        self._opening.daemon = True
        self._opening.start()

    def close(self) -> None:
        self._opening.cancel()

    def step(self, text: str = "", count: int = 1) -> None:
        self._done += count
        self._line(text)

    def at(self, completed: int, total: int | None = None, text: str = "") -> None:
        self._done = completed
        self._total = total if total is not None else self._total
        if time.monotonic() >= self._next_line_s:
            self._line(text)

    def _line(self, text: str) -> None:
        self._opening.cancel()  # this line says as much
        self._next_line_s = time.monotonic() + LINE_EVERY_S
        count = f"{self._done} of {self._total}" if self._total else str(self._done or "")
        err.print(f"{self._description}: " + "  ".join(filter(None, (count, text))))


_thread = threading.local()


@contextmanager
def without_progress() -> Iterator[None]:
    """What this thread does says nothing of its progress: two threads have one terminal."""
    _thread.silent = True
    try:
        yield
    finally:
        _thread.silent = False


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Steps]:
    """Shows that something long goes on: a bar on a terminal, else lines; both on stderr.

    `total` is the number of steps, 0 if the work itself will say it, None if there are none.
    """
    if getattr(_thread, "silent", False):
        yield Steps()
        return
    if not err.is_terminal:
        lines = _LineSteps(description, total)
        try:
            yield lines
        finally:
            lines.close()
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if total is not None:
        columns += [BarColumn(bar_width=24), TextColumn("{task.fields[count]}", markup=False)]
    columns += [TimeElapsedColumn(), TextColumn("{task.fields[text]}", style="dim", markup=False)]
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(description, total=total or None, text="", count="")
        yield _BarSteps(bar, task, total)


def table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A plain table; columns whose name ends in '>' are right-aligned (for numbers)."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for column in columns:
        right = column.endswith(">")
        made.add_column(Text(column.rstrip(">")), justify="right" if right else "left")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return made
