# SPDX-License-Identifier: MIT
"""What a recording says, replayed event by event: frames, stacks, rings, and what must not happen.

The rules that it checks are the runtime's (docs/reference/rules.md) and the kernel's own. A
violation names the step at which it shows, in one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from course_tool.trace.events import Event, frame_in

# Two of these in flight with one user_data cannot be told apart. Of others, such as a cancel, the
# answer is often not heard at all.
_RECEIVES = frozenset({"RECV", "RECVMSG", "READ", "READV", "READ_FIXED"})
_SENDS = frozenset({"SEND", "SENDMSG", "SEND_ZC", "WRITE", "WRITEV", "WRITE_FIXED"})
_HEARD = _RECEIVES | _SENDS | {"ACCEPT", "CONNECT", "TIMEOUT", "POLL_ADD", "SPLICE"}
_NOTIFIES = frozenset({"SEND_ZC", "SENDMSG_ZC"})  # even if they were cut off, and said no F_MORE
SUBMITS_MAX = 3  # for nothing, one after the other
_DONE = (0, -2)  # what a cancel of everything returns: 0, or ENOENT: nothing was in flight


@dataclass(frozen=True)
class Violation:
    step: int
    sentence: str

    def as_sentence(self) -> str:
        return f"Step {self.step}: {self.sentence}."


@dataclass
class Frame:
    number: int
    fn: str
    state: str = "made"  # then running, waiting, ended; or gone
    at: str = ""  # file:line, where it waits or went on
    awaited_by: int = 0  # the frame that jumped into it


@dataclass(frozen=True)
class Entry:
    """Of one of a ring's queues."""

    step: int
    user: str

    @property
    def frame(self) -> int:
        """The one that user_data leads into, or 0."""
        return frame_in(self.user)


@dataclass(frozen=True)
class Request(Entry):
    op: str = ""  # this and what follows are empty if no more is known than its completion
    fd: int = -1
    length: int = 0
    flags: Sequence[str] = ()
    addr: str = ""

    @property
    def request(self) -> Request:
        return self

    @property
    def is_silent(self) -> bool:
        return "CQE_SKIP" in self.flags

    def words(self) -> str:
        """Such as: recv on fd 7."""
        return f"{self.op.lower()}{f' on fd {self.fd}' if self.fd >= 0 else ''}"

    def one(self) -> str:
        return f"{'an' if self.op[0] in 'AEIOU' else 'a'} {self.words()}"


@dataclass(frozen=True)
class Completion(Entry):
    res: int
    flags: Sequence[str]
    buffer: int | None
    request: Request


@dataclass
class Ring:
    number: int
    queue: list[Request] = field(default_factory=list)  # in the SQ
    flight: list[Request] = field(default_factory=list)  # taken by the kernel
    done: list[Completion] = field(default_factory=list)  # in the CQ
    copied: list[Completion] = field(default_factory=list)  # out of it, and not delivered yet
    inside: int | None = None  # the thread that is in io_uring_enter
    sq_head: int = 0
    sq_tail: int = 0  # as the program has stored it; seen of a ring without liburing only
    cq_head: int = 0
    no_enters: int = 0  # in a row


@dataclass
class State:
    """After some of the events. `echoes` says that whatever comes from a socket must go back."""

    echoes: bool = False
    step: int = 0
    thread: int = 0  # that of the last event
    frames: dict[int, Frame] = field(default_factory=dict)  # those that exist
    names: dict[int, str] = field(default_factory=dict)  # of all that were ever made
    stacks: dict[int, list[int]] = field(default_factory=dict)  # by thread: frames, innermost last
    jumps_to: int = 0  # the frame that the thread is on its way to
    rings: dict[int, Ring] = field(default_factory=dict)
    buffers: dict[int, str] = field(default_factory=dict)  # id -> "ring" or "lent"
    owed: dict[int, tuple[int, int]] = field(default_factory=dict)  # fd -> bytes, step of the last
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # of events, by their kind
    _resumed: int | None = None  # the frame that the last event has resumed
    _is_alone: bool = True  # the ring: no other one was ever made
    _is_full: bool = False  # the recording: what came after it was left out
    _cut: set[str] = field(default_factory=set)  # user_data of a notification that still comes

    def name(self, number: int) -> str:
        return self.names.get(number, "a frame that is gone")

    @property
    def running(self) -> int:
        """The frame whose body runs, or 0; where several threads run, of the one that acts."""
        return self.runs_in(self.thread)

    def runs_in(self, thread: int) -> int:
        stack = self.stacks.get(thread, [])
        return stack[-1] if stack and self._frame(stack[-1]).state == "running" else 0

    def in_flight(self) -> list[Request]:
        return [each for ring in self.rings.values() for each in (*ring.flight, *ring.queue)]

    def apply(self, event: Event) -> None:
        if event["n"] != self.step + 1:
            self._wrong(f"step {self.step + 1} is missing from the recording")
        self.step, self.thread, self.jumps_to = event["n"], event["th"], 0
        for ring in self.rings.values():
            ring.copied = [each for each in ring.copied if each.frame != self._resumed]
        self._resumed = None
        self.counts[event["e"]] += 1
        match event:
            case {"f": number} | {"to": number}:
                self._on_frame(event, self._frame(number))
            case {"ring": number}:
                self._on_ring(event, self.rings.setdefault(number, Ring(number)))
            case {"e": "recycle", "id": number}:
                if self.buffers.get(number) == "ring":
                    self._wrong(f"buffer {number} is given back, and its ring has it already")
                self.buffers[number] = "ring"
            case {"e": "full"}:
                self._is_full = True

    def _wrong(self, sentence: str, step: int = 0) -> None:
        self.violations.append(Violation(step or self.step, sentence))

    def _frame(self, number: int) -> Frame:
        return self.frames.get(number) or Frame(number, self.name(number), "gone")

    # ---- frames ----

    def _on_frame(self, event: Event, frame: Frame) -> None:
        match event["e"]:
            case "frame":
                self.names[frame.number] = event["fn"]
                self.frames[frame.number] = Frame(frame.number, event["fn"])
            case "start":
                self._run(event, frame, "made", "is started, and had been started before")
            case "resume":
                self._run(event, frame, "waiting", "is resumed, and had not suspended")
                self._resumed = frame.number
                self._check_resumed(frame)
            case "suspend":
                if frame.state != "running":
                    self._wrong(f"{frame.fn} suspends, and does not run")
                frame.state, frame.at = "waiting", event["at"]
            case "jump":
                self.jumps_to = frame.number
                source = self._frame(event["from"])
                if frame.state == "made":
                    frame.awaited_by = source.number
                elif frame.state != "waiting":
                    where = f"{frame.fn}, which is {frame.state} and does not wait"
                    self._wrong(f"{source.fn} jumps to {where}")
            case "back":
                stack = self.stacks.setdefault(event["th"], [])
                while frame.number in stack and stack.pop() != frame.number:
                    pass
            case "throw":
                frame.state = "running"  # also if its await_suspend threw
            case "end":
                if frame.state != "running":
                    self._wrong(f"{frame.fn} ends, and does not run")
                frame.state = "ended"
            case "destroy":
                self._destroy(frame)

    def _run(self, event: Event, frame: Frame, wanted: str, otherwise: str) -> None:
        if frame.state == "gone":
            self._wrong(f"{frame.fn} is resumed, and its frame is gone")
        elif frame.state != wanted:
            self._wrong(f"{frame.fn} {otherwise}")
        stack = self.stacks.setdefault(event["th"], [])
        stack[event["depth"] :] = [frame.number]
        frame.state, frame.at = "running", event.get("at", "")

    def _check_resumed(self, frame: Frame) -> None:
        for request in self.in_flight():
            silent = "MULTISHOT" in request.flags or request.is_silent
            if request.frame == frame.number and not silent:
                self._wrong(f"{frame.fn} goes on while its {request.words()} is still in flight")
        done = [each.frame for ring in self.rings.values() for each in ring.done]
        if frame.number in done:
            self._wrong(f"{frame.fn} is resumed before its completion was taken out of the CQ")

    def _destroy(self, frame: Frame) -> None:
        if frame.state == "gone":
            self._wrong(f"the frame of {frame.fn} is destroyed a second time")
            return
        for request in self.in_flight():
            holds = frame.number in (request.frame, frame_in(request.addr))  # it, or its buffer
            if holds and not request.is_silent:
                self._wrong(
                    f"the frame of {frame.fn} is destroyed while {request.one()} "
                    f"is in flight for it (since step {request.step})"
                )
        if frame.state == "running":
            self._wrong(f"the frame of {frame.fn} is destroyed while its body runs")
        del self.frames[frame.number]
        for stack in self.stacks.values():
            stack[:] = [each for each in stack if each != frame.number]

    # ---- rings ----

    def _on_ring(self, event: Event, ring: Ring) -> None:
        match event["e"]:
            case "ring":
                self._is_alone = not ring.number
            case "sqe":
                self._prepare(event, ring)
            case "store" if event["into"] == "SQ tail":
                ring.sq_tail = event["value"]
            case "enter":
                ring.inside, ring.no_enters = event["th"], 0
                ring.copied.clear()
            case "no_enter":
                self._spare(event, ring)
            case "take":
                count = (event["sq"][0] - ring.sq_head) % 2**32
                if count > len(ring.queue):
                    were = f"{len(ring.queue)} were prepared"
                    self._wrong(f"the kernel took {count} SQEs, and {were}")
                ring.flight += ring.queue[:count]
                del ring.queue[:count]
                ring.sq_head = event["sq"][0]
            case "entered":
                ring.inside = None
            case "cqe":
                self._complete(event, ring)
            case "reap":
                count = (event["cq"][0] - ring.cq_head) % 2**32
                ring.copied += ring.done[:count]
                del ring.done[:count]
                ring.cq_head = event["cq"][0]
            case "canceled" if event["res"] in _DONE:
                ring.flight.clear()
            case "exit":
                self._exit(ring)

    def _prepare(self, event: Event, ring: Ring) -> None:
        request = Request(
            self.step, event["user"], event["op"], event["fd"], event["len"],
            event.get("flags", ()), event.get("addr", ""),
        )  # fmt: skip
        twin = next((each for each in self.in_flight() if each.user == request.user), None)
        if twin and request.op in _HEARD and not (request.is_silent or twin.is_silent):
            self._wrong(
                f"{request.one()} gets the user_data {request.user} of the {twin.words()} "
                f"that is in flight since step {twin.step}: whose completion will it be?"
            )
        if self.echoes and request.op in _RECEIVES:
            self._check_owed(request.fd, f"the next request for it is {request.one()}")
        ring.queue.append(request)
        ring.no_enters = 0

    def _spare(self, event: Event, ring: Ring) -> None:
        """A call that does not enter the kernel."""
        if ring.inside is not None:  # what it was to wait for has come just before
            ring.inside = None
            self.counts["enter"] -= 1
        ring.no_enters += 1
        if ring.no_enters == SUBMITS_MAX and event["wait"] == 0:
            self._wrong(
                "it submits again and again, though nothing is left to submit: all of the "
                "submission queue is free"
            )

    def _complete(self, event: Event, ring: Ring) -> None:
        user, flags, buffer = event["user"], event["flags"], event.get("buffer")
        there = (*ring.flight, *ring.queue)
        request = next((each for each in there if each.user == user), None)
        if request is None and "NOTIF" in flags and user in self._cut:
            self._cut.remove(user)
        elif request is None and self._is_alone:  # or else it may be a message
            self._wrong(
                f"a completion comes with the user_data {user}, and nothing is in "
                "flight that has it: its last completion was there before"
            )
        if request and "MORE" not in flags:
            (ring.flight if request in ring.flight else ring.queue).remove(request)
            if request.op in _NOTIFIES and "NOTIF" not in flags:
                self._cut.add(user)
        if buffer is not None:
            if self.buffers.get(buffer) != "ring":
                self._wrong(f"buffer {buffer} is lent, and its ring did not have it")
            self.buffers[buffer] = "lent"
        request = request or Request(self.step, user)
        if event["res"] > 0 and "NOTIF" not in flags:
            self._account(request, event["res"])
        ring.done.append(Completion(self.step, user, event["res"], flags, buffer, request))
        ring.no_enters = 0

    def _exit(self, ring: Ring) -> None:
        del self.rings[ring.number]
        for request in ring.flight:
            if request.op in _RECEIVES | _SENDS:
                self._wrong(
                    f"the ring is closed while {request.one()} is in flight (since step "
                    f"{request.step}): nobody waits until the kernel is done with its buffer"
                )

    # ---- what came from a client goes back to it ----

    def _account(self, request: Request, count: int) -> None:
        owed, step = self.owed.get(request.fd, (0, 0))
        if request.op in _RECEIVES:
            self.owed[request.fd] = (owed + count, self.step)
        elif request.op in _SENDS:
            self.owed[request.fd] = (owed - count, step)
        elif request.op == "ACCEPT":
            self.owed.pop(count, None)

    def _check_owed(self, fd: int, then: str) -> None:
        owed, step = self.owed.get(fd, (0, 0))
        sends = [each for each in self.in_flight() if each.fd == fd and each.op in _SENDS]
        if owed > 0 and not sends:
            self.owed.pop(fd)
            self._wrong(f"{owed} bytes that came from fd {fd} are not sent back: {then}", step)

    def close(self, by_itself: bool = True) -> None:
        """Nothing more comes. If the program has ended by itself, what should be gone by now?"""
        for fd in [*self.owed] if self.echoes else ():
            self._check_owed(fd, "no send for them follows")
        for frame in self.frames.values() if by_itself and not self._is_full else ():
            self._wrong(f"the frame of {frame.fn} is still there at the end: nobody destroyed it")


def last_state(events: Iterable[Event], echoes: bool = False) -> State:
    state = State(echoes)
    for event in events:
        state.apply(event)
    return state
