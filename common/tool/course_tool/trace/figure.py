# SPDX-License-Identifier: MIT
"""The figures of pages: docs/traces/NAME.toml chooses steps of the recording NAME.jsonl.

    program = "07:ping_pong"        # as ./course run takes it, with its args; a server gets clients
    args = ["--rounds", "1"]
    title = "…"  desc = "…"         # the caption; what is to be seen, for those who cannot see it
    still = 9                       # the step that is shown in print and without JavaScript
    hide = ["keep"]                 # functions whose frames are not drawn
    [[steps]]                       # at most 24, in the order of the recording
    at = { e = "cqe", of = "pong" } # the next event with these facts; nth = 2: the one after it
    expect = { in_flight = 1 }      # facts that must hold there, whenever it is recorded anew
    say = "res is {res}"            # with facts in braces
    ask = "…?"                      # what to answer before going on

A fact is a field of the event, or what facts() below adds.
"""

from __future__ import annotations

import html
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_tool.errors import CourseError
from course_tool.paths import DOCS, relative
from course_tool.trace.drawing import Drawing, Layout
from course_tool.trace.events import FRAMES, Event, frame_in
from course_tool.trace.model import State
from course_tool.trace.scenario import Clients

TRACES = DOCS / "traces"
STEPS_MAX = 24
GIST = ("e", "fn", "of", "from", "to", "op", "depth", "running", "queued", "done", "in_flight")
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    at: Facts
    say: str
    ask: str = ""
    expect: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    name: str
    program: str
    title: str
    desc: str
    still: int
    steps: Sequence[Step]
    args: Sequence[str] = ()
    hide: Sequence[str] = ()
    parts: Sequence[str] = ()  # of the drawing; what the recording has, if it is left out
    clients: Clients | None = None  # of a server
    shows_violation: bool = False  # what is wrong in the recording is what the figure is about

    @property
    def recording(self) -> Path:
        return TRACES / f"{self.name}.jsonl"


def names() -> list[str]:
    return sorted(file.stem for file in TRACES.glob("*.toml"))


def load(name: str) -> Figure:
    file = TRACES / f"{name}.toml"
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        raw["steps"] = [Step(**each) for each in raw["steps"]]
        if "clients" in raw:
            raw["clients"] = Clients(**raw["clients"])
        figure = Figure(name=name, **raw)
    except FileNotFoundError:
        raise CourseError(f"there is no {relative(file)}.") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CourseError(f"{relative(file)}: {error}.") from error
    if not 1 <= figure.still <= len(figure.steps) <= STEPS_MAX:
        raise CourseError(f"{relative(file)}: 1 to {STEPS_MAX} steps, and `still` is one of them.")
    return figure


def facts(event: Event, state: State) -> dict[str, Any]:
    """The event's fields, with functions for frames, and counts of what there is after it."""
    found: dict[str, Any] = dict(event)
    for key in FRAMES:
        if key in event:
            found["fn" if key == "f" else key] = state.names.get(event[key], "")
    if "user" in event:
        found["of"] = state.names.get(frame_in(event["user"]), "")
    if event["e"] == "cqe":
        request = state.rings[event["ring"]].done[-1].request
        found |= {"op": request.op, "fd": request.fd, "len": request.length}
        found["short"] = 0 <= event["res"] < found["len"]
        found["more"] = "MORE" in event["flags"]
    where = [ring for ring in state.rings.values() if event.get("ring", ring.number) == ring.number]
    return found | {
        "in_flight": sum(len(ring.flight) for ring in where),
        "queued": sum(len(ring.queue) for ring in where),
        "done": sum(len(ring.done) for ring in where),
        "published": sum(ring.sq_tail - ring.sq_head for ring in where),
        "frames": len(state.frames),
        "lent": [*state.buffers.values()].count("lent"),
        "running": state.names.get(state.running, ""),
        "stack": len(state.stacks.get(event["th"], [])),
        **{f"{kind}s": state.counts[kind] for kind in ("enter", "sqe", "cqe")},
    }


def make(figure: Figure, events: Sequence[Event]) -> Drawing:
    """Finds every step, checks what is expected of it, and draws it."""
    layout = Layout(events, figure.parts, figure.hide, lines=False)
    drawing = Drawing(figure.name, figure.title, figure.desc, figure.still, layout)
    state = State()
    for step, event, known in _chosen(figure, events, state):
        drawing.add(state, event, _as_html(step.say, known), _as_html(step.ask, known))
    return drawing


def gist(figure: Figure, events: Sequence[Event]) -> list[list[Any]]:
    """What its steps are about, as it is in every recording of the same code."""
    return [[*map(known.get, GIST)] for _, _, known in _chosen(figure, events, State())]


def cut_short(figure: Figure, events: Sequence[Event]) -> None:
    """Of a run that ends in what the figure shows, keeps no more in its file."""
    last = max(event["n"] for _, event, _ in _chosen(figure, events, State()))
    lines = figure.recording.read_text(encoding="utf-8").splitlines(keepends=True)
    figure.recording.write_text("".join(lines[: last + 1]), encoding="utf-8")


def _chosen(
    figure: Figure, events: Sequence[Event], state: State
) -> Iterator[tuple[Step, Event, Facts]]:
    rest = iter(events)
    for position, step in enumerate(figure.steps, start=1):
        left = step.at.get("nth", 1)
        wanted = {key: value for key, value in step.at.items() if key != "nth"}
        for event in rest:
            state.apply(event)
            known = facts(event, state)
            left -= all(known.get(key) == value for key, value in wanted.items())
            if left == 0:
                break
        else:
            raise CourseError(f"step {position}: no event that has {dict(step.at)} follows.")
        for key, value in step.expect.items():
            if known.get(key) != value:
                raise CourseError(
                    f"step {position} expects {key} = {value!r}, and it is {known.get(key)!r}."
                )
        yield step, event, known


def _as_html(text: str, known: Facts) -> str:
    try:
        text = text.format_map(known)
    except (KeyError, ValueError, IndexError) as error:
        raise CourseError(f"{text!r} names {error}, which is no fact of that event.") from error
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def element(drawing: Drawing) -> str:
    """The figure as HTML: with its data inline, and complete without JavaScript."""
    name = drawing.name
    steps = "".join(
        f'<li id="{name}.{number}"><span>{said}</span>'
        + (f' <strong class="trace-ask">{asked}</strong>' if asked else "") + "</li>\n"
        for number, (said, asked) in enumerate(drawing.captions, start=1)
    )  # fmt: skip
    data = {"still": drawing.still, "patches": drawing.patches()}
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return (
        f'<figure class="drawing trace" id="figure-{name}" data-trace="{name}" '
        f"data-search-exclude>\n{drawing.svg(drawing.still)}\n"
        '<div class="trace-controls" hidden>\n'
        '<button type="button" data-go="-1">Back</button>\n'
        f'<input type="range" min="1" max="{len(drawing.captions)}" step="1" aria-label="Step">\n'
        '<button type="button" data-go="1">Next</button>\n</div>\n'
        '<div class="trace-say" aria-live="polite" hidden></div>\n'
        f'<ol class="trace-steps">\n{steps}</ol>\n'
        f"<figcaption>{html.escape(drawing.title, quote=False)}</figcaption>\n"
        f'<script type="application/json">{packed}</script>\n</figure>\n'
    )
