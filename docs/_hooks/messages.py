# SPDX-License-Identifier: MIT
"""Every error message of the course's programs, read from their source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_tool.paths import ROOT

TOOL = ROOT / "common" / "tool" / "course_tool"
HOLE = "…"  # what the program fills in
WORDS_MIN = 4  # of a C++ string that is a message and not a name

# The C++ files whose strings are messages, by the heading they get.
CPP = {
    "The doctor": ("common/doctor/advice.cpp", "common/doctor/isolate.cpp"),
    "The load generator": ("common/loadgen/*.cpp",),
    "The servers and clients": ("common/runtime/*.cpp", "solutions/*/*.cpp", "solutions/*/*.hpp"),
}
CMAKE = ("CMakeLists.txt", "cmake/*.cmake")
_FATAL = re.compile(r'FATAL_ERROR((?:\s*"(?:[^"\\]|\\.)*")+)')
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Comments, includes and flags: their strings are explained on other pages.
_NO_MESSAGE = re.compile(
    r'//[^\n]*|^#[^\n]*|R"\(.*?\)"|'
    r"(add|add_option|add_subcommand|flag_set \w+)\s*[({][^;]*?[)}]",
    re.MULTILINE | re.DOTALL,
)


def tool_messages() -> str:
    """{{ tool_messages }}: the messages of ./course, by module, then of the C++ programs."""
    trees = {file: ast.parse(file.read_text("utf-8")) for file in sorted(TOOL.rglob("*.py"))}
    classes = _error_classes(trees.values())
    parts = []
    for file, tree in trees.items():
        name = ".".join(file.relative_to(TOOL).with_suffix("").parts)
        parts.append(_section(f"`{name}`", _messages(tree, classes)))
    for name, patterns in CPP.items():
        parts.append(_section(name, _cpp_messages(_files(patterns))))
    parts.append(_section("CMake", _cmake_messages(_files(CMAKE))))
    return "\n\n".join(part for part in parts if part)


def _files(patterns: Iterable[str]) -> list[Path]:
    return [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]


def _section(heading: str, messages: Iterable[str]) -> str:
    items = "\n".join(f"- {_as_code(message)}" for message in dict.fromkeys(messages))
    return f'## {heading}\n\n<div class="messages" markdown>\n\n{items}\n\n</div>' if items else ""


def _as_code(message: str) -> str:
    """Code font, as the terminal shows it; a backtick inside needs a longer delimiter."""
    text = " ".join(message.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _error_classes(trees: Iterable[ast.AST]) -> set[str]:
    """CourseError and what is derived from it, by name."""
    bases = {
        node.name: {getattr(base, "id", "") for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"CourseError"}
    while more := {name for name, parents in bases.items() if parents & known} - known:
        known |= more
    return known


def _messages(tree: ast.AST, classes: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        in_table = getattr(node.func, "id", "") == "Bad"
        if in_table or getattr(node.func, "id", "") in classes:
            text = _text(node.args[-1])
            if text.replace(HOLE, "").strip(" .:,"):
                # chapters.py puts the file and the key in front of what a table complains about.
                yield f"{HOLE}: {text}" if in_table else text


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


def _cpp_messages(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        source = _NO_MESSAGE.sub("", file.read_text(encoding="utf-8"))
        for strings in _STRINGS.finditer(source):
            text = "".join(_STRING.findall(strings[0])).replace('\\"', '"').replace("\\n", " ")
            text = re.sub(r"\{[^{}]*\}", HOLE, text).strip()
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS_MIN and "/" not in text[:1]:
                yield text


def _cmake_messages(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        for error in _FATAL.finditer(file.read_text(encoding="utf-8")):
            text = "".join(_STRING.findall(error[1]))
            yield re.sub(r"\$\{[^{}]*\}", HOLE, text)
