# SPDX-License-Identifier: MIT
"""Looks at every include before MkDocs does, so that one build names all that are missing."""

from __future__ import annotations

import re
from pathlib import Path

INCLUDE = re.compile(r'^(?P<indent> *)--8<-- "(?P<path>[^":]+)(?::(?P<section>[^"]+))?" *$')


def check(markdown: str, root: Path, problems: list[str]) -> str:
    """Takes out each include that has no target, and says so."""
    lines = markdown.split("\n")
    for number, line in enumerate(lines, start=1):
        include = INCLUDE.match(line)
        if include is None:
            continue
        missing = _missing(root / include["path"], include["section"])
        if missing:
            target = line.strip().removeprefix("--8<-- ")
            problems.append(f"line {number} includes {target}, but {missing}.")
            lines[number - 1] = f"{include['indent']}(missing: {target})"
    return "\n".join(lines)


def _missing(file: Path, section: str | None) -> str:
    """What is not there, as the end of a sentence; "" if all is."""
    if not file.is_file():
        return "there is no such file"
    if section is None:
        return ""
    text = file.read_text(encoding="utf-8")
    for kind in ("start", "end"):
        if f"--8<-- [{kind}:{section}]" not in text:
            return f"that file has no [{kind}:{section}]"
    return ""
