# SPDX-License-Identifier: MIT
"""`./course bench --claims`: runs the experiments and says what became of each claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from course_tool import console
from course_tool.bench import counts, report, speed, subjects, tables
from course_tool.bench.claims import (
    SCHEMA,
    Claim,
    Claims,
    Document,
    Experiment,
    Figure,
    Finding,
    Verdict,
    judge_counts,
    judge_ratio,
)
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.machine import Pinning, allow_descriptors, describe, describe_build, pinned
from course_tool.bench.options import Options
from course_tool.bench.spread import summarize
from course_tool.bench.subjects import Subject, Whose
from course_tool.chapters import Count, Timing
from course_tool.errors import CourseError
from course_tool.paths import relative

WARMUP_S = 0.3
NAME = "claims.json"
STYLES = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.SAME: "blue"}
TOO_FEW = "a ratio of fewer than three rounds says nothing"


def run(claims: Claims, chosen: Sequence[Claim], options: Options) -> int:
    """Returns 1 if an experiment could not run. No verdict is a failure."""
    folder = report.new_folder("claims", options.out)  # first: it may be that we cannot
    with report.kept_if_filled(folder, options.out):
        found = _measure(claims, chosen, options)
    for file in filter(None, (folder / NAME, options.json)):
        report.write_text(file, found.json())
    if options.out is None:
        report.link_latest(folder)
    show(found)
    console.out.print(f"Written to {relative(options.json or folder.resolve() / NAME)}")
    unknown = any(each.verdict is Verdict.UNKNOWN for each in found.findings)
    return 1 if unknown and not options.quick else 0


def _measure(claims: Claims, chosen: Sequence[Claim], options: Options) -> Document:
    experiments = [claims.experiment(claim) for claim in chosen if claim.experiment]
    counted = [count for claim in chosen for count in claim.counts]
    compared = [each for one in experiments for each in one.compared]
    subjects.build([*map(subjects.of_contender, compared), *map(_subject, counted)])
    loads = [each.load for each in experiments if each.load]
    allow_descriptors(max((each.connections for each in (*loads, *counted)), default=0))
    with pinned() as pinning:
        machine, build = describe(pinning), describe_build(Whose.REFERENCE.preset)
        cells = {
            each.id: _cell(each, [one for one in chosen if one.experiment == each.id], options,
                           pinning)
            for each in dict.fromkeys(experiments)
        }  # fmt: skip
        with console.progress("Counting", len(counted)) as steps:
            results = {each.id: _count(each, options, pinning, steps) for each in chosen}
    findings = [_finding(each, cells.get(each.experiment), results[each.id]) for each in chosen]
    return Document(SCHEMA, report.now(), options.quick, machine, [build], findings)


def _cell(
    experiment: Experiment, chosen: Sequence[Claim], options: Options, pinning: Pinning
) -> speed.Cell:
    """Of an experiment, those contenders that these claims compare."""
    names = {name for claim in chosen for name in (claim.subject, claim.baseline)}
    compared = [subjects.of_contender(each) for each in experiment.compared if each.name in names]
    stated = experiment.load or experiment.timing
    assert stated, "an experiment has one or the other"
    work: LoadSpec | Timing
    if isinstance(stated, Timing):
        work = options.timed(stated)
    else:
        work = options.sized(LoadSpec(stated.connections, stated.size, stated.inflight,
                                      duration_s=stated.duration_s, warmup_s=WARMUP_S))  # fmt: skip
    rounds = options.rounds_or(stated.rounds)
    with console.progress(f"Measuring {experiment.id}", rounds * len(compared)) as steps:
        return speed.measure(compared, work, rounds, pinning, steps.step)


def _subject(count: Count) -> Subject:
    chapter, _, program = count.program.partition(":")
    return Subject(count.program, chapter, program, tuple(count.args), Whose.REFERENCE)


def _count(
    claim: Claim, options: Options, pinning: Pinning, steps: console.Steps
) -> list[counts.CountResult]:
    results = []
    for count in map(options.counted, claim.counts):
        steps.step(count.name)
        bench = counts.Bench(_subject(count), pinning.server_cpu)
        try:
            results.append(counts.measure(count, bench, options.repeats))
        except CourseError as error:
            results.append(counts.judge(count, bench.subject.name, [], str(error)))
    return results


def _finding(
    claim: Claim, cell: speed.Cell | None, counted: Sequence[counts.CountResult]
) -> Finding:
    verdict, figures, work, reasons = judge_counts(counted), [], "", [c.reason for c in counted]
    if cell:
        figures, work, reasons = _compared(claim, cell), tables.work_text(cell), cell.failures()
        verdict = judge_ratio(figures[0].values, claim.at_least, claim.at_most)
    figures += [
        Figure(each.name, each.unit, each.measured, [], each.at_least, each.at_most)
        for each in counted
    ]
    reason = "; ".join(filter(None, reasons)) or TOO_FEW if verdict is Verdict.UNKNOWN else ""
    return Finding(claim.id, claim.says, claim.source, verdict, figures, work, reason,
                   claim.command)  # fmt: skip


def _compared(claim: Claim, cell: speed.Cell) -> list[Figure]:
    """The ratio, and both of those that it is made of."""
    metric = next(each for each in cell.metrics if each.key == claim.metric)
    named = {each.name: each for each in cell.subjects}
    pair = named[claim.subject], named[claim.baseline]
    ratios = cell.ratios(*pair, metric)
    name = f"{claim.subject} to {claim.baseline}, {metric.label}"
    return [
        Figure(name, "ratio", summarize(ratios), ratios, claim.at_least, claim.at_most),
        *(Figure(each.name, metric.unit, cell.spread(each, metric)) for each in pair),
    ]


def show(found: Document) -> None:
    for each in found.findings:
        console.out.print(Text.assemble("\n", each.says, ("  " + each.source, "dim")))
        verdict = each.verdict + (f": {each.reason}" if each.reason else "")
        console.out.print(Text(f"  {verdict}", STYLES.get(each.verdict, "yellow")))
        for figure in each.figures:
            console.out.print(f"    {figure.name}: {figure.text()}")
        console.out.print(f"    {' · '.join(filter(None, (each.work, each.command)))}", style="dim")
    console.out.print()
    tally = Counter(each.verdict for each in found.findings)
    console.out.print(", ".join(f"{verdict}: {tally[verdict]}" for verdict in Verdict))
    if found.quick:
        console.out.print("A --quick run: it shows that everything works. It decides nothing.")
    machine = found.machine
    console.out.print(f"{machine.cpu}, Linux {machine.kernel}; {machine.pinning}", style="dim")
    if machine.busy:
        console.out.print(tables.busy_text(machine), style="dim")
