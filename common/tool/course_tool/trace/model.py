# SPDX-License-Identifier: MIT
"""What a recording says, replayed event by event: frames, stacks, rings, and what must not happen.

The rules that it checks are the runtime's (docs/reference/rules.md) and the kernel's own. A
violation names the step at which it shows, in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    by: int
    state: str = "made"  # then running, waiting, ended
    at: str = ""  # file:line, where it waits or went on
    awaited_by: int = 0  # the frame that jumped into it


@dataclass(frozen=True)
class Request:
    step: int
    op: str
    fd: int
    length: int
    user: str
    addr: str
    flags: tuple[str, ...]
    target: str  # whom a cancel is for

    @property
    def is_silent(self) -> bool:
        return "CQE_SKIP" in self.flags

    def words(self) -> str:
        """Such as: recv on fd 7."""
        return f"{self.op.lower()}{f' on fd {self.fd}' if self.fd >= 0 else ''}"

    def one(self) -> str:
        return f"{'an' if self.op[0] in 'AEIOU' else 'a'} {self.words()}"


@dataclass(frozen=True)
class Completion:
    step: int
    user: str
    res: int
    flags: tuple[str, ...]
    buffer: int | None
    request: Request | None


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
    cq_tail: int = 0
    no_enters: int = 0  # in a row


@dataclass
class State:
    """After some of the events. `echoes` says that whatever comes from a socket must go back."""

    echoes: bool = False
    step: int = 0
    frames: dict[int, Frame] = field(default_factory=dict)  # those that exist
    names: dict[int, str] = field(default_factory=dict)  # of all that were ever made
    stacks: dict[int, list[int]] = field(default_factory=dict)  # by thread: frames, innermost last
    rings: dict[int, Ring] = field(default_factory=dict)
    buffers: dict[int, str] = field(default_factory=dict)  # id -> "ring" or "lent"
    owed: dict[int, tuple[int, int]] = field(default_factory=dict)  # fd -> bytes, step of the last
    violations: list[Violation] = field(default_factory=list)
    enters: int = 0
    sqes: int = 0
    cqes: int = 0

    def name(self, number: int) -> str:
        return self.names.get(number, "a frame that is gone")

    @property
    def running(self) -> int:
        """The frame whose body runs, or 0; where several threads run, of the one that acts."""
        return self.runs_in(self.thread)

    def runs_in(self, thread: int) -> int:
        stack = self.stacks.get(thread, [])
        return stack[-1] if stack and self._state(stack[-1]) == "running" else 0

    thread: int = 0
    jumps_to: int = 0  # the frame that the thread is on its way to
    _is_alone: bool = True  # the ring: no other one was ever made
    _delivered: set[int] = field(default_factory=set)  # completions, by their steps
    _cut: set[str] = field(default_factory=set)  # user_data of a notification that still comes

    def in_flight(self) -> list[Request]:
        return [each for ring in self.rings.values() for each in (*ring.flight, *ring.queue)]

    def apply(self, event: Event) -> None:
        if event["n"] != self.step + 1:
            self._wrong(f"step {self.step + 1} is missing from the recording")
        self.step, self.thread, self.jumps_to = event["n"], event["th"], 0
        for ring in self.rings.values():
            ring.copied = [each for each in ring.copied if each.step not in self._delivered]
        getattr(self, f"_on_{event['e']}", lambda event: None)(event)

    def _wrong(self, sentence: str, step: int = 0) -> None:
        self.violations.append(Violation(step or self.step, sentence))

    def _state(self, number: int) -> str:
        return self.frames[number].state if number in self.frames else "gone"

    # ---- frames ----

    def _on_frame(self, event: Event) -> None:
        self.names[event["f"]] = event["fn"]
        self.frames[event["f"]] = Frame(event["f"], event["fn"], event["by"])

    def _on_start(self, event: Event) -> None:
        self._run(event, "made", "is started, and had been started before")

    def _on_resume(self, event: Event) -> None:
        number = event["f"]
        self._run(event, "waiting", "is resumed, and had not suspended")
        for each in (each for ring in self.rings.values() for each in ring.copied):
            if frame_in(each.user) == number:
                self._delivered.add(each.step)
        for request in self.in_flight():
            silent = "MULTISHOT" in request.flags or request.is_silent
            if frame_in(request.user) == number and not silent:
                self._wrong(
                    f"{self.name(number)} goes on while its {request.words()} is still in flight"
                )
        if any(frame_in(each.user) == number for ring in self.rings.values() for each in ring.done):
            self._wrong(
                f"{self.name(number)} is resumed before its completion was taken out of the CQ"
            )

    def _run(self, event: Event, wanted: str, otherwise: str) -> None:
        number = event["f"]
        if self._state(number) != wanted:
            gone = "is resumed, and its frame is gone"
            self._wrong(f"{self.name(number)} {gone if number not in self.frames else otherwise}")
        stack = self.stacks.setdefault(event["th"], [])
        del stack[event["depth"] :]
        stack.append(number)
        if number in self.frames:
            self.frames[number].state = "running"
            self.frames[number].at = event.get("at", "")

    def _on_suspend(self, event: Event) -> None:
        number = event["f"]
        if self._state(number) != "running":
            self._wrong(f"{self.name(number)} suspends, and does not run")
        if number in self.frames:
            self.frames[number].state = "waiting"
            self.frames[number].at = event["at"]

    def _on_jump(self, event: Event) -> None:
        source, target = event["from"], event["to"]
        self.jumps_to = target
        if self._state(target) not in ("made", "waiting"):
            self._wrong(
                f"{self.name(source)} jumps to {self.name(target)}, "
                f"which is {self._state(target)} and does not wait"
            )
        elif self._state(target) == "made":
            self.frames[target].awaited_by = source

    def _on_back(self, event: Event) -> None:
        stack = self.stacks.setdefault(event["th"], [])
        while event["f"] in stack and stack.pop() != event["f"]:
            pass

    def _on_throw(self, event: Event) -> None:
        if event["f"] in self.frames:
            self.frames[event["f"]].state = "running"  # also if its await_suspend threw

    def _on_end(self, event: Event) -> None:
        if self._state(event["f"]) != "running":
            self._wrong(f"{self.name(event['f'])} ends, and does not run")
        if event["f"] in self.frames:
            self.frames[event["f"]].state = "ended"

    def _on_destroy(self, event: Event) -> None:
        number = event["f"]
        if number not in self.frames:
            return self._wrong(f"the frame of {self.name(number)} is destroyed a second time")
        for request in self._in_flight_for(number):
            if not request.is_silent:
                self._wrong(
                    f"the frame of {self.name(number)} is destroyed while {request.one()} "
                    f"is in flight for it (since step {request.step})"
                )
        if self._state(number) == "running":
            self._wrong(f"the frame of {self.name(number)} is destroyed while its body runs")
        del self.frames[number]
        for stack in self.stacks.values():
            stack[:] = [each for each in stack if each != number]
        return None

    def _in_flight_for(self, number: int) -> list[Request]:
        """Those whose operation or whose buffer lies in the frame."""
        return [
            each
            for each in self.in_flight()
            if number in (frame_in(each.user), frame_in(each.addr))
        ]

    # ---- rings ----

    def _on_ring(self, event: Event) -> None:
        self._is_alone = not event["ring"]
        self.rings[event["ring"]] = Ring(event["ring"])

    def _on_sqe(self, event: Event) -> None:
        ring = self.rings[event["ring"]]
        flags = tuple(event.get("flags", ()))
        request = Request(
            self.step, event["op"], event["fd"], event["len"], event["user"],
            event.get("addr", ""), flags, event.get("target", ""),
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
        self.sqes += 1

    def _on_enter(self, event: Event) -> None:
        ring = self.rings[event["ring"]]
        ring.inside, ring.no_enters = event["th"], 0
        ring.copied.clear()
        self.enters += 1

    def _on_no_enter(self, event: Event) -> None:
        ring = self.rings[event["ring"]]
        if ring.inside is not None:  # what it was to wait for has come just before
            ring.inside = None
            self.enters -= 1
        ring.no_enters += 1
        if ring.no_enters == SUBMITS_MAX and event["wait"] == 0:
            self._wrong(
                "it submits again and again, though nothing is left to submit: all of the "
                "submission queue is free"
            )

    def _on_entered(self, event: Event) -> None:
        self.rings[event["ring"]].inside = None

    def _on_take(self, event: Event) -> None:
        """The SQEs before the head are the kernel's."""
        ring = self.rings[event["ring"]]
        count = (event["sq"][0] - ring.sq_head) % 2**32
        if count > len(ring.queue):
            self._wrong(f"the kernel took {count} SQEs, and {len(ring.queue)} were prepared")
        ring.flight += ring.queue[:count]
        del ring.queue[:count]
        ring.sq_head = event["sq"][0]

    def _on_cqe(self, event: Event) -> None:
        ring = self.rings[event["ring"]]
        ring.no_enters = 0
        flags = tuple(event["flags"])
        mine = [each for each in (*ring.flight, *ring.queue) if each.user == event["user"]]
        request = next(iter(mine), None)
        if request is None and "NOTIF" in flags and event["user"] in self._cut:
            self._cut.remove(event["user"])
        elif request is None and self._is_alone:  # or else it may be a message
            self._wrong(
                f"a completion comes with the user_data {event['user']}, and nothing is in "
                "flight that has it: its last completion was there before"
            )
        if request and "MORE" not in flags:
            (ring.flight if request in ring.flight else ring.queue).remove(request)
            if request.op in _NOTIFIES and "NOTIF" not in flags:
                self._cut.add(request.user)
        ring.cq_tail += 1
        buffer = event.get("buffer")
        ring.done.append(
            Completion(self.step, event["user"], event["res"], flags, buffer, request)
        )
        if buffer is not None:
            if self.buffers.get(buffer) != "ring":
                self._wrong(f"buffer {buffer} is lent, and its ring did not have it")
            self.buffers[buffer] = "lent"
        self.cqes += 1
        if request and event["res"] > 0 and "NOTIF" not in flags:
            self._account(request, event["res"])

    def _on_store(self, event: Event) -> None:
        if event["into"] == "SQ tail":
            self.rings[event["ring"]].sq_tail = event["value"]

    def _on_reap(self, event: Event) -> None:
        ring = self.rings[event["ring"]]
        count = (event["cq"][0] - ring.cq_head) % 2**32
        ring.copied += ring.done[:count]
        del ring.done[:count]
        ring.cq_head = event["cq"][0]

    def _on_canceled(self, event: Event) -> None:
        if event["res"] in _DONE:
            self.rings[event["ring"]].flight.clear()

    def _on_exit(self, event: Event) -> None:
        for request in self.rings.pop(event["ring"]).flight:
            if request.op in _RECEIVES | _SENDS:
                self._wrong(
                    f"the ring is closed while {request.one()} is in flight (since step "
                    f"{request.step}): nobody waits until the kernel is done with its buffer"
                )

    def _on_recycle(self, event: Event) -> None:
        if self.buffers.get(event["id"]) == "ring":
            self._wrong(f"buffer {event['id']} is given back, and its ring has it already")
        self.buffers[event["id"]] = "ring"

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

    def check_all_owed(self) -> None:
        for fd in [*self.owed] if self.echoes else ():
            self._check_owed(fd, "no send for them follows")

    def close(self) -> None:
        """The program has ended by itself: what should be gone by now?"""
        self.check_all_owed()
        for frame in self.frames.values():
            self._wrong(f"the frame of {frame.fn} is still there at the end: nobody destroyed it")


def replay(events: Iterable[Event], echoes: bool = False) -> Iterator[State]:
    """The state after each event: one object, which changes."""
    state = State(echoes)
    for event in events:
        state.apply(event)
        yield state


def last_state(events: Iterable[Event], echoes: bool = False) -> State:
    state = State(echoes)
    for event in events:
        state.apply(event)
    return state
