# SPDX-License-Identifier: MIT
"""What `./course verify` is made of: an item proves one claim and comes back with an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from course_tool.paths import relative


@dataclass(frozen=True)
class VerifyOptions:
    only: tuple[str, ...] = ()  # names of items; empty: all
    fail_fast: bool = False  # stop after the first item that fails
    student: bool = False  # chapters/ holds a student's work: say so, and do not count it
    jobs: int = 2


@dataclass
class Outcome:
    """How an item ended: it holds if nothing failed."""

    unit: str  # what `proved` counts: "tests", "files"
    proved: int = 0
    failures: list[str] = field(default_factory=list)  # a sentence each: where, what, what to do
    notes: list[str] = field(default_factory=list)  # worth saying, and no failure

    @property
    def holds(self) -> bool:
        return not self.failures

    def check(self, sentence: str | None) -> None:
        """Counts one check: None if it held, else what is wrong."""
        if sentence is None:
            self.proved += 1
        else:
            self.failures.append(sentence)

    def fail_all(self, sentences: Iterable[str]) -> None:
        self.failures.extend(sentences)


@dataclass(frozen=True)
class Context:
    """What the items share: the options, a folder for their builds, and how to say where they are.

    `step` shows one line of progress. `write_log` keeps the long text of a failure in a file and
    returns how that file is called from the clone's root.
    """

    options: VerifyOptions
    work: Path
    step: Callable[[str], None]

    @property
    def logs(self) -> Path:
        return self.work / "logs"

    def write_log(self, name: str, text: str) -> str:
        self.logs.mkdir(parents=True, exist_ok=True)
        file = self.logs / f"{name}.log"
        file.write_text(text, encoding="utf-8")
        return relative(file)


@dataclass(frozen=True)
class Item:
    name: str  # what --only takes
    claim: str  # what the table says was proved
    prove: Callable[[Context], Outcome]


@dataclass(frozen=True)
class Verdict:
    """An item that ran, for the table and for result.json."""

    item: Item
    outcome: Outcome
    seconds: float
    cpu_seconds: float  # of all its processes: what is left on a machine that does other things
