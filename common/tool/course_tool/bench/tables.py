# SPDX-License-Identifier: MIT
"""Results as tables: for the terminal, in 80 columns, and as Markdown.

Metrics are rows and servers are columns, since there are more of the first. Where there are many
servers (the ladder) or many loads (the matrix), it is the other way round, with fewer metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from rich import box
from rich.table import Table
from rich.text import Text

from course_tool.bench.counts import CountResult, Verdict
from course_tool.bench.machine import Machine
from course_tool.bench.report import Result
from course_tool.bench.speed import BY_KEY, Cell, Metric
from course_tool.bench.spread import Spread
from course_tool.bench.subjects import Subject, Whose

WIDTH = 80
SUBJECTS_A_TABLE = 3
SUBJECTS_MANY = 12  # from here on each has a row, and fewer figures
MISSING = "–"
LIMITED = "*"
NO_SPREAD = "?"
SPREAD_ROUNDS_MIN = 3  # of fewer, least and most say nothing about the next round
MIB = 1024 * 1024
MS_FROM_US = 10_000  # times are said in ms from here on
US_FROM_NS = 10_000  # and in µs from here on
VERDICT_STYLE = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.NOT_MEASURED: "yellow"}

Texts = tuple[str, str]  # a median, and its range


def amount(value: float) -> str:
    """Three significant digits or so, and commas: 41,234  9.87  0.013."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.1:
        return f"{value:.2f}"
    return f"{value:.2g}" if size >= 0.001 else "<0.001"


def with_unit(value: float, unit: str) -> str:
    if unit == "ns":
        return f"{amount(value / 1000)} µs" if value >= US_FROM_NS else f"{amount(value)} ns"
    if unit == "us":
        return f"{amount(value / 1000)} ms" if value >= MS_FROM_US else f"{amount(value)} µs"
    if unit == "bytes":
        return f"{value / MIB:.1f} MiB"
    if unit == "B":
        return f"{amount(value)} B"
    if unit == "share":
        return f"{value * 100:.0f} %"
    if unit == "ratio":
        return f"{value:.2f}×"
    return amount(value)


def median_text(spread: Spread | None, unit: str) -> str:
    return with_unit(spread.median, unit) if spread else MISSING


def range_text(spread: Spread | None, unit: str) -> str:
    """Empty for a single sample: it has no spread."""
    if spread is None or spread.samples < 2:
        return ""
    least, most = with_unit(spread.min, unit), with_unit(spread.max, unit)
    suffix = re.search(r"\D*$", most)[0]  # type: ignore[index]
    return f"{least.removesuffix(suffix)}–{most}"


# --- speed ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """What is told of each subject: a metric, or its ratio to the baseline's."""

    title: str
    metric: Metric
    is_ratio: bool = False

    def texts(self, cell: Cell, subject: Subject) -> Texts:
        if self.is_ratio and subject == cell.baseline:
            return "1", "baseline"
        if self.is_ratio:
            spread, unit = cell.ratio(subject, self.metric), "ratio"
            # Of too few rounds nobody knows how far it moves from one to the next.
            mark = NO_SPREAD if spread and spread.samples < SPREAD_ROUNDS_MIN else ""
        else:
            spread, unit = cell.spread(subject, self.metric), self.metric.unit
            limited = self.metric.needs_idle_client and cell.limited_rounds(subject)
            mark = LIMITED if limited else ""
        return median_text(spread, unit) + mark, range_text(spread, unit)


LADDER = (
    Figure("req/s", BY_KEY["requests_per_s"]),
    Figure("CPU/req", BY_KEY["cpu_us_per_request"]),
    Figure("× CPU", BY_KEY["cpu_us_per_request"], is_ratio=True),
    Figure("p50", BY_KEY["p50_us"]),
    Figure("p99", BY_KEY["p99_us"]),
)
MATRIX = (
    Figure("requests per second", BY_KEY["requests_per_s"]),
    Figure("CPU per request", BY_KEY["cpu_us_per_request"]),
)


def rounds_text(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def work_text(cell: Cell) -> str:
    if cell.is_timing:
        timing = cell.timing
        return f"{rounds_text(cell.rounds)} of {timing.operations:,} {timing.operation}s each"
    load = cell.load
    clients = "1 client" if load.connections == 1 else f"{load.connections:,} clients"
    if load.path:
        clients += f", GET {load.path}"
    pipelined = f", {load.inflight} in flight each" if load.inflight > 1 else ""
    rounds = rounds_text(cell.rounds)
    return f"{clients}, {load.size:,} B{pipelined}; {rounds} of {load.duration_s:g} s"


def figures_of(cell: Cell) -> list[Figure]:
    figures = [Figure(metric.label, metric) for metric in cell.metrics]
    if len(cell.subjects) == 1:
        return figures
    return figures + [
        Figure(f"× {cell.baseline.name if cell.is_timing else each.label}", each, is_ratio=True)
        for each in cell.compared
    ]


@dataclass(frozen=True)
class Grid:
    """A table, for the terminal and as Markdown: the heads of its columns, and labeled rows."""

    title: str
    heads: list[str]
    rows: list[tuple[str, list[Texts]]]

    def table(self, corner: str = "", *, ranges: bool = True) -> Table:
        table = _new_table(self.title, [corner, *self.heads])
        for label, row in self.rows:
            cells = (_stacked(median, spread if ranges else "") for median, spread in row)
            table.add_row(Text(label), *cells)
        return table

    def markdown(self, corner: str) -> str:
        rows = [
            [
                label.strip(),
                *(f"{median} ({spread})" if spread else median for median, spread in row),
            ]
            for label, row in self.rows
        ]
        return _markdown_table([corner, *self.heads], rows)


def speed_grid(cell: Cell, subjects: Sequence[Subject]) -> Grid:
    """A row a figure; of programs that time themselves, a row a program."""
    title = f"Speed, {work_text(cell)}" + (": median, and min–max" if cell.rounds > 1 else "")
    if cell.is_timing:
        return _by_subject(title, cell, figures_of(cell))
    rows = [(each.title, [each.texts(cell, one) for one in subjects]) for each in figures_of(cell)]
    return Grid(title, [subject.name for subject in subjects], rows)


def _by_subject(title: str, cell: Cell, figures: Sequence[Figure]) -> Grid:
    rows = [(each.name, [one.texts(cell, each) for one in figures]) for each in cell.subjects]
    return Grid(title, [figure.title for figure in figures], rows)


def _new_table(title: str, heads: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold",
                  box=box.SIMPLE_HEAD, pad_edge=False)  # fmt: skip
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index else "left")
    return table


def _stacked(median: str, spread: str) -> Text:
    return Text.assemble((median, "bold"), ("\n" + spread if spread else "", "dim"))


def speed_tables(cell: Cell) -> list[Table]:
    if not cell.is_timing and len(cell.subjects) >= SUBJECTS_MANY:
        grid = _by_subject(f"Speed, {work_text(cell)}: medians", cell, LADDER)
        return [grid.table("server", ranges=False)]
    width = len(cell.subjects) if cell.is_timing else SUBJECTS_A_TABLE
    starts = range(0, len(cell.subjects), width)
    return [speed_grid(cell, cell.subjects[at : at + width]).table() for at in starts]


def sizes(result: Result) -> list[int]:
    return sorted({cell.load.size for cell in result.cells})


def cells_of(result: Result, size: int) -> list[Cell]:
    found = [cell for cell in result.cells if cell.load.size == size]
    return sorted(found, key=lambda cell: cell.load.connections)


def matrix_tables(result: Result) -> list[Table]:
    """One for each metric and size of a message: a row a server, a column a number of clients."""
    tables = []
    for size, figure in product(sizes(result), MATRIX):
        cells = cells_of(result, size)
        rows = [
            (each.name, [figure.texts(cell, each) for cell in cells]) for each in result.subjects
        ]
        title = f"{size:,} B: {figure.title} by clients, medians"
        grid = Grid(title, [f"{cell.load.connections:,}" for cell in cells], rows)
        tables.append(grid.table("server", ranges=False))
    return tables


# --- counts ---------------------------------------------------------------------------------------


def _unit(count: CountResult) -> str:
    return "B" if count.unit.startswith("bytes") else ""


def _is_exact(count: CountResult) -> bool:
    """Expected to the last digit, and so shown to the last one: 0.125 is not 0.12."""
    return count.at_least == count.at_most


def expected_text(count: CountResult) -> str:
    if _is_exact(count):
        return f"{count.at_most:g}"
    return f"{amount(count.at_least)}–{with_unit(count.at_most, _unit(count))}"


def measured_text(count: CountResult) -> str:
    if _is_exact(count) and count.measured:
        return f"{count.measured.median:g}"
    return median_text(count.measured, _unit(count))


def spread_text(count: CountResult) -> str:
    if _is_exact(count) and count.measured and count.measured.min == count.measured.max:
        return ""
    return range_text(count.measured, _unit(count))


def parts_text(count: CountResult, most: int = 4) -> str:
    """'recvfrom 1.00, sendto 1.00': the parts that matter, the largest first."""
    parts = sorted(count.parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in parts[:most] if abs(value) >= 0.005)


def counts_table(counts: Sequence[CountResult]) -> Table:
    heads = ("", "measured", "expected", "")
    table = _new_table("Counts: they hold on any machine, and decide", heads)
    table.columns[3].justify = "left"
    for count in counts:
        detail = count.reason or ("" if _is_exact(count) else parts_text(count))
        table.add_row(
            Text.assemble(
                count.name, ("\n" + count.why, "dim"), ("\n" + detail if detail else "", "dim")
            ),
            _stacked(measured_text(count), spread_text(count)),
            Text(expected_text(count)),
            Text(str(count.verdict), VERDICT_STYLE[count.verdict]),
        )
    return table


def _grids_of_ladder(result: Result) -> list[Grid]:
    speeds = [
        _by_subject(f"The ladder, {work_text(cell)}: medians", cell, LADDER)
        for cell in result.cells
    ]
    rows: dict[str, list[Texts]] = {}
    for count in result.counts:
        text = median_text(count.measured, _unit(count)), range_text(count.measured, _unit(count))
        rows.setdefault(count.subject, []).append(text)
    heads = ["system calls a request", "bytes of an idle client"]
    counted = Grid("The ladder, counted: medians", heads, list(rows.items()))
    return [*speeds, counted] if rows else speeds


def tables_of(result: Result) -> list[Table]:
    """For the terminal."""
    if result.kind == "ladder":
        return [grid.table("server", ranges=False) for grid in _grids_of_ladder(result)]
    if result.kind == "matrix":
        return matrix_tables(result)
    counted = [counts_table(result.counts)] if result.counts else []
    return counted + [table for cell in result.timed for table in speed_tables(cell)]


# --- what stands beside the tables ----------------------------------------------------------------


def _code_words(subjects: Iterable[Subject], others: str, alone: str) -> str:
    yours = ", ".join(each.name for each in subjects if each.whose is Whose.YOURS)
    return f"Your code: {yours}.{others}" if yours else alone


def _load_words(result: Result) -> list[str]:
    """What the rows mean, and whose code the columns are."""
    said = ["p50, p99, p99.9: so many percent of the answers came within this time."]
    if result.kind == "checkpoint":
        said.append(
            "A voluntary switch: the server slept, waiting. An involuntary one: it was made to "
            "yield the CPU."
        )
    others = " All other servers are the course's solutions."
    alone = "All servers are the course's solutions, whatever you have written so far."
    return [*said, _code_words(result.subjects, others, alone)]


def _has_unsure_ratio(cell: Cell) -> bool:
    texts = (each.texts(cell, one)[0] for each in figures_of(cell) for one in cell.subjects)
    return any(text.endswith(NO_SPREAD) for text in texts)


def busy_text(machine: Machine) -> str:
    return (
        f"Other programs used {machine.others_share * 100:.0f} % of this machine's CPUs: the "
        "counts hold all the same, but measure the speed again when it is quiet."
    )


def notes(result: Result) -> list[str]:
    """What a reader has to know to read the figures rightly."""
    said = []
    if result.quick:
        said.append("A --quick run: it shows that everything works. Its figures say nothing.")
    gone = "One gave no figure, and was left out from there on:"
    said += [f"{gone} {each}" for each in result.failures()]
    if result.cells and len(result.subjects) > 1:
        baseline = result.cells[0].baseline
        said.append(f"× is the ratio to {baseline.name}, taken round by round.")
    if result.timing:
        said.append(f"× {result.timing.baseline.name}: the ratio to it, taken round by round.")
    if any(map(_has_unsure_ratio, result.timed)):
        said.append(
            f"{NO_SPREAD} Fewer than {SPREAD_ROUNDS_MIN} rounds count in this ratio, so its "
            "spread is not known: take more with --rounds before you believe it."
        )
    runs = [run for cell in result.cells for run in cell.runs]
    limited = sum(run.client_limited for run in runs)
    if limited:
        said.append(
            f"{LIMITED} In {limited} of {len(runs)} runs the load generator was at its own limit. "
            "There, only the server's CPU per request compares, and ratios leave those rounds out."
        )
    if result.timing:
        whose = _code_words(result.timing.subjects, "", "All are the course's solutions.")
        said.append(f"Each program timed itself, on one CPU, in turns. {whose}")
    if result.cells:
        said += _load_words(result)
    if not result.timed:
        return said  # counts alone: no speed was measured whose words and machine matter
    if result.machine.busy:
        said.append(busy_text(result.machine))
    return said + result.machine_lines()


# --- Markdown -------------------------------------------------------------------------------------


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(each.replace("|", "\\|") for each in line) + " |"
                     for line in lines)  # fmt: skip


def _counts_markdown(counts: Sequence[CountResult]) -> str:
    texts = (
        measured_text,
        spread_text,
        expected_text,
        lambda count: str(count.verdict),
        parts_text,
    )
    rows = [[count.name, *(text(count) for text in texts)] for count in counts]
    return _markdown_table(["count", "measured", "min–max", "expected", "verdict", "of it"], rows)


def markdown(result: Result) -> str:
    """table.md: everything that the terminal shows and, for the matrix, every metric of it."""
    parts = [f"# {result.title}", *([result.question] if result.question else [])]
    if result.kind == "ladder" and result.counts:
        parts.append(_grids_of_ladder(result)[-1].markdown("server"))
    elif result.counts:
        parts.append(_counts_markdown(result.counts))
    parts += [speed_grid(cell, cell.subjects).markdown(work_text(cell)) for cell in result.timed]
    parts.append("\n".join(f"- {each}".replace("\n", "\n  ") for each in notes(result)))
    return "\n\n".join(parts) + "\n"
