# SPDX-License-Identifier: MIT
"""What the kernel tells about a running server: CPU time, memory, io_uring rings.

CPU time comes from the process's CPU clocks (clock_getcpuclockid(3)), for two reasons:

- They count the threads that have ended, and io_uring's worker threads, which are the process's
  own. Adding up /proc/PID/task/*/schedstat would lose every thread that ended in between.
- They resolve nanoseconds. /proc/PID/stat counts in ticks of 10 ms: 5 % of a run of 0.2 s.

The *total* is exact. Its split into user and system is not: most kernels sample it at their timer
interrupt (250 times a second is common), so over two busy seconds it is good to a few percent.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

# The kinds of a process's CPU clock; they are part of the kernel's ABI.
_CLOCK_USER_AND_SYSTEM = 0
_CLOCK_USER = 1
_CLOCK_TOTAL = 2

KIB = 1024
RING_TRIES = 20
SLEEP_RETRY_S = 0.0002
RING_RETRY_S = 0.01
SETTLE_TIMEOUT_S = 2.0
U32 = 1 << 32


@dataclass(frozen=True)
class CpuTime:
    """When it was read, and the CPU seconds that the process had used by then."""

    at_s: float
    total_s: float
    user_ticks_s: float  # sampled by the timer interrupt, as is the next one
    all_ticks_s: float

    def user_share_until(self, later: CpuTime) -> float:
        """The sampled share of user time between two readings."""
        ticks = later.all_ticks_s - self.all_ticks_s
        return (later.user_ticks_s - self.user_ticks_s) / ticks if ticks > 0 else 0.0


def _clock_s(pid: int, kind: int) -> float:
    return time.clock_gettime((~pid << 3) | kind)


def cpu_time(pid: int) -> CpuTime:
    """Raises OSError when the process is gone."""
    return CpuTime(
        time.monotonic(),
        _clock_s(pid, _CLOCK_TOTAL),
        _clock_s(pid, _CLOCK_USER),
        _clock_s(pid, _CLOCK_USER_AND_SYSTEM),
    )


def field(text: str, name: str) -> int | None:
    """The number in a line such as 'VmHWM:     1764 kB' of a file in /proc."""
    found = re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def peak_resident_bytes(pid: int) -> int:
    return (field(PROC.joinpath(str(pid), "status").read_text(), "VmHWM") or 0) * KIB


def own_bytes(smaps_rollup: str) -> int:
    """Memory that is the process's own: heap, stacks, shared mappings of its making, swap.

    Pages of its program file and of libc are left out: how many of them are resident depends on
    what ran before, and no connection costs any.
    """
    names = ("Pss_Anon", "Pss_Shmem", "SwapPss")
    return sum(field(smaps_rollup, name) or 0 for name in names) * KIB


def own_resident_bytes(pid: int) -> int:
    return own_bytes(PROC.joinpath(str(pid), "smaps_rollup").read_text())


@dataclass(frozen=True)
class RingTails:
    """How many SQEs were published and CQEs posted, modulo 2^32, since the ring was made."""

    sqes: int
    cqes: int

    def since(self, earlier: RingTails) -> RingTails:
        return RingTails((self.sqes - earlier.sqes) % U32, (self.cqes - earlier.cqes) % U32)


def parse_ring(fdinfo: str) -> RingTails | None:
    """From /proc/PID/fdinfo/FD of a ring: None if it is no ring, or an old kernel's.

    Linux prints SqTail and CqTail since 5.19, and leaves everything out while the ring is locked.
    """
    sqes, cqes = field(fdinfo, "SqTail"), field(fdinfo, "CqTail")
    return None if sqes is None or cqes is None else RingTails(sqes, cqes)


def _ring_descriptors(pid: int) -> list[str]:
    rings = []
    for link in PROC.joinpath(str(pid), "fd").iterdir():
        try:
            if link.readlink().name == "anon_inode:[io_uring]":
                rings.append(link.name)
        except FileNotFoundError:
            continue  # closed since we listed it
    return rings


def _read_ring(pid: int, descriptor: str) -> RingTails | None:
    for _ in range(RING_TRIES):
        tails = parse_ring(PROC.joinpath(str(pid), "fdinfo", descriptor).read_text())
        if tails is not None:
            return tails
        time.sleep(RING_RETRY_S)  # the server was inside io_uring_enter and held the ring's lock
    return None


def ring_tails(pid: int) -> RingTails | None:
    """The sum over the rings of a process; None without a ring that can be read."""
    tails = [_read_ring(pid, descriptor) for descriptor in _ring_descriptors(pid)]
    known = [each for each in tails if each is not None]
    if not known or len(known) != len(tails):
        return None
    return RingTails(sum(each.sqes for each in known), sum(each.cqes for each in known))


def settle(pid: int, timeout_s: float = SETTLE_TIMEOUT_S, quiet_s: float = 0.05) -> bool:
    """Waits until the process has used no CPU for `quiet_s`; False if it never rested."""
    deadline = time.monotonic() + timeout_s
    before = _clock_s(pid, _CLOCK_TOTAL)
    while time.monotonic() < deadline:
        time.sleep(quiet_s)
        now = _clock_s(pid, _CLOCK_TOTAL)
        if now == before:
            return True
        before = now
    return False


def wait_for_sleep(pid: int, timeout_s: float = SETTLE_TIMEOUT_S) -> bool:
    """Waits until every thread of the process sleeps in the kernel; False if that never is so."""
    deadline = time.monotonic() + timeout_s
    while not _sleeps(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(SLEEP_RETRY_S)
    return True


def _sleeps(pid: int) -> bool:
    stats = [stat.read_text() for stat in PROC.glob(f"{pid}/task/*/stat")]
    return bool(stats) and all(text.rpartition(")")[2].split()[0] == "S" for text in stats)
