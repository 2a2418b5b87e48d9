# SPDX-License-Identifier: MIT
"""What a student has written for each task: their files, beside the starter's.

A student's file has no marks. A task's place in it is whatever stands where the starter has its
COURSE_TODO; all other code surrounds the places, and every task may use it.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from course_tool import marks
from course_tool.chapters import Chapter
from course_tool.files import digest
from course_tool.groups import contract_key
from course_tool.paths import relative

_SOURCE_SUFFIXES = {".hpp", ".h", ".cpp", ".cc", ".txt", ".cmake"}
_TODO = re.compile(r'COURSE_TODO\("(\d\d\.\d+)"\)')
_COMMENT = re.compile(
    r"""(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*|/\*.*?\*/""", re.DOTALL
)


def fingerprints(chapter: Chapter) -> dict[str, str]:
    """By task id, and for the echo contract; each changes when the code does that it is about.

    A task is its own places and what surrounds them all, the contract is everything. A comment, a
    blank line or another indentation changes none; nor does an editor's backup file.
    """
    code = _code_by_task(chapter)
    around = code.pop("", "")
    prints = {task.id: _digest(around, code.get(task.id, "")) for task in chapter.tasks}
    return {**prints, contract_key(chapter): _digest(around, *map(code.get, sorted(code)))}


def todos_of(chapter: Chapter, task: str) -> str:
    """Where the student's files still hold the task's TODO: `file:line, line; file:line`."""
    files = []
    for file in _sources(chapter.starter):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        found = [str(at) for at, line in enumerate(lines, start=1) if _task_of(line) == task]
        if found:
            files.append(f"{relative(file)}:{', '.join(found)}")
    return "; ".join(files)


def _digest(*texts: str | None) -> str:
    return digest("\0".join(text or "" for text in texts).encode())[:16]


def _code_by_task(chapter: Chapter) -> dict[str, str]:
    """Without comments: what stands in each task's places, and under "" what surrounds them."""
    code: dict[str, str] = defaultdict(str)
    starters = marks.starter_files(chapter)
    for file in _sources(chapter.starter):
        name = str(file.relative_to(chapter.starter))
        starter = starters.get(name, b"").decode("utf-8").splitlines()
        yours = file.read_text(encoding="utf-8", errors="replace").splitlines()
        code[""] += f"{name}\n"
        for task, lines in _by_task(starter, yours).items():
            code[task] += _without_comments(lines)
    return code


def _sources(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in _SOURCE_SUFFIXES and not file.name.startswith(".") and file.is_file():
            yield file


def _by_task(starter: list[str], yours: list[str]) -> dict[str, list[str]]:
    """The lines of one file: each task's, and under "" those around the places."""
    lines: dict[str, list[str]] = defaultdict(list)
    matcher = difflib.SequenceMatcher(None, starter, yours, autojunk=False)
    for kind, first, last, your_first, your_last in matcher.get_opcodes():
        todos = [_task_of(line) for line in starter[first:last]]
        if kind == "equal":
            for task, line in zip(todos, yours[your_first:your_last], strict=True):
                lines[task].append(line)
        else:
            for task in {task for task in todos if task} or {""}:
                lines[task] += yours[your_first:your_last]
    return lines


def _task_of(line: str) -> str:
    found = _TODO.search(line)
    return found[1] if found else ""


def _without_comments(lines: list[str]) -> str:
    code = _COMMENT.sub(lambda match: match["literal"] or " ", "\n".join(lines))
    stripped = (line.strip() for line in code.splitlines())
    return "".join(f"{line}\n" for line in stripped if line)
