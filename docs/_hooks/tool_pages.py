# SPDX-License-Identifier: MIT
"""The reference of ./course, read from the commands themselves: it cannot describe what is not."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from course_tool.errors import CourseError

NO_REWRAP = "\b"  # Typer's mark before a paragraph that keeps its lines: here, an example


def tool_commands() -> str:
    """{{ tool_commands }}: every command with its text, its arguments and its flags."""
    try:
        from course_tool.cli import app  # here: only this page needs the whole tool
    except ImportError as error:
        raise CourseError(f"the commands cannot be read: {error}.") from error
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="./course")
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return "\n\n".join(
        _command(name, command, context) for name, command in commands.items() if not command.hidden
    )


def _command(name: str, command: Any, parent: Any) -> str:
    context = typer.Context(command, info_name=name, parent=parent)
    parameters = [each for each in command.params if not getattr(each, "hidden", False)]
    parts = [f"## {name} {{ #{name} }}", _prose(command.help or "")]
    if parameters:
        parts.append("\n".join(_parameter(each, context) for each in parameters))
    return "\n\n".join(parts)


def _prose(help_text: str) -> str:
    """The paragraphs of a command's help, and its examples to copy."""
    blocks = []
    for block in inspect.cleandoc(help_text).split("\n\n"):
        lines = [line.strip() for line in block.split("\n") if line.strip(f" {NO_REWRAP}")]
        if block.startswith(NO_REWRAP):
            examples = "\n".join(line for line in lines if line.startswith("./course"))
            blocks.append(f"```sh\n{examples}\n```")
        else:
            blocks.append(" ".join(lines))
    return "\n\n".join(blocks)


def _parameter(parameter: Any, context: Any) -> str:
    """An entry of a definition list: what --help says about it, word for word."""
    names, text = parameter.get_help_record(context)
    return f"`{names}`\n:   {text}\n"
