# SPDX-License-Identifier: MIT
"""./course trace: a recording is read, checked, drawn and compared; what is wrong gets its step."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from course_tool import builds, paths, reporting
from course_tool.chapters import all_chapters, load_chapter
from course_tool.ctests import TestResult
from course_tool.errors import CourseError
from course_tool.groups import Group
from course_tool.trace import commands, events, figure
from course_tool.trace.drawing import HIDDEN, Drawing, Layout
from course_tool.trace.model import State, last_state

pytestmark = pytest.mark.reads_course

PING_PONG = ROOT / "docs" / "traces" / "07-ping-pong.jsonl"
Event = dict[str, Any]
Events = list[Event]


@pytest.fixture
def played() -> Events:
    return [dict(each) for each in events.read(PING_PONG)]


def e(kind: str, **fields: Any) -> Event:
    return {"e": kind, **fields}


def find(recorded: Events, wanted: Event) -> int:
    """Where the first event stands that has these fields."""
    return next(i for i, each in enumerate(recorded) if wanted.items() <= each.items())


def numbered(recorded: Sequence[Event]) -> Events:
    return [{"th": 0, **each, "n": n} for n, each in enumerate(recorded, start=1)]


def wrongs(recorded: Events, echoes: bool = False) -> list[str]:
    state = last_state(recorded, echoes)
    state.close()
    return [each.as_sentence() for each in state.violations]


def draw(recorded: Events) -> Drawing:
    drawing, state = Drawing("x", "t", "d", 1, Layout(recorded)), State()
    for each in recorded:
        state.apply(each)
        drawing.add(state, each)
    return drawing


def mutated(recorded: Events, how: str, what: Event, to: Event) -> Events:
    place = find(recorded, what)
    match how:
        case "lose":
            return recorded[:place] + recorded[place + 1 :]
        case "drop":
            del recorded[place]
        case "repeat":
            recorded.insert(place, recorded[place])
        case "move":
            recorded.insert(find(recorded, to), recorded.pop(place))
        case "change":
            recorded[place] |= to
    return numbered(recorded)


READ = e("cqe", user="f3+0x80")
MUTATIONS = {
    "a line is lost": ("lose", e("suspend", f=2), {}, "step 5 is missing"),
    "a frame goes too early": ("move", e("destroy", f=3), e("enter"),
        "Step 28: the frame of catch_ball is destroyed while a read on fd 5 is in flight for it"),
    "a buffer goes too early": ("move", e("destroy", f=1), e("enter"),
        "the frame of pong is destroyed while a read"),
    "it never suspended": ("drop", e("suspend", f=3), {},
        "catch_ball is resumed, and had not suspended"),
    "it suspends while it waits": ("repeat", e("suspend", f=3), {},
        "catch_ball suspends, and does not run"),
    "it starts twice": ("repeat", e("start", f=3), {}, "had been started before"),
    "it ends while it waits": ("move", e("end", f=3), e("enter"), "ends, and does not run"),
    "a frame that is gone goes on": ("move", e("destroy", f=3), e("resume", f=3),
        "its frame is gone"),
    "destroyed twice": ("repeat", e("destroy", f=3), {}, "destroyed a second time"),
    "destroyed while it runs": ("move", e("destroy", f=3), e("end", f=3), "its body runs"),
    "never destroyed": ("drop", e("destroy", f=3), {},
        "the frame of catch_ball is still there at the end"),
    "a jump into a frame that runs": ("move", e("jump", to=1), e("start", f=1),
        "which is running and does not wait"),
    "no completion yet": ("drop", READ, {}, "goes on while its read on fd 5 is still in flight"),
    "a completion too many": ("repeat", READ, {}, "its last completion was there before"),
    "F_MORE, and nothing more": ("change", READ, {"flags": ["MORE"]}, "is still in flight"),
    "resumed out of the queue": ("move", e("reap"), e("resume", f=3),
        "is resumed before its completion was taken out of the CQ"),
    "whose completion": ("change", e("sqe", op="WRITE"), {"user": "f3+0x80"},
        "a write on fd 6 gets the user_data f3+0x80 of the read on fd 5"),
    "more taken than there was": ("change", e("take"), {"sq": [3, 3]},
        "the kernel took 3 SQEs, and 2"),
}  # fmt: skip


def test_the_recording_of_a_sound_run_has_nothing_wrong(played: Events) -> None:
    assert wrongs(played) == []


@pytest.mark.parametrize(("how", "what", "to", "says"), MUTATIONS.values(), ids=MUTATIONS)
def test_a_recording_that_breaks_a_rule_fails(
    played: Events, how: str, what: Event, to: Event, says: str
) -> None:
    found = wrongs(mutated(played, how, what, to))
    assert any(says in each for each in found), f"{says!r} is not among {found}"


def sqe(op: str, user: str, **more: Any) -> Event:
    return e("sqe", ring=0, slot=0, op=op, fd=7, len=9, user=user, **more)


def cqe(user: str, res: int, *flags: str, **more: Any) -> Event:
    return e("cqe", ring=0, slot=0, user=user, res=res, flags=flags, **more)


RING = e("ring", ring=0, sq=4, cq=8)
NO_ENTER = e("no_enter", ring=0, sq=[0, 0], cq=[0, 0], wait=0)
GIVEN_BACK = e("recycle", id=3)
LENT = cqe("1", 5, "BUFFER", "MORE", buffer=3)
SHORT = [RING, sqe("RECV", "1"), cqe("1", 9), sqe("SEND", "2"), cqe("2", 4)]
BROKEN = {
    "lent twice": ([RING, sqe("RECV", "1"), LENT], "buffer 3 is lent, and its ring did not have"),
    "given back twice": ([RING, GIVEN_BACK, GIVEN_BACK], "its ring has it already"),
    "closed in flight": (
        [RING, sqe("RECV", "1"), e("take", ring=0, sq=[1, 1]), e("exit", ring=0)],
        "closed while a recv on fd 7",
    ),
    "a slot kept free": ([RING, NO_ENTER, NO_ENTER, NO_ENTER], "all of the submission queue is"),
    "a dropped send": (SHORT[:3], "Step 3: 9 bytes that came from fd 7 are not sent"),
    "a dropped rest": (
        [*SHORT, sqe("RECV", "1")],
        "Step 3: 5 bytes that came from fd 7 are not sent back: the next request for it is a recv",
    ),
}
SOUND = {
    "a message": [RING, e("ring", ring=1, sq=4, cq=8), e("exit", ring=1), cqe("a2", 42)],
    "a zero-copy send that its link has cut off": [
        RING, sqe("SEND_ZC", "2"), cqe("2", -125), cqe("2", 0, "NOTIF"),
    ],
    "a buffer in a frame that goes on for another reason": [
        e("frame", f=1, fn="ask", by=0), e("start", f=1, depth=0), e("suspend", f=1, at="a.cpp:1"),
        RING, sqe("RECV", "1", addr="f1+0x8"), e("resume", f=1, at="a.cpp:1", depth=0),
        cqe("1", 0), e("end", f=1), e("destroy", f=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("made", "says"), BROKEN.values(), ids=BROKEN)
def test_queues_buffers_and_echoes_are_checked(made: Events, says: str) -> None:
    found = wrongs(numbered(made), echoes=True)
    assert any(says in each for each in found), f"{says!r} is not among {found}"


@pytest.mark.parametrize("made", SOUND.values(), ids=SOUND)
def test_what_the_kernel_and_its_users_may_do_is_no_violation(made: Events) -> None:
    assert wrongs(numbered(made)) == []


def test_an_enter_that_a_completion_has_spared_is_not_counted() -> None:
    waits = {**NO_ENTER, "wait": 1}
    state = last_state(numbered([RING, {**waits, "e": "enter"}, waits]))
    assert state.counts["enter"] == 0 and state.rings[0].inside is None


def test_an_sqe_is_the_kernels_when_the_tail_was_stored() -> None:
    stored = e("store", ring=0, into="SQ tail", slot=0, value=1)
    steps = draw(numbered([RING, sqe("NOP", "1"), stored])).steps
    assert [each["token-0-box"].get("class") for each in steps] == [None, "box", "lit"]
    assert steps[-1]["sq-0-indices"][""] == "head 0, tail 1"


def test_what_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "cut.jsonl"
    file.write_text(PING_PONG.read_text()[:-9])
    assert len(events.read(file)) == len(events.read(PING_PONG)) - 1
    file.write_text("nonsense")
    with pytest.raises(CourseError, match="is no recording"):
        events.read(file)


def test_the_patches_of_a_drawing_give_each_of_its_steps(played: Events) -> None:
    drawing = draw(played)
    now: dict[str, dict[str, str]] = {}
    for step, patch in zip(drawing.steps, drawing.patches(), strict=True):
        for id_, change in patch.items():
            values = now.get(id_, {}) | change
            now[id_] = {key: value for key, value in values.items() if value is not None}
        assert now == {id_: step.get(id_, HIDDEN) for id_ in drawing.tags}
    name = '<text id="x-frame-0-1-name" class="strong in-lit" x="12" y="30">pong</text>'
    assert name in drawing.svg(7), "at step 7 pong runs, to the right of keep"


FIGURE = {
    "no event": (
        'at = { e = "cqe", of = "nobody" }\nsay = "x"', "step 1: no event that has .*nobody"
    ),
    "another fact": (
        'at = { e = "enter" }\nexpect = { queued = 7 }\nsay = "x"', "queued = 7, and it is 2"
    ),
    "no such fact": ('at = { e = "enter" }\nsay = "{color}"', "no fact of that event"),
    "a wrong key": ('at = { e = "enter" }\nsays = "x"', "says"),
}  # fmt: skip


@pytest.mark.parametrize(("step", "says"), FIGURE.values(), ids=FIGURE)
def test_a_figure_that_its_recording_does_not_bear_out_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, says: str
) -> None:
    head = 'program = "07:ping_pong"\ntitle = "t"\ndesc = "d"\nstill = 1\n[[steps]]\n'
    (tmp_path / "broken.toml").write_text(head + step)
    monkeypatch.setattr(figure, "TRACES", tmp_path)
    with pytest.raises(CourseError, match=says):
        figure.make(figure.load("broken"), events.read(PING_PONG))


class Bench:
    """A program that "records" what it is given, in the place of one that is built."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def program(self, recorded: Events, then: str = "", whose: str = "student") -> None:
        lines = PING_PONG.read_text().splitlines()[:1] + [json.dumps(each) for each in recorded]
        text = "\n".join(lines) + "\n"
        script = self.folder / f"{whose}-trace-07-ping_pong"
        script.write_text(
            f"#!{sys.executable}\nimport os\n"
            f'open(os.environ["COURSE_TRACE"], "w").write({text!r})\n{then}\n'
        )
        script.chmod(0o755)

    def trace(self, **options: bool) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        chosen = {"solution": False, "compare": False, "as_text": False, **options}
        return commands.trace("07:ping_pong", [], **chosen), self._capsys.readouterr().out


@pytest.fixture
def bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    monkeypatch.setattr(builds, "build", lambda preset, targets: [])
    monkeypatch.setattr(builds, "program", lambda preset, name: tmp_path / f"{preset}-{name}")
    monkeypatch.setattr(paths, "STATE", tmp_path)
    return Bench(tmp_path, capsys)


def test_a_sound_run_is_summed_up(bench: Bench, played: Events) -> None:
    bench.program(played)
    code, said = bench.trace(as_text=True)
    assert code == 0
    assert "3 enters, 5 SQEs, 5 CQEs, 0 in flight at the end" in said
    assert "catch_ball suspends at ping_pong.cpp" in said
    page = (bench.folder / "trace" / "07-ping_pong.html").read_text()
    assert page.count("<li id=") == len(played) and "https://" not in page


def test_every_line_names_its_thread_and_its_ring_where_there_are_several(
    bench: Bench, played: Events
) -> None:
    bench.program([{**each, "th": 1} if each["n"] > 40 else each for each in played])
    said = bench.trace(as_text=True)[1].splitlines()
    assert any(line.startswith("   40  thread 0  ") for line in said)
    assert any(line.startswith("   41  thread 1  ") for line in said)
    assert not any("ring 0" in line for line in said), "there is one ring"


def test_a_broken_rule_is_named_with_its_step(bench: Bench, played: Events) -> None:
    *mutation, says = MUTATIONS["a frame goes too early"]
    bench.program(mutated(played, *mutation))
    code, said = bench.trace()
    assert code == 1 and says in said


def test_a_crash_is_told_with_the_last_step(bench: Bench, played: Events) -> None:
    bench.program(played[:40], "import signal; os.kill(os.getpid(), signal.SIGSEGV)")
    code, said = bench.trace()
    assert code == 1
    assert "was killed by SIGSEGV" in said and "recorded, step 40:" in said


def test_a_run_is_compared_with_the_solutions(bench: Bench, played: Events) -> None:
    bench.program(played, whose="reference")
    bench.program(played)
    code, said = bench.trace(compare=True)
    assert code == 0 and "does the same, step by step" in said
    place = find(played, e("sqe", op="WRITE"))
    bench.program(mutated(played, "change", played[place], {"op": "SEND"}))
    _, said = bench.trace(compare=True)
    assert f"differ from step {place + 1} on" in said
    assert "yours:    An SQE: SEND" in said and "solution: An SQE: WRITE" in said


def test_a_chapter_without_coroutines_or_ring_says_so() -> None:
    assert not commands.can_trace(load_chapter(ROOT / "solutions" / "01-blocking-echo"), "01.1")
    with pytest.raises(CourseError, match="Chapter 01 has neither"):
        commands.trace("01", [], solution=False, compare=False, as_text=False)


def test_a_trace_is_offered_where_the_program_runs_the_task() -> None:
    offered = {
        task.id
        for chapter in all_chapters()
        for task in chapter.tasks
        if commands.can_trace(chapter, task.id)
    }
    assert {"05.1", "06.4", "07.2"} <= offered
    assert "06.5" not in offered, "what ./course trace 06 records has no promise in it"


@pytest.mark.parametrize(("status", "suggests"), [("timeout", True), ("failed", False)])
def test_a_test_that_gives_no_reason_suggests_a_trace(
    capsys: pytest.CaptureFixture[str], status: Any, suggests: bool
) -> None:
    chapter = load_chapter(ROOT / "solutions" / "05-ring-echo")
    red = TestResult("05.1 it goes on", status, 60.0, "", ("05", "05.1"))
    group = Group("05.1", "Whose completion is this?", (red,))
    reporting.show_red(group, chapter, "student", verbose=False)
    assert ("./course trace 05 records a run" in capsys.readouterr().out) == suggests
