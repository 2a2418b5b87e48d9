# SPDX-License-Identifier: MIT
"""The marks in solutions/ and what they enclose; the starter of a file is made from them.

    // --8<-- [start:task-01-2]
    the body of a task: the starter has COURSE_TODO("01.2"); in its place
    // --8<-- [end:task-01-2]

Sections with other names are for pages. They may hold tasks, lie inside one, or hold each other;
from starters their marks vanish. Marks count in C++ files only; other files are copied as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_tool.errors import CourseError
from course_tool.paths import relative

CPP_SUFFIXES = frozenset({".hpp", ".cpp", ".h"})

MARK = re.compile(r"[ \t]*// --8<-- \[(?P<kind>start|end):(?P<name>[a-z][a-z0-9-]*)\]")
_LOOKS_LIKE_A_MARK = re.compile(r"8<.*\[\s*(start|end)|//.*\[(start|end)\s*:")
_TASK_SECTION = re.compile(r"task-(?P<chapter>\d\d)-(?P<task>\d+)[b-z]?")


@dataclass(frozen=True)
class Section:
    name: str
    first_line: int  # of the mark that starts it, counted from 1
    last_line: int  # of the mark that ends it
    body: tuple[str, ...]  # the lines between them, without the marks of other sections

    @property
    def task(self) -> str | None:
        """'01.2' for task-01-2 and task-01-2b; None for a page's section."""
        return _task_of(self.name)


def _task_of(name: str) -> str | None:
    found = _TASK_SECTION.fullmatch(name)
    return f"{found['chapter']}.{int(found['task'])}" if found else None


def scan(text: str) -> tuple[list[Section], list[tuple[int, str]]]:
    """All sections that are whole, and (line, problem) for every mark that is not in order."""
    lines = text.splitlines()
    opened: dict[str, int] = {}
    sections: list[Section] = []
    problems: list[tuple[int, str]] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        mark = MARK.fullmatch(line)
        if mark is None:
            if _LOOKS_LIKE_A_MARK.search(line):
                problems.append((number, "looks like a mark; a mark is `// --8<-- [start:name]`"))
            continue
        name = mark["name"]
        if mark["kind"] == "start":
            if name in seen:
                problems.append((number, f"section {name} is started a second time"))
            seen.add(name)
            opened[name] = number
        elif name not in opened:
            problems.append((number, f"section {name} is ended but was not started"))
        else:
            first = opened.pop(name)
            body = tuple(each for each in lines[first : number - 1] if not MARK.fullmatch(each))
            sections.append(Section(name, first, number, body))
    problems += [(at, f"section {name} is started and never ended") for name, at in opened.items()]
    sections.sort(key=lambda section: section.first_line)
    return sections, sorted([*problems, *_bad_tasks(sections)])


def _bad_tasks(sections: list[Section]) -> Iterator[tuple[int, str]]:
    for section in sections:
        if section.name.startswith("task-") and section.task is None:
            yield (
                section.first_line,
                f"section {section.name}: a task's is called task-NN-K or task-NN-Kb",
            )
        if section.task is None:
            continue
        if not any(line.strip() for line in section.body):
            yield (
                section.first_line,
                f"section {section.name} is empty: what is the student to write?",
            )
        for other in sections:
            if other is section or not _overlap(section, other):
                continue
            if other.task is not None and other.first_line > section.first_line:
                yield other.first_line, f"task section {other.name} is nested in {section.name}"
            if other.task is None and not _holds(other, section) and not _holds(section, other):
                yield (
                    other.first_line,
                    f"section {other.name} crosses the task section {section.name}",
                )


def _overlap(one: Section, other: Section) -> bool:
    return one.first_line < other.last_line and other.first_line < one.last_line


def _holds(outer: Section, inner: Section) -> bool:
    return outer.first_line < inner.first_line and inner.last_line < outer.last_line


def missing_mark(text: str, name: str) -> str:
    """The mark of a section that a file lacks, such as [start:read]; "" if it has both."""
    have = {f"[{mark['kind']}:{mark['name']}]" for mark in MARK.finditer(text)}
    return next((mark for mark in (f"[start:{name}]", f"[end:{name}]") if mark not in have), "")


def parse(path: Path) -> list[Section]:
    """The sections of one file; marks that do not match are a CourseError."""
    sections, problems = scan(path.read_text(encoding="utf-8"))
    if problems:
        line, problem = problems[0]
        raise CourseError(f"{relative(path)}:{line}: {problem}.")
    return sections


def starter_text(solution_text: str) -> str:
    """Makes the starter of one C++ file."""
    sections, problems = scan(solution_text)
    if problems:
        line, problem = problems[0]
        raise CourseError(f"line {line}: {problem}.")
    tasks = {section.first_line: section for section in sections if section.task}
    starter: list[str] = []
    left_out_until = 0
    after_mark = False
    for number, line in enumerate(solution_text.splitlines(), start=1):
        if number in tasks:
            starter.append(_todo_line(tasks[number]))
            left_out_until = tasks[number].last_line
        if number <= left_out_until:
            continue
        if MARK.fullmatch(line):
            after_mark = True
            continue
        doubled = after_mark and not line.strip() and (not starter or not starter[-1].strip())
        after_mark = after_mark and not line.strip()
        if not doubled:  # a mark between two blank lines leaves one
            starter.append(line)
    return "".join(f"{line}\n" for line in starter)


def _todo_line(section: Section) -> str:
    first = next(line for line in section.body if line.strip())
    indentation = first[: len(first) - len(first.lstrip())]
    return f'{indentation}COURSE_TODO("{section.task}");'
