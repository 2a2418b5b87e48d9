# SPDX-License-Identifier: MIT
"""Runs a program on the reader's own terminal, as a shell would.

The program leads a process group of its own, and that group has the terminal while it runs: Ctrl-C
reaches it once and from one side. What only the tool receives (`kill`, a CI job's end) is passed
on. The tool returns when the program has ended, and nothing of its group is left then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from course_tool import processes
from course_tool.errors import CourseError
from course_tool.paths import ROOT

STOP_GRACE_S = 5.0
FORWARD_AGAIN_S = 0.5  # one Ctrl-C may reach us twice: from the terminal, and from `timeout`
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_on_terminal(
    args: Sequence[str | Path], cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> int:
    """Returns the program's return code; -N if signal N ended it."""
    terminal = _our_terminal()
    child = _start([str(arg) for arg in args], cwd, {**os.environ, **(env or {})}, terminal)
    pidfd = os.pidfd_open(child.pid)
    try:
        with _forwarding_signals(child.pid, pidfd):
            _wait(child.pid, terminal)
    finally:
        _end_group(child.pid)
        child.wait()
        os.close(pidfd)
        _take_terminal(terminal)
    return child.returncode


def _our_terminal() -> int | None:
    """The descriptor of the terminal that we may hand on: only if we have it ourselves."""
    try:
        stdin = sys.stdin.fileno()
        return stdin if os.tcgetpgrp(stdin) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None


def _start(
    args: list[str], cwd: Path, env: dict[str, str], terminal: int | None
) -> subprocess.Popen[bytes]:
    in_child = processes.in_child(os.getpid(), cpu=None)

    def prepare() -> None:
        in_child()
        _take_terminal(terminal)  # here, not in the parent: no line is read before it is ours

    try:
        return subprocess.Popen(
            args,
            cwd=cwd,
            env=env,
            process_group=0,
            preexec_fn=prepare,  # noqa: PLW1509  (no other thread of ours runs now)
        )
    except OSError as error:
        raise CourseError(f"Cannot run {args[0]}: {error.strerror}.") from error


def _take_terminal(terminal: int | None) -> None:
    if terminal is None:
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        os.tcsetpgrp(terminal, os.getpgrp())
    except OSError:
        pass  # the terminal has been closed
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def _forwarding_signals(pid: int, pidfd: int) -> Iterator[None]:
    """Passes on what asks us to stop; a program that does not follow in time is killed."""
    forwarded_at = 0.0

    def forward(number: int, _: FrameType | None) -> None:
        nonlocal forwarded_at
        now = time.monotonic()
        if now - forwarded_at < FORWARD_AGAIN_S:
            return
        forwarded_at = now
        try:
            signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            return
        signal.setitimer(signal.ITIMER_REAL, STOP_GRACE_S)

    def give_up(_: int, __: FrameType | None) -> None:
        os.killpg(pid, signal.SIGKILL)  # not reaped yet: the group is still ours

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, give_up)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(pid: int, terminal: int | None) -> None:
    """Until the program has ended; it stays unreaped. Ctrl-Z stops the tool along with it."""
    while True:
        info = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        if info is None or info.si_code != os.CLD_STOPPED:
            return
        os.waitid(os.P_PID, pid, os.WSTOPPED)  # now take note of the stop
        _take_terminal(terminal)
        os.kill(os.getpid(), signal.SIGTSTP)
        # The shell has continued us.
        _give_terminal(terminal, pid)
        os.killpg(pid, signal.SIGCONT)


def _give_terminal(terminal: int | None, group: int) -> None:
    if terminal is None:
        return
    try:
        if os.tcgetpgrp(terminal) == os.getpgrp():  # `fg`; after `bg` it stays with the shell
            os.tcsetpgrp(terminal, group)
    except OSError:
        pass


def _end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
