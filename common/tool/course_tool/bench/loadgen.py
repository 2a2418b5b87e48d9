# SPDX-License-Identifier: MIT
"""Runs the course's load generator against a server and reads its report."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from course_tool import builds, processes
from course_tool.errors import CourseError

STALL_TIMEOUT_S = 5.0
SPARE_S = 20.0  # to connect, and to give up on a server that stalls
REQUESTS_TIMEOUT_S = 120.0
STDERR_LINES = 12
ENDING_S = 0.5  # a server that crashes takes a moment to be gone


class TooBusy(CourseError):
    """Other programs got in the way; the next try may go well."""


def program() -> Path:
    return builds.program("release", "loadgen")


@dataclass(frozen=True)
class LoadSpec:
    """Either `requests` in all, or `duration_s` seconds after `warmup_s`."""

    connections: int
    size: int
    inflight: int = 1
    requests: int | None = None
    duration_s: float | None = None
    warmup_s: float = 0.0
    path: str = ""  # of an HTTP server; empty: an echo

    def flags(self) -> list[str]:
        how_long = (
            f"--requests {self.requests}"
            if self.requests is not None
            else f"--duration {self.duration_s:g}"
        )
        what = f"http --path {self.path}" if self.path else f"echo --size {self.size}"
        return (
            f"{what} --conns {self.connections} {how_long} "
            f"--inflight {self.inflight} --threads 1 --warmup {self.warmup_s:g} "
            f"--stall-timeout {STALL_TIMEOUT_S:g}"
        ).split()

    def times(self, factor: int) -> LoadSpec:
        assert self.requests is not None, "only a number of requests can be multiplied"
        return replace(self, requests=self.requests * factor)

    @property
    def timeout_s(self) -> float:
        if self.duration_s is None:
            return REQUESTS_TIMEOUT_S
        return self.warmup_s + self.duration_s + STALL_TIMEOUT_S + SPARE_S


class Latency(BaseModel):
    p50: float
    p99: float
    p999: float


class Client(BaseModel):
    cpu_us_per_request: float
    limited: bool


class LoadReport(BaseModel):
    """What we read of loadgen's JSON, which holds more."""

    completed: int  # in the measured time
    requests_on_wire: int  # in all
    began_monotonic_s: float  # of the measured time, as time.monotonic() tells it
    ended_monotonic_s: float
    requests_per_s: float
    latency_us: Latency
    client: Client


def parse_report(text: str) -> LoadReport:
    try:
        return LoadReport.model_validate_json(text)
    except ValidationError as error:
        wrong = "; ".join(f"{each['loc']}: {each['msg']}" for each in error.errors())
        raise CourseError(f"loadgen's report cannot be read: {wrong}.") from error


def drive(spec: LoadSpec, server: processes.Server) -> LoadReport:
    """Loads `server` as `spec` says; a CourseError if anything but that load came of it."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        file = Path(folder) / "report.json"
        where = ["--host", server.host, "--port", str(server.port), "--json", str(file)]
        finished = processes.run([program(), *spec.flags(), *where], timeout_s=spec.timeout_s)
        if finished.returncode != 0:
            said = finished.stderr.strip().splitlines()[-STDERR_LINES:] or [
                f"it {processes.how_it_ended(finished.returncode)} and said nothing"
            ]
            raise CourseError(
                "\n  ".join(["The load generator stopped:", *said, _server_said(server)])
            )
        if not file.is_file():
            raise CourseError("loadgen ended well but wrote no report.")
        report = parse_report(file.read_text(encoding="utf-8"))
    if spec.requests is not None and report.completed != spec.requests:
        raise CourseError(
            f"loadgen was asked for {spec.requests} requests and reports {report.completed}."
        )
    if not server.running():
        raise CourseError(f"The server ended under the load.\n  {_server_said(server)}")
    if report.completed == 0:
        raise TooBusy("Not one request was answered in the measured time.")
    return report


def _server_said(server: processes.Server) -> str:
    """Its stderr, and how it ended if it did: a crash may say nothing else."""
    ended = ""
    if server.wait(ENDING_S):
        ended = f" It {processes.how_it_ended(server.stop())}."
    said = server.stderr_text().strip().splitlines()
    if not said:
        return f"The server's stderr is empty.{ended}"
    return "\n    ".join([f"The server's stderr:{ended}", *said[-STDERR_LINES:]])
