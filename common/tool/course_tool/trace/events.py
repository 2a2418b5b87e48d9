# SPDX-License-Identifier: MIT
"""A recording: one line of JSON for each event, as common/trace/ writes them; and each in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_tool.errors import CourseError
from course_tool.paths import relative

Event = Mapping[str, Any]
FULL = "full"  # the kind of the last event of a recording that was too long


@dataclass(frozen=True)
class Recording:
    program: str  # "07-ping_pong"
    args: tuple[str, ...]
    kernel: str
    events: tuple[Event, ...]


def read(file: Path) -> Recording:
    """Leaves out a last line that is not whole: its program was killed while it wrote."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        header = json.loads(lines[0])
        events = [json.loads(line) for line in lines[1:-1]]
        try:
            events += [json.loads(line) for line in lines[1:][-1:]]
        except json.JSONDecodeError:
            pass
        return Recording(
            header["program"], tuple(header["args"]), header["kernel"], tuple(events)
        )
    except (OSError, IndexError, KeyError, json.JSONDecodeError) as error:
        raise CourseError(f"{relative(file)} is no recording: {error}.") from error


def frame_in(name: str) -> int:
    """3 of "f3+0x80", where a word leads into a frame; else 0."""
    found = re.match(r"f(\d+)\+", name)
    return int(found[1]) if found else 0


def many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def describe(event: Event, name: Callable[[int], str]) -> str:
    """One sentence about an event; `name` gives a frame's function."""
    words = _WORDS.get(event["e"])
    return words(event, name) if words else f"{event['e']}."


def _frame(event: Event, name: Callable[[int], str]) -> str:
    by = f", which {name(event['by'])} calls" if event["by"] else ""
    return f"A frame is made for {event['fn']}{by}."


def _sqe(event: Event, name: Callable[[int], str]) -> str:
    flags = f" ({', '.join(event['flags'])})" if event.get("flags") else ""
    on = f" on fd {event['fd']}" if event["fd"] >= 0 else ""
    return f"An SQE: {event['op']}{on}{flags}, {_user(event['user'], name)}."


def _cqe(event: Event, name: Callable[[int], str]) -> str:
    flags = "".join(f" {'F_' + flag}" for flag in event["flags"])
    return f"A CQE: res {event['res']}{flags}, {_user(event['user'], name)}."


def _user(user: str, name: Callable[[int], str]) -> str:
    frame = frame_in(user)
    return f"user_data in the frame of {name(frame)}" if frame else f"user_data {user}"


def _enter(event: Event, name: Callable[[int], str]) -> str:
    waits = f", and waits for {many(event['wait'], 'CQE')}" if event["wait"] else ""
    return f"io_uring_enter hands over {many(prepared(event), 'SQE')}{waits}."


def _entered(event: Event, name: Callable[[int], str]) -> str:
    there = f"{many(waiting(event), 'CQE')} {'is' if waiting(event) == 1 else 'are'} in the queue"
    return f"io_uring_enter returns {event['res']}; {there}."


def prepared(event: Event) -> int:
    return _between(event["sq"])


def waiting(event: Event) -> int:
    return _between(event["cq"])


def _between(indices: list[int]) -> int:
    return (indices[1] - indices[0]) % 2**32


_STORES = {
    "SQE": "SQE {slot} is filled in",
    "array": "slot {slot} of the SQ array names SQE {value}",
    "SQ tail": "the SQ's tail becomes {value}",
    "CQ head": "the CQ's head becomes {value}",
}
_WORDS: Mapping[str, Callable[[Event, Callable[[int], str]], str]] = {
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
    "reap": lambda e, name: f"The program moves the CQ's head: {many(waiting(e), 'CQE')} left.",
    "buffers": lambda e, name: f"A ring for {e['entries']} buffers is registered.",
    "recycle": lambda e, name: f"Buffer {e['id']} is given back to its ring.",
    "canceled": lambda e, name: "The program cancels whatever is in flight, and waits for it.",
    "exit": lambda e, name: "The ring is closed.",
    FULL: lambda e, name: "The recording is full: what came after this was left out.",
}
