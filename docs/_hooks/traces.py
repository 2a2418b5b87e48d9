# SPDX-License-Identifier: MIT
"""{{ trace("NAME") }}: a run that was recorded, as a figure to step through.

docs/traces/NAME.jsonl is the recording, docs/traces/NAME.toml the author's choice of its steps;
course_tool/trace/figure.py says what it may hold. `./course verify --all` records each anew, and
so does .venv/bin/python docs/_hooks/traces.py [NAME…]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "common" / "tool") not in sys.path:
    sys.path.append(str(ROOT / "common" / "tool"))

from course_tool.errors import CourseError  # noqa: E402
from course_tool.trace import events, figure  # noqa: E402

PLACE = re.compile(r'<div class="trace-place" data-name="([\w-]+)">.*?</div>', re.DOTALL)


def trace(name: str) -> str:
    """What the marker becomes in Markdown, with anchors that links are checked against; inline()
    replaces it in the page."""
    steps = range(1, len(figure.load(name).steps) + 1)
    anchors = "".join(f'<a id="{name}.{step}"></a>' for step in steps)
    return f'<div class="trace-place" data-name="{name}">{anchors}</div>\n'


def inline(page_html: str, problems: list[str]) -> str:
    """Replaces every place that trace() left by its figure."""

    def drawn(place: re.Match[str]) -> str:
        try:
            chosen = figure.load(place[1])
            return figure.element(figure.make(chosen, events.read(chosen.recording)))
        except CourseError as error:
            problems.append(f"trace {place[1]}: {error}")
            return ""

    return PLACE.sub(drawn, page_html)


def main(wanted: list[str]) -> None:
    from course_tool.trace.proof import build, record

    names = wanted or figure.names()
    build(names)
    for name in names:
        chosen = figure.load(name)
        recorded = record(chosen, chosen.recording)
        if chosen.shows_violation:
            figure.cut_short(chosen, recorded)
        print(f"docs/traces/{name}.jsonl", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
