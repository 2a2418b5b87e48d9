# SPDX-License-Identifier: MIT
"""The files that the rules read, and what a rule is."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course_tool.errors import CourseError
from course_tool.processes import run

# chapters/ belongs to the student, and its text comes from solutions/, which is checked.
NOT_OURS = ("chapters/*",)
# These hold the very words that the rules look for.
QUOTES_THE_RULES = (
    "common/tool/course_tool/verify/words.py",
    "common/tool/course_tool/verify/rules_*.py",
    "tests/cli/test_verify_*.py",
)


@dataclass(frozen=True)
class Source:
    """A text file of the course; `path` is from the clone's root, with slashes."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def matches(self, *patterns: str) -> bool:
        """A * of a pattern crosses slashes, as in fnmatch."""
        return any(fnmatch.fnmatch(self.path, pattern) for pattern in patterns)

    def at(self, line: int, sentence: str) -> str:
        return f"{self.path}:{line}: {sentence}"

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


@dataclass(frozen=True)
class Rule:
    """One rule of the house: which files it is about, and the sentences for what breaks it."""

    name: str
    files: tuple[str, ...]  # patterns; a * crosses slashes
    check: Callable[[Source], Iterator[str]]

    def concerns(self, source: Source) -> bool:
        return source.matches(*self.files)


def listed_files(root: Path) -> list[str]:
    """What git knows or would add: nothing that .gitignore leaves out."""
    args = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    finished = run(args, timeout_s=30, cwd=root)
    if finished.returncode != 0:
        raise CourseError(
            f"git ls-files failed in {root}: {finished.stderr.strip()} "
            "The rules are about the files of a git clone; run verify in one."
        )
    names = sorted(set(finished.stdout.split("\0")) - {""})
    return [name for name in names if (root / name).is_file()]


def read_sources(root: Path, names: list[str]) -> list[Source]:
    """The text files among `names`; a file that is not UTF-8 is no text."""
    sources = []
    for name in names:
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        source = Source(name, text)
        if not source.matches(*NOT_OURS):
            sources.append(source)
    return sources
