# SPDX-License-Identifier: MIT
"""The machine a result was measured on, and which CPUs the server and the load are pinned to."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from course_tool import builds, processes
from course_tool.errors import CourseError
from course_tool.paths import ROOT

CPUS = Path("/sys/devices/system/cpu")
ASK_TIMEOUT_S = 20
LISTEN_S = 0.5  # how long we look what others do, before we begin
BUSY_SHARE = 0.1  # of all CPUs; more than that disturbs
SPARE_DESCRIPTORS = 64
COMPILER_NAMES = {"GNU": "GCC"}
FLAGS_SHOWN = ("-O", "-g", "-f", "-m", "-std=", "-D")


@dataclass(frozen=True)
class Pinning:
    """None for both: this machine gives us one CPU, and server and load share it."""

    server_cpu: int | None
    load_cpu: int | None
    note: str


def parse_cpu_list(text: str) -> set[int]:
    """'0-1,4' is {0, 1, 4}."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def _siblings(cpu: int) -> set[int]:
    return parse_cpu_list(_read(CPUS / f"cpu{cpu}/topology/thread_siblings_list") or "") | {cpu}


def choose_cpus(allowed: set[int], siblings: set[int]) -> Pinning:
    """The server gets the first CPU, the load the next one that shares no core with it."""
    ordered = sorted(allowed)
    server = ordered[0]
    if len(ordered) == 1:
        note = f"not pinned: CPU {server} is the only one, and server and load take turns on it"
        return Pinning(None, None, note)
    apart = [cpu for cpu in ordered[1:] if cpu not in siblings]
    load = apart[0] if apart else ordered[1]
    shared = "" if apart else " (two threads of one core: they slow each other down)"
    return Pinning(server, load, f"server on CPU {server}, load on CPU {load}{shared}")


@contextmanager
def pinned() -> Iterator[Pinning]:
    """Keeps the tool, and the load generators that it starts, off the server's CPU."""
    allowed = os.sched_getaffinity(0)
    pinning = choose_cpus(allowed, _siblings(min(allowed)))
    if pinning.load_cpu is None:
        yield pinning
        return
    os.sched_setaffinity(0, {pinning.load_cpu})
    try:
        yield pinning
    finally:
        os.sched_setaffinity(0, allowed)


def allow_descriptors(connections: int) -> None:
    """Server and load generator inherit our limit of open descriptors; raise it if we may."""
    needed = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise CourseError(
            f"{connections} connections need {needed} descriptors in one process, and this shell "
            f"allows {hard}. Raise the hard limit (ulimit -Hn) and try again."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@dataclass(frozen=True)
class Git:
    revision: str | None
    modified: bool | None


@dataclass(frozen=True)
class Machine:
    """The `machine` object of a result."""

    cpu: str
    cores: int
    architecture: str
    kernel: str
    governor: str | None
    others_share: float  # of all CPUs, in use by others just before we began
    busy: bool  # that was enough to disturb
    server_cpu: int | None  # None: one CPU, nothing is pinned
    load_cpu: int | None
    pinning: str
    git: Git


@dataclass(frozen=True)
class Build:
    """An element of a result's `builds`."""

    preset: str
    compiler: str | None
    flags: str | None
    liburing: str | None


def _said(*args: str) -> str | None:
    """What a command prints; None if it fails, or is not here."""
    try:
        return processes.run(args, timeout_s=ASK_TIMEOUT_S, check=True).stdout.strip()
    except CourseError:
        return None


def _read(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return None


def parse_cpu_model(cpuinfo: str, architecture: str) -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else architecture


def parse_cpu_ticks(stat: str) -> tuple[int, int]:
    """(idle, all) since the machine started, from the first line of /proc/stat."""
    ticks = [int(word) for word in stat.splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)  # idle and iowait


def others_share() -> float:
    """The share of all CPUs that is in use while we sleep. The load average would remember our own
    build."""
    idle, total = parse_cpu_ticks(Path("/proc/stat").read_text())
    time.sleep(LISTEN_S)
    idle_later, total_later = parse_cpu_ticks(Path("/proc/stat").read_text())
    return max(0.0, 1 - (idle_later - idle) / max(1, total_later - total))  # iowait may shrink


def describe(pinning: Pinning) -> Machine:
    others = others_share()
    changes = _said("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return Machine(
        cpu=parse_cpu_model(_read(Path("/proc/cpuinfo")) or "", platform.machine()),
        cores=os.cpu_count() or 1,
        architecture=platform.machine(),
        kernel=platform.release(),
        governor=_read(CPUS / "cpu0/cpufreq/scaling_governor"),
        others_share=others,
        busy=others > BUSY_SHARE,
        server_cpu=pinning.server_cpu,
        load_cpu=pinning.load_cpu,
        pinning=pinning.note,
        git=Git(
            revision=_said("git", "-C", str(ROOT), "rev-parse", "HEAD"),
            modified=None if changes is None else bool(changes),
        ),
    )


def parse_flags(command: str) -> str:
    """What changes the code, out of a compile command: no paths, no warnings."""
    words = shlex.split(command)[1:]
    kept = [word for word in words if word.startswith(FLAGS_SHOWN) and "/" not in word]
    return " ".join(dict.fromkeys(kept))


def _server_flags(preset: str) -> str | None:
    try:
        text = (builds.folder(preset) / "compile_commands.json").read_text()
        entries = json.loads(text)
        command = next(each["command"] for each in entries if each["file"].endswith("/server.cpp"))
        return parse_flags(command)
    except (OSError, ValueError, KeyError, StopIteration):
        return None


def parse_compiler(cmake_record: str) -> str | None:
    """'GCC 12.2.0' from the file in which CMake remembers the compiler that it found."""
    kind = re.search(r'set\(CMAKE_CXX_COMPILER_ID "(\w+)"\)', cmake_record)
    version = re.search(r'set\(CMAKE_CXX_COMPILER_VERSION "([\w.]+)"\)', cmake_record)
    if not kind or not version:
        return None
    return f"{COMPILER_NAMES.get(kind[1], kind[1])} {version[1]}"


def _compiler(preset: str) -> str | None:
    for record in builds.folder(preset).glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        return parse_compiler(record.read_text(errors="replace"))
    return None


def describe_build(preset: str) -> Build:
    return Build(
        preset,
        compiler=_compiler(preset),
        flags=_server_flags(preset),
        liburing=_said("pkg-config", "--modversion", "liburing"),
    )
