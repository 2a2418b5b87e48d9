# SPDX-License-Identifier: MIT
"""The part of a benchmark that is shown and never asserted: programs that take turns.

A *cell* is one piece of work that all subjects do, in rounds. In each round every subject runs
once, in an order that moves on by one from round to round, so that no subject always follows the
same other one, or always meets a cold machine.

Servers are put under a *load* (so many clients, so many bytes). Every run has a server of its own,
pinned to one CPU, and a load generator pinned to another. CPU time is a rate, not a sum: the
server's CPU clock is read again and again, and the first and the last reading that fall into the
time which the load generator measured are the two ends of it. That rate, divided by the requests a
second, is the cost of a request: neither the warm-up nor connecting nor hanging up is in it.
Context switches are a sum, over the server's life and by all requests that were on the wire:
reading them from a thousand threads would take a tenth of a second each time.

An operation of two nanoseconds can be timed only from within: such a program takes --count, does
that many operations, and prints 'ns per OPERATION: NUMBER' (see printed.py).
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from course_tool import processes
from course_tool.bench import printed, procfs
from course_tool.bench.loadgen import LoadReport, LoadSpec, TooBusy, drive
from course_tool.bench.machine import Pinning
from course_tool.bench.spread import Spread, paired_ratios, summarize
from course_tool.bench.subjects import Subject
from course_tool.chapters import Timing
from course_tool.errors import CourseError

READINGS = 20  # in the measured time
WINDOW_LEAST = 0.3  # of the measured time: how far apart the first and last reading have to be
TRIES = 3  # of a run that other programs got in the way of
RUN_OVERHEAD_S = 0.35  # to start and stop a server and a load generator
US = 1e6


@dataclass(frozen=True)
class Metric:
    key: str
    label: str
    unit: str = ""
    needs_idle_client: bool = False  # says nothing of the server when the client was at its limit


METRICS = (
    Metric("requests_per_s", "requests per second", "1/s", True),
    Metric("cpu_us_per_request", "server CPU per request", "us"),
    Metric("cpu_user_us_per_request", "  of it in user mode", "us"),
    Metric("cpu_system_us_per_request", "  of it in the kernel", "us"),
    Metric("server_busy", "server's CPU in use", "share", True),
    Metric("p50_us", "latency p50", "us", True),
    Metric("p99_us", "latency p99", "us", True),
    Metric("p999_us", "latency p99.9", "us", True),
    Metric("voluntary_switches_per_request", "voluntary switches / request"),
    Metric("involuntary_switches_per_request", "involuntary switches / request"),
    Metric("peak_memory_bytes", "peak memory", "bytes"),
    Metric("client_cpu_us_per_request", "client CPU per request", "us"),
)
BY_KEY = {metric.key: metric for metric in METRICS}
COMPARED = tuple(BY_KEY[key] for key in ("requests_per_s", "cpu_us_per_request", "p99_us"))
NS = "ns_per_operation"
Measured = tuple[dict[str, float], bool]  # by Metric.key; was the client at its limit?


@dataclass(frozen=True)
class Run:
    """One subject in one round. Without `values` it failed, and `failure` says how."""

    round: int  # from 1
    place: int  # its turn in the round, from 1
    subject: str
    client_limited: bool
    values: dict[str, float]  # by Metric.key
    failure: str | None = None

    def value(self, metric: Metric) -> float | None:
        """None where the run says nothing: it failed, or the client was what limited it."""
        return None if self.hollow(metric) else self.values.get(metric.key)

    def hollow(self, metric: Metric) -> bool:
        return self.client_limited and metric.needs_idle_client


@dataclass(frozen=True)
class Cell:
    """All runs of one piece of work: of a load, or of what programs time themselves."""

    work: LoadSpec | Timing
    subjects: tuple[Subject, ...]
    rounds: int
    runs: tuple[Run, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        if self.is_timing:
            return (Metric(NS, f"time per {self.timing.operation}", "ns"),)
        return METRICS

    @property
    def compared(self) -> tuple[Metric, ...]:
        return self.metrics if self.is_timing else COMPARED

    @property
    def is_timing(self) -> bool:
        return isinstance(self.work, Timing)

    @property
    def load(self) -> LoadSpec:
        assert isinstance(self.work, LoadSpec), "its subjects time themselves"
        return self.work

    @property
    def timing(self) -> Timing:
        assert isinstance(self.work, Timing), "its subjects are put under a load"
        return self.work

    @property
    def baseline(self) -> Subject:
        return next((each for each in self.subjects if each.baseline), self.subjects[0])

    def of(self, subject: Subject) -> list[Run]:
        return [run for run in self.runs if run.subject == subject.name]

    def spread(self, subject: Subject, metric: Metric) -> Spread | None:
        """Over all rounds, limited ones too: what was seen is shown, and marked."""
        return summarize(run.values.get(metric.key) for run in self.of(subject))

    def limited_rounds(self, subject: Subject) -> int:
        return sum(run.client_limited for run in self.of(subject))

    def ratios(self, subject: Subject, base: Subject, metric: Metric) -> list[float | None]:
        """Paired round by round; None for a round that says nothing of one of them."""

        def by_round(subject: Subject) -> list[float | None]:
            values = {run.round: run.value(metric) for run in self.of(subject)}
            return [values.get(number) for number in range(1, self.rounds + 1)]

        return paired_ratios(by_round(subject), by_round(base))

    def ratio(self, subject: Subject, metric: Metric) -> Spread | None:
        """To the baseline; a round that says nothing of one is left out."""
        return summarize(self.ratios(subject, self.baseline, metric))

    def failures(self) -> list[str]:
        """A sentence for each run that gave no figure: its subject is left out from there on."""
        where = ""
        if not self.is_timing:
            where = f", {self.load.connections} clients, {self.load.size} B"
        return [f"{run.subject}{where}: {run.failure}" for run in self.runs if run.failure]


def window(
    readings: Sequence[procfs.CpuTime], report: LoadReport
) -> tuple[procfs.CpuTime, procfs.CpuTime]:
    """The first and last reading of the measured time; too close together is TooBusy."""
    began_s, ended_s = report.began_monotonic_s, report.ended_monotonic_s
    inside = [each for each in readings if began_s <= each.at_s <= ended_s]
    if not inside or inside[-1].at_s - inside[0].at_s < WINDOW_LEAST * (ended_s - began_s):
        raise TooBusy(
            "The server's clock could not be read often enough while the load ran: other programs "
            "keep this machine busy. Try again when it is quiet."
        )
    return inside[0], inside[-1]


class _Watch:
    """Reads a server's CPU clock while a load generator runs; a thread does it."""

    def __init__(self, pid: int, duration_s: float) -> None:
        self._pid = pid
        self._every_s = duration_s / READINGS
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.readings: list[procfs.CpuTime] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self.readings.append(procfs.cpu_time(self._pid))
            except OSError:
                return  # the server is gone; the load generator has the better story


@dataclass(frozen=True)
class Life:
    """What a server had used when it ended."""

    peak_memory_bytes: int
    voluntary_switches: int
    involuntary_switches: int


def values_of(
    report: LoadReport, first: procfs.CpuTime, last: procfs.CpuTime, life: Life
) -> dict[str, float]:
    """All metrics of one run."""
    busy = (last.total_s - first.total_s) / (last.at_s - first.at_s)
    cpu_us = busy / report.requests_per_s * US
    user_us = cpu_us * first.user_share_until(last)
    return {
        "requests_per_s": report.requests_per_s,
        "cpu_us_per_request": cpu_us,
        "cpu_user_us_per_request": user_us,
        "cpu_system_us_per_request": cpu_us - user_us,
        "server_busy": busy,
        "p50_us": report.latency_us.p50,
        "p99_us": report.latency_us.p99,
        "p999_us": report.latency_us.p999,
        "voluntary_switches_per_request": life.voluntary_switches / report.requests_on_wire,
        "involuntary_switches_per_request": life.involuntary_switches / report.requests_on_wire,
        "peak_memory_bytes": float(life.peak_memory_bytes),
        "client_cpu_us_per_request": report.client.cpu_us_per_request,
    }


def _load_once(subject: Subject, load: LoadSpec, pinning: Pinning) -> Measured:
    assert load.duration_s is not None, "speed is measured over a time"
    with processes.Server(subject.command(), cpu=pinning.server_cpu) as server:
        with _Watch(server.pid, load.duration_s) as watch:
            report = drive(load, server)
        peak = procfs.peak_resident_bytes(server.pid)
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    with_server = resource.getrusage(resource.RUSAGE_CHILDREN)  # the server is what came to it
    life = Life(
        peak, with_server.ru_nvcsw - reaped.ru_nvcsw, with_server.ru_nivcsw - reaped.ru_nivcsw
    )
    return values_of(report, *window(watch.readings, report), life), report.client.limited


def _run_once(subject: Subject, work: LoadSpec | Timing, pinning: Pinning) -> Measured:
    if isinstance(work, LoadSpec):
        return _load_once(subject, work, pinning)
    command = [*subject.run_command(), "--count", str(work.operations)]
    return {NS: printed.number_of(command, work.value, pinning.server_cpu)}, False


def _run_patiently(subject: Subject, work: LoadSpec | Timing, pinning: Pinning) -> Measured:
    for _ in range(TRIES - 1):
        try:
            return _run_once(subject, work, pinning)
        except TooBusy:
            continue
    return _run_once(subject, work, pinning)


def order_of_round(subjects: Sequence[Subject], round_index: int) -> list[Subject]:
    """Moves on by one from round to round."""
    shift = round_index % len(subjects)
    return [*subjects[shift:], *subjects[:shift]]


def run_seconds(load: LoadSpec) -> float:
    """About how long one run takes."""
    return (load.duration_s or 0) + load.warmup_s + RUN_OVERHEAD_S


def measure(
    subjects: Sequence[Subject],
    work: LoadSpec | Timing,
    rounds: int,
    pinning: Pinning,
    on_run: Callable[[str], None],
) -> Cell:
    """Each subject once a round. One that fails is told in its run, and does not run again."""
    runs: list[Run] = []
    failed: set[str] = set()
    for index in range(rounds):
        for place, subject in enumerate(order_of_round(subjects, index), start=1):
            on_run(f"round {index + 1} of {rounds}: {subject.name}")
            if subject.name in failed:
                continue
            try:
                values, limited = _run_patiently(subject, work, pinning)
                runs.append(Run(index + 1, place, subject.name, limited, values))
            except CourseError as error:
                failed.add(subject.name)
                runs.append(Run(index + 1, place, subject.name, False, {}, str(error)))
    return Cell(work, tuple(subjects), rounds, tuple(runs))
