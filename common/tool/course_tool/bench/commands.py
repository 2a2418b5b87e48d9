# SPDX-License-Identifier: MIT
"""What `./course bench` does: checkpoint, ladder, matrix and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from course_tool import console
from course_tool.bench import counts, loadgen, plot, report, speed, subjects, tables, timing
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.machine import (
    Pinning,
    allow_descriptors,
    describe,
    describe_build,
    pinned,
)
from course_tool.bench.report import Result
from course_tool.bench.subjects import Subject, Whose
from course_tool.chapters import Chapter, Timing, all_chapters, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import relative

MATRIX_CLIENTS = (1, 50, 150, 300, 500, 1000)
MATRIX_BYTES = (1, 128, 512, 1000)
MATRIX_ROUNDS = 3
MATRIX_DURATION_S = 1.0
MATRIX_LONGEST_S = 900.0  # with many servers there are fewer rounds, but always one
LADDER = LoadSpec(connections=50, size=128, duration_s=2.0, warmup_s=0.5)
LADDER_ROUNDS = 5
WARMUP_S = 0.5

QUICK_CLIENTS = (1, 50)
QUICK_BYTES = (1, 128)
QUICK_ROUNDS = 1
QUICK_DURATION_S = 0.4
QUICK_WARMUP_S = 0.05
QUICK_REQUESTS = 4000  # a few futex calls more or less must not show
QUICK_IDLE_CLIENTS = 100
QUICK_OPERATIONS = 10_000
ROUNDS_MOST = 1000

CLAIMS_CHAPTER = "11"


@dataclass(frozen=True)
class Options:
    """What every kind of benchmark takes."""

    measured: Whose = Whose.YOURS  # whose server a checkpoint is about
    rounds: int | None = None  # None: what the chapter, or the kind, says
    quick: bool = False  # a smoke size, for tests: its figures say nothing
    out: Path | None = None  # None: a new folder under .course/bench/

    def __post_init__(self) -> None:
        if self.rounds is not None and not 1 <= self.rounds <= ROUNDS_MOST:
            raise CourseError(f"--rounds {self.rounds}: takes 1 to {ROUNDS_MOST}.")
        if self.out is not None and self.out.exists() and not self.out.is_dir():
            raise CourseError(f"--out {self.out}: that is a file; name a folder.")

    def rounds_or(self, usual: int) -> int:
        return self.rounds or (QUICK_ROUNDS if self.quick else usual)

    def sized(self, load: LoadSpec) -> LoadSpec:
        if not self.quick:
            return load
        return replace(load, duration_s=QUICK_DURATION_S, warmup_s=QUICK_WARMUP_S)


def run_bench(
    chapter: str | None,
    *,
    ladder: bool = False,
    matrix: bool = False,
    claims: bool = False,
    solution: bool = False,
    rounds: int | None = None,
    quick: bool = False,
    out: Path | None = None,
) -> int:
    """`./course bench`: picks the kind, and returns the exit code."""
    if ladder + matrix + claims > 1:
        raise CourseError("--ladder, --matrix and --claims are three benchmarks: name one.")
    measured = Whose.REFERENCE if solution else Whose.YOURS
    options = Options(measured, rounds, quick, out)
    if claims:
        return run_claims()
    if ladder:
        if chapter:
            raise CourseError(f"The ladder runs every chapter's server: leave out {chapter!r}.")
        return run_ladder(options)
    if matrix:
        return run_matrix(options, find_chapter(chapter) if chapter else None)
    if not chapter:
        raise CourseError(
            "Name a chapter, such as ./course bench 01; or --ladder or --matrix for all of them."
        )
    return run_checkpoint(find_chapter(chapter), options)


def run_claims() -> int:
    """No claim can be tested before the chapter that builds both sides of it."""
    raise CourseError(
        "There are no claims to test yet: they come with chapter "
        f"{CLAIMS_CHAPTER}, which builds both sides of each. "
        "`./course bench --ladder` compares the servers that exist."
    )


@dataclass
class Clock:
    """Says how long is left, from how long each piece of work is expected to take."""

    left_s: float

    def next(self, steps: console.Steps, text: str, seconds: float, count: int = 1) -> None:
        steps.step(f"{text}; about {_duration(self.left_s)} left", count)
        self.left_s = max(0.0, self.left_s - seconds)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min"


@dataclass(frozen=True)
class Plan:
    """What is to be measured; measuring it makes a Result."""

    kind: str
    chapter: Chapter | None
    title: str
    subjects: Sequence[Subject]
    loads: Sequence[LoadSpec]
    rounds: int
    options: Options
    timing: Timing | None = None
    timed: Sequence[Subject] = ()  # by `timing`

    @property
    def name(self) -> str:
        """Of the folder under .course/bench/."""
        if self.kind == "checkpoint":
            assert self.chapter is not None
            return self.chapter.number
        return f"{self.kind}-{self.chapter.number}" if self.chapter else self.kind


def _plan_checkpoint(chapter: Chapter, options: Options) -> Plan:
    load = chapter.checkpoint.load
    loads = []
    if load is not None:
        spec = LoadSpec(
            load.connections,
            load.size,
            load.inflight,
            duration_s=load.duration_s,
            warmup_s=WARMUP_S,
        )
        loads.append(options.sized(spec))
    return Plan(
        kind="checkpoint",
        chapter=chapter,
        title=f"Checkpoint {chapter.number}: {chapter.title}",
        subjects=subjects.of_checkpoint(chapter, options.measured),
        loads=loads,
        rounds=options.rounds_or(load.rounds if load else QUICK_ROUNDS),
        options=options,
        timing=_timing_spec(chapter.checkpoint.timing, options),
        timed=subjects.of_timing(chapter, options.measured),
    )


def _timing_spec(wanted: Timing | None, options: Options) -> Timing | None:
    if wanted is None:
        return None
    operations = min(wanted.operations, QUICK_OPERATIONS) if options.quick else wanted.operations
    return replace(wanted, operations=operations, rounds=options.rounds_or(wanted.rounds))


def _plan_ladder(options: Options) -> Plan:
    return Plan(
        kind="ladder",
        chapter=None,
        title="The ladder: every chapter's reference server",
        subjects=subjects.of_ladder(all_chapters()),
        loads=[options.sized(LADDER)],
        rounds=options.rounds_or(LADDER_ROUNDS),
        options=options,
    )


def _plan_matrix(options: Options, chapter: Chapter | None) -> Plan:
    if chapter and not chapter.checkpoint.contenders:
        raise CourseError(f"Chapter {chapter.number} has no server: there is no matrix of it.")
    clients = QUICK_CLIENTS if options.quick else MATRIX_CLIENTS
    sizes = QUICK_BYTES if options.quick else MATRIX_BYTES
    usual = LoadSpec(1, 1, duration_s=MATRIX_DURATION_S, warmup_s=WARMUP_S)
    run = (
        subjects.of_checkpoint(chapter, options.measured)
        if chapter
        else subjects.of_ladder(all_chapters())
    )
    loads = [
        options.sized(replace(usual, connections=connections, size=size))
        for size, connections in product(sizes, clients)
    ]
    round_s = len(run) * sum(map(speed.run_seconds, loads))
    return Plan(
        kind="matrix",
        chapter=chapter,
        title="The matrix: clients × bytes" + (f", chapter {chapter.number}" if chapter else ""),
        subjects=run,
        loads=loads,
        rounds=options.rounds_or(matrix_rounds(round_s)),
        options=options,
    )


def matrix_rounds(round_s: float) -> int:
    return max(1, min(MATRIX_ROUNDS, int(MATRIX_LONGEST_S / round_s)))


def _count_spec(count: counts.Count, quick: bool) -> counts.Count:
    if not quick:
        return count
    if not count.requests:
        return replace(count, connections=min(count.connections, QUICK_IDLE_CLIENTS))
    if not count.connections:
        return count  # without clients it takes no time, and its number has to be what it is
    requests = max(count.connections, min(count.requests, QUICK_REQUESTS))
    return replace(count, requests=requests)


def _measure_counts(plan: Plan, pinning: Pinning) -> list[counts.CountResult]:
    chapter = plan.chapter
    assert chapter is not None, "counts belong to a chapter"
    repeats = 1 if plan.options.quick else counts.REPEATS
    wanted = [_count_spec(count, plan.options.quick) for count in chapter.checkpoint.counts]
    results = []
    with console.progress("Counting", len(wanted)) as steps:
        for count in wanted:
            steps.step(count.name)
            subject = Subject(
                f"{chapter.number}-{count.program}",
                chapter.number,
                count.program,
                count.args,
                plan.options.measured,
            )
            bench = counts.Bench(subject, loadgen.program(), pinning.server_cpu, count.requests)
            try:
                results.append(counts.measure(count, bench, repeats))
            except CourseError as error:
                raise CourseError(f"{count.name}: {error}{_advice(plan)}") from error
    return results


def _advice(plan: Plan) -> str:
    """For a student whose server is not done yet."""
    if plan.options.measured is not Whose.YOURS or plan.chapter is None:
        return ""
    number = plan.chapter.number
    return (
        f"\nThe checkpoint comes when the tests are green: ./course test {number}. "
        f"The reference can be measured at any time: ./course bench {number} --solution"
    )


def _measure_cells(plan: Plan, pinning: Pinning) -> list[speed.Cell]:
    if not plan.loads:
        return []
    runs = len(plan.loads) * plan.rounds * len(plan.subjects)
    per_load = plan.rounds * len(plan.subjects)
    clock = Clock(sum(speed.run_seconds(load) * per_load for load in plan.loads))
    cells = []
    with console.progress("Measuring", runs) as steps:
        for load in plan.loads:
            on_run = _announcer(clock, steps, load)
            cells.append(
                speed.measure(plan.subjects, load, plan.rounds, pinning, loadgen.program(), on_run)
            )
    return cells


def _measure_timing(plan: Plan, pinning: Pinning) -> timing.TimingCell | None:
    if plan.timing is None:
        return None
    with console.progress("Timing", plan.timing.rounds * len(plan.timed)) as steps:
        return timing.measure(plan.timing, plan.timed, pinning, steps.step)


def _announcer(clock: Clock, steps: console.Steps, load: LoadSpec) -> Callable[[str], None]:
    def announce(text: str) -> None:
        clock.next(
            steps, f"{load.connections} clients, {load.size} B, {text}", speed.run_seconds(load)
        )

    return announce


@contextmanager
def _prepared(plan: Plan) -> Iterator[Pinning]:
    """Builds, checks and pins before the first measurement, so that it cannot fail halfway."""
    connections = [load.connections for load in plan.loads]
    if plan.kind == "checkpoint" and plan.chapter:
        connections += [count.connections for count in plan.chapter.checkpoint.counts]
    subjects.build([*plan.subjects, *plan.timed], plan.chapter)
    allow_descriptors(max(connections, default=0))
    with pinned() as pinning:
        yield pinning


def _measure(plan: Plan) -> Result:
    with _prepared(plan) as pinning:
        machine = describe(pinning)
        measured = [*plan.subjects, *plan.timed]
        presets = list(dict.fromkeys(subject.whose.preset for subject in measured))
        counted = _measure_counts(plan, pinning) if plan.kind == "checkpoint" else []
        return Result(
            kind=plan.kind,
            chapter=plan.chapter.number if plan.chapter else None,
            title=plan.title,
            question=plan.chapter.checkpoint.question
            if plan.chapter and plan.kind == "checkpoint"
            else None,
            quick=plan.options.quick,
            date=report.now(),
            machine=machine,
            builds=[describe_build(preset) for preset in presets],
            subjects=list(plan.subjects),
            counts=counted,
            cells=_measure_cells(plan, pinning),
            timing=_measure_timing(plan, pinning),
        )


def _plots(result: Result) -> dict[str, str]:
    if result.kind == "matrix":
        return {
            "requests.svg": plot.matrix_plot(result, "requests_per_s"),
            "cpu.svg": plot.matrix_plot(result, "cpu_us_per_request"),
        }
    plots = {}  # none where there are counts alone
    if result.cells:
        plots["plot.svg"] = plot.strip_plot(result, result.cells[0])
    if result.timing:
        plots["timing.svg"] = plot.timing_plot(result, result.timing)
    return plots


def _show(result: Result) -> None:
    console.out.print(result.title, style="bold")
    if result.question:
        console.out.print(result.question)
    for table in tables.tables_of(result):
        width = min(tables.WIDTH, console.out.width)
        console.out.print(table, width=width, soft_wrap=False)
    for note in tables.notes(result):
        console.out.print(note, style="dim", width=tables.WIDTH, soft_wrap=False)


def _exit_code(result: Result) -> int:
    failed = counts.failures(result.counts) + result.failures()
    for sentence in failed:
        console.err.print(sentence, style="red")
    return 1 if failed else 0


def _run(plan: Plan) -> int:
    folder = report.new_folder(plan.name, plan.options.out)  # first: it may be that we cannot
    try:
        result = _measure(plan)
    except BaseException:
        if plan.options.out is None:
            folder.rmdir()  # nothing is in it yet
        raise
    report.write(result, folder, tables.markdown(result), _plots(result))
    if plan.options.out is None:
        report.link_latest(folder)
    _show(result)
    console.out.print(f"Written to {relative(folder.resolve())}/")
    return _exit_code(result)


def run_checkpoint(chapter: Chapter, options: Options | None = None) -> int:
    """The counts of a chapter's own server, then the speed of all its contenders."""
    return _run(_plan_checkpoint(chapter, options or Options()))


def run_ladder(options: Options | None = None) -> int:
    """Every chapter's reference server, in one interleaved run."""
    return _run(_plan_ladder(options or Options()))


def run_matrix(options: Options | None = None, chapter: Chapter | None = None) -> int:
    """Clients × bytes: every chapter's reference server, or the contenders of one chapter."""
    return _run(_plan_matrix(options or Options(), chapter))
