# SPDX-License-Identifier: MIT
"""`./course diff`: a student's chapter beside its solution."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from rich.text import Text

from course_tool import console, marks, state
from course_tool.chapters import Chapter, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import relative
from course_tool.status import Progress, progress_of

_STYLES = (("---", "bold"), ("+++", "bold"), ("@@", "cyan"), ("-", "red"), ("+", "green"))


def show_diff(name: str, *, yes: bool) -> None:
    """Prints the diff; before a chapter is green, only to someone who says that they want it."""
    chapter = find_chapter(name)
    progress = progress_of(chapter, state.load())
    if not progress.green and not yes:
        _ask(progress)
    lines = diff_chapter(chapter)
    console.out.print(colored(lines), end="")
    if not lines:
        console.out.print(f"Your chapter {chapter.number} is the solution, line by line.")
    for extra in extra_files(chapter):
        console.out.print(f"Only in yours: {relative(chapter.starter / extra)}")


def _ask(progress: Progress) -> None:
    number = progress.chapter.number
    task = progress.next_task()
    first_open = f": {task.id} is {progress.tasks[task.id].value}" if task else ""
    why = f"Chapter {number} is not green{first_open}, and this shows its whole solution."
    if not sys.stdin.isatty():
        raise CourseError(
            f"{why} Without a terminal there is nobody to ask: ./course diff {number} --yes"
        )
    console.err.print(why)
    console.err.print("A hint may be enough (./course hint). Show it all the same? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CourseError("Nothing was shown.")


def diff_chapter(chapter: Chapter) -> list[str]:
    """The lines of one unified diff: - is yours, + is the solution's; empty if they agree."""
    lines: list[str] = []
    for name, content in _solution_files(chapter).items():
        yours = chapter.starter / name
        lines += difflib.unified_diff(
            _lines(yours),
            content.splitlines(),
            fromfile=relative(yours) if yours.is_file() else "/dev/null",
            tofile=relative(chapter.solution / name),
            lineterm="",
        )
    return lines


def extra_files(chapter: Chapter) -> list[str]:
    """What only the student has."""
    if not chapter.starter.is_dir():
        return []
    known = marks.starter_files(chapter)
    return sorted(
        str(path.relative_to(chapter.starter))
        for path in chapter.starter.rglob("*")
        if path.is_file() and str(path.relative_to(chapter.starter)) not in known
    )


def colored(lines: list[str]) -> Text:
    """The signs stay, so that nothing is lost without colors."""
    text = Text()
    for line in lines:
        style = next((style for sign, style in _STYLES if line.startswith(sign)), "")
        text.append(f"{line}\n", style=style)
    return text


def _solution_files(chapter: Chapter) -> dict[str, str]:
    return {name: _without_marks(chapter.solution / name) for name in marks.starter_files(chapter)}


def _without_marks(file: Path) -> str:
    """The marks are the generator's; a student's file has none, and needs none."""
    text = file.read_text(encoding="utf-8")
    if file.suffix not in marks.CPP_SUFFIXES:
        return text
    hidden = {line for each in marks.parse(file) for line in (each.first_line, each.last_line)}
    lines = text.splitlines()
    return "\n".join(line for number, line in enumerate(lines, start=1) if number not in hidden)


def _lines(file: Path) -> list[str]:
    if not file.is_file():
        return []
    return file.read_text(encoding="utf-8", errors="replace").splitlines()
