# SPDX-License-Identifier: MIT
"""The words that the course does without."""

from __future__ import annotations

import re

# To a reader who does not see it yet, each of these says that the fault is theirs.
BANNED_IN_PROSE = (
    "simply",
    "obviously",
    "trivially",
    "of course",
    "needless to say",
    "as everyone knows",
    "basically",
    "effortless",
    "effortlessly",
    "seamless",
    "seamlessly",
    "blazing",
    "blazingly",
    "lightning-fast",
)

# A solution has no open ends: a doubt becomes an assert, a test or an issue.
BANNED_IN_SOLUTIONS = ("TODO", "HACK", "FIXME", "XXX", "[Cc]urrently")

def _word(pattern: str) -> re.Pattern[str]:
    # An underscore ends a word here, so that identifiers are read as well.
    return re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.IGNORECASE)


_BANNED_PROSE = _word("|".join(word.replace(" ", r"\s+") for word in BANNED_IN_PROSE))
_BANNED_SOLUTION = re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(BANNED_IN_SOLUTIONS)})(?![A-Za-z])")


def banned_in_prose(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match.group()) for match in _BANNED_PROSE.finditer(text)]


def banned_in_solution(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match.group()) for match in _BANNED_SOLUTION.finditer(text)]
