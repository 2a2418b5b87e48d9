# SPDX-License-Identifier: MIT
"""The rules for Python that ruff does not know."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_tool.verify.sources import Rule, Source

FUNCTION_LINES_MAX = 60
_STARTS_PROCESSES = frozenset({"run", "call", "check_call", "check_output", "Popen"})
# What these start has a deadline or the reader's terminal, and ends with the tool.
_OWNERS_OF_PROCESSES = frozenset(
    f"common/tool/course_tool/{name}.py" for name in ("processes", "foreground")
)


def _parse(source: Source) -> ast.Module | None:
    try:
        return ast.parse(source.text)
    except SyntaxError:
        return None  # ruff says it better


def function_length(source: Source) -> Iterator[str]:
    tree = _parse(source)
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield source.at(
                node.lineno,
                f"{node.name}() has {lines} lines; {FUNCTION_LINES_MAX} is the limit. Split it.",
            )


def _starts_a_process(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _STARTS_PROCESSES
        and isinstance(function.value, ast.Name)
        and function.value.id == "subprocess"
    )


def processes(source: Source) -> Iterator[str]:
    """In the tool, its owners alone start any; elsewhere each has a list and a timeout."""
    tree = _parse(source)
    for node in ast.walk(tree) if tree else ():
        if not (isinstance(node, ast.Call) and _starts_a_process(node)):
            continue
        keywords = {keyword.arg for keyword in node.keywords}
        popen = isinstance(node.func, ast.Attribute) and node.func.attr == "Popen"
        if "shell" in keywords:
            yield source.at(node.lineno, "a process gets a list of arguments, never a shell line.")
        if source.matches("common/tool/*") and source.path not in _OWNERS_OF_PROCESSES:
            yield source.at(
                node.lineno,
                "the tool starts processes through course_tool.processes, which ends them again.",
            )
        elif not popen and "timeout" not in keywords:
            yield source.at(node.lineno, "a process needs a timeout; give it one.")


RULES = (
    Rule("function length", ("*.py",), function_length),
    Rule("processes", ("*.py",), processes),
)
