# SPDX-License-Identifier: MIT
"""What a student finds in the starter for one task, and the tests that wait for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from course_tool import sections
from course_tool.errors import CourseError
from course_tool.verify.cases import cases_in

ACCESS = re.compile(r"^ *(public|protected|private):$")
TODO = re.compile(r'COURSE_TODO\("(\d\d\.\d+)"\)')


def of_task(source: Path, task_id: str) -> str:
    """Each place of the task as the starter shows it: comment, signature, COURSE_TODO, brace."""
    starter = sections.starter_text(source.read_text(encoding="utf-8"))
    lines = starter.split("\n")
    parts: list[str] = []
    for task, first, last in places(starter):
        part = _dedented(lines[first - 1 : last])
        if task == task_id and part not in parts:
            parts.append(part)
    if not parts:
        raise CourseError(f"{source.name} has no section of task {task_id}.")
    return "\n\n".join(parts)


def places(starter: str) -> Iterator[tuple[str, int, int]]:
    """(task, first line, last line), from 1, of each function of a starter that holds a TODO."""
    lines = starter.split("\n")
    for index, line in enumerate(lines):
        if found := TODO.search(line):
            first, last = _extent(lines, index)
            yield found[1], first + 1, last + 1


def _extent(lines: list[str], todo: int) -> tuple[int, int]:
    """The function around a TODO, with the comment above it. Blank lines separate functions."""
    first = todo
    while first > 0 and lines[first - 1].strip() and not ACCESS.match(lines[first - 1]):
        first -= 1
    indent = min(_indent(line) for line in lines[first : todo + 1])
    last = todo
    while last + 1 < len(lines) and _indent(lines[last]) > indent:
        last += 1
    return first, last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else len(line) + 999


def _dedented(lines: list[str]) -> str:
    indent = min(_indent(line) for line in lines)
    return "\n".join(line[indent:] for line in lines)


def test_names(folder: Path, task_id: str) -> list[str]:
    """The Catch2 cases whose name starts with the task, in the order of files and lines."""
    files = sorted(folder.glob("*.cpp"))
    cases = (case for file in files for case in cases_in(file.read_text(encoding="utf-8")))
    return [case.title for case in cases if case.task == task_id]
