# SPDX-License-Identifier: MIT
"""Results as tables: for the terminal, in 80 columns, and as Markdown.

Metrics are rows and servers are columns, since there are more of the first. Where there are many
servers (the ladder) or many loads (the matrix), it is the other way round, with fewer metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from course_tool.bench.counts import UNITS, CountResult, Verdict, unit_of
from course_tool.bench.report import Result, machine_lines
from course_tool.bench.speed import COMPARED, METRICS, Cell, Metric, Rounds
from course_tool.bench.spread import Spread
from course_tool.bench.subjects import Subject, Whose
from course_tool.bench.timing import TimingCell

WIDTH = 80
SUBJECTS_A_TABLE = 3
MISSING = "–"
LIMITED = "*"
NO_SPREAD = "?"
SPREAD_ROUNDS_MIN = 3  # of fewer, least and most say nothing about the next round
MIB = 1024 * 1024
MS_FROM_US = 10_000  # times are said in ms from here on
US_FROM_NS = 10_000  # and in µs from here on
VERDICT_STYLE = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.NOT_MEASURED: "yellow"}
BY_KEY = {metric.key: metric for metric in METRICS}


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


def ratio_text(spread: Spread | None) -> str:
    """Marked where too few rounds count to know how far it moves from one to the next."""
    unsure = spread is not None and spread.samples < SPREAD_ROUNDS_MIN
    return median_text(spread, "ratio") + (NO_SPREAD if unsure else "")


def range_text(spread: Spread | None, unit: str) -> str:
    """Empty for a single sample: it has no spread."""
    if spread is None or spread.samples < 2:
        return ""
    least, most = with_unit(spread.least, unit), with_unit(spread.most, unit)
    suffix = next(
        (each for each in (" ns", " µs", " ms", " MiB", " B", " %", "×") if most.endswith(each)), ""
    )
    if suffix and least.endswith(suffix):
        least = least.removesuffix(suffix)
    return f"{least}–{most}"


@dataclass(frozen=True)
class Line:
    """One row: a label, and for each column a median and a spread."""

    label: str
    cells: tuple[tuple[str, str], ...]


def speed_lines(cell: Cell, subjects: Sequence[Subject], baseline: Subject) -> list[Line]:
    lines = [_metric_line(cell, subjects, metric) for metric in METRICS]
    if len(subjects) > 1:
        lines += [_ratio_line(cell, subjects, baseline, BY_KEY[key]) for key in COMPARED]
    return lines


def _metric_line(cell: Rounds, subjects: Sequence[Subject], metric: Metric) -> Line:
    cells = []
    for subject in subjects:
        spread = cell.spread(subject, metric)
        mark = LIMITED if metric.needs_idle_client and cell.limited_rounds(subject) else ""
        cells.append((median_text(spread, metric.unit) + mark, range_text(spread, metric.unit)))
    return Line(metric.label, tuple(cells))


def _ratio_line(
    cell: Rounds, subjects: Sequence[Subject], baseline: Subject, metric: Metric
) -> Line:
    cells = []
    for subject in subjects:
        if subject == baseline:
            cells.append(("1", "baseline"))
            continue
        spread = cell.ratio(subject, baseline, metric)
        cells.append((ratio_text(spread), range_text(spread, "ratio")))
    return Line(f"× {metric.label}", tuple(cells))


def _chunks(subjects: Sequence[Subject]) -> Iterator[Sequence[Subject]]:
    for start in range(0, len(subjects), SUBJECTS_A_TABLE):
        yield subjects[start : start + SUBJECTS_A_TABLE]


def rounds_text(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def load_text(cell: Cell) -> str:
    load = cell.load
    clients = "1 client" if load.connections == 1 else f"{load.connections:,} clients"
    pipelined = f", {load.inflight} in flight each" if load.inflight > 1 else ""
    rounds = rounds_text(cell.rounds)
    return f"{clients}, {load.size:,} B{pipelined}; {rounds} of {load.duration_s:g} s"


def _new_table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        width=None,
    )


def _stacked(median: str, spread: str) -> Text:
    return Text.assemble((median, "bold"), *([("\n" + spread, "dim")] if spread else []))


def speed_tables(result: Result, cell: Cell) -> list[Table]:
    tables = []
    for subjects in _chunks(result.subjects):
        spread = ": median, and min–max" if cell.rounds > 1 else ""
        table = _new_table(f"Speed, {load_text(cell)}{spread}")
        table.add_column("")
        for subject in subjects:
            table.add_column(Text(subject.name), justify="right")
        for line in speed_lines(cell, subjects, result.baseline):
            table.add_row(Text(line.label), *(_stacked(*texts) for texts in line.cells))
        tables.append(table)
    return tables


def timing_text(cell: TimingCell) -> str:
    return f"{rounds_text(cell.rounds)} of {cell.operations:,} {cell.operation}s each"


def timing_lines(cell: TimingCell) -> list[tuple[Subject, tuple[str, str], tuple[str, str]]]:
    """For each subject its time and its ratio, both as a median and a spread."""
    times = _metric_line(cell, cell.subjects, cell.metric).cells
    ratios = _ratio_line(cell, cell.subjects, cell.baseline, cell.metric).cells
    return list(zip(cell.subjects, times, ratios, strict=True))


def timing_table(cell: TimingCell) -> Table:
    spread = ": median, and min–max" if cell.rounds > 1 else ""
    table = _new_table(f"Speed, {timing_text(cell)}{spread}")
    table.add_column("")
    table.add_column(cell.metric.label, justify="right")
    table.add_column(f"× {cell.baseline.name}", justify="right")
    for subject, time, ratio in timing_lines(cell):
        table.add_row(Text(subject.name), _stacked(*time), _stacked(*ratio))
    return table


def _unit(count: CountResult) -> str:
    return "B" if unit_of(count.count) in ("bytes", UNITS["bytes_per_idle_connection"]) else ""


def _is_exact(count: CountResult) -> bool:
    """Expected to the last digit, and so shown to the last one: 0.125 is not 0.12."""
    return count.count.at_least == count.count.at_most


def expected_text(count: CountResult) -> str:
    if _is_exact(count):
        return f"{count.count.at_most:g}"
    most = with_unit(count.count.at_most, _unit(count))
    return f"{amount(count.count.at_least)}–{most}"


def measured_text(count: CountResult) -> str:
    if _is_exact(count) and count.spread:
        return f"{count.spread.median:g}"
    return median_text(count.spread, _unit(count))


def spread_text(count: CountResult) -> str:
    if _is_exact(count) and count.spread and count.spread.least == count.spread.most:
        return ""
    return range_text(count.spread, _unit(count))


def parts_text(count: CountResult, most: int = 4) -> str:
    """'recvfrom 1.00, sendto 1.00': the parts that matter, the largest first."""
    parts = sorted(count.parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {value:.2f}" for name, value in parts[:most] if abs(value) >= 0.005)


def counts_table(result: Result) -> Table:
    table = _new_table("Counts: they hold on any machine, and decide")
    for name, justify in (("", "left"), ("measured", "right"), ("expected", "right"), ("", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for count in result.counts:
        label = Text.assemble(count.count.name, "\n", (count.count.why, "dim"))
        detail = count.reason or ("" if _is_exact(count) else parts_text(count))
        if detail:
            label.append(f"\n{detail}", "dim")
        table.add_row(
            label,
            _stacked(measured_text(count), spread_text(count)),
            Text(expected_text(count)),
            Text(str(count.verdict), VERDICT_STYLE[count.verdict]),
        )
    return table


@dataclass(frozen=True)
class Column:
    """A column of the turned table: of the ladder, or of the matrix."""

    title: str
    text: Callable[[Cell, Subject, Subject], str]  # cell, subject, baseline


def _metric_column(title: str, key: str) -> Column:
    metric = BY_KEY[key]

    def text(cell: Cell, subject: Subject, baseline: Subject) -> str:
        limited = LIMITED if metric.needs_idle_client and cell.limited_rounds(subject) else ""
        return median_text(cell.spread(subject, metric), metric.unit) + limited

    return Column(title, text)


def _ratio_column(title: str, key: str) -> Column:
    def text(cell: Cell, subject: Subject, baseline: Subject) -> str:
        return ratio_text(cell.ratio(subject, baseline, BY_KEY[key]))

    return Column(title, text)


TURNED = (
    _metric_column("req/s", "requests_per_s"),
    _metric_column("CPU/req", "cpu_us_per_request"),
    _ratio_column("× CPU", "cpu_us_per_request"),
    _metric_column("p50", "p50_us"),
    _metric_column("p99", "p99_us"),
    _metric_column("memory", "peak_memory_bytes"),
)


def ladder_table(result: Result) -> Table:
    cell = result.cells[0]
    table = _new_table(f"The ladder, {load_text(cell)}: medians")
    table.add_column("server")
    for column in TURNED:
        table.add_column(column.title, justify="right")
    for subject in result.subjects:
        texts = [column.text(cell, subject, result.baseline) for column in TURNED]
        table.add_row(Text(subject.name), *map(Text, texts))
    return table


def sizes(result: Result) -> list[int]:
    return sorted({cell.load.size for cell in result.cells})


def cells_of(result: Result, size: int) -> list[Cell]:
    found = [cell for cell in result.cells if cell.load.size == size]
    return sorted(found, key=lambda cell: cell.load.connections)


def matrix_tables(result: Result) -> list[Table]:
    """One for each metric and size of a message: a row a server, a column a number of clients."""
    tables = []
    for size in sizes(result):
        cells = cells_of(result, size)
        for column, what in ((TURNED[0], "requests per second"), (TURNED[1], "CPU per request")):
            table = _new_table(f"{size:,} B: {what} by clients, medians")
            table.add_column("server")
            for cell in cells:
                table.add_column(f"{cell.load.connections:,}", justify="right")
            for subject in result.subjects:
                texts = [column.text(cell, subject, result.baseline) for cell in cells]
                table.add_row(Text(subject.name), *map(Text, texts))
            tables.append(table)
    return tables


def tables_of(result: Result) -> list[Table]:
    if result.kind == "ladder":
        return [ladder_table(result)]
    if result.kind == "matrix":
        return matrix_tables(result)
    speed = [table for cell in result.cells for table in speed_tables(result, cell)]
    if result.timing:
        speed.append(timing_table(result.timing))
    return [*([counts_table(result)] if result.counts else []), *speed]


def _timing_words(cell: TimingCell) -> list[str]:
    """Whose code the rows are."""
    yours = [subject.name for subject in cell.subjects if subject.whose is Whose.YOURS]
    said = f"Your code: {', '.join(yours)}." if yours else "All are the course's solutions."
    return [f"Each program timed itself, on one CPU, in turns. {said}"]


def _words(result: Result) -> list[str]:
    """What the rows mean, and whose code the columns are."""
    said = ["p50, p99, p99.9: so many percent of the answers came within this time."]
    if result.kind == "checkpoint":
        said.append(
            "A voluntary switch: the server slept, waiting. An involuntary one: it was made to "
            "yield the CPU."
        )
    yours = [subject.name for subject in result.subjects if subject.whose is Whose.YOURS]
    if yours:
        said.append(f"Your code: {', '.join(yours)}. All other servers are the course's solutions.")
    else:
        said.append("All servers are the course's solutions, whatever you have written so far.")
    return said


def _has_unsure_ratio(result: Result) -> bool:
    ratios = [
        cell.ratio(subject, result.baseline, BY_KEY[key])
        for cell in result.cells
        for subject in result.subjects
        if subject != result.baseline
        for key in COMPARED
    ]
    if result.timing:
        cell = result.timing
        others = [subject for subject in cell.subjects if subject != cell.baseline]
        ratios += [cell.ratio(subject, cell.baseline, cell.metric) for subject in others]
    return any(ratio_text(ratio).endswith(NO_SPREAD) for ratio in ratios)


def notes(result: Result) -> list[str]:
    """What a reader has to know to read the figures rightly."""
    said = []
    if result.quick:
        said.append("A --quick run: it shows that everything works. Its figures say nothing.")
    if result.cells and len(result.subjects) > 1:
        said.append(f"× is the ratio to {result.baseline.name}, taken round by round.")
    if result.timing:
        said.append(f"× {result.timing.baseline.name}: the ratio to it, taken round by round.")
    if _has_unsure_ratio(result):
        said.append(
            f"{NO_SPREAD} Fewer than {SPREAD_ROUNDS_MIN} rounds count in this ratio, so its "
            "spread is not known: take more with --rounds before you believe it."
        )
    limited = sum(run.client_limited for cell in result.cells for run in cell.runs)
    if limited:
        runs = sum(len(cell.runs) for cell in result.cells)
        said.append(
            f"{LIMITED} In {limited} of {runs} runs the load generator was at its own limit. "
            "There, only the server's CPU per request compares, and ratios leave those rounds out."
        )
    if result.timing:
        said += _timing_words(result.timing)
    if result.cells:
        said += _words(result)
    if not (result.cells or result.timing):
        return said  # counts alone: no speed was measured whose words and machine matter
    if result.machine["busy"]:
        share = result.machine["others_share"]
        said.append(
            f"Other programs used {share * 100:.0f} % of this machine's CPUs: the counts hold all "
            "the same, but measure the speed again when it is quiet."
        )
    said += machine_lines(result)
    return said


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(each.replace("|", "\\|") for each in line) + " |"
                     for line in lines)  # fmt: skip


def _counts_markdown(result: Result) -> str:
    rows = [
        [
            count.count.name,
            measured_text(count),
            spread_text(count),
            expected_text(count),
            str(count.verdict),
            parts_text(count),
        ]
        for count in result.counts
    ]
    return _markdown_table(["count", "measured", "min–max", "expected", "verdict", "of it"], rows)


def _cell_markdown(result: Result, cell: Cell) -> str:
    rows = [
        [line.label.strip(), *(f"{mid} ({rest})" if rest else mid for mid, rest in line.cells)]
        for line in speed_lines(cell, result.subjects, result.baseline)
    ]
    head = [load_text(cell), *(subject.name for subject in result.subjects)]
    return _markdown_table(head, rows)


def _timing_markdown(cell: TimingCell) -> str:
    rows = [
        [subject.name, *(f"{mid} ({rest})" if rest else mid for mid, rest in (time, ratio))]
        for subject, time, ratio in timing_lines(cell)
    ]
    head = [timing_text(cell), cell.metric.label, f"× {cell.baseline.name}"]
    return _markdown_table(head, rows)


def markdown(result: Result) -> str:
    """table.md: everything that the terminal shows and, for the matrix, every metric of it."""
    parts = [f"# {result.title}"]
    if result.question:
        parts.append(result.question)
    if result.counts:
        parts.append(_counts_markdown(result))
    parts += [_cell_markdown(result, cell) for cell in result.cells]
    if result.timing:
        parts.append(_timing_markdown(result.timing))
    said = [*(f"Failed: {failure}" for failure in result.failures()), *notes(result)]
    parts.append("\n".join(f"- {each}".replace("\n", "\n  ") for each in said))
    return "\n\n".join(parts) + "\n"
