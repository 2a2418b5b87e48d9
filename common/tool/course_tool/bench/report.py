# SPDX-License-Identifier: MIT
"""A benchmark's result as JSON, and the folder that holds it with its tables and plots.

SHAPE below is the schema: what it names is there, and nothing else is. A file's `schema` number
changes when a key is taken away or changes its meaning.

    .course/bench/02/2026-11-21T10-30-00/   result.json  table.md  plot.svg
    .course/bench/02/latest                 -> the newest of them

Units are in the keys, as everywhere: `_us`, `_s`, `_bytes`, `_per_s`, `_per_request`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tool.bench.counts import CountResult
from course_tool.bench.speed import COMPARED, METRICS, Cell
from course_tool.bench.spread import Spread
from course_tool.bench.subjects import Subject
from course_tool.bench.timing import KEY, TimingCell
from course_tool.errors import CourseError
from course_tool.paths import STATE, relative

SCHEMA = 1
RESULT_NAME = "result.json"
TABLE_NAME = "table.md"

_NUMBER = (int, float)
_SPREAD = {"median": _NUMBER, "min": _NUMBER, "max": _NUMBER, "samples": int}
_RATIOS = dict.fromkeys(COMPARED, (_SPREAD, None))  # None: no round in which both count
_VALUES = {metric.key: _NUMBER for metric in METRICS}
_SUBJECT = {
    "name": str,
    "chapter": str,
    "program": str,
    "args": [str],
    "whose": str,  # yours or reference
    "baseline": bool,
}

# A type, a tuple of alternatives, a dict of keys, or a list of one element's shape. The key "*"
# stands for keys of the measured things' own: a subject's name, a system call's.
SHAPE: dict[str, Any] = {
    "schema": int,
    "kind": str,  # checkpoint, ladder or matrix
    "chapter": (str, None),  # "02"; None for the ladder and a matrix of all chapters
    "title": str,
    "question": (str, None),
    "quick": bool,  # a smoke run: its figures say nothing
    "date": str,  # ISO 8601 with the offset from UTC
    "machine": {
        "cpu": str,
        "cores": int,
        "architecture": str,
        "kernel": str,
        "governor": (str, None),
        "others_share": float,  # of all CPUs, in use by others just before we began
        "busy": bool,  # that was enough to disturb
        "server_cpu": (int, None),  # None: one CPU, nothing is pinned
        "load_cpu": (int, None),
        "pinning": str,
        "git": {"revision": (str, None), "modified": (bool, None)},
    },
    "builds": [
        {
            "preset": str,
            "compiler": (str, None),
            "flags": (str, None),
            "liburing": (str, None),
        }
    ],
    "subjects": [_SUBJECT],
    "counts": [
        {
            "name": str,
            "metric": str,
            "unit": str,
            "subject": str,
            "connections": int,
            "size": int,
            "inflight": int,
            "requests": int,
            "calls": [str],  # system calls it is restricted to; empty: all
            "value": str,  # what the program calls the number that it prints; else empty
            "measured": (_SPREAD, None),
            "parts": {"*": _NUMBER},  # each system call's share, restricted or not
            "at_least": _NUMBER,
            "at_most": _NUMBER,
            "why": str,
            "verdict": str,  # pass, fail or not measured
            "reason": str,  # why not measured; else empty
        }
    ],
    "cells": [
        {
            "connections": int,
            "size": int,
            "inflight": int,
            "duration_s": _NUMBER,
            "warmup_s": _NUMBER,
            "rounds": int,
            "loadgen": [str],  # its flags, but for where the server is
            "runs": [
                {
                    "round": int,
                    "place": int,
                    "subject": str,
                    "client_limited": bool,
                    "values": (_VALUES, {}),  # {}: it failed
                    "failure": (str, None),
                }
            ],
            "summary": {"*": dict.fromkeys(_VALUES, (_SPREAD, None))},
            "ratios": {"*": _RATIOS},  # to the baseline, paired round by round
        }
    ],
    "timing": (
        {
            "operation": str,
            "operations": int,  # in each run
            "rounds": int,
            "subjects": [_SUBJECT],
            "runs": [
                {
                    "round": int,
                    "place": int,
                    "subject": str,
                    "ns_per_operation": (_NUMBER, None),  # None: it failed
                    "failure": (str, None),
                }
            ],
            "summary": {"*": (_SPREAD, None)},
            "ratios": {"*": (_SPREAD, None)},  # to the baseline, paired round by round
        },
        None,  # no program times itself
    ),
}


def deviations(document: Any, shape: Any = SHAPE, where: str = "result") -> list[str]:
    """Where `document` is not what SHAPE says; empty if it is."""
    if shape is None or isinstance(shape, type):
        wanted = type(None) if shape is None else shape
        exact = isinstance(document, bool) == (wanted is bool)  # True is no int here
        good = isinstance(document, wanted) and exact
        return [] if good else [f"{where} is {document!r}, not {getattr(shape, '__name__', shape)}"]
    if isinstance(shape, tuple):
        tried = [deviations(document, each, where) for each in shape]
        return [] if [] in tried else tried[0]
    if isinstance(shape, list):
        if not isinstance(document, list):
            return [f"{where} is {document!r}, not a list"]
        return [
            deviation
            for index, each in enumerate(document)
            for deviation in deviations(each, shape[0], f"{where}[{index}]")
        ]
    return _key_deviations(document, shape, where)


def _key_deviations(document: Any, shape: dict[str, Any], where: str) -> list[str]:
    if not isinstance(document, dict):
        return [f"{where} is {document!r}, not an object"]
    if "*" in shape:
        shape = dict.fromkeys(document, shape["*"])
    found = [f"{where}.{key} is missing" for key in shape if key not in document]
    found += [f"{where}.{key} is not in the schema" for key in document if key not in shape]
    for key in shape.keys() & document.keys():
        found += deviations(document[key], shape[key], f"{where}.{key}")
    return found


@dataclass(frozen=True)
class Result:
    """All that one benchmark found."""

    kind: str
    chapter: str | None
    title: str
    question: str | None
    quick: bool
    date: str
    machine: dict[str, Any]
    builds: list[dict[str, Any]]
    subjects: list[Subject]
    counts: list[CountResult]
    cells: list[Cell]
    timing: TimingCell | None = None

    @property
    def baseline(self) -> Subject:
        return next((each for each in self.subjects if each.baseline), self.subjects[0])

    def failures(self) -> list[str]:
        """A sentence for each run that did not come to an end."""
        measured: list[Cell | TimingCell] = [*self.cells, *([self.timing] if self.timing else [])]
        return [failure for each in measured for failure in each.failures()]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "chapter": self.chapter,
            "title": self.title,
            "question": self.question,
            "quick": self.quick,
            "date": self.date,
            "machine": self.machine,
            "builds": self.builds,
            "subjects": [subject.as_json() for subject in self.subjects],
            "counts": [count.as_json() for count in self.counts],
            "cells": [self._cell_json(cell) for cell in self.cells],
            "timing": _timing_json(self.timing) if self.timing else None,
        }

    def _cell_json(self, cell: Cell) -> dict[str, Any]:
        return {
            "connections": cell.load.connections,
            "size": cell.load.size,
            "inflight": cell.load.inflight,
            "duration_s": cell.load.duration_s,
            "warmup_s": cell.load.warmup_s,
            "rounds": cell.rounds,
            "loadgen": cell.load.flags(),
            "runs": [run.as_json() for run in cell.runs],
            "summary": {
                subject.name: {
                    metric.key: _spread_json(cell.spread(subject, metric)) for metric in METRICS
                }
                for subject in self.subjects
            },
            "ratios": {
                subject.name: {
                    metric.key: _spread_json(cell.ratio(subject, self.baseline, metric))
                    for metric in METRICS
                    if metric.key in COMPARED
                }
                for subject in self.subjects
            },
        }


def _timing_json(cell: TimingCell) -> dict[str, Any]:
    return {
        "operation": cell.operation,
        "operations": cell.operations,
        "rounds": cell.rounds,
        "subjects": [subject.as_json() for subject in cell.subjects],
        "runs": [
            {
                "round": run.round,
                "place": run.place,
                "subject": run.subject,
                "ns_per_operation": run.values.get(KEY),
                "failure": run.failure or None,
            }
            for run in cell.runs
        ],
        "summary": {
            subject.name: _spread_json(cell.spread(subject, cell.metric))
            for subject in cell.subjects
        },
        "ratios": {
            subject.name: _spread_json(cell.ratio(subject, cell.baseline, cell.metric))
            for subject in cell.subjects
        },
    }


def _spread_json(spread: Spread | None) -> dict[str, float] | None:
    return spread.as_json() if spread else None


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def new_folder(name: str, out: Path | None) -> Path:
    """Where a result goes: `out`, or a folder of its own under .course/bench/NAME."""
    folder = out or STATE / "bench" / name / time.strftime("%Y-%m-%dT%H-%M-%S")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CourseError(
            f"Cannot make {relative(folder)} for the results: {error.strerror}. "
            "Name another folder with --out."
        ) from error
    return folder


def link_latest(folder: Path) -> None:
    """Points `latest` beside it at `folder`; the old link serves until the new one is there."""
    fresh = folder.parent / f".latest-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(folder.name, target_is_directory=True)
    fresh.replace(folder.parent / "latest")


def write(result: Result, folder: Path, markdown: str, plots: dict[str, str]) -> None:
    """Writes result.json, table.md and the plots."""
    document = result.as_json()
    wrong = deviations(document)
    assert not wrong, f"the result does not keep its own schema: {wrong[0]}"
    files = {RESULT_NAME: json.dumps(document, indent=2) + "\n", TABLE_NAME: markdown, **plots}
    try:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CourseError(
            f"Cannot write {relative(folder / name)}: {error.strerror}. "
            "Name another folder with --out."
        ) from error


def machine_lines(result: Result) -> Sequence[str]:
    """The machine in two lines, as a caption tells it."""
    machine, build = result.machine, result.builds[-1]
    cores = f"{machine['cores']} CPU" + ("s" if machine["cores"] != 1 else "")
    compiler = " ".join(part for part in (build["compiler"], build["flags"]) if part)
    return (
        f"{machine['cpu']}, {cores}, Linux {machine['kernel']}; {machine['pinning']}",
        f"{compiler or 'compiler unknown'}; {result.date[:10]}",
    )
