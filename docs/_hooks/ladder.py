# SPDX-License-Identifier: MIT
"""The ladder of chapters on the home page, and the ring that gains a segment with each of them."""

from __future__ import annotations

import html
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

from course_tool.chapters import all_chapters
from course_tool.paths import ROOT

PLAN = Path(__file__).resolve().parents[1] / "plan.toml"
RADIUS = 9.0
GAP_DEGREES = 7.0


@dataclass(frozen=True)
class Rung:
    number: str
    title: str
    idea: str
    minutes: int  # 0: not written yet
    link: str  # "": not written yet


def rungs() -> list[Rung]:
    """Every planned chapter, in order; what exists is read from its chapter.toml instead."""
    built = {chapter.number: chapter for chapter in all_chapters(ROOT) if chapter.page.is_file()}
    planned = tomllib.loads(PLAN.read_text(encoding="utf-8"))["chapters"]
    found = []
    for entry in planned:
        chapter = built.get(entry["number"])
        if chapter is None:
            found.append(Rung(entry["number"], entry["title"], entry["idea"], 0, ""))
        else:
            found.append(
                Rung(
                    chapter.number,
                    chapter.title,
                    chapter.idea,
                    chapter.minutes.total,
                    f"chapters/{chapter.folder}.md",
                )
            )
    return found


def ladder() -> str:
    """{{ ladder }}: one rung a chapter, a link where the chapter exists."""
    items = "\n".join(_rung(rung) for rung in rungs())
    return f'<ol class="ladder" markdown>\n{items}\n</ol>'


def _rung(rung: Rung) -> str:
    number = int(rung.number)
    idea = html.escape(rung.idea, quote=False)
    if rung.link:
        title = f"[{rung.title}]({rung.link})"
        state = f"{rung.minutes} min"
    else:
        title = html.escape(rung.title, quote=False)
        state = "coming"
    kind = "built" if rung.link else "coming"
    return (
        f'<li class="rung {kind}" markdown>{emblem(number)}'
        f'<span class="rung-number">{rung.number}</span>'
        f'<span class="rung-title" markdown>{title}</span>'
        f'<span class="rung-idea">{idea}</span><span class="rung-state">{state}</span></li>'
    )


def emblem(lit: int, segments: int = 14) -> str:
    """A ring of segments, the first `lit` of them in color. It repeats the number beside it."""
    step = 360.0 / segments
    paths = []
    for index in range(segments):
        start = -90.0 + index * step + GAP_DEGREES / 2
        kind = "on" if index < lit else "off"
        paths.append(f'<path class="{kind}" d="{_arc(start, start + step - GAP_DEGREES)}"/>')
    return (
        f'<svg class="emblem" viewBox="0 0 24 24" aria-hidden="true" focusable="false">'
        f"{''.join(paths)}</svg>"
    )


def _arc(start: float, end: float) -> str:
    return f"M{_point(start)}A{RADIUS:g} {RADIUS:g} 0 0 1 {_point(end)}"


def _point(degrees: float) -> str:
    angle = math.radians(degrees)
    return f"{12 + RADIUS * math.cos(angle):.2f} {12 + RADIUS * math.sin(angle):.2f}"
