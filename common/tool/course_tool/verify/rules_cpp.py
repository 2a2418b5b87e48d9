# SPDX-License-Identifier: MIT
"""The rules for C++ that clang-format and clang-tidy do not know."""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_tool.verify.sources import QUOTES_THE_RULES, Rule, Source

SOLUTION_LINES_MAX = 300
CONTRACT_LABELS = ("Owns", "Lifetime", "Threads", "Errors", "Rule", "See")

_LABEL = re.compile(r"// ([A-Z]\w+) +\S")


def contract(source: Source) -> Iterator[str]:
    """Before `#pragma once`: a sentence, then the labels that have something to say, in order."""
    if "#pragma once" not in source.lines:
        yield source.at(1, "a header needs the line `#pragma once`, right below its contract.")
        return
    head = source.lines[1 : source.lines.index("#pragma once")]
    if not all(line.startswith("//") for line in head):
        yield source.at(2, "only the contract's comment may stand before `#pragma once`.")
        return
    labels = [match.group(1) for line in head if (match := _LABEL.match(line))]
    found = [label for label in labels if label in CONTRACT_LABELS]
    wanted = [label for label in CONTRACT_LABELS if label in found]
    if found != wanted:
        yield source.at(2, f"the contract's labels stand in this order: {', '.join(wanted)}.")


def solution_length(source: Source) -> Iterator[str]:
    lines = len(source.lines)
    if lines > SOLUTION_LINES_MAX:
        yield source.at(
            SOLUTION_LINES_MAX + 1,
            f"the file has {lines} lines; a student reads at most {SOLUTION_LINES_MAX} in one.",
        )


_LINUX_RING = re.compile(r'#\s*include\s*[<"]linux/io_uring\.h[>"]')
_UP = re.compile(r'#\s*include\s*"[^"]*/[^"]*"')


def includes(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, start=1):
        if _LINUX_RING.match(line):
            yield source.at(
                number,
                "<linux/io_uring.h> lays io_uring_buf_ring out wrongly in C++ on Debian 12; "
                "include <liburing/io_uring.h>.",
            )
        if _UP.match(line):
            yield source.at(
                number, "own headers are included by name alone; their names are unique."
            )


_LAMBDA_COROUTINE = re.compile(r"\[[^\[\]\n]*[&=\w][^\[\]\n]*\]\s*\([^()]*\)[^{};]*\{")
_LAMBDA_SHOWN = "NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)"
_CO = re.compile(r"\bco_(?:await|return|yield)\b")


def _body_end(text: str, opening: int) -> int:
    depth = 0
    for offset in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[offset], 0)
        if depth == 0:
            return offset
    return len(text)


def lambda_coroutines(source: Source) -> Iterator[str]:
    """One that is shown for what comes of it says NOLINTNEXTLINE, to clang-tidy and to us."""
    for match in _LAMBDA_COROUTINE.finditer(source.text):
        number = source.line_of(match.start())
        if number > 1 and _LAMBDA_SHOWN in source.lines[number - 2]:
            continue
        body = source.text[match.end() - 1 : _body_end(source.text, match.end() - 1)]
        if _CO.search(body):
            yield source.at(
                number,
                "a coroutine lambda that captures loses its captures with the closure; "
                "make it a named function with parameters.",
            )


# Of the documentation ranges of RFC 5737 no machine has an address: tests of failure use them.
_ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")
_HARMLESS = re.compile(r"127\.|0\.0\.0\.0$|192\.0\.2\.|198\.51\.100\.|203\.0\.113\.")


def loopback_only(source: Source) -> Iterator[str]:
    if source.matches(*QUOTES_THE_RULES):
        return
    for match in _ADDRESS.finditer(source.text):
        address = match.group()
        real = all(int(part) <= 255 for part in address.split("."))
        if real and not _HARMLESS.match(address):
            yield source.at(
                source.line_of(match.start()),
                f"{address} is not of this machine; a test talks to 127.0.0.1 only.",
            )


_TYPEDEF = re.compile(r"^\s*typedef\b", re.MULTILINE)


def typedefs(source: Source) -> Iterator[str]:
    """clang-tidy would find them too, but it looks for them in every system header."""
    for match in _TYPEDEF.finditer(source.text):
        yield source.at(source.line_of(match.end()), "write `using name = type;`, no typedef.")


PUBLIC_HEADERS = ("solutions/*.hpp", "common/*.hpp")

RULES = (
    Rule("contract", PUBLIC_HEADERS, contract),
    Rule("length of solutions", ("solutions/*.cpp", "solutions/*.hpp"), solution_length),
    Rule("includes", ("*.cpp", "*.hpp"), includes),
    Rule("lambda coroutines", ("*.cpp", "*.hpp"), lambda_coroutines),
    Rule("typedefs", ("*.cpp", "*.hpp"), typedefs),
    Rule("loopback only", ("tests/*.cpp", "tests/*.hpp", "tests/*.py"), loopback_only),
)
