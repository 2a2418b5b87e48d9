# SPDX-License-Identifier: MIT
"""Where the course is cloned from: `extra.clone_url` of mkdocs.yml, and what pages say without."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from course_tool.errors import CourseError

FOLDER = "ring-by-ring"
BEGIN = "./course start\n./course serve"
# What git takes as an address, in the forms that a reader can use: no file of this machine.
ADDRESS = re.compile(r"(?:https?|ssh|git)://[^\s\"'`<>]+|[\w.-]+@[\w.-]+:[^\s\"'`<>]+")

KNOWN = """\
The course is a git repository. The first command below copies it to your machine; the others run
in that copy, which these pages call **your clone**.

{commands}
"""
UNKNOWN = """\
The course is a git repository, and its commands run in your copy of it, **your clone**. If
`./course serve` shows you this page, you have a clone: open a terminal in its folder. If you read
this page on the web, ask the people who sent you here for the address of the repository, because
this site was built without it.

{commands}
"""


def address(extra: Mapping[str, Any]) -> str:
    """The address, or "" if none is set."""
    url = str(extra.get("clone_url") or "").strip()
    if url and not ADDRESS.fullmatch(url):
        raise CourseError(
            f"extra.clone_url of mkdocs.yml is {url!r}, which is no address to clone from. "
            "Write https://…, ssh://… or user@host:path."
        )
    return url


def begin(extra: Mapping[str, Any]) -> str:
    """{{ begin }}: the commands from nothing to the course in a browser."""
    url = address(extra)
    clone = f"git clone {url} {FOLDER}\ncd {FOLDER}\n" if url else ""
    return f"```sh\n{clone}{BEGIN}\n```"


def where_to_clone(extra: Mapping[str, Any]) -> str:
    """{{ where_to_clone }}: the same with a sentence about the clone."""
    text = KNOWN if address(extra) else UNKNOWN
    return text.format(commands=begin(extra))
