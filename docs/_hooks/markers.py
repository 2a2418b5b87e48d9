# SPDX-License-Identifier: MIT
"""{{ name }} and {{ name("argument") }}, alone on a line, become Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import chapter_page
import claims
import class_plan
import clone
import figures
import ladder
import measured
import messages
import tool_pages
import traces
from course_tool.errors import CourseError
from course_tool.markdown import without_fences

MARKER = re.compile(r"^\{\{ *(?P<name>\w+) *(?:\((?P<arguments>.*)\))? *\}\} *$")
INLINE = re.compile(r"(?<!`)\{\{ *\w")
ARGUMENT = re.compile(r'"([^"]*)"')

# Those of a chapter's page take that chapter first.
CHAPTER_MARKERS: dict[str, Callable[..., str]] = {
    "chapter_facts": chapter_page.facts,
    "task": chapter_page.task,
    "hints": chapter_page.hints,
    "checkpoint_counts": chapter_page.checkpoint_counts,
    "line_counts": chapter_page.line_counts,
    "you_are_here": figures.you_are_here,
}
PAGE_MARKERS: dict[str, Callable[..., str]] = {
    "figure": figures.figure,
    "trace": traces.trace,
    "ladder": ladder.ladder,
    "ladder_measured": measured.ladder_measured,
    "timetable": class_plan.timetable,
    "course_minutes": class_plan.course_minutes,
    "tool_commands": tool_pages.tool_commands,
    "tool_messages": messages.tool_messages,
    "claim": claims.claim,
    "claims_figure": claims.ratios,
    "claims_later": claims.later,
    "claims_made": claims.made,
}
# Those that depend on what mkdocs.yml has under `extra`, which they take first.
SITE_MARKERS: dict[str, Callable[..., str]] = {
    "begin": clone.begin,
    "where_to_clone": clone.where_to_clone,
}


def expand(markdown: str, chapter: Any, extra: Mapping[str, Any], problems: list[str]) -> str:
    """Replaces every marker outside fences; appends a sentence a marker that cannot be replaced."""
    lines: list[str | None] = [*markdown.split("\n")]
    for number, line in enumerate(without_fences(markdown).split("\n"), start=1):
        marker = MARKER.match(line)
        if marker is None:
            if INLINE.search(line):
                problems.append(f"line {number}: a marker stands alone on its line.")
            continue
        try:
            lines[number - 1] = _replacement(marker, chapter, extra)
        except CourseError as error:
            problems.append(f"line {number}: {line.strip()}: {error}")
            lines[number - 1] = None
    return "\n".join(line for line in lines if line is not None)


def _replacement(marker: re.Match[str], chapter: Any, extra: Mapping[str, Any]) -> str:
    name = marker["name"]
    arguments = ARGUMENT.findall(marker["arguments"] or "")
    if name in CHAPTER_MARKERS:
        if chapter is None:
            raise CourseError("only a chapter's page, docs/chapters/NN-slug.md, may write this.")
        arguments = [chapter, *arguments]
    if name in SITE_MARKERS:
        arguments = [extra, *arguments]
    known = CHAPTER_MARKERS | PAGE_MARKERS | SITE_MARKERS
    make = known.get(name)
    if make is None:
        names = ", ".join(sorted(known))
        raise CourseError(f"there is no such marker; docs/_hooks/README.md explains {names}.")
    try:
        return make(*arguments)
    except TypeError as error:
        raise CourseError(f"wrong arguments: {error}.") from error
