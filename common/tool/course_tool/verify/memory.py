# SPDX-License-Identifier: MIT
"""What an earlier run of `./course verify` found in order, so that the next proves what changed.

A thing is known by the content of all that could change the answer: one byte of that, another
compiler or another kernel, and it is proved again. A fresh clone, and so CI, knows nothing.
"""

from __future__ import annotations

import functools
import platform
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from course_tool import builds
from course_tool.chapters import Chapter, all_chapters
from course_tool.files import digest
from course_tool.paths import ROOT
from course_tool.verify.outcome import Context, Outcome
from course_tool.verify.sources import listed_files

_INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
# What every test of a chapter stands on; the tool too, which judges them.
_SHARED = ("common/", "cmake/", "tests/support/", "CMakeLists.txt", "CMakePresets.json")


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


@functools.cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


@functools.cache
def _headers() -> dict[str, list[str]]:
    """By what an include calls them."""
    found: dict[str, list[str]] = {}
    for name in listed_files(ROOT):
        if name.endswith(".hpp") and not name.startswith("chapters/"):
            found.setdefault(name.rpartition("/")[2], []).append(name)
    return found


@functools.cache
def included(file: str) -> list[str]:
    """The file, and all headers of the course that it includes, by any way."""
    seen = [file]
    for name in seen:  # it grows
        for each in _INCLUDE.findall(_text(name)):
            seen += [header for header in _headers().get(each, []) if header not in seen]
    return sorted(seen)


def with_headers(file: str) -> str:
    """The text of a source and of all that it includes."""
    return "\0".join(_content(included(file)))


@functools.cache
def of_chapter(chapter: Chapter) -> str:
    """All that a chapter's tests are made of: its own, what it builds on, what all stand on."""
    built_on = {chapter.number, *chapter.builds_on}
    for each in reversed(all_chapters()):
        if each.number in built_on:
            built_on.update(each.builds_on)
    mine = (*_SHARED, f"tests/{chapter.folder}/")
    mine += tuple(f"solutions/{each.folder}/" for each in all_chapters() if each.number in built_on)
    names = [name for name in listed_files(ROOT) if name.startswith(mine)]
    return digest("\0".join(_content(names)).encode())


def of_files(*beginnings: str) -> str:
    """The files of the course whose names begin so, byte by byte; without any, all of them."""
    names = [name for name in listed_files(ROOT) if name.startswith(beginnings or "")]
    return digest(*(f"{name}\0{digest((ROOT / name).read_bytes())}\0".encode() for name in names))


def remember_tests(
    memory: Memory, chapters: Iterable[Chapter], problems: Mapping[str, str | None]
) -> None:
    """The chapters of which no test has a problem; by the names of all tests that ran."""
    for chapter in chapters:
        own = [problems[name] for name in problems if name[:2] == chapter.number]
        if own and not any(own):
            memory.remember(of_chapter(chapter), proved=len(own))


def _content(names: Iterable[str]) -> list[str]:
    return [f"{name}\0{_text(name)}" for name in names]
