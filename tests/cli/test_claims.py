# SPDX-License-Identifier: MIT
"""./course bench --claims: what may stand in claims.toml, the verdicts, and a small run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from course_tool import builds
from course_tool.bench import claims, claims_run, counts, report, speed
from course_tool.bench.claims import Figure, Verdict, judge_counts, judge_ratio
from course_tool.bench.options import Options
from course_tool.bench.spread import Spread
from course_tool.errors import CourseError

STATED = """\
later = []
[[experiments]]
id = "two"
[experiments.timing]
operation = "call"
operations = 10
rounds = 3
contenders = [
  { name = "slow", chapter = "90", program = "ns", args = ["30"] },
  { name = "fast", chapter = "90", program = "ns", args = ["10"] },
  { name = "idle", chapter = "90", program = "ns", args = ["1"] },
]
[[claims]]
id = "fast-is-faster"
says = "Fast is faster."
source = "its name"
experiment = "two"
subject = "fast"
baseline = "slow"
metric = "ns_per_operation"
at_most = 0.5
[[claims]]
id = "seven"
says = "It prints 7."
source = "nobody"
[[claims.counts]]
name = "what it prints"
metric = "printed"
program = "90:ns"
args = ["8"]
value = "ns per call"
unit = "ns"
at_least = 7
at_most = 7
"""


def stated(folder: Path, text: str = STATED) -> claims.Claims:
    file = folder / "claims.toml"
    file.write_text(text)
    return claims.load(file)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "seven"', 'id = "Seven!"', "claims[2].id: is 'Seven!'; it has to look like"),
        ('id = "seven"', 'id = "fast-is-faster"', "as that of another claim"),
        ('subject = "fast"', 'subject = "quick"', "the experiment has slow, fast, idle"),
        ('experiment = "two"', 'experiment = "three"', "is 'three', and there is none"),
        ('metric = "ns_per_operation"', 'metric = "p50_us"', "has ns_per_operation"),
        ("at_most = 0.5", 'at_most = "0.5"', "claims[1].at_most: is '0.5'"),
        ("at_most = 0.5", "at_mots = 0.5", "claims[1].at_mots: is not a key of this table"),
        (STATED[STATED.index("[[claims.counts]]") :], "", "neither an experiment nor counts"),
    ],
)
def test_what_may_not_stand_there_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in STATED
    with pytest.raises(CourseError, match=said.replace("[", r"\[").replace("]", r"\]")):
        stated(tmp_path, STATED.replace(old, new, 1))


def test_a_claim_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="There is no claim 'six'.*fast-is-faster, seven"):
        stated(tmp_path).named(["six"])


@pytest.mark.parametrize(
    ("ratios", "at_least", "at_most", "verdict"),
    [
        ((0.80, 0.85, 0.95), 0, 0.98, Verdict.HOLDS),
        ((1.10, 1.20, 1.25), 0, 0.98, Verdict.FAILS),
        ((0.80, 0.90, 1.01), 0, 0.98, Verdict.SAME),  # one round says otherwise
        ((0.985, 0.99, 0.995), 0, 0.98, Verdict.SAME),  # all say so, and it is too little
        ((0.80, 0.90), 0, 0.98, Verdict.UNKNOWN),
        ((0.80, None, 0.90), 0, 0.98, Verdict.UNKNOWN),
        ((0.80, None, 0.85, 0.90), 0, 0.98, Verdict.HOLDS),
        ((0.90, 1.00, 1.10), 0.97, 1.03, Verdict.HOLDS),  # it predicts no difference
        ((0.90, 1.10, 1.40), 0.97, 1.03, Verdict.SAME),  # which nobody can see in this
        ((1.01, 1.02, 1.04), 0.97, 1.03, Verdict.HOLDS),
        ((1.05, 1.10, 1.15), 0.97, 1.03, Verdict.FAILS),
        ((0.98, 1.01, 1.02), 2.0, claims.UNBOUNDED, Verdict.SAME),
        ((1.20, 1.30, 1.40), 2.0, claims.UNBOUNDED, Verdict.FAILS),
        ((*[0.80] * 6, 1.50), 0, 0.98, Verdict.SAME),  # one stray of seven
        ((*[0.80] * 7, 1.50), 0, 0.98, Verdict.HOLDS),  # one of eight
        ((*[0.80] * 6, 1.50, 1.50), 0, 0.98, Verdict.SAME),  # two of eight
    ],
)
def test_a_ratio_is_judged_by_its_rounds(
    ratios: tuple[float | None, ...], at_least: float, at_most: float, verdict: Verdict
) -> None:
    assert judge_ratio(ratios, at_least, at_most) is verdict


def test_figures_say_what_was_claimed() -> None:
    ratio = Figure("a to b", "ratio", Spread(1.214, 1.18, 1.25, 5), [], 0, 0.98)
    assert ratio.text() == "1.21× (1.18–1.25×); claimed: at most 0.98×"
    count = Figure("threads", "threads", Spread(3, 3, 3, 3), [], 1)
    assert count.text() == "3; claimed: at least 1"
    assert Figure("shown", "us", Spread(3.5, 3, 4, 3)).text() == "3.50 µs (3.00–4.00 µs)"
    assert Figure("once", "us", Spread(3.5, 3.5, 3.5, 1)).text() == "3.50 µs"
    assert Figure("a to b", "ratio", Spread(1.0, 1.0, 1.0, 1)).text() == "1.00×"
    assert judge_counts([]) is Verdict.HOLDS


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in the place of every program; its first argument is its time."""

    def put(text: str) -> None:
        file = tmp_path / "program"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        monkeypatch.setattr(builds, "program", lambda preset, name: file)
        monkeypatch.setattr(builds, "build", lambda preset, targets: None)

    return put


@pytest.mark.reads_course
def test_a_run_says_and_writes_every_verdict(
    tmp_path: Path, program: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    program('echo "ns per call: $1"')
    made = tmp_path / "claims.json"
    asked = Options(claims=True, out=tmp_path / "out", json=made)
    known = stated(tmp_path)
    assert claims_run.run(known, known.named([]), asked) == 0
    said = capfd.readouterr().out
    assert "Fast is faster." in said
    found = claims.read(made)
    assert [each.verdict for each in found.findings] == [Verdict.HOLDS, Verdict.FAILS]
    assert found.findings[0].figures[0].values == pytest.approx([1 / 3] * 3)
    assert [each.name for each in found.findings[0].figures[1:]] == ["fast", "slow"]
    assert (tmp_path / "out" / claims_run.NAME).read_text() == made.read_text()


@pytest.mark.reads_course
def test_an_experiment_that_cannot_run_is_told_and_fails(
    tmp_path: Path, program: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    program("echo no ring here >&2; exit 1")
    known = stated(tmp_path)
    asked = Options(claims=True, out=tmp_path / "out")
    assert claims_run.run(known, known.claims, asked) == 1
    said = capfd.readouterr().out
    assert said.count("  not measured: ") == 2
    assert "no ring here" in said
    assert "holds: 0, does not hold: 0" in said
    assert ", not measured: 2\n" in said


@pytest.mark.reads_course
def test_a_quick_run_measures_once_and_says_that_it_decides_nothing(
    tmp_path: Path, program: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    program(f'echo run >> {tmp_path}/runs; echo "ns per call: $1"')
    known = stated(tmp_path)
    asked = Options(claims=True, quick=True, out=tmp_path / "out")
    assert claims_run.run(known, known.named(["fast-is-faster"]), asked) == 0
    assert (tmp_path / "runs").read_text().count("run") == 2  # of "slow" and of "fast"
    assert "decides nothing" in capfd.readouterr().out
    found = claims.read(tmp_path / "out" / claims_run.NAME)
    assert found.quick
    assert [(each.id, each.verdict) for each in found.findings] == [
        ("fast-is-faster", Verdict.UNKNOWN)
    ]


@pytest.mark.reads_course
def test_a_build_that_fails_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(preset: str, targets: object) -> None:
        raise CourseError("does not compile")

    monkeypatch.setattr(builds, "build", fail)
    monkeypatch.setattr(report, "STATE", tmp_path)
    known = stated(tmp_path)
    with pytest.raises(CourseError, match="does not compile"):
        claims_run.run(known, known.claims, Options(claims=True))
    assert list((tmp_path / "bench" / "claims").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"claims": True, "ladder": True}, "name one"),
        ({"json": Path("a.json")}, "--json is for --claims"),
        ({"claims": True, "json": Path("nowhere/a.json")}, "there is no folder nowhere"),
        ({"claims": True, "rounds": 0}, "--rounds 0: takes 1 to"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CourseError, match=said):
        Options(**options)


@pytest.mark.reads_course
def test_the_course_s_own_claims_are_sound() -> None:
    known = claims.load()
    used = {claim.experiment for claim in known.claims}
    assert {each.id for each in known.experiments} <= used, "nothing asks for an experiment"
    assert all(each.metric in counts.METRICS for one in known.claims for each in one.counts)
    assert all(speed.NS in each.metrics for each in known.experiments if each.timing)
