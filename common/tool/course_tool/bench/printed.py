# SPDX-License-Identifier: MIT
"""Numbers that a program prints of itself, one a line: 'allocations per call: 1'.

A unit may follow the number, and blanks may stand before the name. Whatever else the program
prints is for people.
"""

from __future__ import annotations

import re
from pathlib import Path

from course_tool import processes
from course_tool.errors import CourseError

RUN_TIMEOUT_S = 120.0
LINES_SHOWN = 12


def parse(text: str, value: str, program: str) -> float:
    """The one number that `text` gives for `value`; anything else is a CourseError."""
    lines = re.findall(rf"^[ \t]*{re.escape(value)}:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    if len(lines) != 1:
        often = f"{len(lines)} lines" if lines else "no line"
        raise CourseError(
            f"{program} printed {often} '{value}: NUMBER', where one was expected."
            + _printed_text(text)
        )
    number = re.fullmatch(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: .*)?", lines[0])
    if number is None:
        raise CourseError(f"{program} printed '{value}: {lines[0]}', which is no number.")
    return float(number[1])


def _printed_text(text: str) -> str:
    said = text.strip().splitlines()
    return "\n  ".join([" It printed:", *said[:LINES_SHOWN]]) if said else " It printed nothing."


def number_of(args: list[str | Path], value: str, cpu: int | None) -> float:
    """Runs a program to its end, on one CPU, and reads the number that it prints."""
    finished = processes.run(args, timeout_s=RUN_TIMEOUT_S, cpu=cpu)
    program = Path(args[0]).name
    if finished.returncode != 0:
        said = finished.stderr.strip() or processes.how_it_ended(finished.returncode)
        raise CourseError(f"{program} did not run to its end: {said}")
    return parse(finished.stdout, value, program)
