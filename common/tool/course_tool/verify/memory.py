# SPDX-License-Identifier: MIT
"""What an earlier run of `./course verify` found in order, so that the next proves what changed.

A thing is known by the content of all that could change the answer: one byte of that, another
compiler or another kernel, and it is proved again. A fresh clone, and so CI, knows nothing.
"""

from __future__ import annotations

import functools
import platform
import threading
from collections.abc import Sequence
from pathlib import Path

from course_tool import builds
from course_tool.files import digest
from course_tool.paths import ROOT
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.sources import listed_files


class Memory:
    """Of one item. `of` is whatever holds for all that it asks about."""

    def __init__(self, context: Context, item: str, *of: str) -> None:
        self._folder = context.work / "known" / item
        self._folder.mkdir(parents=True, exist_ok=True)
        self._of = (*of, platform.release(), *map(str, _compilers()))
        self.known = 0
        self._counting = threading.Lock()

    def _file(self, what: Sequence[str]) -> Path:
        return self._folder / digest("\0".join((*self._of, *what)).encode())

    def holds(self, *what: str) -> bool:
        file = self._file(what)
        if not file.is_file():
            return False
        with self._counting:  # threads ask
            self.known += int(file.read_text())
        return True

    def remember(self, *what: str, proved: int = 1) -> None:
        self._file(what).write_text(str(proved))

    def tell(self, outcome: Outcome) -> None:
        """Counts what is known as proved, and says so."""
        outcome.proved += self.known
        self.note(outcome)

    def note(self, outcome: Outcome) -> None:
        if self.known:
            outcome.notes.append(
                f"{self.known} of them held in an earlier run, and nothing that they depend on has "
                "changed since"
            )


@functools.cache
def _compilers() -> tuple[object, ...]:
    return tuple(builds.compiler_version(name) for name in ("c++", builds.newest_clang() or "c++"))


def of_files(*beginnings: str) -> str:
    """The files of the course whose names begin so, byte by byte; without any, all of them."""
    names = [name for name in listed_files(ROOT) if name.startswith(beginnings or "")]
    return digest(*(f"{name}\0{digest((ROOT / name).read_bytes())}\0".encode() for name in names))
