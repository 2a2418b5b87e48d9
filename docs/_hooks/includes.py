# SPDX-License-Identifier: MIT
"""Looks at every include before MkDocs does, so that one build names all that are missing."""

from __future__ import annotations

from pathlib import Path

from course_tool import markdown as pages
from course_tool.sections import missing_mark


def check(markdown: str, root: Path, problems: list[str]) -> str:
    """Takes out each include that has no target, and says so."""
    lines = markdown.split("\n")
    for each in list(pages.includes(lines)):
        line = lines[each.line - 1]
        missing = _missing(root / each.path, each.section)
        if missing:
            target = line.strip().removeprefix("--8<-- ")
            problems.append(f"line {each.line} includes {target}, but {missing}.")
            lines[each.line - 1] = line.replace(line.strip(), f"(missing: {target})")
    return "\n".join(lines)


def _missing(file: Path, section: str) -> str:
    """What is not there, as the end of a sentence; "" if all is."""
    if not file.is_file():
        return "there is no such file"
    mark = missing_mark(file.read_text(encoding="utf-8"), section) if section else ""
    return f"that file has no {mark}" if mark else ""
