# SPDX-License-Identifier: MIT
"""Draws the state of a run: frames above, the queues below them, and the kernel below its line.

Every step of a run is drawn with the same elements, by id: what a step does not have is hidden. So
two steps differ by attributes and words alone, which is all that the player has to change.
"""

from __future__ import annotations

import errno
import html
import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_tool.trace.events import Event, frame_in, many
from course_tool.trace.model import Completion, Entry, Frame, Ring, State

WIDTH = 720
COLUMNS_MAX, ROWS_MAX = 3, 4
BOX_HEIGHT, ROW = 104, 120
MARGIN, GUTTER = 22, 48  # left of all frames, and between their columns
BUFFERS, BUFFERS_MAX = 70, 4  # the height of their row, and how many are drawn
SLOT = (112, 58)
SLOTS = 3  # of a queue are drawn
QUEUE_X = {"sq": 14, "cq": 370}
QUEUES, RINGS_MAX = 114, 2  # the height of a ring's two queues, and how many rings are drawn
FLIGHTS, STACK = 6, 5  # requests in flight, and coroutines on the stack, are drawn
LINE_MAX, SLOT_MAX, USER_MAX, THREAD_MAX = 19, 10, 8, 18
WORD_MAX = 10_000  # of a number beside which there is room for a word
# Of requests and completions in a row: how many, from which x, how wide, to where, on which ground.
ROOM = {
    "sq": (SLOTS, 18, SLOT[0], 350, "lit"),
    "cq": (SLOTS, 374, SLOT[0], 600, "lit"),
    "copied": (SLOTS, 374, SLOT[0], 706, "box"),
    "kernel": (FLIGHTS, 14, SLOT[0] + 4, 480, "wait"),
}

# By the events that ask for them.
PARTS = {"ring": "rings", "buffers": "buffers", "store": "indices"}
# By the state of a frame: the ground that it is drawn on, and what is said of it.
LOOKS = {
    "made": ("box", "not started"), "running": ("lit", "runs"),
    "waiting": ("wait", "waits"), "ended": ("box", "at its end"),
}  # fmt: skip
# Grounds first, then what stands on them, then wires: a later element lies on an earlier one.
LAYERS = ("kernel", "sq", "cq", "stack", "buffer", "frame", "thread", "copied", "lead", "token")
Values = dict[str, str]  # attributes of an element; "" is its text
HIDDEN: Values = {"display": "none"}
Shown = list[tuple[Entry, int, int, str]]  # a token, where, on which ground


class Layout:
    """Where each frame stands, for all of its life; and what else is drawn."""

    def __init__(
        self, events: Sequence[Event], parts: Sequence[str] = (), hidden: Sequence[str] = (),
        lines: bool = True,
    ) -> None:  # fmt: skip
        kinds = {event["e"] for event in events}
        self.parts = parts or ["thread", *(PARTS[kind] for kind in PARTS if kind in kinds)]
        self.lines = lines  # say at which line a frame waits
        made = [event for event in events if event["e"] == "ring"][:RINGS_MAX]
        self.rings = [{queue: min(SLOTS, ring[queue]) for queue in QUEUE_X} for ring in made]
        self.threads = sorted({event["th"] for event in events})
        self.awaited_by = _awaited_by(events)
        self.places: dict[int, tuple[int, int]] = {}  # frame -> row, column
        self._place_frames(events, hidden)

    def _place_frames(self, events: Sequence[Event], hidden: Sequence[str]) -> None:
        """A frame stands to the right of the one that awaits it, or else of the one that has made
        it, in the first row that has room."""
        made = {event["f"]: event for event in events if event["e"] == "frame"}
        gone = {event["f"]: event["n"] for event in events if event["e"] == "destroy"}
        taken: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)  # from step to step

        def place(number: int) -> None:
            above = self.awaited_by.get(number, 0)
            if above > number:
                place(above)
            if number in self.places or number not in made or made[number]["fn"] in hidden:
                return
            parent_row, parent_column = self.places.get(self.drawn(above), (0, -1))
            column = min(parent_column + 1, COLUMNS_MAX - 1)
            begin, end = made[number]["n"], gone.get(number, len(events) + 1)
            for row in range(parent_row, ROWS_MAX):
                others = taken[row, column]
                if all(end < other[0] or begin > other[1] for other in others):
                    others.append((begin, end))
                    self.places[number] = (row, column)
                    break

        for number in sorted(self.awaited_by):
            place(number)

    @property
    def rows_height(self) -> int:
        """Of all frames, which are above the rest."""
        return ROW * max((row + 1 for row, _ in self.places.values()), default=0)

    @property
    def width(self) -> int:
        """Of a frame."""
        columns = max([2, *(column + 1 for _, column in self.places.values())])
        return (WIDTH - 2 * MARGIN - (columns - 1) * GUTTER) // columns

    def corner(self, frame: int) -> tuple[int, int]:
        row, column = self.places[frame]
        return MARGIN + column * (self.width + GUTTER), 6 + row * ROW

    def drawn(self, frame: int) -> int:
        """The frame, or the nearest above it that has a place; or 0."""
        while frame and frame not in self.places:
            frame = self.awaited_by.get(frame, 0)
        return frame

    def queues_y(self, ring: int) -> int:
        """The top of a ring's queues. Above the first are the thread and what it has copied out."""
        buffers = BUFFERS if "buffers" in self.parts else 0
        return self.rows_height + 96 + buffers + ring * QUEUES


def _awaited_by(events: Sequence[Event]) -> dict[int, int]:
    """A frame that is jumped to for the first time is awaited by the one that jumps."""
    makers = {event["f"]: event["by"] for event in events if event["e"] == "frame"}
    found: dict[int, int] = {}
    for event in events:
        if event["e"] == "jump":
            found.setdefault(event["to"], event["from"])
        elif event["e"] == "start":
            found.setdefault(event["f"], makers.get(event["f"], 0))
    return {**makers, **found}


@dataclass
class Drawing:
    """All steps of a run: the elements by id, and for each step what they look like."""

    name: str  # of the figure; the ids in the page begin with it
    title: str
    desc: str
    still: int  # the step that is shown in print and without JavaScript
    layout: Layout
    height: int = 0
    y: int = 0  # the end of what was drawn of the last step
    steps: list[dict[str, Values]] = field(default_factory=list)
    captions: list[tuple[str, str]] = field(default_factory=list)  # what is said, and asked: HTML
    tags: dict[str, tuple[str, str]] = field(default_factory=dict)  # id -> tag, parent's id
    _tokens: dict[int, int] = field(default_factory=dict)  # what was drawn last, as which element

    def add(self, state: State, event: Event, said: str = "", asked: str = "") -> None:
        """Draws what holds after `event`, and what the event itself is about."""
        self.captions.append((said, asked))
        self.steps.append(defaultdict(lambda: HIDDEN))
        self.y = self.layout.rows_height
        for frame in state.frames.values():
            if frame.number in self.layout.places:
                self._draw_frame(state, frame)
        if "stack" in self.layout.parts:
            self._draw_stack(state)
        if "buffers" in self.layout.parts:
            self._draw_buffers(state)
        if "thread" in self.layout.parts:
            self._draw_threads(state)
        if "rings" in self.layout.parts:
            shown = self._draw_rings(state)
            for number, token in zip(self._numbers(shown), shown, strict=True):
                self._draw_token(f"token-{number}", *token)
            self._draw_lead(state, event)
        self.height = max(self.height, self.y)

    def _numbers(self, shown: Shown) -> list[int]:
        """Of the elements: the same one for all of a request's way, so that it moves."""
        keys = [_identity(each) for each, *_ in shown]
        for key in keys:
            used = self._tokens.values()
            self._tokens.setdefault(key, next(n for n in itertools.count() if n not in used))
        self._tokens = {key: self._tokens[key] for key in keys}
        return [self._tokens[key] for key in keys]

    def _draw_frame(self, state: State, frame: Frame) -> None:
        row, column = self.layout.places[frame.number]
        x, y = self.layout.corner(frame.number)
        id_ = f"frame-{row}-{column}"
        group = self.group(id_, x, y)
        ground, words = LOOKS[frame.state]
        if frame.state == "waiting" and self.layout.lines:
            words += f", line {frame.at.rpartition(':')[2]}"
        self.box(f"{id_}-box", group, ground, 0, 0, self.layout.width, BOX_HEIGHT)
        name = short(frame.fn, (self.layout.width - 10) // 13)
        self.word(f"{id_}-name", group, f"strong{_on(ground)}", 12, 30, name)
        words = short(f"f{frame.number} {words}", LINE_MAX)
        self.word(f"{id_}-state", group, f"small{_on(ground)}", 12, 58, words)
        held = self._held(state, frame.number)
        if "rings" not in self.layout.parts and frame.awaited_by in self.layout.places:
            held = f"continuation f{frame.awaited_by}"
        if held:
            self.box(f"{id_}-chip", group, "queue", 12, 68, self.layout.width - 24, 28)
            if len(held) > (self.layout.width - 32) // 12:
                held = re.sub(r"\+\w+", "", held)
            self.word(f"{id_}-op", group, "mono", 18, 89, held)
        above = self.layout.places.get(frame.awaited_by, (-1, -1))
        if frame.awaited_by in state.frames and above[0] == row and above[1] < column:
            self.wire(f"{id_}-next", "quiet", f"M{x} {y + 24}H{x - GUTTER + 4}")

    def _held(self, state: State, number: int) -> str:
        """What of a request lies in the frame, or in one that it is drawn for: the operation that
        user_data points at, or else the buffer that the kernel may still use."""
        for ring in state.rings.values():
            for each in (*ring.flight, *ring.queue, *ring.done, *ring.copied):
                if self.layout.drawn(each.frame) == number:
                    return f"{each.user} {short_op(each.request.op)}"
        buffers = (each for each in state.in_flight() if frame_in(each.addr) == number)
        return next((f"{each.addr} buffer" for each in buffers), "")

    def _draw_stack(self, state: State) -> None:
        """The functions of coroutines on the thread's stack: what was called lies on its caller."""
        y = self.y + 46
        stack = state.stacks.get(state.thread, [])
        self.word("stack-word", "", "small", 14, y - 12, "the thread's stack")
        self.box("stack-main", "", "queue", 14, y, 76, 48)
        self.word("stack-main-name", "", "small middle", 52, y + 31, "main")
        for position, number in enumerate(stack[:STACK]):
            x = 96 + position * 122
            ground = "lit" if number == state.running and position == len(stack) - 1 else "wait"
            self.box(f"stack-{position}", "", ground, x, y, 116, 48)
            name = short(state.name(number), SLOT_MAX)
            words = f"small middle{_on(ground)}"
            self.word(f"stack-{position}-name", "", words, x + 58, y + 31, name)
        self.y += 112

    def _draw_buffers(self, state: State) -> None:
        self.word("buffer-word", "", "small", 14, self.y + 40, "buffers")
        for place, (number, where) in enumerate(sorted(state.buffers.items())[:BUFFERS_MAX]):
            ground, at = ("lit", "lent to you") if where == "lent" else ("queue", "in the ring")
            id_ = self.group(f"buffer-{place}", 110 + place * 152, self.y + 6)
            self.box(f"{id_}-box", id_, ground, 0, 0, 144, 54)
            self.word(f"{id_}-name", id_, f"small{_on(ground)}", 12, 24, f"id {number}")
            self.word(f"{id_}-at", id_, f"small{_on(ground)}", 12, 46, at)
        self.y += BUFFERS

    def _draw_threads(self, state: State) -> None:
        """The one that acts; of several rings, the first two threads."""
        y = self.y
        several = len(self.layout.rings) > 1
        threads = self.layout.threads if several else (state.thread,)
        for place, (thread, x) in enumerate(zip(threads, QUEUE_X.values(), strict=False)):
            who = f"thread {thread} is" if several else "the thread is"
            where = short(_where(state, thread, bool(self.layout.places)), THREAD_MAX)
            self.word(f"thread-{place}-word", "", "small", x, y + 34, who)
            self.word(f"thread-{place}", "", "strong lit-word", x, y + 64, where)
        self.y += 76

    def _draw_rings(self, state: State) -> Shown:
        """The queues of each ring, and what is in flight; the tokens are left to the caller."""
        shown: Shown = []
        for number in range(len(self.layout.rings)):
            shown += self._draw_queues(state.rings.get(number, Ring(number)))
        line = self.layout.queues_y(len(self.layout.rings))
        self.y = line + 44 + SLOT[1]
        self.box("kernel", "", "kernel", 0, line, WIDTH, self.y - line)
        ends = {"x1": 0, "y1": line, "x2": WIDTH, "y2": line}
        self.put("kernel-line", "line", "", {"class": "kernel-line", **ends})
        self.word("kernel-word", "", "small", 14, line + 30, "kernel: in flight")
        times = f"{many(state.counts['enter'], 'enter')} so far"
        self.word("kernel-enters", "", "small end", 706, line + 30, times)
        flight = [each for ring in state.rings.values() for each in ring.flight]
        return shown + self._in_a_row("kernel", flight, line + 42)

    def _draw_queues(self, ring: Ring) -> Shown:
        y = self.layout.queues_y(ring.number)
        of = f" of ring {ring.number}" if len(self.layout.rings) > 1 else ""
        cq_tail = ring.cq_head + len(ring.done)
        indices = {"sq": (ring.sq_head, ring.sq_tail), "cq": (ring.cq_head, cq_tail)}
        for queue, x in QUEUE_X.items():
            id_ = f"{queue}-{ring.number}"
            self.word(f"{id_}-word", "", "strong", x, y + 24, queue.upper() + of)
            if "indices" in self.layout.parts:
                said = "head {}, tail {}".format(*indices[queue])
                self.word(f"{id_}-indices", "", "small end", x + SLOTS * SLOT[0], y + 24, said)
            for slot in range(self.layout.rings[ring.number][queue]):
                self.box(f"{id_}-{slot}", "", "queue", x + slot * SLOT[0], y + 34, *SLOT)
        shown = self._in_a_row(f"sq-{ring.number}", ring.queue, y + 38)
        if "indices" in self.layout.parts:  # what the kernel may not take yet
            published = ring.sq_tail - ring.sq_head
            shown = [(*at, "lit" if n < published else "box") for n, (*at, _) in enumerate(shown)]
        shown += self._in_a_row(f"cq-{ring.number}", ring.done, y + 38)
        if ring.copied and len(self.layout.rings) == 1:
            self.word("copied-word", "", "small end", 362, y - 20, "copied out")
            shown += self._in_a_row("copied", ring.copied, y - 52)
        return shown

    def _in_a_row(self, id_: str, row: Sequence[Entry], y: int) -> Shown:
        """The last ones, as many as there is room for; at the right end, how many more."""
        room, x, width, right, ground = ROOM[id_.partition("-")[0]]
        if len(row) > room:
            more = f"and {len(row) - room} more"
            self.word(f"{id_}-more", "", "small end", right, y - 12, more)
        return [(each, x + place * width, y, ground) for place, each in enumerate(row[-room:])]

    def _draw_token(self, id_: str, token: Entry, x: int, y: int, ground: str) -> None:
        self.group(id_, x, y)
        self.box(f"{id_}-box", id_, ground, 0, 0, SLOT[0] - 8, SLOT[1] - 8)
        what = result_words(token) if isinstance(token, Completion) else short_op(token.request.op)
        words, middle = f"small middle{_on(ground)}", SLOT[0] // 2 - 4
        self.word(f"{id_}-what", id_, words, middle, 21, short(what, SLOT_MAX))
        self.word(f"{id_}-whose", id_, words, middle, 44, _whose(token))

    def _draw_lead(self, state: State, event: Event) -> None:
        """From the entry that this event is about to the operation that its user_data points at."""
        number = frame_in(event.get("user", "")) or event.get("f", 0)
        drawn = self.layout.drawn(number)
        if drawn not in state.frames or number not in state.frames:
            return
        ring = next(iter(state.rings.values()), Ring(0))  # of several none leads into a frame
        rows: dict[str, tuple[Sequence[Entry], str, int, int]] = {
            "sqe": (ring.queue, "sq", 34, -6),
            "cqe": (ring.done, "cq", 34, -6),
            "resume": (ring.copied, "cq", -52, -72),
        }
        row, queue, edge, bus = rows.get(event["e"], ((), "sq", 0, 0))
        slots = [slot for slot, each in enumerate(row[-SLOTS:]) if each.frame == number]
        if not slots:
            return
        x, y = QUEUE_X[queue] + slots[-1] * SLOT[0] + SLOT[0] // 2, self.layout.queues_y(0)
        left, top = self.layout.corner(drawn)
        self.wire("lead", "lit", f"M{x} {y + edge}V{y + bus}H{left - 14}V{top + 82}H{left + 8}")

    def put(self, id_: str, tag: str, parent: str, values: Mapping[str, Any]) -> None:
        self.tags[id_] = (tag, parent)
        self.steps[-1][id_] = {key: str(value) for key, value in values.items()}

    def group(self, id_: str, x: int, y: int) -> str:
        self.put(id_, "g", "", {"style": f"transform:translate({x}px,{y}px)"})
        return id_

    def box(self, id_: str, parent: str, class_: str, x: int, y: int, w: int, h: int) -> None:
        size = {"width": w, "height": h}
        self.put(id_, "rect", parent, {"class": class_, "x": x, "y": y, **size})

    def word(self, id_: str, parent: str, class_: str, x: int, y: int, text: str) -> None:
        self.put(id_, "text", parent, {"class": class_, "x": x, "y": y, "": text})

    def wire(self, id_: str, class_: str, path: str) -> None:
        values = {"class": f"wire {class_}", "d": path, "marker-end": f"url(#{self.name}-arrow)"}
        self.put(id_, "path", "", values)

    def _ids(self) -> list[str]:
        def layer(id_: str) -> tuple[int, bool]:
            return LAYERS.index(id_.partition("-")[0]), id_.endswith("-next")

        return sorted(self.tags, key=layer)

    def svg(self, step: int) -> str:
        """The drawing at a step, from 1."""
        name, looks = self.name, self.steps[step - 1]
        inner = "".join(self._element(id_, looks) for id_ in self._ids() if not self.tags[id_][1])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc" '
            f'class="fig">\n<title id="{name}-title">{html.escape(self.title)}</title>\n'
            f'<desc id="{name}-desc">{html.escape(self.desc)}</desc>\n<defs><marker '
            f'id="{name}-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="13" '
            'markerHeight="13" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0L10 5L0 10z"/></marker></defs>\n{inner}</svg>'
        )

    def _element(self, id_: str, looks: Mapping[str, Values]) -> str:
        attributes = dict(looks[id_])
        inner = html.escape(attributes.pop("", ""), quote=False)
        children = [child for child, (_, parent) in self.tags.items() if parent == id_]
        inner += "".join(self._element(child, looks) for child in children)
        words = "".join(f' {key}="{html.escape(attributes[key])}"' for key in sorted(attributes))
        tag, _ = self.tags[id_]
        return f'<{tag} id="{self.name}-{id_}"{words}>{inner}</{tag}>\n'

    def patches(self) -> list[dict[str, dict[str, str | None]]]:
        """For each step what differs from the one before; the first one differs from nothing."""
        ids, found = self._ids(), []
        for before, looks in itertools.pairwise([defaultdict(dict), *self.steps]):
            patch = {}
            for id_ in ids:
                full = dict.fromkeys(before[id_]) | looks[id_]  # None: it has gone
                change = {k: full[k] for k in sorted(full) if full[k] != before[id_].get(k)}
                if change:
                    patch[id_] = change
            found.append(patch)
        return found


def _on(ground: str) -> str:
    """The class that words on it have besides their own."""
    return f" in-{ground}" if ground in ("lit", "wait") else ""


def _where(state: State, thread: int, coroutines: bool) -> str:
    if any(ring.inside == thread for ring in state.rings.values()):
        return "in io_uring_enter"
    if state.jumps_to and thread == state.thread:
        return f"jumping to {state.name(state.jumps_to)}"
    if runs := state.runs_in(thread):
        return f"in {state.name(runs)}"
    if state.stacks.get(thread):
        return "in await_suspend"
    return "in no coroutine" if coroutines else "in the program"


def _identity(token: Entry) -> int:
    """A request's last completion is drawn as the same thing, any other as one of its own."""
    return token.step if "MORE" in token.flags else token.request.step


def short_op(op: str) -> str:
    """Eight capitals are all that a token has room for: POLL, CANCEL, TIMEOUT, ACCEPT, …"""
    return short(re.sub("^(ASYNC|LINK)_|_(ADD|BUFFERS|FIXED|RING)$", "", op), 8)


def result_words(done: Completion) -> str:
    if done.res < 0:
        name = f"-{errno.errorcode.get(-done.res, -done.res)}"
        return "canceled" if name == "-ECANCELED" else name
    if done.buffer is not None:
        return f"{done.res}, id {done.buffer}"
    return f"res {done.res}" if done.res < WORD_MAX else str(done.res)


def _whose(token: Entry) -> str:
    for flag in ("MORE", "NOTIF"):
        if flag in token.flags:
            return f"F_{flag}"
    if token.frame and len(token.user) > USER_MAX:
        return token.user.partition("+")[0]
    if token.frame or token.request.fd < 0:
        return short(token.user, SLOT_MAX)
    return f"fd {token.request.fd}"


def short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
