# SPDX-License-Identifier: MIT
"""./course bench with servers: the reference ones, and some that crash, hang or never announce."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from course_tool import builds, processes
from course_tool.bench import commands, counts, loadgen, report, speed, timing
from course_tool.bench.loadgen import LoadSpec
from course_tool.bench.machine import Pinning
from course_tool.bench.subjects import Subject, Whose
from course_tool.chapters import Contender, Timing
from course_tool.errors import CourseError
from course_tool.paths import ROOT

UNPINNED = Pinning(None, None, "not pinned: a test")
BRIEF = LoadSpec(2, 16, duration_s=0.2)
BUILD_AND_RUN_S = 900  # the first test here may have to build the reference

SERVER = """\
import os, socket, sys, time
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
"""

GENERATOR_THAT_FAILS = "import sys; sys.exit('client 3: byte 17 is 0x00 instead of 0x11')"


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    # By way of the shell: a shebang cannot name an interpreter whose path holds a space.
    file.write_text(f"#!/bin/sh\n''''exec '{sys.executable}' \"$0\" \"$@\" #'''\n{text}")
    file.chmod(0o755)
    return file


def fake_subject(folder: Path, behavior: str, monkeypatch: pytest.MonkeyPatch) -> Subject:
    file = script(folder, f"{behavior}-server", SERVER.format(behavior=behavior))
    original = builds.program
    monkeypatch.setattr(
        builds,
        "program",
        lambda preset, name: file if name == f"90-{behavior}" else original(preset, name),
    )
    return Subject(behavior, "90", behavior, (), Whose.REFERENCE)


@pytest.fixture(scope="module")
def generator() -> Path:
    builds.build("release", ["01-server", "loadgen"])
    return loadgen.program()


def only_failure(subject: Subject, generator: Path, rounds: int = 2) -> str:
    cell = speed.measure([subject], BRIEF, rounds, UNPINNED, generator, lambda _: None)
    assert len(cell.runs) == 1, "who has failed does not run again"
    return cell.failures()[0]


# --- servers and load generators that fail ------------------------------------------------------


def test_a_server_that_never_announces_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "ANNOUNCE_DEADLINE_S", 0.3)
    subject = fake_subject(tmp_path, "silent", monkeypatch)
    assert "did not print 'listening on HOST:PORT'" in only_failure(subject, Path("loadgen"))


def test_a_server_that_cannot_start_has_its_stderr_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "dies", monkeypatch)
    assert "fake: no io_uring here" in only_failure(subject, Path("loadgen"))


def test_a_load_generator_that_fails_has_its_sentence_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "hangs", monkeypatch)
    broken = script(tmp_path, "loadgen", GENERATOR_THAT_FAILS)
    assert "byte 17 is 0x00 instead of 0x11" in only_failure(subject, broken)


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_server_that_crashes_under_load_has_its_stderr_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path
) -> None:
    failure = only_failure(fake_subject(tmp_path, "crashes", monkeypatch), generator)
    assert "fake: assertion failed: bid < 4096" in failure
    assert "It exited with 1" in failure


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_server_that_is_killed_without_a_word_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path
) -> None:
    failure = only_failure(fake_subject(tmp_path, "aborts", monkeypatch), generator)
    assert "The server's stderr is empty. It was killed by SIGABRT." in failure


@pytest.mark.timeout(BUILD_AND_RUN_S)
@pytest.mark.parametrize("behavior", ["hangs", "closes"])
def test_a_server_that_does_not_answer_ends_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path, behavior: str
) -> None:
    monkeypatch.setattr(loadgen, "STALL_TIMEOUT_S", 0.5)
    started = time.monotonic()
    failure = only_failure(fake_subject(tmp_path, behavior, monkeypatch), generator)
    assert "The load generator stopped:" in failure
    assert time.monotonic() - started < 10


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_idle_clients_of_a_server_that_hangs_up_are_a_course_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "closes", monkeypatch)
    with processes.Server(subject.command()) as server, pytest.raises(CourseError) as raised:
        counts._converse(server, 16)
    assert "closed an idle client's connection" in str(raised.value) or "did not echo" in str(
        raised.value
    )


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_one_that_fails_does_not_take_the_others_figures_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: Path
) -> None:
    good = Subject("threads", "01", "server", (), Whose.REFERENCE, baseline=True)
    bad = fake_subject(tmp_path, "dies", monkeypatch)
    cell = speed.measure([good, bad], BRIEF, 2, UNPINNED, generator, lambda _: None)
    assert len([run for run in cell.of(good) if run.values]) == 2
    assert len(cell.failures()) == 1


TIMED = """\
import sys
count = int(sys.argv[sys.argv.index("--count") + 1])
if "--fail" in sys.argv: sys.exit("fake: 06.2 is not implemented")
if "--mute" not in sys.argv: print("calls:", count); print("ns per call: %.1f ns" % (count / 100))
"""


def timed_subject(name: str, *args: str, baseline: bool = False) -> Subject:
    return Subject(name, "90", "calls", args, Whose.REFERENCE, baseline)


def test_programs_that_time_themselves_take_turns_and_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path, "90-calls", TIMED)
    monkeypatch.setattr(builds, "program", lambda preset, name: program)
    subjects = [
        timed_subject("plain", baseline=True),
        timed_subject("fails", "--fail"),
        timed_subject("mute", "--mute"),
    ]
    contenders = tuple(Contender(each.name, "90", "calls", each.args, False) for each in subjects)
    cell = timing.measure(Timing("call", 700, 2, contenders), subjects, UNPINNED, lambda _: None)
    assert [run.values for run in cell.of(subjects[0])] == [{timing.KEY: 7.0}] * 2
    assert [len(cell.of(each)) for each in subjects] == [2, 1, 1], "who failed does not run again"
    fails, mute = cell.failures()
    assert fails == "fails: 90-calls did not run to its end: fake: 06.2 is not implemented"
    assert mute.startswith("mute: 90-calls printed no line 'ns per call: NUMBER'")


def test_a_count_that_a_program_prints_is_read_from_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script(tmp_path, "90-calls", TIMED)
    monkeypatch.setattr(builds, "program", lambda preset, name: program)
    count = counts.Count(
        name="a number", metric="printed", program="calls", args=("--count", "9"), connections=0,
        size=0, inflight=0, requests=0, at_least=9, at_most=9, why="it was told so", calls=(),
        value="calls", unit="calls",
    )  # fmt: skip
    subject = Subject("90-calls", "90", "calls", count.args, Whose.REFERENCE)
    bench = counts.Bench(subject, Path("loadgen"), None, 0)
    result = counts.measure(count, bench, repeats=2)
    assert (result.verdict, result.spread and result.spread.samples) == (counts.Verdict.PASS, 2)
    failing = counts.Bench(timed_subject("x", *count.args, "--fail"), Path("loadgen"), None, 0)
    with pytest.raises(CourseError, match="90-calls did not run to its end: fake: 06.2 is not"):
        counts.measure(count, failing, repeats=1)


def test_servers_without_a_ring_are_not_measured_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = fake_subject(tmp_path, "hangs", monkeypatch)
    count = counts.Count(
        "SQEs", "sqes_per_request", "hangs", (), 1, 16, 1, 10, 1.0, 2.0, "a reason", ()
    )
    result = counts.measure(count, counts.Bench(subject, Path("loadgen"), None, 10), repeats=1)
    assert result.verdict == counts.Verdict.NOT_MEASURED
    assert "has no ring" in result.reason


# --- the real thing, small ----------------------------------------------------------------------


def result_in(folder: Path) -> dict[str, object]:
    document = json.loads((folder / report.RESULT_NAME).read_text())
    assert report.deviations(document) == []
    return document


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_a_quick_checkpoint_passes_twice_and_writes_everything(
    tmp_path: Path, generator: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    verdicts = []
    for name in ("first", "again"):
        folder = tmp_path / name
        assert commands.run_bench("01", solution=True, quick=True, out=folder) == 0
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
    assert commands.run_bench("04", solution=True, quick=True, out=tmp_path) == 0
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
    from dataclasses import replace

    from course_tool.chapters import find_chapter

    chapter = find_chapter("01")
    count = replace(chapter.checkpoint.counts[0], at_least=2.5, at_most=2.6, requests=200)
    subject = Subject("01-server", "01", "server", (), Whose.REFERENCE)
    result = counts.measure(count, counts.Bench(subject, generator, None, 200), repeats=1)
    if result.verdict == counts.Verdict.NOT_MEASURED:
        pytest.skip(result.reason)
    assert result.verdict == counts.Verdict.FAIL
    assert "2.5 to 2.6 expected" in counts.failures([result])[0]


@pytest.mark.timeout(BUILD_AND_RUN_S)
@pytest.mark.parametrize("kind", ["ladder", "matrix"])
def test_quick_ladder_and_matrix_write_everything(
    tmp_path: Path, generator: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    # Beside other tests a server may answer nothing in the fraction of a second that it is given.
    attempts = (commands.run_bench(None, quick=True, out=tmp_path, **{kind: True}) for _ in "123")
    assert 0 in attempts
    document = result_in(tmp_path)
    assert document["kind"] == kind
    expected = {"ladder": {"plot.svg"}, "matrix": {"requests.svg", "cpu.svg"}}[kind]
    assert {file.name for file in tmp_path.glob("*.svg")} == expected
    for name in expected:
        ET.parse(tmp_path / name)


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
    assert commands.run_bench("01", quick=True, out=tmp_path) == 0
    document = result_in(tmp_path)
    assert built == ["student-release", "release"]
    assert {each["whose"] for each in document["subjects"]} == {"yours", "reference"}
    assert {each["subject"] for each in document["counts"]} == {"01-server"}
    ratios = document["cells"][0]["ratios"]
    assert all(ratios[each["name"]]["cpu_us_per_request"] for each in document["subjects"])


def test_an_unfinished_server_is_sent_to_its_tests_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished = script(tmp_path, "01-server", SERVER.format(behavior="dies"))
    monkeypatch.setattr(report, "STATE", tmp_path / "state")
    monkeypatch.setattr(builds, "build", lambda preset, targets: None)
    monkeypatch.setattr(builds, "program", lambda preset, name: unfinished)
    with pytest.raises(CourseError) as raised:
        commands.run_bench("01", quick=True)
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


def wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.timeout(BUILD_AND_RUN_S)
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path, generator: Path) -> None:
    mark = f"COURSE_BENCH_TEST={uuid.uuid4()}"
    name, _, value = mark.partition("=")
    code = (
        "from pathlib import Path; from course_tool.bench import run_bench; "
        f"run_bench('01', solution=True, out=Path({str(tmp_path)!r}))"
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
            loaded = wait_for(lambda: "loadgen" in marked_processes(mark).values(), 60)
            assert loaded, "the tool never came to load a server"
            tool.send_signal(signal.SIGINT)
            tool.wait(timeout=20)
        finally:
            tool.kill()
    assert wait_for(lambda: not marked_processes(mark), 2), marked_processes(mark)
