# SPDX-License-Identifier: MIT
"""Results as SVG: every run a dot, medians marked, the axis from zero, the machine in the caption.

The drawing is 720 units wide with large type, so that it can still be read on a phone. Text stays
text. Ink is `currentColor`: inside a page it takes the page's color; as a file of its own it
follows the reader's light or dark scheme. The servers' colors have enough contrast on white and on
near black, and color is never the only sign: each row or line carries its name.
"""

from __future__ import annotations

import io
import re
import textwrap
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Sequence
from typing import Any

from course_tool.bench.report import Result
from course_tool.bench.speed import BY_KEY, Cell, Metric
from course_tool.bench.subjects import Subject
from course_tool.bench.tables import MS_FROM_US, cells_of, rounds_text, sizes, with_unit, work_text

INK = "#010203"  # stands for currentColor until the drawing is done
COLORS = ("#3b82f6", "#d9730d", "#0f9488", "#db2777", "#8b5cf6", "#7d8590", "#2f9e44", "#c2410c")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
STYLE = "svg:root{color:#24292f}@media (prefers-color-scheme:dark){svg:root{color:#e6edf3}}"
SVG = "http://www.w3.org/2000/svg"
POINTS = 72  # an inch; one point is one unit of the drawing
WIDTH = 720
TEXT, SMALL = 18, 16
ROW, PANEL_FRAME, CAPTION_LINE = 46, 80, 22  # heights
CAPTION_COLUMNS = 78
MATRIX_PANEL = 330

TITLES = {
    "requests_per_s": "Requests per second (more is better)",
    "cpu_us_per_request": "Server CPU per request, µs (less is better)",
    "p99_us": "Latency p99, µs (less is better)",
}


def plots_of(result: Result) -> dict[str, str]:
    """By the name of its file; none where there are counts alone."""
    if result.kind == "matrix":
        files = {"requests.svg": "requests_per_s", "cpu.svg": "cpu_us_per_request"}
        return {file: matrix_plot(result, BY_KEY[key]) for file, key in files.items()}
    plots = {}
    for cell in result.cells:
        plots["http.svg" if plots else "plot.svg"] = strip_plot(result, cell)
    if result.timing:
        plots["timing.svg"] = strip_plot(result, result.timing)
    return plots


def _title(metric: Metric) -> str:
    return TITLES.get(metric.key) or f"{metric.label.capitalize()}, ns (less is better)"


def strip_plot(result: Result, cell: Cell) -> str:
    """A panel a metric, a row a subject."""
    caption = _caption(
        result, cell.compared, f"{work_text(cell)}. Every run is a dot, the bar is the median."
    )
    height = (PANEL_FRAME + ROW * len(cell.subjects)) * len(cell.compared)
    figure, panels = _figure(height, len(cell.compared), caption)
    for axes, metric in zip(panels, cell.compared, strict=True):
        _draw_strip(axes, cell, metric)
    told = [f"{_title(metric)}: {_spread_words(cell, metric)}" for metric in cell.compared]
    return _finish(figure, f"{result.title}: {work_text(cell)}", " ".join(told))


def matrix_plot(result: Result, metric: Metric) -> str:
    """A panel a message size, a line a server, over the number of clients."""
    first = result.cells[0]
    load = f"{rounds_text(first.rounds)} of {first.load.duration_s:g} s each"
    caption = _caption(result, [metric], f"{load}. Every run is a dot; lines join the medians.")
    figure, panels = _figure(MATRIX_PANEL * len(sizes(result)), len(sizes(result)), caption)
    told = []
    for axes, size in zip(panels, sizes(result), strict=True):
        cells = cells_of(result, size)
        _draw_lines(axes, result.subjects, cells, metric)
        axes.set_title(
            f"{_title(metric)}, {size:,} B", loc="left", fontsize=TEXT, color=INK, pad=12
        )
        told += [
            f"{size:,} bytes, {cell.load.connections:,} clients: {_spread_words(cell, metric)}"
            for cell in cells
        ]
    return _finish(figure, f"{result.title}: {_title(metric)}", " ".join(told))


def _figure(height: float, count: int, caption: Sequence[str]) -> tuple[Any, Any]:
    """So many panels, one below the other, as wide as the labels beside them allow."""
    from matplotlib.figure import Figure  # late: it takes a second that no other command should pay

    inches = (height + CAPTION_LINE * len(caption)) / POINTS
    figure = Figure(figsize=(WIDTH / POINTS, inches), dpi=POINTS, layout="constrained")
    figure.get_layout_engine().set(w_pad=14 / POINTS, h_pad=8 / POINTS, hspace=0.04)
    figure.supxlabel("\n".join(caption), x=0.02, ha="left", fontsize=SMALL, color=INK,
                     linespacing=1.3)  # fmt: skip
    panels = figure.subplots(count, squeeze=False)[:, 0]
    for axes in panels:
        axes.set_facecolor("none")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(INK)
        axes.tick_params(colors=INK, labelsize=SMALL, labelcolor=INK)
    return figure, panels


def _draw_runs(axes: Any, runs: Sequence[tuple[float, float, bool]], color: str) -> None:
    """(x, y, hollow): hollow where the client was what limited the run."""
    for x, y, hollow in runs:
        face = "none" if hollow else color
        axes.plot([x], [y], "o", markersize=8, markerfacecolor=face, markeredgecolor=color,
                  markeredgewidth=1.6, clip_on=False)  # fmt: skip


def _values(cell: Cell, subject: Subject, metric: Metric) -> list[tuple[float, bool]]:
    runs = [run for run in cell.of(subject) if metric.key in run.values]
    return [(run.values[metric.key], run.hollow(metric)) for run in runs]


def _draw_strip(axes: Any, cell: Cell, metric: Metric) -> None:
    for row, subject in enumerate(cell.subjects):
        runs = [(x, row, hollow) for x, hollow in _values(cell, subject, metric)]
        _draw_runs(axes, runs, COLORS[row % len(COLORS)])
        spread = cell.spread(subject, metric)
        if spread is None:
            axes.text(0, row, "  failed", va="center", fontsize=SMALL, color=INK)
            continue
        axes.plot([spread.median] * 2, [row - 0.36, row + 0.36], color=INK, linewidth=2.5)
        axes.annotate(with_unit(spread.median, metric.unit), (1, row), (12, 0),
                      xycoords=("axes fraction", "data"), textcoords="offset points",
                      va="center", fontsize=TEXT, color=INK, fontweight="bold")  # fmt: skip
    names = [subject.name for subject in cell.subjects]
    axes.set_yticks(range(len(names)), names, fontsize=TEXT)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    largest = _largest(cell, metric)
    axes.set_xlim(left=0, right=max(1e-9, largest * 1.05))
    in_ms = metric.unit == "us" and largest >= MS_FROM_US  # as with_unit() says the medians
    _few_ticks(axes.xaxis, 1000 if in_ms else 1)
    title = _title(metric).replace(" µs", " ms") if in_ms else _title(metric)
    axes.set_title(title, loc="left", fontsize=TEXT, color=INK, pad=10, x=0)


def _draw_lines(
    axes: Any, subjects: Sequence[Subject], cells: Sequence[Cell], metric: Metric
) -> None:
    ends: list[tuple[float, str, str]] = []
    for row, subject in enumerate(subjects):
        color = COLORS[row % len(COLORS)]
        for x, cell in enumerate(cells):
            runs = [(x, y, hollow) for y, hollow in _values(cell, subject, metric)]
            _draw_runs(axes, runs, color)
        medians = [(x, cell.spread(subject, metric)) for x, cell in enumerate(cells)]
        known = [(x, spread.median) for x, spread in medians if spread]
        if known:
            axes.plot(*zip(*known, strict=True), color=color, linewidth=2.5)
            ends.append((known[-1][1], subject.name, color))
    top = max([_largest(cell, metric) for cell in cells], default=1) * 1.08 or 1
    axes.set_ylim(0, top)
    axes.set_xlim(-0.3, len(cells) - 0.7)
    above = 0.0
    for y, name, color in sorted(ends):  # moved up as far as the names would overlap
        above = max(y, above)
        axes.annotate(name, (len(cells) - 1, above), (14, 0), textcoords="offset points",
                      va="center", fontsize=SMALL, color=color, fontweight="bold")  # fmt: skip
        above += top * 0.1
    axes.set_xticks(range(len(cells)), [f"{cell.load.connections:,}" for cell in cells])
    axes.set_xlabel("clients (not to scale)", fontsize=SMALL, color=INK)
    _few_ticks(axes.yaxis)


def _largest(cell: Cell, metric: Metric) -> float:
    return max((run.values.get(metric.key, 0.0) for run in cell.runs), default=0.0)


def _few_ticks(axis: Any, divisor: int = 1) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=4))
    axis.set_major_formatter(lambda value, _: f"{value / divisor:,.10g}")


def _caption(result: Result, metrics: Sequence[Metric], load: str) -> list[str]:
    lines = ["A --quick run: these figures say nothing."] if result.quick else []
    lines.append(load)
    runs = [run for cell in result.cells for run in cell.runs]
    if any(run.hollow(metric) for run in runs for metric in metrics):
        lines.append("Hollow: the load generator was at its own limit.")
    lines += result.machine_lines()
    return [part for line in lines for part in textwrap.wrap(line, CAPTION_COLUMNS)]


def _spread_words(cell: Cell, metric: Metric) -> str:
    """Of all subjects: what is read out instead of their dots."""
    said = []
    for subject in cell.subjects:
        spread = cell.spread(subject, metric)
        if spread is None:
            said.append(f"{subject.name} failed")
            continue
        median, least, most = (
            with_unit(each, metric.unit) for each in (spread.median, spread.min, spread.max)
        )
        said.append(f"{subject.name} {median} ({least} to {most})")
    return "; ".join(said) + "."


def _finish(figure: Any, title: str, description: str) -> str:
    """Writes the figure as SVG; `description` is read out instead of it."""
    import matplotlib

    drawn = io.StringIO()
    salt = title + description  # its ids are no other plot's
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return make_accessible(drawn.getvalue(), title, description)


def make_accessible(svg: str, title: str, description: str) -> str:
    """Gives a matplotlib SVG its title, its description, the page's ink and the system's font.

    The ids that nothing refers to go: a page may hold many plots.
    """
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    svg = re.sub(re.escape(INK), "currentColor", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", FONT, svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", svg)
    root = ET.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for name in ("width", "height"):
        root.attrib.pop(name, None)  # the viewBox says it; a page gives the width
    root.set("role", "img")
    mark = f"plot-{zlib.crc32((title + description).encode()):08x}"
    root.set("aria-labelledby", f"{mark}-title {mark}-description")
    told = (
        ("title", {"id": f"{mark}-title"}, title),
        ("desc", {"id": f"{mark}-description"}, description),
        ("style", {}, STYLE),
    )
    for index, (tag, attributes, text) in enumerate(told):
        element = ET.Element(f"{{{SVG}}}{tag}", attributes)
        element.text = text
        root.insert(index, element)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"
