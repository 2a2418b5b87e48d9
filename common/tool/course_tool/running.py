# SPDX-License-Identifier: MIT
"""`./course run`: a chapter's program, on the reader's terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from course_tool import builds, console, processes, syscalls
from course_tool.chapters import Chapter, Program, find_chapter
from course_tool.foreground import run_on_terminal

_ASKED_TO_STOP = (-2, -15)  # SIGINT, SIGTERM


def find_program(name: str) -> tuple[Chapter, Program]:
    """Accepts 02 (its server) and 02:client."""
    number, _, program = name.partition(":")
    chapter = find_chapter(number)
    return chapter, chapter.program(program or "server")


def run_program(name: str, args: Sequence[str], preset: str) -> int:
    """Builds the program and runs it; returns its exit code."""
    path = _build(name, preset)
    return _exit_code(path, run_on_terminal([path, *args]))


def count_program(name: str, args: Sequence[str], preset: str) -> int:
    """The same under strace; prints how often it made which system call when it has ended."""
    syscalls.require_strace()  # before the build: that takes longer
    path = _build(name, preset)
    returncode, calls = syscalls.count_while(run_on_terminal, [path, *args])
    _show(path.name, calls)
    return _exit_code(path, returncode)


def _build(name: str, preset: str) -> Path:
    chapter, program = find_program(name)
    target = f"{chapter.number}-{program.name}"
    builds.build(preset, [target])
    return builds.program(preset, target)


def _exit_code(program: Path, returncode: int) -> int:
    if returncode >= 0:
        return returncode
    if returncode not in _ASKED_TO_STOP:
        console.err.print(f"course: {program.name} {processes.how_it_ended(returncode)}.")
    return 128 - returncode  # as a shell says it


def _show(program: str, calls: Counter[str]) -> None:
    rows = [*calls.most_common(), ("total", calls.total())]
    title = f"System calls of {program}, from its start to its end"
    console.out.print(console.table(title, ("call", "calls>"), rows))
