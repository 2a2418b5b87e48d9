# SPDX-License-Identifier: MIT
"""The timetable of a class, from the minutes that every chapter.toml states."""

from __future__ import annotations

import math

from course_tool.chapters import all_chapters
from course_tool.paths import ROOT

SESSION_MINUTES = 90
# What a session needs beside the chapter's own minutes: recall at its start, discussion at its end.
RECALL_MINUTES = 10
DISCUSSION_MINUTES = 15


def timetable() -> str:
    """{{ timetable }}: the minutes of each chapter, and the sessions it takes."""
    rows = [
        "| chapter | reading | tasks | checkpoint | sessions |",
        "|---|---:|---:|---:|---:|",
    ]
    chapters = [chapter for chapter in all_chapters(ROOT) if chapter.page.is_file()]
    for chapter in chapters:
        minutes = chapter.minutes
        rows.append(
            f"| [{chapter.number} {chapter.title}](chapters/{chapter.folder}.md) "
            f"| {minutes.reading} min | {minutes.tasks} min | {minutes.checkpoint} min "
            f"| {_sessions(minutes.tasks + minutes.checkpoint)} |"
        )
    return "\n".join(rows)


def _sessions(minutes: int) -> int:
    return math.ceil(minutes / (SESSION_MINUTES - RECALL_MINUTES - DISCUSSION_MINUTES))


def course_minutes() -> str:
    """{{ course_minutes }}: one sentence with the sum over the chapters that exist."""
    chapters = [chapter for chapter in all_chapters(ROOT) if chapter.page.is_file()]
    total = sum(chapter.minutes.total for chapter in chapters)
    hours, minutes = divmod(total, 60)
    numbers = [chapter.number for chapter in chapters]
    duration = f"{hours} h {minutes:02} min at the pace of a first reading."
    if len(numbers) == 1:
        return f"Chapter {numbers[0]} takes {duration}"
    joint = "and" if len(numbers) == 2 else "to"
    return f"Chapters {numbers[0]} {joint} {numbers[-1]} take {duration}"
