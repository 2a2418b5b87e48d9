# SPDX-License-Identifier: MIT
"""What `./course bench` does: checkpoint, ladder, matrix and claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from course_tool import console, packages, state
from course_tool.bench import claims, claims_run, counts, plot, report, speed, subjects, tables
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.machine import Pinning, allow_descriptors, describe, describe_build, pinned
from course_tool.bench.options import QUICK_ROUNDS, Options
from course_tool.bench.report import Result
from course_tool.bench.subjects import Subject, Whose
from course_tool.chapters import Chapter, Count, Timing, all_chapters, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import relative

MATRIX_CLIENTS = (1, 50, 150, 300, 500, 1000)
MATRIX_BYTES = (1, 128, 512, 1000)
MATRIX_ROUNDS = 3
MATRIX_LONGEST_S = 900.0  # with many servers there are fewer rounds, but always one
WARMUP_S = 0.5
MATRIX = LoadSpec(1, 1, duration_s=1.0, warmup_s=WARMUP_S)
LADDER = LoadSpec(connections=50, size=128, duration_s=2.0, warmup_s=WARMUP_S)
LADDER_ROUNDS = 5
LADDER_REQUESTS = 10_000
LADDER_IDLE_CLIENTS = 1000  # where a chapter's own checkpoint counts none

QUICK_CLIENTS = (1, 50)
QUICK_BYTES = (1, 128)


@dataclass(frozen=True)
class Plan:
    """What is to be measured; measuring it makes a Result."""

    kind: str
    title: str
    options: Options
    chapter: Chapter | None
    subjects: Sequence[Subject]
    loads: Sequence[LoadSpec]
    rounds: int
    counts: Sequence[tuple[Subject, Count]] = ()
    timing: Timing | None = None
    timed: Sequence[Subject] = ()  # by `timing`

    @property
    def folder(self) -> str:
        """Its name under .course/bench/."""
        if self.kind == "checkpoint" and self.chapter:
            return self.chapter.number
        return f"{self.kind}-{self.chapter.number}" if self.chapter else self.kind

    def under(self, load: LoadSpec) -> list[Subject]:
        """Those that a load is for: on the ladder some echo, and some speak HTTP."""
        if self.kind != "ladder":
            return list(self.subjects)
        return [subject for subject in self.subjects if subject.path == load.path]


def run(options: Options, *, yes: bool) -> int:
    """`./course bench`: installs what it takes, and notes that a checkpoint has been run."""
    if options.claims:
        stated = claims.load()
        chosen = stated.named(options.named)
        packages.ensure("bench", yes)
        return claims_run.run(stated, chosen, options)
    number = find_chapter(options.chapter).number if options.chapter else None
    packages.ensure("bench", yes)
    code = run_bench(replace(options, chapter=number))
    if code == 0 and number and not (options.matrix or options.solution or options.quick):
        state.remember_checkpoint(number)
    return code


def run_bench(options: Options) -> int:
    """Returns the exit code: 1 if a count was out of its bounds."""
    plan = plan_of(options)
    folder = report.new_folder(plan.folder, options.out)  # first: it may be that we cannot
    with report.kept_if_filled(folder, options.out):
        result = _measure(plan)
    report.write(result, folder, tables.markdown(result), plot.plots_of(result))
    if options.out is None:
        report.link_latest(folder)
    if options.json:
        report.write_text(options.json, report.json_of(result))
    _show(result)
    console.out.print(f"Written to {relative(folder.resolve())}/")
    return _exit_code(result)


def plan_of(options: Options) -> Plan:
    """Picks the kind of benchmark."""
    chapter = find_chapter(options.chapter) if options.chapter else None
    if options.ladder or options.matrix:
        return _plan_servers(options, chapter)
    if chapter is None:
        raise CourseError(
            "Name a chapter, such as ./course bench 01; or --ladder or --matrix for all of them."
        )
    return _plan_checkpoint(options, chapter)


def _plan_checkpoint(options: Options, chapter: Chapter) -> Plan:
    """The counts of a chapter's own server, then the speed of all its contenders."""
    wanted = chapter.checkpoint
    load, timing = wanted.load, wanted.timing
    loads = []
    if load:
        spec = LoadSpec(load.connections, load.size, load.inflight,
                        duration_s=load.duration_s, warmup_s=WARMUP_S, path=load.path)  # fmt: skip
        loads.append(options.sized(spec))
    return Plan(
        kind="checkpoint",
        title=f"Checkpoint {chapter.number}: {chapter.title}",
        options=options,
        chapter=chapter,
        subjects=subjects.of_checkpoint(chapter, options.measured),
        loads=loads,
        rounds=options.rounds_or(load.rounds if load else QUICK_ROUNDS),
        counts=[_of_checkpoint(count, chapter, options) for count in wanted.counts],
        timing=timing and options.timed(timing),
        timed=subjects.of_timing(chapter, options.measured),
    )


def _of_checkpoint(count: Count, chapter: Chapter, options: Options) -> tuple[Subject, Count]:
    name, args = f"{chapter.number}-{count.program}", tuple(count.args)
    subject = Subject(name, chapter.number, count.program, args, options.measured)
    return subject, options.counted(count)


def _of_ladder(subject: Subject, load: LoadSpec, options: Options) -> list[tuple[Subject, Count]]:
    """What the home page tells of each server beside its CPU time.

    As many clients are idle as in the chapter's own checkpoint: a pool of buffers is shared by
    thousands, and a few hundred threads are plenty.
    """
    calls = Count(
        f"{subject.name}: system calls", "syscalls_per_request", subject.program, subject.args,
        load.connections, load.size, load.inflight, LADDER_REQUESTS, path=subject.path,
    )  # fmt: skip
    own = (
        each.connections
        for each in find_chapter(subject.chapter).checkpoint.counts
        if (each.metric, each.program) == ("bytes_per_idle_connection", subject.program)
    )
    idle = Count(
        f"{subject.name}: an idle client", "bytes_per_idle_connection", subject.program,
        subject.args, next(own, LADDER_IDLE_CLIENTS), path=subject.path,
    )  # fmt: skip
    return [(subject, options.counted(each)) for each in (calls, idle)]


def _plan_servers(options: Options, chapter: Chapter | None) -> Plan:
    """The ladder, or clients × bytes: every chapter's reference, or one chapter's contenders."""
    if chapter and not chapter.checkpoint.contenders:
        raise CourseError(f"Chapter {chapter.number} has no server: there is no matrix of it.")
    servers = (
        subjects.of_checkpoint(chapter, options.measured)
        if chapter
        else subjects.of_ladder(all_chapters())
    )
    counted: list[tuple[Subject, Count]] = []
    if options.ladder:
        title, rounds = "The ladder: every chapter's reference server", LADDER_ROUNDS
        loads = [options.sized(load) for load in _loads_of_ladder(servers)]
        for load in loads:
            for subject in servers:
                counted += _of_ladder(subject, load, options) if subject.path == load.path else []
    else:
        title = "The matrix: clients × bytes" + (f", chapter {chapter.number}" if chapter else "")
        sizes = QUICK_BYTES if options.quick else MATRIX_BYTES
        clients = QUICK_CLIENTS if options.quick else MATRIX_CLIENTS
        loads = [
            options.sized(replace(MATRIX, connections=connections, size=size))
            for size, connections in product(sizes, clients)
        ]
        rounds = matrix_rounds(len(servers) * sum(map(speed.run_seconds, loads)))
    return Plan(
        kind="ladder" if options.ladder else "matrix",
        title=title,
        options=options,
        chapter=chapter,
        subjects=servers,
        loads=loads,
        rounds=options.rounds_or(rounds),
        counts=counted,
    )


def _loads_of_ladder(servers: Sequence[Subject]) -> list[LoadSpec]:
    """One for those that echo, and one for each path that is asked for."""
    found = {}
    for subject in servers:
        wanted = find_chapter(subject.chapter).checkpoint.load
        load = LADDER
        if subject.path and wanted:
            load = replace(
                LADDER, connections=wanted.connections, size=wanted.size, path=subject.path
            )
        found.setdefault(subject.path, load)
    return list(found.values())


def matrix_rounds(round_s: float) -> int:
    return max(1, min(MATRIX_ROUNDS, int(MATRIX_LONGEST_S / round_s)))


def _measure(plan: Plan) -> Result:
    """Builds, checks and pins before the first measurement, so that it cannot fail halfway."""
    measured = [*plan.subjects, *plan.timed]
    subjects.build([*measured, *(counted for counted, _ in plan.counts)], plan.chapter)
    clients = [each.connections for each in (*plan.loads, *(count for _, count in plan.counts))]
    allow_descriptors(max(clients, default=0))
    is_checkpoint = plan.chapter and plan.kind == "checkpoint"
    with pinned() as pinning:
        return Result(
            kind=plan.kind,
            chapter=plan.chapter.number if plan.chapter else None,
            title=plan.title,
            question=plan.chapter.checkpoint.question if is_checkpoint else None,
            quick=plan.options.quick,
            date=report.now(),
            machine=describe(pinning),
            builds=[
                describe_build(preset)
                for preset in dict.fromkeys(subject.whose.preset for subject in measured)
            ],
            subjects=list(plan.subjects),
            counts=_measure_counts(plan, pinning),
            cells=_measure_cells(plan, pinning),
            timing=_measure_timing(plan, pinning),
        )


def _measure_counts(plan: Plan, pinning: Pinning) -> list[counts.CountResult]:
    if not plan.counts:
        return []
    results = []
    with console.progress("Counting", len(plan.counts)) as steps:
        for subject, count in plan.counts:
            steps.step(count.name)
            bench = counts.Bench(subject, pinning.server_cpu)
            try:
                found = counts.measure(count, bench, plan.options.repeats)
                if plan.kind == "ladder" and found.measured:
                    found = replace(found, verdict=counts.Verdict.SHOWN)
            except CourseError as error:
                if plan.kind != "ladder":
                    advice = _advice(subject.chapter, subject.whose)
                    raise CourseError(f"{count.name}: {error}{advice}") from error
                found = counts.judge(count, subject.name, [], str(error))
            results.append(found)
    return results


def _advice(number: str, whose: Whose) -> str:
    """For a student whose server is not done yet."""
    if whose is not Whose.YOURS:
        return ""
    return (
        f"\nThe checkpoint comes when the tests are green: ./course test {number}. "
        f"The reference can be measured at any time: ./course bench {number} --solution"
    )


def _measure_cells(plan: Plan, pinning: Pinning) -> list[speed.Cell]:
    if not plan.loads:
        return []
    runs = [load for load in plan.loads for _ in range(plan.rounds * len(plan.under(load)))]
    left_s = sum(map(speed.run_seconds, runs))
    cells = []
    with console.progress("Measuring", len(runs)) as steps:
        for load in plan.loads:

            def announce(text: str, load: LoadSpec = load) -> None:
                nonlocal left_s
                where = f"{load.connections} clients, {load.size} B"
                steps.step(f"{where}, {text}; about {_duration(left_s)} left")
                left_s = max(0.0, left_s - speed.run_seconds(load))

            measured = speed.measure(plan.under(load), load, plan.rounds, pinning, announce)
            cells.append(measured)
    return cells


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < 90 else f"{math.ceil(seconds / 60)} min"


def _measure_timing(plan: Plan, pinning: Pinning) -> speed.Cell | None:
    if plan.timing is None:
        return None
    rounds = plan.options.rounds_or(plan.timing.rounds)
    with console.progress("Timing", rounds * len(plan.timed)) as steps:
        return speed.measure(plan.timed, plan.timing, rounds, pinning, steps.step)


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
    """Counts decide. Speed is only shown: a contender without a figure is named in the notes.

    Without counts that decide, it fails if it has no figure at all.
    """
    failed = counts.failures(result.counts)
    runs = [run for cell in result.timed for run in cell.runs]
    if result.kind != "checkpoint" and not any(run.values for run in runs):
        failed.append("Nothing was measured: no server gave a figure.")
    for sentence in failed:
        console.err.print(sentence, style="red")
    return 1 if failed else 0
