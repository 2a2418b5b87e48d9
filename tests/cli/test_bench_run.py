# SPDX-License-Identifier: MIT
"""./course bench with servers: the reference ones, and some that crash, hang or never announce."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from live_course import wait_until

from course_tool import builds, processes, syscalls
from course_tool.bench import commands, counts, loadgen, procfs, report, speed
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.machine import Pinning
from course_tool.bench.options import Options
from course_tool.bench.subjects import Subject, Whose
from course_tool.chapters import Count, Timing, find_chapter
from course_tool.errors import CourseError
from course_tool.paths import ROOT

pytestmark = pytest.mark.reads_course

UNPINNED = Pinning(None, None, "not pinned: a test")
BRIEF = LoadSpec(2, 16, duration_s=0.2)
BUILD_AND_RUN_S = 900  # the first test here may have to build the reference

SERVER = """\
import os, socket, sys, threading, time
def echo(client):
    while data := client.recv(4096): client.sendall(data)
behavior = {behavior!r}
if behavior == "silent": time.sleep(60)
if behavior == "dies": sys.exit("fake: no io_uring here")
listener = socket.create_server(("127.0.0.1", 0))
print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
clients = []
while True:
    clients.append(listener.accept()[0])
    if behavior == "crashes": sys.exit("fake: assertion failed: bid < 4096")
    if behavior == "aborts": os.abort()
    if behavior == "closes": clients.pop().close()
    if behavior == "echoes":
        threading.Thread(target=echo, args=[clients[-1]], daemon=True).start()
"""

GENERATOR_THAT_FAILS = "import sys; sys.exit('client 3: byte 17 is 0x00 instead of 0x11')"


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    # By way of the shell: a shebang cannot name an interpreter whose path holds a space.
    file.write_text(f"#!/bin/sh\n''''exec '{sys.executable}' \"$0\" \"$@\" #'''\n{text}")
    file.chmod(0o755)
    return file


def run_instead(program: Path, monkeypatch: pytest.MonkeyPatch, only: str = "") -> None:
    """Of the program named `only`, or of all; then nothing is built either."""
    original = builds.program
    monkeypatch.setattr(
        builds,
        "program",
        lambda preset, name: program if only in ("", name) else original(preset, name),
    )
    if not only:
        monkeypatch.setattr(builds, "build", lambda preset, targets: None)


def fake_subject(folder: Path, behavior: str, monkeypatch: pytest.MonkeyPatch) -> Subject:
    file = script(folder, f"{behavior}-server", SERVER.format(behavior=behavior))
    run_instead(file, monkeypatch, only=f"90-{behavior}")
    return Subject(behavior, "90", behavior, (), Whose.REFERENCE)


@pytest.fixture(scope="module")
def generator() -> Path:
    builds.build("release", ["01-server", "loadgen"])
    return loadgen.program()


def measure(*subjects: Subject, work: LoadSpec | Timing = BRIEF) -> speed.Cell:
    return speed.measure(subjects, work, 2, UNPINNED, lambda _: None)


def only_failure(subject: Subject) -> str:
    cell = measure(subject)
    assert len(cell.runs) == 1, "who has failed does not run again"
    return cell.failures()[0]


# --- servers and load generators that fail ------------------------------------------------------


@pytest.mark.parametrize(
    ("behavior", "said"),
    [
        ("silent", "did not print 'listening on HOST:PORT'"),
        ("dies", "fake: no io_uring here"),
    ],
)
def test_a_server_that_cannot_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behavior: str, said: str
) -> None:
    monkeypatch.setattr(processes, "ANNOUNCE_DEADLINE_S", 0.3 if behavior == "silent" else 10)
    assert said in only_failure(fake_subject(tmp_path, behavior, monkeypatch))


def test_a_load_generator_that_fails_has_its_sentence_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = script(tmp_path, "loadgen", GENERATOR_THAT_FAILS)
    monkeypatch.setattr(loadgen, "program", lambda: broken)
    failure = only_failure(fake_subject(tmp_path, "hangs", monkeypatch))
    assert "byte 17 is 0x00 instead of 0x11" in failure


@pytest.mark.timeout(BUILD_AND_RUN_S)
@pytest.mark.parametrize(
    ("behavior", "told"),
    [
        ("crashes", ["fake: assertion failed: bid < 4096", "It exited with 1"]),
        ("aborts", ["The server's stderr is empty. It was killed by SIGABRT."]),
    ],
)
def test_a_server_that_crashes_under_load_has_its_end_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path, behavior: str, told: list[str]
) -> None:
    failure = only_failure(fake_subject(tmp_path, behavior, monkeypatch))
    for sentence in told:
        assert sentence in failure


@pytest.mark.timeout(BUILD_AND_RUN_S)
@pytest.mark.parametrize("behavior", ["hangs", "closes"])
def test_a_server_that_does_not_answer_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path, behavior: str
) -> None:
    monkeypatch.setattr(loadgen, "STALL_TIMEOUT_S", 0.5)
    failure = only_failure(fake_subject(tmp_path, behavior, monkeypatch))
    assert "The load generator stopped:" in failure


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_idle_clients_of_a_server_that_hangs_up_are_a_course_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "closes", monkeypatch)
    with processes.Server(subject.command()) as server, pytest.raises(CourseError) as raised:
        counts._converse(server)
    assert "closed an idle client's connection" in str(raised.value) or "did not echo" in str(
        raised.value
    )


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_one_that_fails_does_not_take_the_others_figures_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path
) -> None:
    good = Subject("threads", "01", "server", (), Whose.REFERENCE, baseline=True)
    bad = fake_subject(tmp_path, "dies", monkeypatch)
    cell = measure(good, bad)
    assert len([run for run in cell.of(good) if run.values]) == 2
    assert len(cell.failures()) == 1


TIMED = """\
import sys
count = int(sys.argv[sys.argv.index("--count") + 1])
if "--fail" in sys.argv: sys.exit("fake: 06.2 is not implemented")
if "--mute" not in sys.argv: print("calls:", count); print("ns per call: %.1f ns" % (count / 100))
"""


def make_count(**changes: object) -> Count:
    count = Count(
        name="a number", metric="printed", program="calls", args=(), connections=1, size=16,
        inflight=1, requests=10, at_least=1.0, at_most=9.0, why="it was told so", calls=(),
    )  # fmt: skip
    return replace(count, **changes)  # type: ignore[arg-type]


def timed_subject(name: str, *args: str, baseline: bool = False) -> Subject:
    return Subject(name, "90", "calls", args, Whose.REFERENCE, baseline)


def test_programs_that_time_themselves_take_turns_and_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_instead(script(tmp_path, "90-calls", TIMED), monkeypatch)
    subjects = [
        timed_subject("plain", baseline=True),
        timed_subject("fails", "--fail"),
        timed_subject("mute", "--mute"),
    ]
    cell = measure(*subjects, work=Timing("call", 700, 2, ()))
    assert [run.values for run in cell.of(subjects[0])] == [{speed.NS: 7.0}] * 2
    assert [len(cell.of(each)) for each in subjects] == [2, 1, 1], "who failed does not run again"
    fails, mute = cell.failures()
    assert fails == "fails: 90-calls did not run to its end: fake: 06.2 is not implemented"
    assert mute.startswith("mute: 90-calls printed no line 'ns per call: NUMBER'")


def test_a_count_that_a_program_prints_is_read_from_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_instead(script(tmp_path, "90-calls", TIMED), monkeypatch)
    count = make_count(
        metric="printed", args=("--count", "9"), requests=0, at_least=9, value="calls", unit="calls"
    )
    subject = Subject("90-calls", "90", "calls", count.args, Whose.REFERENCE)
    result = counts.measure(count, counts.Bench(subject, None), repeats=2)
    assert (result.verdict, result.measured and result.measured.samples) == ("pass", 2)
    failing = counts.Bench(timed_subject("x", *count.args, "--fail"), None)
    with pytest.raises(CourseError, match="90-calls did not run to its end: fake: 06.2 is not"):
        counts.measure(count, failing, repeats=1)


def test_servers_without_a_ring_are_not_measured_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "hangs", monkeypatch)
    count = make_count(metric="sqes_per_request")
    result = counts.measure(count, counts.Bench(subject, None), repeats=1)
    assert result.verdict == counts.Verdict.NOT_MEASURED
    assert "has no ring" in result.reason


def test_what_a_silent_connection_submits_is_counted_without_the_one_that_talks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tails(pid: int) -> procfs.RingTails:
        return procfs.RingTails(3 * len(os.listdir(f"/proc/{pid}/fd")), 0)

    monkeypatch.setattr(procfs, "ring_tails", tails)
    subject = fake_subject(tmp_path, "echoes", monkeypatch)
    count = make_count(metric="sqes_per_connection", connections=5, requests=0, at_most=3.0)
    result = counts.measure(count, counts.Bench(subject, None), repeats=1)
    assert result.measured and result.measured.median == 3.0
    assert (result.verdict, result.unit) == ("pass", "SQEs a connection")


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_lone_request_is_sent_when_the_server_sleeps(
    monkeypatch: pytest.MonkeyPatch, generator: Path
) -> None:
    slept: list[bool] = []
    wait = procfs.wait_for_sleep
    monkeypatch.setattr(procfs, "wait_for_sleep", lambda pid: slept.append(wait(pid)))
    count = make_count(
        metric="syscalls_per_lone_request", requests=20, at_least=2.0, at_most=2.0,
        calls=("recvfrom", "sendto"),
    )  # fmt: skip
    subject = Subject("threads", "01", "server", (), Whose.REFERENCE)
    result = counts.measure(count, counts.Bench(subject, None), repeats=1)
    if result.verdict == counts.Verdict.NOT_MEASURED:
        pytest.skip(result.reason)  # strace may not trace here
    assert result.verdict == counts.Verdict.PASS, result.sentence()
    assert slept == [True] * 60, "20 requests, and twice as many"


def test_a_program_that_does_not_sleep_is_not_waited_for_without_end() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            assert not procfs.wait_for_sleep(busy.pid, timeout_s=0.3)
        finally:
            busy.kill()


def test_cqes_of_a_wait_are_those_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    @contextmanager
    def counted() -> Iterator[tuple[list[str], Counter[str]]]:
        calls: Counter[str] = Counter()
        yield [], calls
        calls["io_uring_enter"] = asked[-1]

    monkeypatch.setattr(syscalls, "require_strace", lambda: None)
    monkeypatch.setattr(syscalls, "counted", counted)
    monkeypatch.setattr(counts, "drive", lambda load, server: asked.append(load.requests))
    monkeypatch.setattr(
        procfs, "ring_tails", lambda pid: procfs.RingTails(0, 40 * asked[-1])
    )
    subject = fake_subject(tmp_path, "hangs", monkeypatch)
    count = make_count(metric="cqes_per_wait", at_most=50.0)
    result = counts.measure(count, counts.Bench(subject, None), repeats=1)
    assert asked == [10], "who is quicker decides how many waits there are: no difference is taken"
    assert result.measured and result.measured.median == 40.0


# --- the real thing, small ----------------------------------------------------------------------


def result_in(folder: Path) -> dict[str, object]:
    text = (folder / report.RESULT_NAME).read_text()
    report.ADAPTER.validate_json(text)
    return json.loads(text)


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_quick_checkpoint_passes_twice_and_writes_everything(
    tmp_path: Path, generator: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    verdicts = []
    for name in ("first", "again"):
        folder = tmp_path / name
        assert commands.run_bench(Options("01", solution=True, quick=True, out=folder)) == 0
        document = result_in(folder)
        assert ET.parse(folder / "plot.svg").getroot().tag.endswith("svg")
        assert "requests per second" in (folder / "table.md").read_text()
        verdicts.append([(each["name"], each["verdict"]) for each in document["counts"]])
    assert verdicts[0] == verdicts[1]
    assert {verdict for _, verdict in verdicts[0]} <= {"pass", "not measured"}
    assert "Checkpoint 01" in capfd.readouterr().out


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_checkpoint_without_clients_is_counts_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert commands.run_bench(Options("04", solution=True, quick=True, out=tmp_path)) == 0
    document = result_in(tmp_path)
    assert document["cells"] == []
    verdicts = {each["verdict"] for each in document["counts"]}
    assert verdicts <= {"pass", "not measured"}
    assert not (tmp_path / "plot.svg").exists()
    if verdicts == {"pass"}:
        assert "| 0.015625 |" in (tmp_path / "table.md").read_text()
    assert "Checkpoint 04" in capfd.readouterr().out


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_count_out_of_its_bounds_fails_the_checkpoint(
    generator: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    chapter = find_chapter("01")
    count = replace(chapter.checkpoint.counts[0], at_least=2.5, at_most=2.6, requests=200)
    subject = Subject("01-server", "01", "server", (), Whose.REFERENCE)
    result = counts.measure(count, counts.Bench(subject, None), repeats=1)
    if result.verdict == counts.Verdict.NOT_MEASURED:
        pytest.skip(result.reason)
    assert result.verdict == counts.Verdict.FAIL
    assert "2.5 to 2.6 expected" in counts.failures([result])[0]


@pytest.mark.timeout(BUILD_AND_RUN_S)
@pytest.mark.parametrize(("kind", "chapter"), [("ladder", None), ("matrix", "02")])
def test_quick_ladder_and_matrix_write_everything(
    tmp_path: Path,
    generator: Path,
    kind: str,
    chapter: str | None,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A matrix of all chapters takes half a minute, and writes no other files."""
    options = Options(chapter, solution=True, quick=True, out=tmp_path, **{kind: True})
    assert commands.run_bench(options) == 0
    document = result_in(tmp_path)
    assert document["kind"] == kind
    expected = {"ladder": {"plot.svg", "http.svg"}, "matrix": {"requests.svg", "cpu.svg"}}[kind]
    assert {file.name for file in tmp_path.glob("*.svg")} == expected
    for name in expected:
        ET.parse(tmp_path / name)
    verdicts = {each["verdict"] for each in document["counts"]}
    assert verdicts == ({"shown"} if kind == "ladder" else set())
    assert len(document["counts"]) == (2 * len(document["subjects"]) if kind == "ladder" else 0)


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_students_checkpoint_measures_yours_beside_the_reference(
    tmp_path: Path,
    generator: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The reference plays the student: what chapters/ holds is nobody's business here."""
    built: list[str] = []
    original = builds.program
    monkeypatch.setattr(builds, "build", lambda preset, targets: built.append(preset))
    monkeypatch.setattr(builds, "program", lambda preset, name: original("release", name))
    assert commands.run_bench(Options("01", quick=True, out=tmp_path)) == 0
    document = result_in(tmp_path)
    assert built == ["student-release", "release"]
    assert {each["whose"] for each in document["subjects"]} == {"yours", "reference"}
    assert {each["subject"] for each in document["counts"]} == {"01-server"}
    ratios = document["cells"][0]["ratios"]
    assert all(ratios[each["name"]]["cpu_us_per_request"] for each in document["subjects"])


def test_speed_that_fails_is_named_and_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every count passes, and no contender gives a figure: the checkpoint has been run."""
    dead = script(tmp_path, "server", SERVER.format(behavior="dies"))
    passed = counts.judge(make_count(), "01-server", [counts.Sample(1.0, {})])
    remembered: list[str] = []
    monkeypatch.setattr(counts, "measure", lambda *_: passed)
    monkeypatch.setattr(commands.packages, "ensure", lambda *_: None)
    monkeypatch.setattr(commands.state, "remember_checkpoint", remembered.append)
    run_instead(dead, monkeypatch)
    assert commands.run(Options("1", rounds=1, out=tmp_path), yes=False) == 0
    assert remembered == ["01"]
    gone = "One gave no figure, and was left out from there on:"
    note = f"{gone} threads, yours, 50 clients, 128 B: server exited"
    assert note in " ".join(capfd.readouterr().out.split())
    assert note in (tmp_path / "table.md").read_text()


def test_a_benchmark_without_counts_fails_where_no_server_gives_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    dead = script(tmp_path, "server", SERVER.format(behavior="dies"))
    run_instead(dead, monkeypatch)
    assert commands.run_bench(Options(ladder=True, quick=True, out=tmp_path)) == 1
    assert "Nothing was measured" in capfd.readouterr().err


def test_an_unfinished_server_is_sent_to_its_tests_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished = script(tmp_path, "01-server", SERVER.format(behavior="dies"))
    monkeypatch.setattr(report, "STATE", tmp_path / "state")
    run_instead(unfinished, monkeypatch)
    with pytest.raises(CourseError) as raised:
        commands.run_bench(Options("01", quick=True))
    assert "01-server exited with 1 before it listened" in str(raised.value)
    assert "./course test 01" in str(raised.value)
    assert not list((tmp_path / "state" / "bench" / "01").iterdir())


def marked_processes(mark: str) -> dict[int, str]:
    """Names by pid of all processes with `mark` in their environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "comm").read_text().strip()
        except OSError:
            continue
    return found


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, generator: Path) -> None:
    mark = f"COURSE_BENCH_TEST={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    code = (
        "from pathlib import Path; from course_tool.bench import commands; "
        "from course_tool.bench.options import Options; "
        f"commands.run_bench(Options('01', solution=True, out=Path({str(tmp_path)!r})))"
    )
    environment = os.environ | {name: value, "PYTHONPATH": str(ROOT / "common" / "tool")}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as tool:
        try:
            wait_until(lambda: "loadgen" in marked_processes(mark).values(), "a load", 600)
            tool.send_signal(signal.SIGINT)
            tool.wait(timeout=60)
        finally:
            tool.kill()
    wait_until(lambda: not marked_processes(mark), "all to be gone")
