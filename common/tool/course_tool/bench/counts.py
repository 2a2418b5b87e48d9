# SPDX-License-Identifier: MIT
"""The asserted part of a checkpoint: numbers that hold on any machine.

Each metric is measured as the difference between two amounts of the same work, N and 2N, so that
whatever a program does once (starting, accepting, reading each client's EOF, growing its heap)
cancels. It is measured several times; the median is held against the bounds of chapter.toml, and
the spread is reported beside it.

strace slows a server down, so that more clients are ready whenever it asks. Calls that serve
several clients at once (epoll_wait, io_uring_enter) are therefore rarer than without strace: their
share at many clients has a bound in chapter.toml; with one client it is exact, if the server has
nothing more to do when that client has its answer. If it has, a lone request's count is exact.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from course_tool import processes, syscalls
from course_tool.bench import printed, procfs
from course_tool.bench.loadgen import LoadSpec, drive
from course_tool.bench.spread import Spread, summarize
from course_tool.bench.subjects import Subject
from course_tool.chapters import Count
from course_tool.errors import CourseError

REPEATS = 3
IDLE_MESSAGE = bytes(range(128))
SOCKET_TIMEOUT_S = 5.0
REQUIRE_VARIABLE = "COURSE_REQUIRE_FEATURES"


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_MEASURED = "not measured"
    SHOWN = "shown"  # the ladder's: a chapter's own checkpoint asserts it


@dataclass(frozen=True)
class Sample:
    value: float
    parts: dict[str, float]  # what it is the sum of, such as calls by name; may be empty


@dataclass(frozen=True)
class CountResult:
    """A count as result.json holds it: what was to be measured, and what came of it."""

    name: str
    metric: str
    unit: str
    subject: str
    connections: int
    size: int
    inflight: int
    requests: int
    calls: tuple[str, ...]  # system calls it is restricted to; empty: all
    value: str  # what the program calls the number that it prints; else empty
    measured: Spread | None
    parts: dict[str, float]  # each system call's share, restricted or not
    at_least: float
    at_most: float
    why: str
    verdict: Verdict
    reason: str  # why not measured; else empty

    def sentence(self) -> str:
        """What a reader has to know when it did not pass."""
        if self.measured is None:
            return f"{self.name}: not measured: {self.reason}."
        return (
            f"{self.name}: {self.measured.median:.6g} {self.unit} measured with "
            f"{self.subject}, {self.at_least:g} to {self.at_most:g} expected: {self.why}."
        )


@dataclass(frozen=True)
class Bench:
    """What every measurement needs beside the count itself."""

    subject: Subject
    cpu: int | None

    def server(self, strace: Sequence[str | Path] = ()) -> processes.Server:
        server = _Traced if strace else processes.Server
        return server([*strace, *self.subject.command()], cpu=self.cpu)


class _Traced(processes.Server):
    """Under strace; messages name the server."""

    @property
    def name(self) -> str:
        return Path(self.args[syscalls.STRACE_WORDS]).name


def _load(count: Count, requests: int) -> LoadSpec:
    return LoadSpec(
        count.connections, count.size, count.inflight, requests=requests, path=count.path
    )


def per_unit(work: Callable[[int], Counter[str]], units: int) -> dict[str, float]:
    """By name, what one unit costs: `work` is done with `units` of them and with twice as many."""
    assert units, "a count needs an amount of work"
    once, twice = work(units), work(2 * units)
    return {name: (twice[name] - once[name]) / units for name in sorted({*once, *twice})}


def _syscalls(count: Count, work: Callable[[int], Counter[str]]) -> Sample:
    syscalls.require_strace()
    parts = per_unit(work, count.requests)
    value = sum(parts.get(name, 0.0) for name in count.calls or parts)
    return Sample(value, {name: each for name, each in parts.items() if each})


def _syscalls_of_server(count: Count, bench: Bench) -> Sample:
    def work(requests: int) -> Counter[str]:
        with syscalls.counted() as (strace, calls), bench.server(strace) as server:
            drive(_load(count, requests), server)
            procfs.settle(server.pid)  # no EOF is on its way any more
            os.kill(server.pid, signal.SIGKILL)  # so that nothing depends on how it stops
            server.wait(processes.STOP_GRACE_S)
        return calls

    return _syscalls(count, work)


def _syscalls_of_lone_requests(count: Count, bench: Bench) -> Sample:
    """As above, by one client that says nothing more before the server sleeps.

    A client that goes on at once may be quicker than the next call of a server under strace. Then
    one wait brings what would otherwise take two.
    """

    def work(requests: int) -> Counter[str]:
        with (
            syscalls.counted() as (strace, calls),
            bench.server(strace) as server,
            _connect(server) as client,
        ):
            for _ in range(requests):
                procfs.wait_for_sleep(server.pid)
                _echo(client, server)
            procfs.settle(server.pid)
            os.kill(server.pid, signal.SIGKILL)
            server.wait(processes.STOP_GRACE_S)
        return calls

    return _syscalls(count, work)


def _syscalls_of_run(count: Count, bench: Bench) -> Sample:
    def work(operations: int) -> Counter[str]:
        command = [*bench.subject.run_command(), "--count", str(operations)]
        with syscalls.counted() as (strace, calls):
            printed.run_to_end(command, under=strace)
        return calls

    return _syscalls(count, work)


def _printed(count: Count, bench: Bench) -> Sample:
    return Sample(printed.number_of(bench.subject.run_command(), count.value, bench.cpu), {})


def _tails_at_rest(server: processes.Server) -> procfs.RingTails:
    procfs.settle(server.pid)
    tails = procfs.ring_tails(server.pid)
    if tails is None:
        raise syscalls.CannotCount(
            f"{server.name} has no ring whose /proc/PID/fdinfo this kernel shows (Linux 5.19 does)"
        )
    return tails


def _ring_entries(count: Count, bench: Bench) -> Sample:
    """SQEs or CQEs that a further request costs; both amounts of work are one server's."""
    what = count.metric.removesuffix("_per_request")

    def work(requests: int) -> Counter[str]:
        before = _tails_at_rest(server)
        drive(_load(count, requests), server)
        return Counter({what: getattr(_tails_at_rest(server).since(before), what)})

    with bench.server() as server:
        return Sample(per_unit(work, count.requests)[what], {})


def _cqes_per_wait(count: Count, bench: Bench) -> Sample:
    """How many completions an io_uring_enter brings, of all while strace counts those calls.

    How many waits there are depends on who is quicker: no difference of two runs could be taken.
    """
    syscalls.require_strace()
    with syscalls.counted() as (strace, calls), bench.server(strace) as server:
        drive(_load(count, count.requests), server)
        cqes = _tails_at_rest(server).cqes
        os.kill(server.pid, signal.SIGKILL)
        server.wait(processes.STOP_GRACE_S)
    return Sample(cqes / calls["io_uring_enter"], {})


def _connect(server: processes.Server) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=SOCKET_TIMEOUT_S)


def _converse(server: processes.Server, path: str = "") -> socket.socket:
    """A client that has had one message echoed, or one answer, and is silent from then on."""
    if path:
        return _request(server, path)
    client = _connect(server)
    try:
        _echo(client, server)
        return client
    except BaseException:
        client.close()
        raise


def _echo(client: socket.socket, server: processes.Server) -> None:
    try:
        client.sendall(IDLE_MESSAGE)
        with client.makefile("rb") as answers:
            if len(answers.read(len(IDLE_MESSAGE))) < len(IDLE_MESSAGE):
                raise CourseError(f"{server.name} closed an idle client's connection.")
    except OSError as error:
        raise CourseError(
            f"{server.name} did not echo {len(IDLE_MESSAGE)} bytes: {error}."
        ) from error


def _request(server: processes.Server, path: str) -> socket.socket:
    """A client that has had one answer to a GET and keeps its connection open."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=SOCKET_TIMEOUT_S)
    try:
        client.request("GET", path)
        answer = client.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as error:
        client.close()
        raise CourseError(f"{server.name} did not answer GET {path}: {error}.") from error
    if answer.status != http.HTTPStatus.OK or client.sock is None:
        client.close()
        raise CourseError(f"{server.name} answered GET {path} with {answer.status}, or closed.")
    return client.sock


def _idle_bytes(count: Count, bench: Bench) -> Sample:
    """The server's own memory with N silent clients, minus that without, divided by N.

    Each has had one message echoed, or one answer: a kept-alive connection that has said nothing
    yet is rare. One client comes and goes before we start: what the very first one costs once is
    no connection's.
    """
    with bench.server() as server, ExitStack() as clients:
        _converse(server, count.path).close()
        procfs.settle(server.pid)
        before = procfs.own_resident_bytes(server.pid)
        for _ in range(count.connections):
            clients.enter_context(_converse(server, count.path))
        procfs.settle(server.pid)
        after = procfs.own_resident_bytes(server.pid)
    return Sample((after - before) / count.connections, {})


def _sqes_of_connections(count: Count, bench: Bench) -> Sample:
    """What it submits for a client that comes and says nothing."""

    def work(connections: int) -> Counter[str]:
        before = _tails_at_rest(server)
        for _ in range(connections):
            clients.enter_context(_connect(server))
        clients.enter_context(_converse(server))  # is accepted after all of these
        return Counter({"sqes": _tails_at_rest(server).since(before).sqes})

    with bench.server() as server, ExitStack() as clients:
        return Sample(per_unit(work, count.connections)["sqes"], {})


# By metric: how it is measured, and its unit. What a program prints has a unit of its own.
METRICS: dict[str, tuple[Callable[[Count, Bench], Sample], str]] = {
    "syscalls_per_request": (_syscalls_of_server, "calls a request"),
    "syscalls_per_lone_request": (_syscalls_of_lone_requests, "calls a request"),
    "sqes_per_request": (_ring_entries, "SQEs a request"),
    "cqes_per_request": (_ring_entries, "CQEs a request"),
    "cqes_per_wait": (_cqes_per_wait, "CQEs a wait"),
    "sqes_per_connection": (_sqes_of_connections, "SQEs a connection"),
    "bytes_per_idle_connection": (_idle_bytes, "bytes a connection"),
    "syscalls_per_operation": (_syscalls_of_run, "calls an operation"),
    "printed": (_printed, ""),
}


def judge(count: Count, subject: str, samples: list[Sample], reason: str = "") -> CountResult:
    """The median decides; its parts are those of the sample that is closest to it."""
    spread, parts, verdict = summarize(each.value for each in samples), {}, Verdict.NOT_MEASURED
    if spread:
        median = spread.median
        parts = min(samples, key=lambda sample: abs(sample.value - median)).parts
        within = count.at_least <= median <= count.at_most
        verdict = Verdict.PASS if within else Verdict.FAIL
    shared = {each.name for each in fields(CountResult)} & set(vars(count))
    return CountResult(
        **{name: getattr(count, name) for name in shared}
        | {"unit": count.unit or METRICS[count.metric][1]},
        subject=subject,
        measured=spread,
        parts=parts,
        verdict=verdict,
        reason=reason,
    )


def measure(count: Count, bench: Bench, repeats: int) -> CountResult:
    """Measures one count; a server that fails is a CourseError, a machine that cannot is said."""
    take = METRICS[count.metric][0]
    try:
        return judge(count, bench.subject.name, [take(count, bench) for _ in range(repeats)])
    except syscalls.CannotCount as error:
        return judge(count, bench.subject.name, [], str(error))


def failures(results: list[CountResult]) -> list[str]:
    """A sentence for each result that makes the checkpoint fail.

    CI and grading set the variable: there, what cannot be measured is a failure.
    """
    bad = {Verdict.FAIL}
    if os.environ.get(REQUIRE_VARIABLE, "") not in ("", "0"):
        bad.add(Verdict.NOT_MEASURED)
    return [result.sentence() for result in results if result.verdict in bad]
