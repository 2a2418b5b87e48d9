# SPDX-License-Identifier: MIT
"""Counts the system calls of a program with `strace -f -c`.

strace is told -DD: the program itself is our child, so that its pid, its signals and its exit code
are its own, and strace is in another process group, where a Ctrl-C does not end it before it has
counted. Attaching to a running program would be simpler, but Linux often forbids it
(kernel.yama.ptrace_scope), while a program's own child may always be traced.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from course_tool import processes
from course_tool.errors import CourseError

STRACE = ("strace", "-DD", "-f", "-c", "-o")  # the file of the table follows
STRACE_WORDS = len(STRACE) + 1
REPORT_DEADLINE_S = 10.0
PROBE_TIMEOUT_S = 20.0
PR_SET_CHILD_SUBREAPER = 36


class CannotCount(CourseError):
    """This machine cannot measure a count: that is no fault of the program's."""


@contextmanager
def counted() -> Iterator[tuple[list[str | Path], Counter[str]]]:
    """Words to put before a program's, and its calls by name: they are there after the block.

    With -DD strace is nobody's child: the block makes it ours, and waits for its end.
    """
    calls: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="course-strace-") as folder:
        table = Path(folder) / "table"
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            yield [*STRACE, table], calls
        finally:
            _reap_strace()
        text = table.read_text(errors="replace") if table.is_file() else ""
    if not text.rstrip().endswith(" total"):  # its last line: the table is whole
        raise CannotCount("strace wrote no count: it ended before the program did.")
    calls.update(parse_table(text))


def count_while(
    run: Callable[[Sequence[str | Path]], int], args: Sequence[str | Path]
) -> tuple[int, Counter[str]]:
    """Has `run` run the program under strace; returns its return code and the calls by name."""
    with counted() as (strace, calls):
        returncode = run([*strace, *args])
    return returncode, calls


def require_strace() -> None:
    """Finds out by tracing `true`: only then is it certain that strace may trace here."""
    if not shutil.which("strace"):
        raise CannotCount(
            "Counting system calls takes strace, and there is none here. `./course start` installs "
            "it (Debian and Ubuntu: apt install strace)."
        )
    said = ""
    try:
        with counted() as (strace, _):
            said = processes.run([*strace, "true"], timeout_s=PROBE_TIMEOUT_S).stderr
    except CannotCount as error:
        first = (said.strip().splitlines() or ["it wrote no table"])[0]
        raise CannotCount(
            f"strace may not trace here ({first}). A container allows it with "
            "`docker run --cap-add=SYS_PTRACE`; on a machine of your own, look at "
            "`sysctl kernel.yama.ptrace_scope`."
        ) from error


def parse_table(text: str) -> Counter[str]:
    """Calls by name from the table that `strace -c` prints."""
    calls: Counter[str] = Counter()
    for line in text.splitlines():
        # % time, seconds, usecs/call, calls, errors (often blank), name
        found = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)\s*", line)
        if found and found[2] != "total":
            calls[found[2]] += int(found[1])
    return calls


def _reap_strace() -> None:
    """Waits for the tracers that have become our children, and for no other child: another thread
    may have started that, and waits for it."""
    deadline = time.monotonic() + REPORT_DEADLINE_S
    while (tracers := _tracers()) and time.monotonic() < deadline:
        for pid in tracers:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.005)


def _tracers() -> list[int]:
    every = processes.all_entries()
    return [each.pid for each in every if (each.name, each.parent) == ("strace", os.getpid())]
