# SPDX-License-Identifier: MIT
"""A benchmark's result as JSON, and the folder that holds it with its tables and plots.

Document below is the schema: what it names is there, and nothing else is. A file's `schema` number
changes when a key is taken away or changes its meaning.

    .course/bench/02/2026-11-21T10-30-00/   result.json  table.md  plot.svg
    .course/bench/02/latest                 -> the newest of them

Units are in the keys, as everywhere: `_us`, `_s`, `_bytes`, `_per_s`, `_per_request`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from course_tool.bench.counts import CountResult
from course_tool.bench.machine import Build, Machine
from course_tool.bench.speed import COMPARED, METRICS, NS, Cell, Run
from course_tool.bench.spread import Spread
from course_tool.bench.subjects import Subject
from course_tool.errors import CourseError
from course_tool.paths import STATE, relative

SCHEMA = 1
RESULT_NAME = "result.json"
TABLE_NAME = "table.md"

Values = TypedDict("Values", {each.key: float for each in METRICS})
Summary = TypedDict("Summary", {each.key: Spread | None for each in METRICS})
Ratios = TypedDict("Ratios", {each.key: Spread | None for each in COMPARED})


@dataclass(frozen=True)
class Result:
    """All that one benchmark found."""

    kind: str  # checkpoint, ladder or matrix
    chapter: str | None  # "02"; None for the ladder and a matrix of all chapters
    title: str
    question: str | None
    quick: bool  # a smoke run: its figures say nothing
    date: str  # ISO 8601 with the offset from UTC
    machine: Machine
    builds: list[Build]
    subjects: list[Subject]
    counts: list[CountResult]
    cells: list[Cell]
    timing: Cell | None = None  # None: no program times itself

    @property
    def timed(self) -> list[Cell]:
        """All that has speed in it."""
        return [*self.cells, *([self.timing] if self.timing else [])]

    def failures(self) -> list[str]:
        """A sentence for each run that gave no figure."""
        return [failure for cell in self.timed for failure in cell.failures()]

    def machine_lines(self) -> list[str]:
        """The machine in two lines, as a caption tells it."""
        machine, build = self.machine, self.builds[-1]
        cores = f"{machine.cores} CPU" + ("s" if machine.cores != 1 else "")
        compiler = " ".join(filter(None, (build.compiler, build.flags))) or "compiler unknown"
        return [
            f"{machine.cpu}, {cores}, Linux {machine.kernel}; {machine.pinning}",
            f"{compiler}; {self.date[:10]}",
        ]


@dataclass(frozen=True)
class LoadRun(Run):
    values: Values | Annotated[dict[str, float], Field(max_length=0)]  # {}: it failed


@dataclass(frozen=True)
class LoadCell:
    connections: int
    size: int
    inflight: int
    duration_s: float
    warmup_s: float
    rounds: int
    loadgen: list[str]  # its flags, but for where the server is
    runs: list[LoadRun]
    summary: dict[str, Summary]  # by subject
    ratios: dict[str, Ratios]  # to the baseline, paired round by round; None: no round counts


@dataclass(frozen=True)
class TimingRun:
    round: int
    place: int
    subject: str
    ns_per_operation: float | None  # None: it failed
    failure: str | None


@dataclass(frozen=True)
class TimingCell:
    operation: str
    operations: int  # in each run
    rounds: int
    subjects: list[Subject]
    runs: list[TimingRun]
    summary: dict[str, Spread | None]
    ratios: dict[str, Spread | None]


@dataclass(frozen=True)
class Document(Result):
    """result.json."""

    __pydantic_config__: ClassVar = ConfigDict(strict=True, extra="forbid")
    cells: list[LoadCell]  # type: ignore[assignment]
    timing: TimingCell | None  # type: ignore[assignment]
    schema: int = SCHEMA


ADAPTER = TypeAdapter(Document)


def json_of(result: Result) -> str:
    cells = [_load_cell(cell) for cell in result.cells]
    timing = _timing_cell(result.timing) if result.timing else None
    document = Document(**vars(result) | {"cells": cells, "timing": timing})
    return json.dumps(asdict(document), indent=2) + "\n"


def _load_cell(cell: Cell) -> LoadCell:
    load = cell.load
    assert load.duration_s is not None, "speed is measured over a time"
    return LoadCell(
        connections=load.connections,
        size=load.size,
        inflight=load.inflight,
        duration_s=load.duration_s,
        warmup_s=load.warmup_s,
        rounds=cell.rounds,
        loadgen=load.flags(),
        runs=[LoadRun(**vars(run)) for run in cell.runs],
        summary={
            subject.name: {each.key: cell.spread(subject, each) for each in cell.metrics}
            for subject in cell.subjects
        },
        ratios={
            subject.name: {each.key: cell.ratio(subject, each) for each in cell.compared}
            for subject in cell.subjects
        },
    )


def _timing_cell(cell: Cell) -> TimingCell:
    (metric,) = cell.metrics
    return TimingCell(
        operation=cell.timing.operation,
        operations=cell.timing.operations,
        rounds=cell.rounds,
        subjects=list(cell.subjects),
        runs=[
            TimingRun(run.round, run.place, run.subject, run.values.get(NS), run.failure)
            for run in cell.runs
        ],
        summary={each.name: cell.spread(each, metric) for each in cell.subjects},
        ratios={each.name: cell.ratio(each, metric) for each in cell.subjects},
    )


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CourseError(
            f"Cannot write the results to {relative(place)}: {error.strerror}. "
            "Name another folder with --out."
        ) from error


def new_folder(name: str, out: Path | None) -> Path:
    """Where a result goes: `out`, or a folder of its own under .course/bench/NAME."""
    folder = out or STATE / "bench" / name / time.strftime("%Y-%m-%dT%H-%M-%S")
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def kept_if_filled(folder: Path, out: Path | None) -> Iterator[None]:
    """Takes a folder of new_folder() away again if the measurement for it fails."""
    try:
        yield
    except BaseException:
        if out is None:
            folder.rmdir()  # nothing is in it yet
        raise


def link_latest(folder: Path) -> None:
    """Points `latest` beside it at `folder`; the old link serves until the new one is there."""
    fresh = folder.parent / f".latest-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.name, target_is_directory=True)
    fresh.replace(folder.parent / "latest")


def write(result: Result, folder: Path, markdown: str, plots: dict[str, str]) -> None:
    """Writes result.json, table.md and the plots."""
    document = json_of(result)
    ADAPTER.validate_json(document)  # one that does not keep its schema is our own mistake
    for name, text in {RESULT_NAME: document, TABLE_NAME: markdown, **plots}.items():
        write_text(folder / name, text)


def write_text(file: Path, text: str) -> None:
    with _writing(file):
        file.write_text(text, encoding="utf-8")
