# SPDX-License-Identifier: MIT
"""Draws the state of a run: frames above, the queues below them, and the kernel below its line.

Every step of a run is drawn with the same elements, by id: what a step does not have is hidden. So
two steps differ by attributes and words alone, which is all that the player has to change.
"""

from __future__ import annotations

import errno
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from course_tool.trace.events import Event, frame_in
from course_tool.trace.model import Completion, Frame, Request, Ring, State

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

# By the events that ask for them.
PARTS = {"ring": "rings", "buffers": "buffers", "store": "indices"}
Values = dict[str, str]  # attributes; "" is the text
Shown = list[tuple[Request | Completion, float, float, str]]  # a token, where, on which ground


@dataclass
class Picture:
    """Elements by id, in the order in which they are drawn."""

    height: int = 0
    tags: dict[str, tuple[str, str]] = field(default_factory=dict)  # id -> tag, parent's id
    values: dict[str, Values] = field(default_factory=dict)

    def put(self, id_: str, tag: str, parent: str = "", **values: Any) -> None:
        text = values.pop("text", None)
        named = {key.rstrip("_").replace("_", "-"): str(value) for key, value in values.items()}
        self.tags[id_] = (tag, parent)
        self.values[id_] = named if text is None else {**named, "": str(text)}

    def group(self, id_: str, x: float, y: float) -> str:
        self.put(id_, "g", style=f"transform:translate({x:g}px,{y:g}px)")
        return id_

    def box(self, id_: str, parent: str, class_: str, x: float, y: float, *size: float) -> None:
        values = {"x": x, "y": y, "width": size[0], "height": size[1]}
        self.put(id_, "rect", parent, class_=class_, **{k: f"{v:g}" for k, v in values.items()})

    def word(self, id_: str, parent: str, class_: str, x: float, y: float, text: str) -> None:
        named = {"class_": class_} if class_ else {}
        self.put(id_, "text", parent, x=f"{x:g}", y=f"{y:g}", text=text, **named)

    def wire(self, id_: str, class_: str, path: str) -> None:
        self.put(id_, "path", class_=f"wire {class_}".strip(), d=path, marker_end="url(#arrow)")


@dataclass(frozen=True)
class Layout:
    """Where each frame stands, for all of its life; and what else is drawn."""

    places: Mapping[int, tuple[int, int]]  # frame -> row, column
    stands_for: Mapping[int, int]  # any frame -> the one that is drawn for it
    rows: int
    columns: int
    parts: tuple[str, ...]
    lines: bool  # say at which line a frame waits
    rings: Sequence[Mapping[str, int]]  # of those that are drawn, the slots of each queue
    threads: Sequence[int]

    @property
    def width(self) -> int:
        """Of a frame."""
        columns = max(2, self.columns)
        return (WIDTH - 2 * MARGIN - (columns - 1) * GUTTER) // columns

    def corner(self, place: tuple[int, int]) -> tuple[int, int]:
        return MARGIN + place[1] * (self.width + GUTTER), 6 + place[0] * ROW

    def queues_y(self, ring: int) -> int:
        """The top of a ring's queues. Above the first are the thread and what it has copied out."""
        buffers = BUFFERS if "buffers" in self.parts else 0
        return self.rows * ROW + 96 + buffers + ring * QUEUES


def lay_out(
    events: Sequence[Event], parts: Sequence[str] = (), hidden: Iterable[str] = (),
    lines: bool = True,
) -> Layout:  # fmt: skip
    """A frame stands to the right of the one that awaits it, or else of the one that has made it,
    in the first row that has room."""
    awaited_by = _awaited_by(events)
    lives = _lives(events)
    hide = frozenset(hidden)
    shown = {event["f"] for event in events if event["e"] == "frame" and event["fn"] not in hide}
    places: dict[int, tuple[int, int]] = {}
    taken: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def place(number: int) -> None:
        above = awaited_by.get(number, 0)
        if above > number:
            place(above)
        parent = places.get(_shown(above, awaited_by, places))
        if number in places or number not in shown:
            return
        column = min(parent[1] + 1, COLUMNS_MAX - 1) if parent else 0
        begin, end = lives[number]
        for row in range(parent[0] if parent else 0, ROWS_MAX):
            others = taken.setdefault((row, column), [])
            if all(end < other[0] or begin > other[1] for other in others):
                others.append((begin, end))
                places[number] = (row, column)
                break

    for number in sorted(awaited_by):
        place(number)
    rows = max((row + 1 for row, _ in places.values()), default=0)
    columns = max((column + 1 for _, column in places.values()), default=0)
    kinds = {event["e"] for event in events}
    found = ["thread"] + [part for kind, part in PARTS.items() if kind in kinds]
    drawn = {number: _shown(number, awaited_by, places) for number in awaited_by}
    rings = [
        {queue: min(SLOTS, event[queue]) for queue in QUEUE_X}
        for event in events if event["e"] == "ring"
    ]  # fmt: skip
    threads = sorted({event["th"] for event in events})
    return Layout(
        places, drawn, rows, columns, tuple(parts or found), lines, rings[:RINGS_MAX], threads
    )


def _shown(
    number: int, awaited_by: Mapping[int, int], places: Mapping[int, tuple[int, int]]
) -> int:
    """The frame, or the nearest above it that is drawn; or 0."""
    while number and number not in places:
        number = awaited_by.get(number, 0)
    return number


def _awaited_by(events: Sequence[Event]) -> dict[int, int]:
    """A frame that is jumped to for the first time is awaited by the one that jumps."""
    found: dict[int, int] = {}
    makers = {event["f"]: event["by"] for event in events if event["e"] == "frame"}
    for event in events:
        if event["e"] == "jump":
            found.setdefault(event["to"], event["from"])
        elif event["e"] == "start":
            found.setdefault(event["f"], makers.get(event["f"], 0))
    return {**makers, **found}


def _lives(events: Sequence[Event]) -> dict[int, tuple[int, int]]:
    lives: dict[int, tuple[int, int]] = {}
    for event in events:
        if event["e"] == "frame":
            lives[event["f"]] = (event["n"], len(events) + 1)
        elif event["e"] == "destroy" and event["f"] in lives:
            lives[event["f"]] = (lives[event["f"]][0], event["n"])
    return lives


def draw(state: State, event: Event, layout: Layout, tokens: Tokens) -> Picture:
    """What holds after `event`, and what the event itself is about."""
    picture = Picture()
    for frame in state.frames.values():
        if frame.number in layout.places:
            _draw_frame(picture, state, frame, layout)
    y = layout.rows * ROW
    if "stack" in layout.parts:
        y = _draw_stack(picture, state, y)
    if "buffers" in layout.parts:
        _draw_buffers(picture, state, layout)
        y += BUFFERS
    if "thread" in layout.parts:
        _draw_threads(picture, state, y, layout)
        y += 76
    picture.height = y
    if "rings" in layout.parts:
        _draw_rings(picture, state, layout, tokens)
        _draw_lead(picture, state, event, layout)
    return picture


_CLASSES = {"made": "box", "running": "lit", "waiting": "wait", "ended": "box"}


def _draw_frame(picture: Picture, state: State, frame: Frame, layout: Layout) -> None:
    place = layout.places[frame.number]
    id_ = f"frame-{place[0]}-{place[1]}"
    x, y = layout.corner(place)
    group = picture.group(id_, x, y)
    ground = {"waiting": " in-wait", "running": " in-lit"}.get(frame.state, "")
    picture.box(f"{id_}-box", group, _CLASSES[frame.state], 0, 0, layout.width, BOX_HEIGHT)
    name = short(frame.fn, (layout.width - 10) // 13)
    picture.word(f"{id_}-name", group, f"strong{ground}", 12, 30, name)
    picture.word(f"{id_}-state", group, f"small{ground}", 12, 58, _frame_words(frame, layout.lines))
    held = _held(state, frame.number, layout.stands_for)
    if "rings" not in layout.parts and frame.awaited_by in layout.places:
        held = f"continuation f{frame.awaited_by}"
    if held:
        picture.box(f"{id_}-chip", group, "queue", 12, 68, layout.width - 24, 28)
        if len(held) > (layout.width - 32) // 12:
            held = re.sub(r"\+\w+", "", held)
        picture.word(f"{id_}-op", group, "mono", 18, 89, held)
    above = layout.places.get(frame.awaited_by)
    if above and above[0] == place[0] and above[1] < place[1] and frame.awaited_by in state.frames:
        picture.wire(f"{id_}-next", "quiet", f"M{x} {y + 24}H{x - GUTTER + 4}")


def _held(state: State, number: int, stands_for: Mapping[int, int]) -> str:
    """What of a request lies in the frame, or in one that it is drawn for: the operation that its
    user_data points at, or else the buffer that the kernel may still use."""
    for ring in state.rings.values():
        for each in (*ring.flight, *ring.queue, *ring.done, *ring.copied):
            if stands_for.get(frame_in(each.user)) == number:
                request = each if isinstance(each, Request) else each.request
                return f"{each.user} {short_op(request.op) if request else ''}"
    buffers = (each for each in state.in_flight() if frame_in(each.addr) == number)
    return next((f"{each.addr} buffer" for each in buffers), "")


def _frame_words(frame: Frame, lines: bool) -> str:
    line = f", line {frame.at.rpartition(':')[2]}" if lines else ""
    words = {
        "made": "not started",
        "running": "runs",
        "waiting": f"waits{line}",
        "ended": "at its end",
    }[frame.state]
    return short(f"f{frame.number} {words}", LINE_MAX)


def _draw_stack(picture: Picture, state: State, y: int) -> int:
    """The functions of coroutines on the thread's stack: what was called lies on its caller."""
    stack = state.stacks.get(state.thread, [])
    picture.word("stack-word", "", "small", 14, y + 34, "the thread's stack")
    picture.box("stack-main", "", "queue", 14, y + 46, 76, 48)
    picture.word("stack-main-name", "", "small middle", 52, y + 77, "main")
    for position, number in enumerate(stack[:STACK]):
        x = 96 + position * 122
        ground = "lit" if number == state.running and position == len(stack) - 1 else "wait"
        picture.box(f"stack-{position}", "", ground, x, y + 46, 116, 48)
        name = short(state.name(number), SLOT_MAX)
        words = f"small middle in-{ground}"
        picture.word(f"stack-{position}-name", "", words, x + 58, y + 77, name)
    return y + 112


def _draw_buffers(picture: Picture, state: State, layout: Layout) -> None:
    y = layout.rows * ROW
    picture.word("buffer-word", "", "small", 14, y + 40, "buffers")
    for place, (number, where) in enumerate(sorted(state.buffers.items())[:BUFFERS_MAX]):
        group = picture.group(f"buffer-{place}", 110 + place * 152, y + 6)
        lent = where == "lent"
        picture.box(f"buffer-{place}-box", group, "lit" if lent else "queue", 0, 0, 144, 54)
        words = "small in-lit" if lent else "small"
        picture.word(f"buffer-{place}-name", group, words, 12, 24, f"id {number}")
        at = "lent to you" if lent else "in the ring"
        picture.word(f"buffer-{place}-at", group, words, 12, 46, at)


def _draw_threads(picture: Picture, state: State, y: int, layout: Layout) -> None:
    """The one that acts; of several rings, the first two threads."""
    several = len(layout.rings) > 1
    threads = layout.threads if several else (state.thread,)
    for place, (thread, x) in enumerate(zip(threads, QUEUE_X.values(), strict=False)):
        who = f"thread {thread} is" if several else "the thread is"
        where = short(_where(state, thread, bool(layout.rows)), THREAD_MAX)
        picture.word(f"thread-{place}-word", "", "small", x, y + 34, who)
        picture.word(f"thread-{place}", "", "strong lit-word", x, y + 64, where)


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


def _draw_rings(picture: Picture, state: State, layout: Layout, tokens: Tokens) -> None:
    """The queues of each ring, and what is in flight."""
    shown: Shown = []
    for number in range(len(layout.rings)):
        shown += _draw_queues(picture, state.rings.get(number, Ring(number)), layout)
    line = layout.queues_y(len(layout.rings))
    picture.height = line + 44 + SLOT[1]
    picture.box("kernel", "", "kernel", 0, line, WIDTH, picture.height - line)
    picture.put("kernel-line", "line", class_="kernel-line", x1=0, y1=line, x2=WIDTH, y2=line)
    picture.word("kernel-word", "", "small", 14, line + 30, "kernel: in flight")
    times = f"{state.enters} enter{'' if state.enters == 1 else 's'} so far"
    picture.word("kernel-enters", "", "small end", 706, line + 30, times)
    flight = [each for ring in state.rings.values() for each in ring.flight]
    shown += _in_a_row(picture, "kernel", flight, (14, line + 42), 480)
    numbers = tokens.of([each for each, *_ in shown])
    for number, (each, x, at, ground) in zip(numbers, shown, strict=True):
        _draw_token(picture, each, f"token-{number}", x, at, ground)


def _draw_queues(picture: Picture, ring: Ring, layout: Layout) -> Shown:
    y = layout.queues_y(ring.number)
    of = f" of ring {ring.number}" if len(layout.rings) > 1 else ""
    indices = {"sq": (ring.sq_head, ring.sq_tail), "cq": (ring.cq_head, ring.cq_tail)}
    for queue, x in QUEUE_X.items():
        id_ = f"{queue}-{ring.number}"
        picture.word(f"{id_}-word", "", "strong", x, y + 24, queue.upper() + of)
        if "indices" in layout.parts:
            said = "head {}, tail {}".format(*indices[queue])
            picture.word(f"{id_}-indices", "", "small end", x + SLOTS * SLOT[0], y + 24, said)
        for slot in range(layout.rings[ring.number][queue]):
            picture.box(f"{id_}-{slot}", "", "queue", x + slot * SLOT[0], y + 34, *SLOT)
    shown = _in_a_row(picture, f"sq-{ring.number}", ring.queue, (QUEUE_X["sq"] + 4, y + 38), 350)
    if "indices" in layout.parts:  # what the kernel may not take yet
        published = ring.sq_tail - ring.sq_head
        shown = [(*each, "lit" if i < published else "box") for i, (*each, _) in enumerate(shown)]
    shown += _in_a_row(picture, f"cq-{ring.number}", ring.done, (QUEUE_X["cq"] + 4, y + 38), 600)
    if ring.copied and len(layout.rings) == 1:
        picture.word("copied-word", "", "small end", 362, y - 20, "copied out")
        shown += _in_a_row(picture, "copied", ring.copied, (QUEUE_X["cq"] + 4, y - 52), 706)
    return shown


def _in_a_row(
    picture: Picture, id_: str, row: Sequence[Request | Completion], at: tuple[int, int], right: int
) -> Shown:
    """The last ones, as many as there is room for; at the right end, how many more there are."""
    room, gap = (FLIGHTS, 4) if id_ == "kernel" else (SLOTS, 0)
    if len(row) > room:
        more = f"and {len(row) - room} more"
        picture.word(f"{id_}-more", "", "small end", right, at[1] - 12, more)
    ground = {"kernel": "wait", "copied": "box"}.get(id_, "lit")
    return [
        (each, at[0] + place * (SLOT[0] + gap), at[1], ground)
        for place, each in enumerate(row[-room:])
    ]


class Tokens:
    """Which element stands for which request: the same for all of its way, so that it moves."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of(self, shown: Sequence[Request | Completion]) -> list[int]:
        keys = [_identity(each) for each in shown]
        for key in keys:
            if key not in self._numbers:
                used = set(self._numbers.values())
                self._numbers[key] = min(set(range(len(used) + 1)) - used)
        numbers = [self._numbers[key] for key in keys]
        self._numbers = {key: self._numbers[key] for key in keys}
        return numbers


def _identity(token: Request | Completion) -> int:
    """A request's last completion is drawn as the same thing, any other as one of its own."""
    if isinstance(token, Request) or token.request is None or "MORE" in token.flags:
        return token.step
    return token.request.step


def _draw_token(
    picture: Picture, token: Request | Completion, id_: str, x: float, y: float, ground: str
) -> None:
    group = picture.group(id_, x, y)
    words = f"small middle in-{ground}" if ground != "box" else "small middle"
    picture.box(f"{id_}-box", group, ground, 0, 0, SLOT[0] - 8, SLOT[1] - 8)
    what = short_op(token.op) if isinstance(token, Request) else result_words(token)
    middle = SLOT[0] / 2 - 4
    picture.word(f"{id_}-what", group, words, middle, 21, short(what, SLOT_MAX))
    picture.word(f"{id_}-whose", group, words, middle, 44, _whose(token))


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


def _whose(token: Request | Completion) -> str:
    request = token if isinstance(token, Request) else token.request
    for flag in ("MORE", "NOTIF"):
        if isinstance(token, Completion) and flag in token.flags:
            return f"F_{flag}"
    if frame_in(token.user) and len(token.user) > USER_MAX:
        return token.user.partition("+")[0]
    if frame_in(token.user) or request is None or request.fd < 0:
        return short(token.user, SLOT_MAX)
    return f"fd {request.fd}"


def _draw_lead(picture: Picture, state: State, event: Event, layout: Layout) -> None:
    """From the entry that this event is about to the operation that its user_data points at."""
    number = frame_in(event.get("user", "")) or event.get("f", 0)
    drawn = layout.stands_for.get(number, 0)
    if drawn not in state.frames or number not in state.frames:
        return
    ring = next(iter(state.rings.values()), Ring(0))  # of several none leads into a frame
    rows: dict[str, tuple[str, Sequence[Request | Completion]]] = {
        "sqe": ("sq", ring.queue), "cqe": ("cq", ring.done), "resume": ("copied", ring.copied)
    }  # fmt: skip
    where, row = rows.get(event["e"], ("", ()))
    slots = [slot for slot, each in enumerate(row[-SLOTS:]) if frame_in(each.user) == number]
    if not slots:
        return
    x = QUEUE_X["sq" if where == "sq" else "cq"] + slots[-1] * SLOT[0] + SLOT[0] // 2
    y = layout.queues_y(0) + (34 if where != "copied" else -52)
    bus = layout.queues_y(0) + (-6 if where != "copied" else -72)
    left, top = layout.corner(layout.places[drawn])
    picture.wire("lead", "lit", f"M{x} {y}V{bus}H{left - 14}V{top + 82}H{left + 8}")


def short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


# ---- all steps as one drawing ----


@dataclass(frozen=True)
class Drawing:
    """The elements of all steps, and for each step what they look like."""

    width: int
    height: int
    tags: Mapping[str, tuple[str, str]]
    steps: Sequence[Mapping[str, Values]]

    def svg(self, step: int, name: str, title: str, desc: str) -> str:
        """The drawing at a step (from 0), its ids prefixed by the figure's name."""
        inner = "".join(self._element(id_, step, name) for id_ in self._children(""))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc" '
            f'class="fig">\n<title id="{name}-title">{html.escape(title)}</title>\n'
            f'<desc id="{name}-desc">{html.escape(desc)}</desc>\n<defs><marker id="{name}-arrow" '
            'viewBox="0 0 10 10" refX="9" refY="5" markerWidth="13" markerHeight="13" '
            'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>'
            f"\n{inner}</svg>"
        )

    def patches(self, name: str) -> list[dict[str, dict[str, str | None]]]:
        """For each step what differs from the one before; the first one differs from nothing."""
        found: list[dict[str, dict[str, str | None]]] = []
        before: Mapping[str, Values] = {}
        for step in self.steps:
            patch = {}
            for id_, values in step.items():
                old = before.get(id_, {})
                change = {k: v for k, v in values.items() if old.get(k) != v}
                gone = dict.fromkeys(old.keys() - values.keys())
                if change or gone:
                    full = {**change, **gone}
                    patch[id_] = {k: _prefixed(v, name) for k, v in sorted(full.items())}
            found.append(patch)
            before = step
        return found

    def _children(self, parent: str) -> list[str]:
        return [id_ for id_, (_, above) in self.tags.items() if above == parent]

    def _element(self, id_: str, step: int, name: str) -> str:
        tag = self.tags[id_][0]
        values = self.steps[step][id_]
        words = "".join(
            f' {key}="{html.escape(_prefixed(value, name) or "")}"'
            for key, value in sorted(values.items()) if key
        )  # fmt: skip
        inner = html.escape(values.get("", ""), quote=False)
        inner += "".join(self._element(child, step, name) for child in self._children(id_))
        return f'<{tag} id="{name}-{id_}"{words}>{inner}</{tag}>\n'


HIDDEN: Values = {"display": "none"}
# Grounds first, then what stands on them, then wires: a later element lies on an earlier one.
_LAYERS = (
    "kernel", "sq", "cq", "stack", "buffer", "frame", "thread", "copied", "lead", "token"
)  # fmt: skip


def _prefixed(value: str | None, name: str) -> str | None:
    return value.replace("url(#", f"url(#{name}-") if value else value


def combine(pictures: Sequence[Picture]) -> Drawing:
    tags: dict[str, tuple[str, str]] = {}
    for picture in pictures:
        tags.update(picture.tags)

    def layer(id_: str) -> tuple[int, bool]:
        kind = id_.partition("-")[0]
        return _LAYERS.index(kind), id_.endswith("-next")

    ordered = {id_: tags[id_] for id_ in sorted(tags, key=layer)}
    height = max(picture.height for picture in pictures)
    steps = [{id_: each.values.get(id_, HIDDEN) for id_ in ordered} for each in pictures]
    return Drawing(WIDTH, height, ordered, steps)
