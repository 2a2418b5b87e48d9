# SPDX-License-Identifier: MIT
"""Counts all system calls of a program that runs on the reader's terminal."""

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

REPORT_DEADLINE_S = 5.0
PROBE_TIMEOUT_S = 20.0
PR_SET_CHILD_SUBREAPER = 36


def count_while(
    run: Callable[[Sequence[str | Path]], int], args: Sequence[str | Path]
) -> tuple[int, Counter[str]]:
    """Has `run` run the program under strace; returns its return code and the calls by name."""
    with tempfile.TemporaryDirectory(prefix="course-strace-") as folder:
        table = Path(folder) / "table"
        with _ours_to_reap():
            returncode = run([*_strace(table), *args])
        calls = _read(table)
    if not calls:
        raise CourseError("strace wrote no count: it ended before the program did.")
    return returncode, calls


def require_strace() -> None:
    """Finds out by tracing `true`: only then is it certain that strace may trace here."""
    if not shutil.which("strace"):
        raise CourseError(
            "Counting system calls takes strace, and there is none here. `./course start` installs "
            "it (Debian and Ubuntu: apt install strace)."
        )
    with tempfile.TemporaryDirectory(prefix="course-strace-") as folder:
        table = Path(folder) / "table"
        with _ours_to_reap():
            tried = processes.run([*_strace(table), "true"], timeout_s=PROBE_TIMEOUT_S)
        if _read(table):
            return
    said = (tried.stderr.strip().splitlines() or ["it wrote no table"])[0]
    raise CourseError(
        f"strace may not trace here ({said}). A container allows it with "
        "`docker run --cap-add=SYS_PTRACE`; on a machine of your own, look at "
        "`sysctl kernel.yama.ptrace_scope`."
    )


def parse_table(text: str) -> Counter[str]:
    """Calls by name from the table that `strace -c` prints."""
    calls: Counter[str] = Counter()
    for line in text.splitlines():
        # % time, seconds, usecs/call, calls, errors (often blank), name
        found = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)\s*", line)
        if found and found[2] != "total":
            calls[found[2]] += int(found[1])
    return calls


def _strace(table: Path) -> list[str | Path]:
    """-DD: the program itself is our child, so that signals and its exit code are its own, and
    strace is in another process group, where a Ctrl-C does not end it before it has counted."""
    return ["strace", "-DD", "-f", "-c", "-o", table]


def _read(table: Path) -> Counter[str]:
    """Empty until the table is whole: its last line is the total."""
    text = table.read_text(errors="replace") if table.is_file() else ""
    return parse_table(text) if text.rstrip().endswith(" total") else Counter()


@contextmanager
def _ours_to_reap() -> Iterator[None]:
    """With -DD strace is nobody's child: the block makes it ours, and waits for its end."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _reap_strace()


def _reap_strace() -> None:
    deadline = time.monotonic() + REPORT_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.005)
