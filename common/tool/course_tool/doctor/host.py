# SPDX-License-Identifier: MIT
"""What this machine has besides io_uring: programs, limits, room."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from course_tool import builds, packages, processes
from course_tool.errors import CourseError
from course_tool.paths import ROOT

ASK_TIMEOUT_S = 20

CONNECTIONS_MAX = 10_000  # the most that a chapter opens at once
DESCRIPTORS_MIN = CONNECTIONS_MAX + 100
PORTS_MIN = CONNECTIONS_MAX + 2_000  # some are still in TIME_WAIT from the run before
BACKLOG_MIN = 1_000  # clients that connect at the same moment
TASKS_MIN = 1_500  # chapter 01 has a thread for each of 1,000 clients
MEMLOCK_MIN = 8 << 20
MEMORY_MIN = 2 << 30
DISK_MIN = 2 << 30

CAP_IPC_LOCK = 14  # linux/capability.h


class State(Enum):
    """The value is what the reader sees."""

    GOOD = "ok"
    LIMITED = "limited"  # every chapter can be done, and something beside it cannot
    MISSING = "missing"  # no chapter can be built


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    value: str
    why: str = ""  # what it is for; said if it is not good
    fix: str = ""
    need: packages.Need | None = None  # a package that is not here


def all_checks() -> list[Check]:
    """Everything, in the order of a reader's questions: can I build it, run it, measure it?"""
    checks = [_python(), *_needs()]
    checks += [_tracing()] if shutil.which("strace") else []
    return [*checks, *_limits()]


def _limits() -> Iterator[Check]:
    for check in (_cpus, _memory, _disk, _descriptors, _tasks, _locked_memory, _ports, _backlog):
        yield check()


# --- programs ---


def _python() -> Check:
    return Check("Python", State.GOOD, platform.python_version())  # an older one never gets here


COMPILER = "a C++ compiler"

# How to ask for the version of what a packages.Need names. What is not here has no version to say.
VERSIONS: dict[str, Callable[[], Sequence[str] | None]] = {
    COMPILER: lambda: _compiler_command(),
    "CMake": lambda: ["cmake", "--version"],
    "Ninja": lambda: ["ninja", "--version"],
    "git": lambda: ["git", "--version"],
    "pkg-config": lambda: ["pkg-config", "--version"],
    "liburing": lambda: ["pkg-config", "--modversion", "liburing"],
    "strace": lambda: ["strace", "--version"],
    "Clang with its sanitizers": lambda: _version_of(builds.newest_clang()),
    "clang-tidy": lambda: _version_of(packages.clang_tool("clang-tidy")),
    "clang-format": lambda: _version_of(packages.clang_tool("clang-format")),
    "Chromium": lambda: _version_of(packages.chromium()),
}


def _version_of(program: str | None) -> Sequence[str] | None:
    return [program, "--version"] if program else None


def _compiler_command() -> Sequence[str] | None:
    named = os.environ.get("CXX", "").split()
    return _version_of(named[0] if named else builds.usable_compiler())


def version_key(need: packages.Need) -> str | None:
    """'CMake 3.25' is a need, 'CMake' is what has a version."""
    return next(
        (key for key in VERSIONS if need.name == key or need.name.startswith(f"{key} ")), None
    )


def _needs() -> Iterator[Check]:
    for need in packages.all_needs():
        name = version_key(need) or need.name
        if need.met():
            yield Check(name, State.GOOD, f"{_kind(name)}{_version(name)}")
        else:
            state = State.MISSING if need.purpose == "start" else State.LIMITED
            yield Check(name, state, "not here", need.why, install_fix([need]), need)


def install_fix(needs: Sequence[packages.Need]) -> str:
    """The command for these packages, or their names where we know no package manager."""
    command = packages.install_command(needs)
    return command or f"install {', '.join(need.name for need in needs)} by your system's means"


def _kind(name: str) -> str:
    """Whose compiler it is: the name of the program, such as c++, does not say."""
    command = _compiler_command() if name == COMPILER else None
    found = builds.compiler_version(command[0]) if command else None
    return f"{found[0]} " if found else ""


def _version(name: str) -> str:
    command = VERSIONS.get(name, lambda: None)()
    if not command:
        return "here"
    try:
        said = processes.run(command, timeout_s=ASK_TIMEOUT_S)
    except CourseError:
        return "here"
    number = re.search(r"\d+(\.\d+)+", said.stdout or said.stderr)
    return number[0] if number else "here"


def _tracing() -> Check:
    """strace may be installed and yet be forbidden to trace."""
    name = "tracing"
    try:
        tried = processes.run(
            ["strace", "-f", "-c", "-o", "/dev/null", "true"], timeout_s=ASK_TIMEOUT_S
        )
    except CourseError as error:
        return Check(name, State.LIMITED, "strace hangs", str(error), "./course doctor, again")
    if tried.returncode == 0:
        return Check(name, State.GOOD, "allowed")
    said = tried.stderr.strip().splitlines()
    return Check(
        name,
        State.LIMITED,
        said[0] if said else "forbidden",
        "the checkpoints count system calls with strace",
        "in a container: start it with --cap-add=SYS_PTRACE; "
        "elsewhere: sudo sysctl kernel.yama.ptrace_scope=1 (3 stays until the next boot)",
    )


# --- limits and room ---


def _number(path: str) -> int | None:
    """A file that holds one number; None if there is none, or if it says 'max'."""
    try:
        return int(Path(path).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _smallest(values: Sequence[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _cgroup_limit(controller: str, v2_file: str, v1_file: str) -> int | None:
    """A container's limit, under either version of cgroups, as its inside sees it."""
    return _smallest(
        [_number(f"/sys/fs/cgroup/{v2_file}"), _number(f"/sys/fs/cgroup/{controller}/{v1_file}")]
    )


def _rlimit(kind: int) -> tuple[int | None, int | None]:
    """Soft and hard; None is unlimited."""
    soft, hard = (
        None if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(kind)
    )
    return soft, hard


def _count(value: int | None) -> str:
    return "unlimited" if value is None else f"{value:,}"


def _size(value: int | None) -> str:
    if value is None:
        return "unlimited"
    return f"{value / (1 << 30):.1f} GiB" if value >= 1 << 30 else f"{value / (1 << 20):.1f} MiB"


def _at_least(name: str, value: int | None, least: int, shown: str, why: str, fix: str) -> Check:
    enough = value is None or value >= least
    return Check(name, State.GOOD, shown) if enough else Check(name, State.LIMITED, shown, why, fix)


def _cpus() -> Check:
    count = len(os.sched_getaffinity(0))
    return _at_least(
        "CPUs", count, 2, str(count),
        "server and load generator share a CPU, so the speeds say little; the counts hold",
        "give the machine or container a second CPU",
    )  # fmt: skip


def _memory() -> Check:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _cgroup_limit("memory", "memory.max", "memory.limit_in_bytes")
    value = _smallest([installed, limit])
    return _at_least(
        "memory", value, MEMORY_MIN, _size(value),
        "the tests compile with the sanitizers, and 10,000 connections need buffers",
        "give the machine or container 2 GiB",
    )  # fmt: skip


def _disk() -> Check:
    free = shutil.disk_usage(ROOT).free
    return _at_least(
        "disk", free, DISK_MIN, f"{_size(free)} free",
        "the build folders of all chapters take up to 2 GiB",
        "make room, or remove build/ when you change from one chapter to the next",
    )  # fmt: skip


def _descriptors() -> Check:
    soft, hard = _rlimit(resource.RLIMIT_NOFILE)
    return _at_least(
        "descriptors", hard, DESCRIPTORS_MIN, f"{_count(soft)}, up to {_count(hard)}",
        f"a server with {CONNECTIONS_MAX:,} clients has that many files open",
        "add the line `* - nofile 20000` to /etc/security/limits.conf as root and log in again; "
        "in a container: start it with --ulimit nofile=20000:20000",
    )  # fmt: skip


def _tasks() -> Check:
    own = None if os.geteuid() == 0 else _rlimit(resource.RLIMIT_NPROC)[0]
    limit = _smallest([own, _cgroup_limit("pids", "pids.max", "pids.max"),
                       _number("/proc/sys/kernel/threads-max")])  # fmt: skip
    return _at_least(
        "threads", limit, TASKS_MIN, _count(limit),
        "chapter 01 gives each of 1,000 clients a thread",
        "ulimit -u 4096; in a container: start it with --pids-limit=4096",
    )  # fmt: skip


def _may_lock_all() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> CAP_IPC_LOCK & 1)
    return False


def _locked_memory() -> Check:
    if _may_lock_all():
        return Check("locked memory", State.GOOD, "no limit for root")
    soft, _ = _rlimit(resource.RLIMIT_MEMLOCK)
    return _at_least(
        "locked memory", soft, MEMLOCK_MIN, _size(soft),
        "all your rings and registered buffers share it",
        "add the line `* - memlock unlimited` to /etc/security/limits.conf as root and log in "
        "again; in a container: start it with --ulimit memlock=-1",
    )  # fmt: skip


def _ports() -> Check:
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return Check("ports", State.GOOD, "not said")
    return _at_least(
        "ports", high - low + 1, PORTS_MIN, f"{high - low + 1:,} for clients",
        f"{CONNECTIONS_MAX:,} connections from one address need as many ports",
        'sudo sysctl net.ipv4.ip_local_port_range="20000 60999"',
    )  # fmt: skip


def _backlog() -> Check:
    limit = _number("/proc/sys/net/core/somaxconn")
    return _at_least(
        "backlog", limit, BACKLOG_MIN, _count(limit) if limit is not None else "not said",
        "so many clients may connect at the same moment; the others wait a second or more",
        "sudo sysctl net.core.somaxconn=4096",
    )  # fmt: skip
