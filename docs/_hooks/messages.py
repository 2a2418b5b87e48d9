# SPDX-License-Identifier: MIT
"""Every error message of the tool, read from its source, so that a reader finds what they saw."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_tool.paths import ROOT

TOOL = ROOT / "common" / "tool" / "course_tool"
HOLE = "…"


def tool_messages() -> str:
    """{{ tool_messages }}: the messages, a heading a module; … is what the tool fills in."""
    trees = {
        file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(TOOL.rglob("*.py"))
    }
    classes = _error_classes(trees.values())
    parts = []
    for file, tree in trees.items():
        found = list(dict.fromkeys(_messages(tree, classes)))
        if found:
            name = ".".join(file.relative_to(TOOL).with_suffix("").parts)
            items = "\n".join(f"- {_as_code(message)}" for message in found)
            parts.append(f'## `{name}`\n\n<div class="messages" markdown>\n\n{items}\n\n</div>')
    return "\n\n".join(parts)


def _as_code(message: str) -> str:
    """Code font, as the terminal shows it; a backtick inside needs a longer delimiter."""
    text = " ".join(message.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _error_classes(trees: object) -> set[str]:
    """CourseError and what is derived from it, by name."""
    bases = {
        node.name: {getattr(base, "id", "") for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"CourseError"}
    while True:
        more = {name for name, parents in bases.items() if parents & known} - known
        if not more:
            return known
        known |= more


def _messages(tree: ast.AST, classes: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if getattr(node.func, "id", "") in classes or getattr(node.func, "attr", "") == "fail":
            text = _text(node.args[-1])
            if getattr(node.func, "attr", "") == "fail":
                text = f"{HOLE}: {text}"  # chapters.py puts the file and the key in front
            if text.replace(HOLE, "").strip(" .:,"):
                yield text


def _text(node: ast.expr) -> str:
    """A string as far as the source says it; what is computed is a hole."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body)} / {_text(node.orelse)}"
    return HOLE
