# SPDX-License-Identifier: MIT
"""A recording: one line of JSON for each event, as common/trace/ writes them; and each in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_tool.errors import CourseError
from course_tool.paths import relative

Event = Mapping[str, Any]
Names = Callable[[int], str]  # a frame's function, by its number
FRAMES = ("f", "by", "from", "to")  # the fields that hold a frame's number


def read(file: Path) -> Sequence[Event]:
    """Leaves out a last line that is not whole: its program was killed while it wrote."""
    try:
        whole, _, _ = file.read_text(encoding="utf-8").rpartition("\n")
        header, *events = map(json.loads, whole.splitlines())
        if "trace" not in header:
            raise ValueError("its first line is no header")
    except (OSError, ValueError) as error:
        raise CourseError(f"{relative(file)} is no recording: {error}.") from error
    return events


def frame_in(name: str) -> int:
    """3 of "f3+0x80", where a word leads into a frame; else 0."""
    found = re.match(r"f(\d+)\+", name)
    return int(found[1]) if found else 0


def many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def describe(event: Event, name: Names) -> str:
    """One sentence about an event."""
    words = _WORDS.get(event["e"])
    return words(event, name) if words else f"{event['e']}."


def _frame(event: Event, name: Names) -> str:
    by = f", which {name(event['by'])} calls" if event["by"] else ""
    return f"A frame is made for {event['fn']}{by}."


def _sqe(event: Event, name: Names) -> str:
    flags = f" ({', '.join(event['flags'])})" if event.get("flags") else ""
    on = f" on fd {event['fd']}" if event["fd"] >= 0 else ""
    return f"An SQE: {event['op']}{on}{flags}, {_user(event['user'], name)}."


def _cqe(event: Event, name: Names) -> str:
    flags = "".join(f" F_{flag}" for flag in event["flags"])
    return f"A CQE: res {event['res']}{flags}, {_user(event['user'], name)}."


def _user(user: str, name: Names) -> str:
    frame = frame_in(user)
    return f"user_data in the frame of {name(frame)}" if frame else f"user_data {user}"


def _enter(event: Event, name: Names) -> str:
    waits = f", and waits for {many(event['wait'], 'CQE')}" if event["wait"] else ""
    return f"io_uring_enter hands over {many(_span(event['sq']), 'SQE')}{waits}."


def _entered(event: Event, name: Names) -> str:
    count = _span(event["cq"])
    there = f"{many(count, 'CQE')} {'is' if count == 1 else 'are'} in the queue"
    return f"io_uring_enter returns {event['res']}; {there}."


def _span(indices: Sequence[int]) -> int:
    return (indices[1] - indices[0]) % 2**32


_STORES = {
    "SQE": "SQE {slot} is filled in",
    "array": "slot {slot} of the SQ array names SQE {value}",
    "SQ tail": "the SQ's tail becomes {value}",
    "CQ head": "the CQ's head becomes {value}",
}
_WORDS: Mapping[str, Callable[[Event, Names], str]] = {
    "frame": _frame,
    "start": lambda e, name: f"{name(e['f'])} begins.",
    "suspend": lambda e, name: f"{name(e['f'])} suspends at {e['at']}.",
    "jump": lambda e, name: f"The thread jumps from {name(e['from'])} to {name(e['to'])}.",
    "back": lambda e, name: f"The thread leaves {name(e['f'])}, to where that was resumed.",
    "resume": lambda e, name: f"{name(e['f'])} goes on at {e['at']}.",
    "throw": lambda e, name: f"An exception leaves the body of {name(e['f'])}.",
    "end": lambda e, name: f"{name(e['f'])} is at its end.",
    "destroy": lambda e, name: f"The frame of {name(e['f'])} is destroyed.",
    "ring": lambda e, name: f"A ring is made, for {e['sq']} SQEs and {e['cq']} CQEs.",
    "sqe": _sqe,
    "store": lambda e, name: f"A store: {_STORES[e['into']].format_map(e)}.",
    "enter": _enter,
    "no_enter": lambda e, name: "A call of liburing that has no need to enter the kernel.",
    "take": lambda e, name: "The kernel has taken SQEs: it moves the SQ's head.",
    "entered": _entered,
    "cqe": _cqe,
    "reap": lambda e, name: f"The program moves the CQ's head: {many(_span(e['cq']), 'CQE')} left.",
    "buffers": lambda e, name: f"A ring for {e['entries']} buffers is registered.",
    "recycle": lambda e, name: f"Buffer {e['id']} is given back to its ring.",
    "canceled": lambda e, name: "The program cancels whatever is in flight, and waits for it.",
    "exit": lambda e, name: "The ring is closed.",
    "full": lambda e, name: "The recording is full: what came after this was left out.",
}
