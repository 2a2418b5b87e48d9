# SPDX-License-Identifier: MIT
"""What docs/ladder.json says of every server: one drawing and one table for the home page."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

from course_tool.bench import report, tables
from course_tool.bench.counts import CountResult
from course_tool.bench.report import Document, LoadCell
from course_tool.bench.spread import Spread
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.paths import ROOT

FILE = Path(__file__).resolve().parents[1] / "ladder.json"
COMMAND = "./course bench --ladder --json docs/ladder.json"
LEFT, PANEL, GAP = 286, 130, 16  # of the drawing, in its units: where the first of three begins
TOP, ROW, HEAD = 64, 34, 46
CPU = "cpu_us_per_request"
HEADS = ("system calls", "CPU, µs", "bytes, idle")


@dataclass(frozen=True)
class Line:
    """A server: what was measured, and the dots of it. None: it could not be."""

    name: str
    chapter: str
    medians: tuple[float | None, float | None, float | None]
    dots: tuple[list[float], list[float], list[float]]


@dataclass(frozen=True)
class Part:
    """The servers that were under one load."""

    title: str
    lines: list[Line]


def ladder_measured() -> str:
    """{{ ladder_measured }}: the drawing, its table and where both come from."""
    if not FILE.is_file():
        return f"Nothing was measured yet: `{COMMAND}` does."
    document = _read()
    parts = [_part(document, cell) for cell in document.cells]
    return "\n".join([_drawing(document, parts), "", _table(parts), "", _source(document), ""])


def _read() -> Document:
    try:
        return report.ADAPTER.validate_json(FILE.read_bytes())
    except ValueError as error:
        raise CourseError(f"docs/ladder.json: {error}. Make it again: {COMMAND}") from error


def _part(document: Document, cell: LoadCell) -> Part:
    subjects = [each for each in document.subjects if each.name in cell.summary]
    is_http = any(each.path for each in subjects)
    what = f"a GET of {cell.size:,} bytes" if is_http else f"an echo of {cell.size:,} bytes"
    return Part(what, [_line(document, cell, each.name, each.chapter) for each in subjects])


def _line(document: Document, cell: LoadCell, name: str, chapter: str) -> Line:
    counts = {each.metric: each for each in document.counts if each.subject == name}
    calls = counts.get("syscalls_per_request")
    idle = counts.get("bytes_per_idle_connection")
    runs = [run.values[CPU] for run in cell.runs if run.subject == name and run.values]
    cpu: Spread | None = cell.summary[name][CPU]
    return Line(
        name,
        chapter,
        (_median(calls), cpu.median if cpu else None, _median(idle)),
        (_samples(calls), runs, _samples(idle)),
    )


def _median(count: CountResult | None) -> float | None:
    return count.measured.median if count and count.measured else None


def _samples(count: CountResult | None) -> list[float]:
    """A count is taken three times: these are all of them."""
    found = count.measured if count else None
    return [found.min, found.median, found.max] if found else []


# ---- the drawing ----


def _drawing(document: Document, parts: list[Part]) -> str:
    lines = [line for part in parts for line in part.lines]
    most = [max((dot for line in lines for dot in line.dots[at]), default=1) for at in range(3)]
    drawn = [_panel_head(at, most[at]) for at in range(3)]
    y = TOP
    for part in parts:
        drawn.append(f'<text class="small" x="0" y="{y + 28}">{part.title}</text>')
        y += HEAD
        for line in part.lines:
            drawn.append(_row(line, most, y))
            y += ROW
    told = " ".join(_told(line) for line in lines)
    title = "Each chapter's server: system calls, CPU time, and memory for an idle client"
    return (
        '<figure class="drawing" id="figure-measured" data-search-exclude>\n'
        f'<svg class="fig" viewBox="0 0 720 {y + 12}" role="img" '
        'aria-labelledby="measured-title" aria-describedby="measured-desc">'
        f'<title id="measured-title">{title}</title>'
        f'<desc id="measured-desc">{html.escape(told)}</desc>{"".join(drawn)}</svg>\n'
        f"<figcaption>{html.escape(_caption(document))}</figcaption>\n</figure>\n"
    )


def _panel_head(at: int, most: float) -> str:
    """Its name, where zero is, and how far it goes."""
    left, right = _x(at, 0, most), _x(at, most, most)
    return (
        f'<text class="small" x="{left}" y="20">{HEADS[at]}</text>'
        f'<text class="small" x="{left}" y="46">0</text>'
        f'<text class="small end" x="{right}" y="46">{tables.amount(most)}</text>'
        f'<line class="wire quiet" x1="{left}" y1="54" x2="{right}" y2="54"/>'
    )


def _row(line: Line, most: list[float], y: int) -> str:
    label = html.escape(line.name, quote=False)
    drawn = [f'<text class="small" x="0" y="{y + 21}">{label}</text>']
    for at, (median, dots) in enumerate(zip(line.medians, line.dots, strict=True)):
        zero = _x(at, 0, most[at])
        if median is None:
            drawn.append(f'<text class="small" x="{zero}" y="{y + 21}">{tables.MISSING}</text>')
            continue
        width = round(_x(at, median, most[at]) - zero, 1)
        drawn.append(f'<rect class="kernel" x="{zero}" y="{y + 2}" width="{width}" height="24"/>')
        drawn += [
            f'<circle class="box" cx="{_x(at, dot, most[at])}" cy="{y + 14}" r="5"/>'
            for dot in dots
        ]
    return "".join(drawn)


def _x(at: int, value: float, most: float) -> float:
    return round(LEFT + at * (PANEL + GAP) + (value / most if most else 0) * PANEL, 1)


def _told(line: Line) -> str:
    calls, cpu, idle = _texts(line)
    return f"{line.name}: {calls} system calls, {cpu}, {idle} for an idle client."


# ---- the words ----


def _texts(line: Line) -> tuple[str, str, str]:
    calls, cpu, idle = line.medians
    return (
        tables.MISSING if calls is None else tables.amount(calls),
        tables.MISSING if cpu is None else tables.with_unit(cpu, "us"),
        tables.MISSING if idle is None else f"{idle:,.0f} B",
    )


def _table(parts: list[Part]) -> str:
    """A row a server, with the chapter's title where this clone has it."""
    chapters = {each.number: each for each in all_chapters(ROOT) if each.page.is_file()}
    rows = ["| server | system calls | CPU | an idle client |", "|---|---:|---:|---:|"]
    for part in parts:
        if len(parts) > 1:
            rows.append(f"| *for {part.title}* | | | |")
        for line in part.lines:
            name, found = line.name, chapters.get(line.chapter)
            if found:
                name = f"[{found.number} {found.title}](chapters/{found.folder}.md)"
            rows.append(f"| {name} | {' | '.join(_texts(line))} |")
    return "\n".join(rows)


def _caption(document: Document) -> str:
    """What was done, on which machine, and what else that machine did."""
    first = document.cells[0]
    said = [
        f"{first.connections} clients, each with one request in flight. A bar ends at the median, "
        "and every run is a dot. The CPU time was measured in "
        f"{first.rounds} runs of {first.duration_s:g} s.",
    ]
    idle = [
        each.connections
        for each in document.counts
        if each.metric == "bytes_per_idle_connection"
    ]
    if idle:
        few, many = f"{min(idle):,}", f"{max(idle):,}"
        number = few if few == many else f"{few} to {many}"
        said.append(f"The memory was measured with {number} idle clients, as in the checkpoints.")
    said += [f"{line}." for line in document.machine_lines()]
    if document.quick:
        said.append("A --quick run: these figures say nothing.")
    if document.machine.busy:
        said.append(tables.busy_text(document.machine))
    return " ".join(said)


def _source(document: Document) -> str:
    return (
        "The counts of system calls hold on any machine. Compare the CPU times only with each "
        f"other. The numbers are in [ladder.json](ladder.json); `{COMMAND}` puts yours there."
    )
