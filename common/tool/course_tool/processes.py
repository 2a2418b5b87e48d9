# SPDX-License-Identifier: MIT
"""Child processes that cannot outlive the tool.

Each child leads a process group of its own. The group is killed whole when its command is done,
runs out of time or is interrupted, so a grandchild is never left behind. If the tool itself is
killed, the kernel kills the child (PR_SET_PDEATHSIG). That signal is tied to the *thread* which
started the child: start a Server in a thread that lives longer than it.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, Self

from course_tool.errors import CourseError
from course_tool.paths import ROOT

ANNOUNCE_DEADLINE_S = 10.0
STOP_GRACE_S = 5.0
POLL_S = 0.1
ANNOUNCE_POLL_S = 0.005
PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_libc = ctypes.CDLL(None, use_errno=True)
_running: dict[int, int] = {}  # leader's pid -> its pidfd; not reaped yet, so the pid is still ours
_starting = threading.Lock()  # held until a new child stands in _running
_closed = False  # by kill_all(): the other threads start nothing more


@dataclass(frozen=True)
class Finished:
    args: tuple[str, ...]
    returncode: int  # negative: killed by that signal
    stdout: str
    stderr: str
    seconds: float

    @property
    def log(self) -> str:
        """For a file: the command, and all that it printed."""
        return f"$ {' '.join(self.args)}\n{self.stdout}{self.stderr}\n"


def own_age_s() -> float:
    """Since this process began, whatever it has been: ./course, what makes .venv, then the tool."""
    after_name = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    began_s = int(after_name[19]) / os.sysconf("SC_CLK_TCK")  # field 22, since the machine's boot
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began_s


def in_child(parent: int, cpu: int | None) -> Callable[[], None]:
    """What the child does between fork and exec; allocates nothing that another thread may hold."""

    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the tool died before the line above
            os._exit(1)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})

    return prepare


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds signals back while a child is started: one in between would lose sight of it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers in the main thread alone
        return
    held: list[int] = []
    before = {each: signal.getsignal(each) for each in _STOPPING}
    for each in _STOPPING:
        signal.signal(each, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)
        for number in held:
            signal.raise_signal(number)


def _start(
    args: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None,
    stdin: IO[bytes] | int,
    stdout: IO[bytes],
    stderr: IO[bytes],
    cpu: int | None = None,
) -> subprocess.Popen[bytes]:
    words = [str(arg) for arg in args]
    with _starting:
        if _closed:
            raise CourseError(f"Cannot run {words[0]}: the tool is ending.")
        try:
            child = subprocess.Popen(
                words,
                cwd=cwd,
                env=None if env is None else {**os.environ, **env},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
                preexec_fn=in_child(os.getpid(), cpu),  # noqa: PLW1509  (see in_child)
            )
        except OSError as error:
            raise _cannot_run(words[0], cwd, error) from error
        _running[child.pid] = os.pidfd_open(child.pid)
        return child


def _cannot_run(program: str, cwd: Path, error: OSError) -> CourseError:
    why = f"{error.strerror}."
    if isinstance(error, FileNotFoundError):
        why = "there is no such program here. `./course doctor` says what this machine lacks."
        if not cwd.is_dir():
            why = f"there is no folder {cwd}."
    return CourseError(f"Cannot run {program}: {why}")


def _ended(child: subprocess.Popen[bytes], wait_s: float) -> bool:
    """Waits for the leader's end without reaping it: its pid, our group's id, stays taken."""
    pidfd = _running.get(child.pid)
    if pidfd is None:
        return True
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(max(0.0, wait_s) * 1000))


class Entry(NamedTuple):
    """What /proc says of a process, whoever has started it."""

    pid: int
    name: str
    parent: int
    group: int


def all_entries() -> Iterator[Entry]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text(errors="replace").partition("(")[2].rpartition(")")
        except OSError:
            continue  # it ended while we looked
        _, parent, group, *_ = rest.split()
        yield Entry(int(stat.parent.name), name, int(parent), int(group))


def _groups_below(pid: int) -> set[int]:
    """The groups that its descendants lead: ninja gives each compiler one of its own."""
    children: dict[int, list[tuple[int, int]]] = {}
    for each in all_entries():
        children.setdefault(each.parent, []).append((each.pid, each.group))
    groups: set[int] = set()
    looked_at = [pid]
    while looked_at:
        for descendant, group in children.get(looked_at.pop(), []):
            looked_at.append(descendant)
            groups.add(group)
    return groups - {pid, os.getpgrp()}


def _stopped_groups_below(pid: int) -> set[int]:
    """Stopped first: a grandchild that makes a group of its own while we look would get away."""
    _signal_groups([pid], signal.SIGSTOP)
    return _groups_below(pid)


def _signal_groups(groups: Iterable[int], number: signal.Signals) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass  # PermissionError: all that is left runs as another user (sudo)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kills what is left of the group, then reaps its leader."""
    pidfd = _running.get(child.pid)
    if pidfd is None:
        return
    below = set() if _ended(child, 0) else _stopped_groups_below(child.pid)
    _signal_groups((child.pid, *below), signal.SIGKILL)
    child.wait()
    del _running[child.pid]
    os.close(pidfd)


def _ask(child: subprocess.Popen[bytes], grace_s: float) -> None:
    if grace_s > 0 and not _ended(child, 0):
        try:
            os.kill(child.pid, signal.SIGINT)
        except PermissionError:
            return
        _ended(child, grace_s)


def kill_all() -> None:
    """Kills every group that is running: the last act of an interrupted tool."""
    global _closed  # read by _start() in whatever thread
    with _starting:
        _closed = True
    for pid in list(_running):
        _signal_groups((pid, *_stopped_groups_below(pid)), signal.SIGKILL)


def _text(file: IO[bytes]) -> str:
    file.flush()
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


class _Follower:
    """Hands a growing file's new lines to a callback."""

    def __init__(self, path: str | Path, on_line: Callable[[str], None]) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  (closed by close())
        self._on_line = on_line
        self._rest = b""

    def poll(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            self._on_line(line.decode("utf-8", errors="replace"))

    def close(self) -> None:
        self._file.close()


def run(
    args: Sequence[str | Path],
    *,
    timeout_s: float,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    input_text: str | None = None,
    check: bool = False,
    on_line: Callable[[str], None] | None = None,
    asks_first_s: float = 0,
    cpu: int | None = None,
) -> Finished:
    """Runs a command to its end. `env` is added to the tool's own; `on_line` sees stdout grow.

    Output goes through files, not pipes: a grandchild that keeps a pipe open cannot hold us up.
    A command that must not be cut short (a package manager) gets SIGINT and `asks_first_s` to end.
    """
    started = time.monotonic()
    with (
        tempfile.TemporaryFile() as given,
        tempfile.NamedTemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        if input_text is not None:
            given.write(input_text.encode())
            given.seek(0)
        stdin = subprocess.DEVNULL if input_text is None else given
        follower = _Follower(stdout.name, on_line) if on_line else None
        child: subprocess.Popen[bytes] | None = None
        try:
            with _uninterrupted():
                child = _start(
                    args, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, cpu=cpu
                )
            in_time = _wait(child, started + timeout_s, follower)
        finally:
            if child:
                _ask(child, asks_first_s)
                _kill_group(child)
            if follower:
                follower.close()
        words = tuple(str(arg) for arg in args)
        seconds = time.monotonic() - started
        finished = Finished(words, child.returncode, _text(stdout), _text(stderr), seconds)
    if not in_time:
        raise CourseError(
            _with_tail(f"{_name(words)} was stopped after {timeout_s:g} s.", finished)
        )
    if check and finished.returncode != 0:
        ending = how_it_ended(finished.returncode)
        raise CourseError(_with_tail(f"{_name(words)} {ending}.", finished))
    return finished


def limited(args: Sequence[str | Path], cpu_s: int) -> list[str | Path]:
    """The same command, in which no process may use more processor time: SIGXCPU ends it."""
    shell = 'ulimit -t "$(($0 + 5))"; ulimit -S -t "$0"; ulimit -c 0; exec "$@"'
    return ["sh", "-c", shell, str(cpu_s), *args]


@contextmanager
def beside(args: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Runs a command for as long as the block runs, at most; nobody reads what it prints."""
    with open(os.devnull, "r+b") as nothing:
        child: subprocess.Popen[bytes] | None = None
        try:
            with _uninterrupted():
                child = _start(
                    args, cwd=ROOT, env=env, stdin=nothing, stdout=nothing, stderr=nothing
                )
            yield
        finally:
            if child:
                _kill_group(child)


def _wait(child: subprocess.Popen[bytes], deadline: float, follower: _Follower | None) -> bool:
    while True:
        left = deadline - time.monotonic()
        ended = _ended(child, min(left, POLL_S) if follower else left)
        if follower:
            follower.poll()
        if ended or left <= 0:
            return ended


def _name(words: Sequence[str]) -> str:
    return " ".join([Path(words[0]).name, *words[1:3]]) + (" …" if len(words) > 3 else "")


def _with_tail(sentence: str, finished: Finished, lines: int = 12) -> str:
    output = (finished.stderr.strip() or finished.stdout.strip()).splitlines()
    if not output:
        return f"{sentence} It printed nothing."
    return "\n  ".join([f"{sentence} The end of its output:", *output[-lines:]])


def how_it_ended(returncode: int) -> str:
    """Says a return code in words: 'exited with 1', 'was killed by SIGSEGV'."""
    if returncode >= 0:
        return f"exited with {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


class Server:
    """A server of the course, from its first line to its end; a context manager.

    Leaving the block stops it (SIGTERM, SIGKILL after STOP_GRACE_S) and kills its whole group.
    """

    def __init__(
        self,
        args: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cpu: int | None = None,
    ) -> None:
        self.args = [str(arg) for arg in args]
        self.host = ""
        self.port = 0
        self.returncode: int | None = None
        self._env = env
        self._cpu = cpu
        self._child: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="course-server-")
        try:
            with (
                _uninterrupted(),
                open(self._output("stdout"), "wb") as stdout,
                open(self._output("stderr"), "wb") as stderr,
            ):
                self._child = _start(
                    self.args,
                    cwd=ROOT,
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    cpu=self._cpu,
                )
            self._await_announcement()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._end()

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server has not been started"
        return self._child.pid

    @property
    def name(self) -> str:
        return Path(self.args[0]).name

    def running(self) -> bool:
        return self._child is not None and not _ended(self._child, 0)

    def stdout_text(self) -> str:
        return self._read("stdout")

    def stderr_text(self) -> str:
        return self._read("stderr")

    def stop(self, grace_s: float = STOP_GRACE_S) -> int:
        """SIGTERM, then SIGKILL if it is still there after `grace_s`; returns the return code."""
        child = self._child
        assert child is not None, "the server has not been started"
        try:
            if not _ended(child, 0):
                os.kill(child.pid, signal.SIGTERM)
            _ended(child, grace_s)
        finally:
            _kill_group(child)
        self.returncode = child.returncode
        return child.returncode

    def wait(self, timeout_s: float) -> bool:
        """Waits for the server to end by itself; False if it still runs."""
        assert self._child is not None, "the server has not been started"
        return _ended(self._child, timeout_s)

    def _await_announcement(self) -> None:
        assert self._child is not None
        deadline = time.monotonic() + ANNOUNCE_DEADLINE_S
        while True:
            ended = _ended(self._child, ANNOUNCE_POLL_S)
            line, newline, _ = self.stdout_text().partition("\n")
            found = re.fullmatch(r"listening on (\S+):(\d+)\s*", line) if newline else None
            if found:
                self.host, self.port = found[1], int(found[2])
                return
            if newline:
                raise CourseError(
                    f"{self.name} began with {line!r} instead of "
                    "'listening on HOST:PORT'." + self._said()
                )
            if ended:
                _kill_group(self._child)
                ending = how_it_ended(self._child.returncode)
                raise CourseError(f"{self.name} {ending} before it listened." + self._said())
            if time.monotonic() > deadline:
                raise CourseError(
                    f"{self.name} did not print 'listening on HOST:PORT' within "
                    f"{ANNOUNCE_DEADLINE_S:g} s." + self._said()
                )

    def _said(self) -> str:
        said = self.stderr_text().strip().splitlines()
        return "\n  ".join([" Its stderr:", *said[-12:]]) if said else " Its stderr is empty."

    def _output(self, name: str) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / name

    def _read(self, name: str) -> str:
        if self._folder is None:
            return ""
        path = self._output(name)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _end(self) -> None:
        if self._child is not None:
            _kill_group(self._child)
            self.returncode = self._child.returncode
        if self._folder is not None:
            shutil.rmtree(self._folder.name, ignore_errors=True)
            self._folder.cleanup()
