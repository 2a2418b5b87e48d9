# SPDX-License-Identifier: MIT
"""Runs the course's load generator against a server and reads its report."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_tool import builds, processes
from course_tool.errors import CourseError

STALL_TIMEOUT_S = 5.0
SPARE_S = 20.0  # to connect, and to give up on a server that stalls
REQUESTS_TIMEOUT_S = 120.0
STDERR_LINES = 12
ENDING_S = 0.5  # a server that crashes takes a moment to be gone


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

    def flags(self) -> list[str]:
        how_long = (
            ["--requests", str(self.requests)]
            if self.requests is not None
            else ["--duration", f"{self.duration_s:g}"]
        )
        return [
            "echo",
            *("--conns", str(self.connections), *how_long, "--size", str(self.size)),
            *("--inflight", str(self.inflight), "--threads", "1"),
            *("--warmup", f"{self.warmup_s:g}", "--stall-timeout", f"{STALL_TIMEOUT_S:g}"),
        ]

    def times(self, factor: int) -> LoadSpec:
        assert self.requests is not None, "only a number of requests can be multiplied"
        return replace(self, requests=self.requests * factor)

    @property
    def timeout_s(self) -> float:
        if self.duration_s is None:
            return REQUESTS_TIMEOUT_S
        return self.warmup_s + self.duration_s + STALL_TIMEOUT_S + SPARE_S


@dataclass(frozen=True)
class LoadReport:
    completed: int  # in the measured time
    on_wire: int  # in all
    began_s: float  # of the measured time, as time.monotonic() tells it
    ended_s: float
    requests_per_s: float
    p50_us: float
    p99_us: float
    p999_us: float
    client_cpu_us_per_request: float
    client_limited: bool


def parse_report(text: str) -> LoadReport:
    try:
        report: dict[str, Any] = json.loads(text)
        latency, client = report["latency_us"], report["client"]
        return LoadReport(
            completed=int(report["completed"]),
            on_wire=int(report["requests_on_wire"]),
            began_s=float(report["began_monotonic_s"]),
            ended_s=float(report["ended_monotonic_s"]),
            requests_per_s=float(report["requests_per_s"]),
            p50_us=float(latency["p50"]),
            p99_us=float(latency["p99"]),
            p999_us=float(latency["p999"]),
            client_cpu_us_per_request=float(client["cpu_us_per_request"]),
            client_limited=bool(client["limited"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(f"loadgen's report cannot be read: {error!r}.") from error


def drive(spec: LoadSpec, server: processes.Server, generator: Path | None = None) -> LoadReport:
    """Loads `server` as `spec` says; a CourseError if anything but that load came of it."""
    with tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        file = Path(folder) / "report.json"
        where = ["--host", server.host, "--port", str(server.port), "--json", str(file)]
        finished = processes.run(
            [generator or program(), *spec.flags(), *where], timeout_s=spec.timeout_s
        )
        if finished.returncode != 0:
            raise CourseError(_failure(finished, server))
        if not file.is_file():
            raise CourseError("loadgen ended well but wrote no report.")
        report = parse_report(file.read_text(encoding="utf-8"))
    if spec.requests is not None and report.completed != spec.requests:
        raise CourseError(
            f"loadgen was asked for {spec.requests} requests and reports {report.completed}."
        )
    if report.completed == 0:
        raise CourseError("Not one request was answered in the measured time.")
    if not server.running():
        raise CourseError(f"The server ended under the load.\n  {_server_said(server)}")
    return report


def _failure(finished: processes.Finished, server: processes.Server) -> str:
    said = finished.stderr.strip().splitlines() or [
        f"it {processes.how_it_ended(finished.returncode)} and said nothing"
    ]
    return "\n  ".join(["The load generator stopped:", *said[-STDERR_LINES:], _server_said(server)])


def _server_said(server: processes.Server) -> str:
    """Its stderr, and how it ended if it did: a crash may say nothing else."""
    ended = ""
    if server.wait(ENDING_S):
        ended = f" It {processes.how_it_ended(server.stop())}."
    said = server.stderr_text().strip().splitlines()
    if not said:
        return f"The server's stderr is empty.{ended}"
    return "\n    ".join([f"The server's stderr:{ended}", *said[-STDERR_LINES:]])
