# SPDX-License-Identifier: MIT
"""The asserted part of a checkpoint: numbers that hold on any machine.

Each metric is measured as the difference between two amounts of the same work, so that whatever a
server does once (starting, accepting, growing its heap) cancels. It is measured several times; the
median is held against the bounds of chapter.toml, and the spread is reported beside it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from course_tool import processes
from course_tool.bench import printed, procfs, strace
from course_tool.bench.loadgen import LoadSpec, drive
from course_tool.bench.spread import Spread, summarize
from course_tool.bench.subjects import Subject
from course_tool.chapters import Count
from course_tool.errors import CourseError

REPEATS = 3
IDLE_MESSAGE_BYTES = 128
SOCKET_TIMEOUT_S = 5.0
SETTLE_TIMEOUT_S = 2.0
REQUIRE_VARIABLE = "COURSE_REQUIRE_FEATURES"

UNITS = {
    "syscalls_per_request": "calls a request",
    "sqes_per_request": "SQEs a request",
    "cqes_per_request": "CQEs a request",
    "bytes_per_idle_connection": "bytes a connection",
    "syscalls_per_operation": "calls an operation",
}


def unit_of(count: Count) -> str:
    return count.unit or UNITS[count.metric]


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Sample:
    value: float
    parts: dict[str, float]  # what it is the sum of, such as calls by name; may be empty


@dataclass(frozen=True)
class CountResult:
    count: Count
    subject: str
    verdict: Verdict
    spread: Spread | None
    parts: dict[str, float]
    reason: str  # why it was not measured; else empty

    def sentence(self) -> str:
        """What a reader has to know when it did not pass."""
        count = self.count
        if self.spread is None:
            return f"{count.name}: not measured: {self.reason}."
        return (
            f"{count.name}: {self.spread.median:.6g} {unit_of(count)} measured with "
            f"{self.subject}, {count.at_least:g} to {count.at_most:g} expected: {count.why}."
        )

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.count.name,
            "metric": self.count.metric,
            "unit": unit_of(self.count),
            "subject": self.subject,
            "connections": self.count.connections,
            "size": self.count.size,
            "inflight": self.count.inflight,
            "requests": self.count.requests,
            "calls": list(self.count.calls),
            "value": self.count.value,
            "measured": self.spread.as_json() if self.spread else None,
            "parts": self.parts,
            "at_least": self.count.at_least,
            "at_most": self.count.at_most,
            "why": self.count.why,
            "verdict": str(self.verdict),
            "reason": self.reason,
        }


def judge(count: Count, subject: str, samples: list[Sample]) -> CountResult:
    """The median decides; its parts are those of the sample that is closest to it."""
    spread = summarize(sample.value for sample in samples)
    assert spread is not None, "a verdict needs a sample"
    middle = min(samples, key=lambda sample: abs(sample.value - spread.median))
    within = count.at_least <= spread.median <= count.at_most
    verdict = Verdict.PASS if within else Verdict.FAIL
    return CountResult(count, subject, verdict, spread, middle.parts, "")


@dataclass(frozen=True)
class Bench:
    """What every measurement needs beside the count itself."""

    subject: Subject
    generator: Path
    cpu: int | None
    requests: int  # of the smaller of the two amounts of work

    def spec(self, count: Count) -> LoadSpec:
        return LoadSpec(count.connections, count.size, count.inflight, requests=self.requests)

    @contextmanager
    def server(self) -> Iterator[processes.Server]:
        with processes.Server(self.subject.command(), cpu=self.cpu) as server:
            yield server


def _syscalls(count: Count, bench: Bench) -> Sample:
    strace.require()
    calls = strace.calls_per_request(
        bench.subject.command(), bench.spec(count), bench.generator, bench.cpu
    )
    return _sum_of_calls(count, calls)


def _sum_of_calls(count: Count, calls: dict[str, float]) -> Sample:
    counted = {name: calls.get(name, 0.0) for name in count.calls} if count.calls else calls
    return Sample(sum(counted.values()), {name: each for name, each in calls.items() if each})


def _syscalls_of_run(count: Count, bench: Bench) -> Sample:
    strace.require()
    calls = strace.calls_per_operation(bench.subject.run_command(), bench.requests)
    return _sum_of_calls(count, calls)


def _printed(count: Count, bench: Bench) -> Sample:
    return Sample(printed.number_of(bench.subject.run_command(), count.value, bench.cpu), {})


def _rest(server: processes.Server) -> procfs.RingTails:
    procfs.settle(server.pid, SETTLE_TIMEOUT_S)
    tails = procfs.ring_tails(server.pid)
    if tails is None:
        raise strace.CannotCount(
            f"{server.name} has no ring whose /proc/PID/fdinfo this kernel shows (Linux 5.19 does)"
        )
    return tails


def _ring_entries(count: Count, bench: Bench) -> tuple[float, float]:
    """SQEs and CQEs that `requests` further requests cost, each divided by their number."""
    spec = bench.spec(count)
    with bench.server() as server:
        start = _rest(server)
        drive(spec, server, bench.generator)
        once = _rest(server)
        drive(spec.times(2), server, bench.generator)
        twice = _rest(server)
    first, second = once.since(start), twice.since(once)
    return (
        (second.sqes - first.sqes) / bench.requests,
        (second.cqes - first.cqes) / bench.requests,
    )


def _sqes(count: Count, bench: Bench) -> Sample:
    return Sample(_ring_entries(count, bench)[0], {})


def _cqes(count: Count, bench: Bench) -> Sample:
    return Sample(_ring_entries(count, bench)[1], {})


def _converse(server: processes.Server, size: int) -> socket.socket:
    """A client that has had one message echoed and is silent from then on."""
    message = bytes(index % 251 for index in range(size))
    client = socket.create_connection((server.host, server.port), timeout=SOCKET_TIMEOUT_S)
    try:
        client.sendall(message)
        echo = b""
        while len(echo) < size:
            part = client.recv(size - len(echo))
            if not part:
                raise CourseError(f"{server.name} closed an idle client's connection.")
            echo += part
    except OSError as error:
        client.close()
        raise CourseError(f"{server.name} did not echo {size} bytes: {error}.") from error
    except BaseException:
        client.close()
        raise
    return client


def _idle_bytes(count: Count, bench: Bench) -> Sample:
    """The server's own memory with N silent clients, minus that without, divided by N.

    Each has had one message echoed: a kept-alive connection that has said nothing yet is rare. One
    client comes and goes before we start: what the very first one costs once is no connection's.
    """
    with bench.server() as server, ExitStack() as clients:
        _converse(server, IDLE_MESSAGE_BYTES).close()
        procfs.settle(server.pid, SETTLE_TIMEOUT_S)
        before = procfs.own_resident_bytes(server.pid)
        for _ in range(count.connections):
            clients.enter_context(_converse(server, IDLE_MESSAGE_BYTES))
        procfs.settle(server.pid, SETTLE_TIMEOUT_S)
        after = procfs.own_resident_bytes(server.pid)
    return Sample((after - before) / count.connections, {})


_MEASURE: dict[str, Callable[[Count, Bench], Sample]] = {
    "syscalls_per_request": _syscalls,
    "sqes_per_request": _sqes,
    "cqes_per_request": _cqes,
    "bytes_per_idle_connection": _idle_bytes,
    "syscalls_per_operation": _syscalls_of_run,
    "printed": _printed,
}


def measure(count: Count, bench: Bench, repeats: int) -> CountResult:
    """Measures one count; a server that fails is a CourseError, a machine that cannot is said."""
    try:
        samples = [_MEASURE[count.metric](count, bench) for _ in range(repeats)]
    except strace.CannotCount as error:
        name = bench.subject.name
        return CountResult(count, name, Verdict.NOT_MEASURED, None, {}, str(error))
    return judge(count, bench.subject.name, samples)


def features_required() -> bool:
    """CI and grading set this: there, what cannot be measured is a failure."""
    return os.environ.get(REQUIRE_VARIABLE, "") not in ("", "0")


def failures(results: list[CountResult]) -> list[str]:
    """A sentence for each result that makes the checkpoint fail."""
    bad = {Verdict.FAIL} | ({Verdict.NOT_MEASURED} if features_required() else set())
    return [result.sentence() for result in results if result.verdict in bad]
