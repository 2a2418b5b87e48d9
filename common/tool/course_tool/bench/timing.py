# SPDX-License-Identifier: MIT
"""Programs that time themselves: so many operations each, in interleaved rounds, on one CPU.

A server's clock is read from outside, while a load runs; an operation of two nanoseconds can be
timed only from within. So such a program takes --count, does that many operations, and prints
'ns per OPERATION: NUMBER' (see printed.py). Rounds, spreads and ratios are those of speed.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_tool.bench import printed
from course_tool.bench.machine import Pinning
from course_tool.bench.speed import Measured, Metric, Rounds, Run, interleave
from course_tool.bench.subjects import Subject
from course_tool.chapters import Timing

KEY = "ns_per_operation"


@dataclass(frozen=True)
class TimingCell(Rounds):
    """All runs of one timing."""

    operation: str
    operations: int
    subjects: tuple[Subject, ...]
    rounds: int
    runs: tuple[Run, ...]

    @property
    def metric(self) -> Metric:
        return Metric(KEY, f"time per {self.operation}", "ns", False)

    @property
    def baseline(self) -> Subject:
        return next(subject for subject in self.subjects if subject.baseline)

    def failures(self) -> list[str]:
        return [f"{run.subject}: {run.failure}" for run in self.runs if run.failure]


def measure(
    wanted: Timing, subjects: Sequence[Subject], pinning: Pinning, on_run: Callable[[str], None]
) -> TimingCell:
    def run_once(subject: Subject) -> Measured:
        command = [*subject.run_command(), "--count", str(wanted.operations)]
        return {KEY: printed.number_of(command, wanted.value, pinning.server_cpu)}, False

    runs = interleave(subjects, wanted.rounds, on_run, run_once)
    return TimingCell(wanted.operation, wanted.operations, tuple(subjects), wanted.rounds, runs)
