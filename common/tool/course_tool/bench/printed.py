# SPDX-License-Identifier: MIT
"""Programs that run to their end, and the numbers that they print: 'allocations per call: 1'.

A number is a line of its own. A unit may follow it, and blanks may stand before the name. Whatever
else the program prints is for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from course_tool import processes
from course_tool.errors import CourseError

RUN_TIMEOUT_S = 120.0
LINES_SHOWN = 12


def run_to_end(
    args: Sequence[str | Path], *, under: Sequence[str | Path] = (), cpu: int | None = None
) -> str:
    """What the program prints; `under` are words before its own, such as strace's."""
    finished = processes.run([*under, *args], timeout_s=RUN_TIMEOUT_S, cpu=cpu)
    if finished.returncode != 0:
        said = finished.stderr.strip() or processes.how_it_ended(finished.returncode)
        raise CourseError(f"{Path(args[0]).name} did not run to its end: {said}")
    return finished.stdout


def number_of(args: Sequence[str | Path], value: str, cpu: int | None) -> float:
    """Runs a program to its end, on one CPU, and reads the number that it prints."""
    return parse(run_to_end(args, cpu=cpu), value, Path(args[0]).name)


def parse(text: str, value: str, program: str) -> float:
    """The one number that `text` gives for `value`; anything else is a CourseError."""
    lines = re.findall(rf"^[ \t]*{re.escape(value)}:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    if len(lines) != 1:
        often = f"{len(lines)} lines" if lines else "no line"
        said = text.strip().splitlines()[:LINES_SHOWN]
        printed = "\n  ".join(["It printed:", *said]) if said else "It printed nothing."
        raise CourseError(
            f"{program} printed {often} '{value}: NUMBER', where one was expected. {printed}"
        )
    number = re.fullmatch(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: .*)?", lines[0])
    if number is None:
        raise CourseError(f"{program} printed '{value}: {lines[0]}', which is no number.")
    return float(number[1])
