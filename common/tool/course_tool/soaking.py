# SPDX-License-Identifier: MIT
"""`./course soak`: an HTTP server under load, while other clients treat it badly for a long time.

They reset, stall and half-close, at every place of a request. After each quarter of the time they
all leave, and what the server then holds is counted. In the end it must hold no more descriptors
than after the first quarter, its memory must have stopped growing, and no client that kept to the
rules may have seen an error.
"""

from __future__ import annotations

import math
import random
import socket
import struct
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from course_tool import builds, console, processes, running
from course_tool.bench import procfs
from course_tool.bench.loadgen import LoadSpec, drive
from course_tool.errors import CourseError

SMALL, LARGE = "small.txt", "large.bin"
SMALL_BYTES, LARGE_BYTES = 1024, 16 * 1024 * 1024
CONNECTIONS = 20  # of the load that keeps to the rules
ROUND_S = 10.0
PARTS = 4
STALLED_MAX = 200
TIMEOUT_S = 60.0
REST_S = 60.0  # for what is on its way to end, after the clients have gone
STOP_S = 60.0  # to end, once it is asked to
# So that clients that stall see the ends of these many times.
FLAGS = [
    "--idle-timeout-ms", "2000", "--head-timeout-ms", "1000",
    "--body-timeout-ms", "1000", "--write-timeout-ms", "1000",
]  # fmt: skip
# A client of ours that a busy machine holds up for so long may itself have missed one of those.
LATE_S = 0.5
# In each of the last two quarters. More clients may be there at once in one quarter than in those
# before, and the allocator keeps some of what it freed: that happens once. A leak goes on.
GROWTH_BYTES_MAX = 256 * 1024


@dataclass(frozen=True)
class AtRest:
    descriptors: int
    own_bytes: int


def soak(name: str, seconds: int, preset: str) -> int:
    """1 if the server keeps more and more; a CourseError if a client met with an error."""
    chapter, program = running.find_program(name)
    if program.contract:
        raise CourseError(
            f"{chapter.number}-{program.name} echoes what clients send; only an HTTP server is "
            "soaked: ./course soak 14"
        )
    target = f"{chapter.number}-{program.name}"
    builds.build(preset, [target])
    builds.build("release", ["loadgen"])
    with tempfile.TemporaryDirectory(prefix="course-soak-") as folder:
        root = Path(folder)
        (root / SMALL).write_bytes(b"x" * SMALL_BYTES)
        (root / LARGE).write_bytes(bytes(LARGE_BYTES))
        args = [builds.program(preset, target), "--port", "0", "--root", root, *FLAGS]
        with processes.Server(args) as server, console.progress(f"Soaking {target}") as steps:
            rests, done = soak_server(server, seconds, steps)
            code = server.stop(STOP_S)
        return report(rests, done, code)


def soak_server(
    server: processes.Server, seconds: int, steps: console.Steps
) -> tuple[list[AtRest], Counter[str]]:
    """What it held after each quarter of the time, and what its clients did."""
    done: Counter[str] = Counter()
    rests: list[AtRest] = []
    rounds = max(1, math.ceil(seconds / PARTS / ROUND_S))
    for part in range(1, PARTS + 1):
        for _ in range(rounds):
            with _rough_clients(server, done):
                length = max(seconds / PARTS / rounds, 0.5)
                spec = LoadSpec(CONNECTIONS, SMALL_BYTES, duration_s=length, path=f"/{SMALL}")
                done["requests that keep to the rules"] += drive(spec, server).requests_on_wire
        steps.at(seconds * part // PARTS, seconds, "seconds")
        rests.append(_at_rest(server, rests[0].descriptors if part == PARTS else None))
    return rests, done


def _at_rest(server: processes.Server, descriptors: int | None = None) -> AtRest:
    """When nothing changes any more; with `descriptors`, when there are no more than those."""
    deadline = time.monotonic() + REST_S
    while True:
        procfs.settle(server.pid)
        now = _open_descriptors(server)
        time.sleep(0.5)
        again = _open_descriptors(server)
        is_flat = now == again if descriptors is None else again <= descriptors
        if is_flat or time.monotonic() > deadline:
            return AtRest(again, procfs.own_resident_bytes(server.pid))


def _open_descriptors(server: processes.Server) -> int:
    return len(list(procfs.PROC.joinpath(str(server.pid), "fd").iterdir()))


def report(rests: Sequence[AtRest], done: Counter[str], code: int) -> int:
    """Prints what came of it; 0 if all is as it should be, else 1."""
    rows: list[list[object]] = [[name, f"{count:,}"] for name, count in sorted(done.items())]
    console.out.print(console.table(None, ["what clients did", "times>"], rows))
    console.out.print(
        f"At rest after each quarter of the time: {_listed(each.descriptors for each in rests)} "
        f"descriptors; {_listed(each.own_bytes // 1024 for each in rests)} KiB of memory."
    )
    wrong = []
    if rests[-1].descriptors > rests[0].descriptors:
        wrong.append("Descriptors were left open: a path ends a connection and closes no socket.")
    grown = [after.own_bytes - before.own_bytes for before, after in pairwise(rests)]
    if all(growth > GROWTH_BYTES_MAX for growth in grown[-2:]):
        wrong.append("Memory grows: something is kept for a client that has gone.")
    if code != 0:
        wrong.append(f"When it was asked to stop, the server {processes.how_it_ended(code)}.")
    for sentence in wrong:
        console.out.print(sentence, style="red")
    if not wrong:
        console.out.print("Both are flat, and nobody who kept to the rules saw an error.")
    return 1 if wrong else 0


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(f"{number:,}" for number in numbers)


# ---- clients that do not keep to the rules ----

Act = Callable[[socket.socket], bool]


@contextmanager
def _rough_clients(server: processes.Server, done: Counter[str]) -> Iterator[None]:
    """They do one thing after the other while the block runs; what they find wrong is raised."""
    stop, errors = threading.Event(), []

    def run() -> None:
        try:
            _be_rough(server, done, stop)
        except CourseError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(2 * TIMEOUT_S)
    if errors:
        raise errors[0]


def _be_rough(server: processes.Server, done: Counter[str], stop: threading.Event) -> None:
    choice = random.Random(14)
    stalled: deque[socket.socket] = deque()
    try:
        while not stop.is_set():
            act = choice.choice(ACTS)
            client = socket.create_connection((server.host, server.port), timeout=TIMEOUT_S)
            if _does(act, client, done):
                stalled.append(client)
            else:
                client.close()
            if len(stalled) > STALLED_MAX:
                stalled.popleft().close()
    except OSError as error:
        raise CourseError(f"{server.name} has turned a client away: {error}.") from error
    finally:
        for each in stalled:
            each.close()


def _does(act: Act, client: socket.socket, done: Counter[str]) -> bool:
    """Whether it stays and stalls. That it is turned away counts against the server if it was in
    time."""
    came = time.monotonic()
    try:
        stalls = act(client)
    except (ConnectionError, CourseError):
        if time.monotonic() - came < LATE_S:
            raise
        done["was late itself, and turned away"] += 1
        return False
    done[(act.__doc__ or "").strip()] += 1
    return stalls


def _get(name: str) -> bytes:
    return f"GET /{name} HTTP/1.1\r\nHost: soak\r\n\r\n".encode()


HALF_A_HEAD = _get(SMALL)[:-9]
HALF_A_BODY = b"POST /-/echo HTTP/1.1\r\nHost: soak\r\nContent-Length: 100\r\n\r\nhalf"


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def _comes_and_leaves(client: socket.socket) -> bool:
    """came, and left"""
    return False


def _resets_at_once(client: socket.socket) -> bool:
    """came, and reset"""
    _reset(client)
    return False


def _resets_in_a_head(client: socket.socket) -> bool:
    """reset within a head"""
    client.sendall(HALF_A_HEAD)
    _reset(client)
    return False


def _resets_in_a_body(client: socket.socket) -> bool:
    """reset within a body"""
    client.sendall(HALF_A_BODY)
    _reset(client)
    return False


def _resets_while_it_reads(client: socket.socket) -> bool:
    """reset within an answer"""
    client.sendall(_get(LARGE))
    client.recv(1000)
    _reset(client)
    return False


def _leaves_unread(client: socket.socket) -> bool:
    """left without reading"""
    client.sendall(_get(LARGE) + _get(SMALL))
    return False


def _half_closes(client: socket.socket) -> bool:
    """half-closed, and read"""
    client.sendall(_get(SMALL))
    client.shutdown(socket.SHUT_WR)
    with client.makefile("rb") as answers:
        answer = answers.read()
    if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"x" * SMALL_BYTES):
        raise CourseError(f"A client that half-closed got no whole answer: {answer[:100]!r}.")
    return False


def _half_closes_in_a_head(client: socket.socket) -> bool:
    """half-closed within a head"""
    client.sendall(HALF_A_HEAD)
    client.shutdown(socket.SHUT_WR)
    return True


def _stalls(client: socket.socket) -> bool:
    """stalled before a request"""
    return True


def _stalls_in_a_head(client: socket.socket) -> bool:
    """stalled within a head"""
    client.sendall(HALF_A_HEAD)
    return True


def _stalls_in_a_body(client: socket.socket) -> bool:
    """stalled within a body"""
    client.sendall(HALF_A_BODY)
    return True


def _stalls_while_it_should_read(client: socket.socket) -> bool:
    """stalled within an answer"""
    client.sendall(_get(LARGE))
    return True


def _talks_nonsense(client: socket.socket) -> bool:
    """sent nonsense"""
    client.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n" * 3)
    return True


# Each returns whether the client stays and stalls; its docstring is what it did.
ACTS: tuple[Act, ...] = (
    _comes_and_leaves,
    _resets_at_once,
    _resets_in_a_head,
    _resets_in_a_body,
    _resets_while_it_reads,
    _leaves_unread,
    _half_closes,
    _half_closes_in_a_head,
    _stalls,
    _stalls_in_a_head,
    _stalls_in_a_body,
    _stalls_while_it_should_read,
    _talks_nonsense,
)
