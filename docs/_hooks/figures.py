# SPDX-License-Identifier: MIT
"""Drawings: docs/figures/NAME.svg becomes part of the page, and its colors follow the page's."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from course_tool.errors import CourseError

FIGURES = Path(__file__).resolve().parents[1] / "figures"
PLACE = re.compile(r'<div class="figure-place" data-name="([\w-]+)" data-lit="([\w-]*)"></div>')
PART = re.compile(r'class="part" data-from="(\d\d)" data-lit="([\d ]*)"')
MAP_CAPTION = (
    "You are here. On the map of the course, the parts of chapter {number} are highlighted. "
    "A dashed part shows the number of the chapter that builds it."
)


def figure(name: str, caption: str = "") -> str:
    """{{ figure("01-a-thread-each") }}, or with a caption of its own."""
    return _framed(name, caption or _element(_source(name), "title"), "")


def you_are_here(chapter: Any) -> str:
    """{{ you_are_here }}: the map, with this chapter's part lit."""
    return _framed("map", MAP_CAPTION.format(number=chapter.number), f"lit-{chapter.number}")


def _framed(name: str, caption: str, lit: str) -> str:
    _source(name)
    return (
        f'<figure class="drawing" id="figure-{name}" data-search-exclude>\n'
        f'<div class="figure-place" data-name="{name}" data-lit="{lit}"></div>\n'
        f"<figcaption>{html.escape(caption, quote=False)}</figcaption>\n</figure>\n"
    )


def _source(name: str) -> str:
    file = FIGURES / f"{name}.svg"
    if not file.is_file():
        raise CourseError(f"there is no docs/figures/{name}.svg.")
    return file.read_text(encoding="utf-8")


def _element(svg: str, tag: str) -> str:
    found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", svg, re.DOTALL)
    if not found or not found[1].strip():
        raise CourseError(f"the drawing has no <{tag}>, which says in words what it shows.")
    return html.unescape(" ".join(found[1].split()))


def inline(page_html: str, problems: list[str]) -> str:
    """Replaces every place that figure() left by the drawing itself."""

    def drawing(place: re.Match[str]) -> str:
        name, lit = place[1], place[2]
        try:
            return _as_element(name, lit)
        except CourseError as error:
            problems.append(f"figure {name}: {error}")
            return ""

    return PLACE.sub(drawing, page_html)


def _as_element(name: str, lit: str) -> str:
    """The <svg> element, its ids prefixed: two drawings on a page must not share any."""
    svg = _source(name)
    _element(svg, "title")
    _element(svg, "desc")
    svg = re.sub(r"<\?xml.*?\?>|<!--.*?-->", "", svg, flags=re.DOTALL).strip()
    svg = re.sub(r'\bid="([\w-]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([\w-]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'href="#([\w-]+)"', rf'href="#{name}-\1"', svg)
    if lit:
        svg = PART.sub(lambda part: _part(part, lit.removeprefix("lit-")), svg)
    attributes = (
        f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc" '
        f'class="fig {lit}"'
    )
    return re.sub(r"<svg\b", f"<svg {attributes}", svg, count=1)


def _part(part: re.Match[str], chapter: str) -> str:
    """A part of the map, as it stands in this chapter."""
    if chapter in part[2].split():
        return 'class="part is-lit"'
    return 'class="part is-to-come"' if part[1] > chapter else 'class="part is-there"'
