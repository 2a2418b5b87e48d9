# SPDX-License-Identifier: MIT
"""What people say about io_uring, and what this machine says to it.

docs/claims.toml states each claim with its experiment: a ratio of two contenders that take turns
(speed.py), numbers that are counted (counts.py), or both, and then the ratio decides. What the
claim predicts are bounds. docs/claims.json holds what came of them; the site is made from that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from course_tool.bench import counts, tables
from course_tool.bench.machine import Build, Machine
from course_tool.bench.speed import COMPARED, NS
from course_tool.bench.spread import Spread
from course_tool.chapters import Bad, Contender, Count, Load, Number, Text, Timing, read_stated
from course_tool.errors import CourseError
from course_tool.paths import DOCS, relative

STATED = DOCS / "claims.toml"
MEASURED = DOCS / "claims.json"
SCHEMA = 1
ROUNDS_LEAST = 3  # of fewer, nobody knows how far a ratio moves from one to the next
ROUNDS_A_STRAY = 8  # one of so many may say otherwise: something else ran meanwhile
UNBOUNDED = 1e9  # JSON has no infinity
NOISE_LEAST = 0.02  # a smaller difference is none, even if every round shows it


@dataclass(frozen=True)
class Experiment:
    """Contenders under one load, or programs that time themselves."""

    id: Text
    load: Load | None = None
    contenders: tuple[Contender, ...] = ()
    timing: Timing | None = None

    @property
    def compared(self) -> tuple[Contender, ...]:
        return self.timing.contenders if self.timing else self.contenders

    @property
    def metrics(self) -> tuple[str, ...]:
        return (NS,) if self.timing else tuple(metric.key for metric in COMPARED)


@dataclass(frozen=True)
class Counted(Count):
    """A number of a claim; its program is written 11:facts. Without bounds it is only shown."""

    at_most: Number = UNBOUNDED


@dataclass(frozen=True)
class Claim:
    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+$", description="look like 'poll-first'")]
    says: Text
    source: Text
    experiment: Text = ""
    subject: Text = ""  # whose metric is divided by the baseline's
    baseline: Text = ""
    metric: Text = "cpu_us_per_request"
    at_least: Number = 0  # what the claim predicts of the ratio
    at_most: Number = UNBOUNDED
    counts: tuple[Counted, ...] = ()

    @property
    def command(self) -> str:
        return f"./course bench --claims {self.id}"


@dataclass(frozen=True)
class Later:
    """A claim that this chapter cannot test, and why."""

    says: Text
    source: Text
    why: Text


@dataclass(frozen=True)
class Claims:
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    later: tuple[Later, ...]

    def experiment(self, claim: Claim) -> Experiment:
        return next(each for each in self.experiments if each.id == claim.experiment)

    def named(self, ids: Sequence[str]) -> list[Claim]:
        """All of them if none is named."""
        known = {claim.id: claim for claim in self.claims}
        for name in ids:
            if name not in known:
                raise CourseError(f"There is no claim {name!r}. There are: {', '.join(known)}.")
        return [claim for claim in self.claims if claim.id in ids or not ids]


def load(file: Path = STATED) -> Claims:
    return read_stated(file, Claims, _inconsistent)


def _inconsistent(stated: Claims, _: dict[str, Any]) -> Iterator[Bad]:
    experiments = {each.id: each for each in stated.experiments}
    for position, claim in enumerate(stated.claims, start=1):
        at = f"claims[{position}]"
        if claim.id in {earlier.id for earlier in stated.claims[: position - 1]}:
            yield Bad(f"{at}.id", f"is {claim.id!r}, as that of another claim.")
        if not (claim.experiment or claim.counts):
            yield Bad(at, "has neither an experiment nor counts: what would test it?")
        if not claim.experiment:
            continue
        if claim.experiment not in experiments:
            yield Bad(f"{at}.experiment", f"is {claim.experiment!r}, and there is none.")
            continue
        experiment = experiments[claim.experiment]
        names = [each.name for each in experiment.compared]
        for key in ("subject", "baseline"):
            if (name := getattr(claim, key)) not in names:
                yield Bad(f"{at}.{key}", f"is {name!r}; the experiment has {', '.join(names)}.")
        if claim.metric not in experiment.metrics:
            takes = ", ".join(experiment.metrics)
            yield Bad(f"{at}.metric", f"is {claim.metric!r}; the experiment has {takes}.")


class Verdict(StrEnum):
    HOLDS = "holds"
    FAILS = "does not hold"
    SAME = "no difference within the noise here"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class Figure:
    """A number with its spread."""

    name: str
    unit: str  # "ratio": of two contenders
    measured: Spread | None
    values: list[float | None] = field(default_factory=list)  # of a ratio: round by round
    at_least: float = 0  # what the claim predicts; without bounds this one is only shown
    at_most: float = UNBOUNDED

    def text(self) -> str:
        """'1.21× (1.18–1.25×); claimed: at most 0.98×', or just '8'."""
        if self.measured is None:
            return tables.MISSING
        times = "×" if self.unit == "ratio" else ""
        claimed = [f"at least {self.at_least:g}{times}"] if self.at_least else []
        claimed += [f"at most {self.at_most:g}{times}"] if self.at_most < UNBOUNDED else []
        unit = self.unit if self.unit in ("us", "ns", "ratio") else ""
        text = tables.median_text(self.measured, unit)
        if self.measured.min < self.measured.max:
            text += f" ({tables.range_text(self.measured, unit)})"
        elif not unit and self.measured.median % 1 == 0:
            text = f"{self.measured.median:g}"
        return "; claimed: ".join(filter(None, (text, " and ".join(claimed))))


@dataclass(frozen=True)
class Finding:
    """What became of a claim."""

    id: str
    says: str
    source: str
    verdict: Verdict
    figures: list[Figure]
    work: str  # "50 clients, 128 B; 5 rounds of 1 s"
    reason: str  # why it was not measured; else empty
    command: str


@dataclass(frozen=True)
class Document:
    """docs/claims.json."""

    __pydantic_config__: ClassVar = ConfigDict(strict=False, extra="forbid")
    schema: int
    date: str
    quick: bool  # a smoke run: its figures say nothing
    machine: Machine
    builds: list[Build]
    findings: list[Finding]

    def json(self) -> str:
        return json.dumps(asdict(self), indent=1, allow_nan=False) + "\n"


def read(file: Path = MEASURED) -> Document:
    if not file.exists():
        name = relative(file)
        raise CourseError(f"{name} is missing: ./course bench --claims --json {name} makes it.")
    return TypeAdapter(Document).validate_json(file.read_bytes())


def judge_ratio(ratios: Sequence[float | None], at_least: float, at_most: float) -> Verdict:
    """The median decides, unless the rounds do not agree which of the two has more."""
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < ROUNDS_LEAST:
        return Verdict.UNKNOWN
    middle = median(known)
    predicted = at_least <= middle <= at_most
    minority = min(sum(ratio <= 1 for ratio in known), sum(ratio >= 1 for ratio in known))
    same = minority > len(known) // ROUNDS_A_STRAY or abs(middle - 1) < NOISE_LEAST
    if same and not (predicted and at_least <= 1 <= at_most):  # unless that is what it predicts
        return Verdict.SAME
    return Verdict.HOLDS if predicted else Verdict.FAILS


def judge_counts(results: Sequence[counts.CountResult]) -> Verdict:
    verdicts = {result.verdict for result in results}
    if counts.Verdict.NOT_MEASURED in verdicts:
        return Verdict.UNKNOWN
    return Verdict.FAILS if counts.Verdict.FAIL in verdicts else Verdict.HOLDS
