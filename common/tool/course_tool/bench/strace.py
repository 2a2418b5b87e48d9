# SPDX-License-Identifier: MIT
"""Counts a server's system calls with `strace -f -c`.

The server runs under strace twice, once with N requests and once with 2N, and the first table is
subtracted from the second. What remains belongs to N requests: starting, accepting, making threads,
reading each client's EOF and ending are the same in both runs and cancel. Attaching to a running
server would count the accepts and EOFs, and Linux often forbids it (kernel.yama.ptrace_scope),
while a program's own child may always be traced.

Tracing slows the server down, so that more clients are ready whenever it asks. Calls that serve
several clients at once (epoll_wait, io_uring_enter) are therefore rarer than without strace: their
share at many clients has a bound in chapter.toml; with one client it is exact.

Before the server is ended, we wait until it has come to rest, so that no EOF is still on its way;
then SIGKILL ends it, so that nothing depends on how it stops.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

from course_tool import processes, syscalls
from course_tool.bench import procfs
from course_tool.bench.loadgen import LoadSpec, drive
from course_tool.errors import CourseError

STRACE = ("strace", "-f", "-c", "-S", "calls", "-o")  # the table's file and the server follow
TABLE_TIMEOUT_S = 10.0
RUN_TIMEOUT_S = 120.0
SETTLE_TIMEOUT_S = 2.0
CHILD_TIMEOUT_S = 2.0


class CannotCount(CourseError):
    """This machine cannot measure a count: that is no fault of the server's."""


@cache
def require() -> None:
    """Tries strace on a program that does nothing; raises CannotCount with the reason."""
    try:
        syscalls.require_strace()
    except CourseError as error:
        raise CannotCount(str(error)) from error


def _traced(strace_pid: int) -> int:
    """The server's pid: strace's only child."""
    deadline = time.monotonic() + CHILD_TIMEOUT_S
    while time.monotonic() < deadline:
        for stat in procfs.PROC.glob("[0-9]*/stat"):
            if procfs.parent_of(stat) == strace_pid:
                return int(stat.parent.name)
        time.sleep(0.01)
    raise CannotCount("strace has no child that /proc shows")


class _Traced(processes.Server):
    """A server under strace; messages speak of the server."""

    @property
    def name(self) -> str:
        return Path(self.args[len(STRACE) + 1]).name


def count_calls(
    args: list[str | Path], spec: LoadSpec, generator: Path, cpu: int | None
) -> Counter[str]:
    """All system calls of one server, from its start to the end of its clients."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        table = Path(folder) / "table"
        with _Traced([*STRACE, table, *args], cpu=cpu) as server:
            pid = _traced(server.pid)
            drive(spec, server, generator)
            procfs.settle(pid, SETTLE_TIMEOUT_S)
            os.kill(pid, signal.SIGKILL)
            if not server.wait(TABLE_TIMEOUT_S):
                raise CannotCount(f"strace did not end within {TABLE_TIMEOUT_S:g} s of its server")
        calls = syscalls.parse_table(table.read_text(errors="replace"))
    if not calls:
        raise CannotCount("strace wrote no table")
    return calls


def calls_per_request(
    args: list[str | Path], spec: LoadSpec, generator: Path, cpu: int | None
) -> dict[str, float]:
    """By name, the calls that `spec.requests` further requests cost, divided by their number."""
    assert spec.requests, "a count needs a number of requests"
    once = count_calls(args, spec, generator, cpu)
    twice = count_calls(args, spec.times(2), generator, cpu)
    return _per_unit(once, twice, spec.requests)


def _calls_of_run(args: list[str | Path]) -> Counter[str]:
    """All system calls of a program that runs to its end."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        table = Path(folder) / "table"
        finished = processes.run([*STRACE, table, *args], timeout_s=RUN_TIMEOUT_S)
        if finished.returncode != 0:
            said = finished.stderr.strip() or processes.how_it_ended(finished.returncode)
            raise CourseError(f"{Path(args[0]).name} did not run to its end: {said}")
        calls = syscalls.parse_table(table.read_text(errors="replace"))
    if not calls:
        raise CannotCount("strace wrote no table")
    return calls


def calls_per_operation(args: list[str | Path], operations: int) -> dict[str, float]:
    """By name, the calls that `operations` further ones cost a program with a flag --count."""
    once = _calls_of_run([*args, "--count", str(operations)])
    twice = _calls_of_run([*args, "--count", str(2 * operations)])
    return _per_unit(once, twice, operations)


def _per_unit(once: Counter[str], twice: Counter[str], units: int) -> dict[str, float]:
    """By name, what one of the `units` cost that `twice` had more than `once`."""
    names = sorted({*once, *twice})
    return {name: (twice[name] - once[name]) / units for name in names}
