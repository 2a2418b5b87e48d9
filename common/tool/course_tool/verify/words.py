# SPDX-License-Identifier: MIT
"""The words that the course does without, and what it says instead."""

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

_ISE_STEMS = (
    "author|categor|character|custom|emphas|final|general|initial|maxim|memor|minim|normal|optim"
    "|organ|parallel|prior|random|real|recogn|reorgan|sanit|serial|special|stabil|standard|summar"
    "|synchron|token|util|vectorial|visual"
)
_OUR_STEMS = "behavi|col|endeav|fav|flav|harb|hon|lab|neighb|rum"
_DOUBLED = "cancel|channel|label|level|model|signal|total|travel"

_BRITISH = (
    (rf"(?:{_ISE_STEMS})is(?:e|ed|er|ers|es|ing|ation|ations)", ("is", "iz")),
    (r"(?:anal|paral)ys(?:e|ed|ing)", ("ys", "yz")),
    (rf"(?:{_OUR_STEMS})our(?:s|ed|ing|able|ably|al|hood|ite|ites|ful|less)?", ("our", "or")),
    (rf"(?:{_DOUBLED})l(?:ed|er|ers|ing)", ("ll", "l")),
    (r"(?:cent|theat|lit|calib)re(?:s|d)?", ("re", "er")),
    (r"(?:licen|defen|offen|preten)ce(?:s|d)?", ("ce", "se")),
    (r"artefacts?", ("arte", "arti")),
    (r"whilst", ("whilst", "while")),
    (r"amongst", ("amongst", "among")),
    (r"learnt", ("learnt", "learned")),
    (r"programmes?", ("programme", "program")),
)


def _word(pattern: str) -> re.Pattern[str]:
    # An underscore ends a word here, so that identifiers are read as well.
    return re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.IGNORECASE)


_BRITISH_PATTERNS = tuple((_word(pattern), change) for pattern, change in _BRITISH)
_BANNED_PROSE = _word("|".join(word.replace(" ", r"\s+") for word in BANNED_IN_PROSE))
_BANNED_SOLUTION = re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(BANNED_IN_SOLUTIONS)})(?![A-Za-z])")


def british_words(text: str) -> list[tuple[int, str, str]]:
    """Where a British spelling stands, the word, and its American form."""
    found = []
    for pattern, (old, new) in _BRITISH_PATTERNS:
        for match in pattern.finditer(text):
            word = match.group()
            head, _, tail = word.lower().rpartition(old)
            found.append((match.start(), word, head + new + tail))
    return sorted(found)


def banned_in_prose(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match.group()) for match in _BANNED_PROSE.finditer(text)]


def banned_in_solution(text: str) -> list[tuple[int, str]]:
    return [(match.start(), match.group()) for match in _BANNED_SOLUTION.finditer(text)]
