# SPDX-License-Identifier: MIT
"""`./course bench`: the benchmark, and a note that a chapter's checkpoint has been run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from course_tool import packages, state
from course_tool.bench import run_bench
from course_tool.chapters import find_chapter


@dataclass(frozen=True)
class Options:
    """What the command line said."""

    chapter: str | None
    ladder: bool
    matrix: bool
    claims: bool
    solution: bool
    rounds: int | None
    quick: bool
    out: Path | None

    @property
    def is_students_checkpoint(self) -> bool:
        return bool(self.chapter) and not (self.matrix or self.solution or self.quick)


def run(options: Options, *, yes: bool) -> int:
    """Returns the exit code: 1 if a count was out of its bounds."""
    number = find_chapter(options.chapter).number if options.chapter else None
    packages.ensure("bench", yes)
    code = run_bench(
        number,
        ladder=options.ladder,
        matrix=options.matrix,
        claims=options.claims,
        solution=options.solution,
        rounds=options.rounds,
        quick=options.quick,
        out=options.out,
    )
    if code == 0 and number and options.is_students_checkpoint:
        state.remember_checkpoint(number)
    return code
