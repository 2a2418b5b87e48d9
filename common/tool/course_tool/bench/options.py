# SPDX-License-Identifier: MIT
"""What the command line of `./course bench` said, and the smaller sizes of --quick."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from course_tool.bench import counts
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.subjects import Whose
from course_tool.chapters import Count, Timing
from course_tool.errors import CourseError

QUICK_ROUNDS = 1
QUICK_DURATION_S = 0.4
QUICK_WARMUP_S = 0.05
QUICK_REQUESTS = 4000  # a few futex calls more or less must not show
QUICK_IDLE_CLIENTS = 100
QUICK_OPERATIONS = 10_000
ROUNDS_MOST = 1000


@dataclass(frozen=True)
class Options:
    """What the command line said."""

    chapter: str | None = None
    ladder: bool = False
    matrix: bool = False
    claims: bool = False
    solution: bool = False  # the course's own code instead of the student's
    rounds: int | None = None  # None: what the chapter, or the kind, says
    quick: bool = False  # a smoke size, for tests: its figures say nothing
    out: Path | None = None  # None: a new folder under .course/bench/
    named: tuple[str, ...] = ()  # claims; none: all of them
    json: Path | None = None  # one more place for what became of the claims, or of the ladder

    def __post_init__(self) -> None:
        if self.json and not (self.claims or self.ladder):
            raise CourseError(
                "--json is for --claims and --ladder; other benchmarks write theirs to --out."
            )
        if self.json and not self.json.parent.is_dir():
            raise CourseError(f"--json {self.json}: there is no folder {self.json.parent}.")
        if self.ladder + self.matrix + self.claims > 1:
            raise CourseError("--ladder, --matrix and --claims are three benchmarks: name one.")
        if self.ladder and self.chapter:
            raise CourseError(
                f"The ladder runs every chapter's server: leave out {self.chapter!r}."
            )
        if self.rounds is not None and not 1 <= self.rounds <= ROUNDS_MOST:
            raise CourseError(f"--rounds {self.rounds}: takes 1 to {ROUNDS_MOST}.")
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise CourseError(f"--out {self.out}: that is a file; name a folder.")

    @property
    def measured(self) -> Whose:
        return Whose.REFERENCE if self.solution else Whose.YOURS

    def rounds_or(self, usual: int) -> int:
        return self.rounds or (QUICK_ROUNDS if self.quick else usual)

    @property
    def repeats(self) -> int:
        """Of a count."""
        return 1 if self.quick else counts.REPEATS

    def sized(self, load: LoadSpec) -> LoadSpec:
        if not self.quick:
            return load
        return replace(load, duration_s=QUICK_DURATION_S, warmup_s=QUICK_WARMUP_S)

    def timed(self, timing: Timing) -> Timing:
        if not self.quick:
            return timing
        return replace(timing, operations=min(timing.operations, QUICK_OPERATIONS))

    def counted(self, count: Count) -> Count:
        if not self.quick:
            return count
        if not count.requests:
            return replace(count, connections=min(count.connections, QUICK_IDLE_CLIENTS))
        if not count.connections:
            return count  # without clients it takes no time, and its number has to be what it is
        return replace(count, requests=max(count.connections, min(count.requests, QUICK_REQUESTS)))
