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
from dataclasses import dataclass
from typing import Any

from course_tool.bench.report import Result, machine_lines
from course_tool.bench.speed import METRICS, Cell, Metric, Rounds, Run
from course_tool.bench.subjects import Subject
from course_tool.bench.tables import (
    MS_FROM_US,
    cells_of,
    load_text,
    rounds_text,
    sizes,
    timing_text,
    with_unit,
)
from course_tool.bench.timing import TimingCell

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

_BY_KEY = {metric.key: metric for metric in METRICS}
TITLES = {
    "requests_per_s": "Requests per second (more is better)",
    "cpu_us_per_request": "Server CPU per request, µs (less is better)",
    "p99_us": "Latency p99, µs (less is better)",
}


@dataclass(frozen=True)
class Words:
    """What stands around a drawing, and what is read out instead of it."""

    title: str
    description: str
    caption: Sequence[str]


def strip_plot(result: Result, cell: Cell) -> str:
    """A panel a metric, a row a server."""
    panel = PANEL_FRAME + ROW * len(result.subjects)
    metrics = [_BY_KEY[key] for key in TITLES]
    caption = _caption(
        result, metrics, f"{load_text(cell)}. Every run is a dot, the bar is the median."
    )
    height = panel * len(TITLES) + CAPTION_LINE * len(caption) + 24
    figure = _new_figure(height)
    longest = max(len(subject.name) for subject in result.subjects)
    left = min(300, 24 + 10 * longest)
    for index, key in enumerate(TITLES):
        top = index * panel + 44
        axes = _axes(figure, height, (left, top, WIDTH - left - 110, ROW * len(result.subjects)))
        _draw_strip(axes, result.subjects, cell, _BY_KEY[key], TITLES[key])
    words = Words(f"{result.title}: {load_text(cell)}", _strip_words(result, cell), caption)
    return _finish(figure, height, words)


def timing_plot(result: Result, cell: TimingCell) -> str:
    """One panel, a row a program."""
    load = f"{timing_text(cell)}. Every run is a dot, the bar is the median."
    caption = _caption(result, [cell.metric], load)
    rows = ROW * len(cell.subjects)
    height = PANEL_FRAME + rows + CAPTION_LINE * len(caption) + 24
    figure = _new_figure(height)
    left = min(300, 24 + 10 * max(len(subject.name) for subject in cell.subjects))
    axes = _axes(figure, height, (left, 44, WIDTH - left - 110, rows))
    title = f"{cell.metric.label.capitalize()}, ns (less is better)"
    _draw_strip(axes, cell.subjects, cell, cell.metric, title)
    each = "; ".join(_spread_words(subject, cell, cell.metric) for subject in cell.subjects)
    words = Words(f"{result.title}: {timing_text(cell)}", f"{title}: {each}.", caption)
    return _finish(figure, height, words)


def matrix_plot(result: Result, key: str) -> str:
    """A panel a message size, a line a server, over the number of clients."""
    metric = _BY_KEY[key]
    duration = f"{result.cells[0].load.duration_s:g} s"
    load = f"{rounds_text(result.cells[0].rounds)} of {duration} each"
    caption = _caption(result, [metric], f"{load}. Every run is a dot; lines join the medians.")
    panels = sizes(result)
    height = MATRIX_PANEL * len(panels) + CAPTION_LINE * len(caption) + 24
    figure = _new_figure(height)
    for index, size in enumerate(panels):
        top = index * MATRIX_PANEL + 40
        axes = _axes(figure, height, (100, top, WIDTH - 100 - 190, MATRIX_PANEL - 100))
        _draw_lines(axes, result.subjects, cells_of(result, size), metric)
        axes.set_title(f"{TITLES[key]}, {size:,} B", loc="left", fontsize=TEXT, color=INK, pad=12)
    words = Words(f"{result.title}: {TITLES[key]}", _matrix_words(result, key), caption)
    return _finish(figure, height, words)


def _new_figure(height: float) -> Any:
    from matplotlib.figure import Figure  # late: it takes a second that no other command should pay

    return Figure(figsize=(WIDTH / POINTS, height / POINTS), dpi=POINTS, facecolor="none")


def _axes(figure: Any, height: float, box: tuple[float, float, float, float]) -> Any:
    """Axes in a box (left, top, width, height) that counts from the top left, in units."""
    left, top, width, tall = box
    axes = figure.add_axes(
        (left / WIDTH, 1 - (top + tall) / height, width / WIDTH, tall / height), facecolor="none"
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
    axes.tick_params(colors=INK, labelsize=SMALL, labelcolor=INK)
    return axes


def _hollow(run: Run, metric: Metric) -> bool:
    return run.client_limited and metric.needs_idle_client


def _dots(axes: Any, points: Sequence[tuple[float, float, bool]], color: str) -> None:
    """(x, y, hollow): hollow where the client was what limited the run."""
    for x, y, hollow in points:
        face = "none" if hollow else color
        axes.plot([x], [y], "o", markersize=8, markerfacecolor=face, markeredgecolor=color,
                  markeredgewidth=1.6, clip_on=False)  # fmt: skip


def _draw_strip(
    axes: Any, subjects: Sequence[Subject], cell: Rounds, metric: Metric, title: str
) -> None:
    for row, subject in enumerate(subjects):
        color = COLORS[row % len(COLORS)]
        runs = [run for run in cell.of(subject) if metric.key in run.values]
        _dots(axes, [(run.values[metric.key], row, _hollow(run, metric)) for run in runs], color)
        spread = cell.spread(subject, metric)
        if spread is None:
            axes.text(0, row, "  failed", va="center", fontsize=SMALL, color=INK)
            continue
        axes.plot([spread.median] * 2, [row - 0.36, row + 0.36], color=INK, linewidth=2.5)
        axes.annotate(with_unit(spread.median, metric.unit), (1, row), (12, 0),
                      xycoords=("axes fraction", "data"), textcoords="offset points",
                      va="center", fontsize=TEXT, color=INK, fontweight="bold")  # fmt: skip
    axes.set_yticks(range(len(subjects)), [subject.name for subject in subjects], fontsize=TEXT)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(subjects) - 0.5, -0.5)
    largest = _largest(cell, metric)
    axes.set_xlim(left=0, right=max(1e-9, largest * 1.05))
    axes.xaxis.set_major_locator(_few_ticks())
    in_ms = metric.unit == "us" and largest >= MS_FROM_US  # as with_unit() says the medians
    axes.xaxis.set_major_formatter(_commas(1000 if in_ms else 1))
    title = title.replace(" µs", " ms") if in_ms else title
    axes.set_title(title, loc="left", fontsize=TEXT, color=INK, pad=10, x=0)


def _draw_lines(
    axes: Any, subjects: Sequence[Subject], cells: Sequence[Cell], metric: Metric
) -> None:
    ends: list[tuple[float, str, str]] = []
    for row, subject in enumerate(subjects):
        color = COLORS[row % len(COLORS)]
        medians = [(x, cell.spread(subject, metric)) for x, cell in enumerate(cells)]
        known = [(x, spread.median) for x, spread in medians if spread]
        for x, cell in enumerate(cells):
            runs = [run for run in cell.of(subject) if metric.key in run.values]
            _dots(axes, [(x, run.values[metric.key], _hollow(run, metric)) for run in runs], color)
        if known:
            axes.plot(*zip(*known, strict=True), color=color, linewidth=2.5)
            ends.append((known[-1][1], subject.name, color))
    top = max([_largest(cell, metric) for cell in cells], default=1) * 1.08 or 1
    axes.set_ylim(0, top)
    axes.set_xlim(-0.3, len(cells) - 0.7)
    for y, name, color in _spaced(ends, top * 0.1):
        axes.annotate(name, (len(cells) - 1, y), (14, 0), textcoords="offset points", va="center",
                      fontsize=SMALL, color=color, fontweight="bold")  # fmt: skip
    axes.set_xticks(range(len(cells)), [f"{cell.load.connections:,}" for cell in cells])
    axes.set_xlabel("clients (not to scale)", fontsize=SMALL, color=INK)
    axes.yaxis.set_major_locator(_few_ticks())
    axes.yaxis.set_major_formatter(_commas())


def _spaced(ends: list[tuple[float, str, str]], gap: float) -> list[tuple[float, str, str]]:
    """The labels at the lines' ends, moved up as far as they would overlap."""
    placed: list[tuple[float, str, str]] = []
    for y, name, color in sorted(ends):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, name, color))
    return placed


def _largest(cell: Rounds, metric: Metric) -> float:
    return max((run.values.get(metric.key, 0.0) for run in cell.runs), default=0.0)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=4)


def _commas(divisor: int = 1) -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value / divisor:,.10g}")


def _caption(result: Result, metrics: Sequence[Metric], load: str) -> list[str]:
    quick = ["A --quick run: these figures say nothing."] if result.quick else []
    runs = [run for cell in result.cells for run in cell.runs]
    hollow = any(_hollow(run, metric) for run in runs for metric in metrics)
    limited = ["Hollow: the load generator was at its own limit."] if hollow else []
    lines = [*quick, load, *limited, *machine_lines(result)]
    return [part for line in lines for part in textwrap.wrap(line, CAPTION_COLUMNS)]


def _spread_words(subject: Subject, cell: Rounds, metric: Metric) -> str:
    spread = cell.spread(subject, metric)
    if spread is None:
        return f"{subject.name} failed"
    median, least, most = (
        with_unit(each, metric.unit) for each in (spread.median, spread.least, spread.most)
    )
    return f"{subject.name} {median} ({least} to {most})"


def _strip_words(result: Result, cell: Cell) -> str:
    parts = []
    for key, title in TITLES.items():
        each = [_spread_words(subject, cell, _BY_KEY[key]) for subject in result.subjects]
        parts.append(f"{title}: {'; '.join(each)}.")
    return " ".join(parts)


def _matrix_words(result: Result, key: str) -> str:
    parts = []
    for size in sizes(result):
        for cell in cells_of(result, size):
            each = [_spread_words(subject, cell, _BY_KEY[key]) for subject in result.subjects]
            parts.append(f"{size:,} bytes, {cell.load.connections:,} clients: {'; '.join(each)}.")
    return " ".join(parts)


def _finish(figure: Any, height: float, words: Words) -> str:
    """Writes the caption, then the figure as SVG, and makes the SVG readable for all."""
    import matplotlib

    for index, line in enumerate(words.caption):
        y = (CAPTION_LINE * (len(words.caption) - index) - 6) / height
        figure.text(14 / WIDTH, y, line, fontsize=SMALL, color=INK)
    drawn = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "course"}):
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return make_accessible(drawn.getvalue(), words)


def _rename_ids(root: ET.Element, prefix: str) -> None:
    """Drops the ids that nothing refers to and prefixes the others: a page may hold many plots."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', ET.tostring(root, encoding="unicode")))
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            if name == "id":
                if value in used:
                    element.set(name, prefix + value)
                else:
                    del element.attrib[name]
            elif name.endswith("href"):
                element.set(name, value.replace("#", f"#{prefix}"))
            else:
                element.set(name, value.replace("url(#", f"url(#{prefix}"))


def make_accessible(svg: str, words: Words) -> str:
    """Gives a matplotlib SVG its title, its description, the page's ink and the system's font."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    svg = re.sub(re.escape(INK), "currentColor", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", FONT, svg)
    root = ET.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for name in ("width", "height"):
        root.attrib.pop(name, None)  # the viewBox says it; a page gives the width
    root.set("role", "img")
    prefix = f"plot-{zlib.crc32((words.title + words.description).encode()):08x}-"
    _rename_ids(root, prefix)
    root.set("aria-labelledby", f"{prefix}title {prefix}description")
    told = (("title", "title", words.title), ("desc", "description", words.description))
    for index, (tag, name, text) in enumerate(told):
        element = ET.Element(f"{{{SVG}}}{tag}", {"id": prefix + name})
        element.text = text
        root.insert(index, element)
    style = ET.Element(f"{{{SVG}}}style")
    style.text = STYLE
    root.insert(2, style)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"
