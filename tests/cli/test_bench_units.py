# SPDX-License-Identifier: MIT
"""The parts of ./course bench that need no server: parsing, arithmetic, verdicts, tables, plots."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from course_tool import builds, processes, syscalls
from course_tool.bench import (
    commands,
    counts,
    machine,
    plot,
    printed,
    procfs,
    report,
    speed,
    tables,
)
from course_tool.bench.loadgen import LoadReport, LoadSpec, TooBusy, parse_report
from course_tool.bench.options import Options
from course_tool.bench.report import Result
from course_tool.bench.spread import Spread, paired_ratios, summarize
from course_tool.bench.subjects import Subject, Whose, of_checkpoint, of_ladder
from course_tool.chapters import Chapter, Contender, Count, Timing, all_chapters, find_chapter
from course_tool.errors import CourseError

STRACE_TABLE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.51    0.100401          14      2000           recvfrom
 36.39    0.050125          13      2000         3 sendto
  2.06    0.000182          82         2         2 accept4
  1.00    0.000001           0         1           arch_prctl
------ ----------- ----------- --------- --------- ----------------
100.00    0.150709          37      4003         5 total
"""

RING_FDINFO = """\
pos:\t0
flags:\t02000002
SqMask:\t0x3f
SqHead:\t4
SqTail:\t5
CachedSqHead:\t5
CqMask:\t0x7f
CqHead:\t0
CqTail:\t7
CachedCqTail:\t7
SQEs:\t1
CQEs:\t7
    0: user_data:0, res:0, flag:0
SqThread:\t-1
"""


def make_count(**changes: object) -> Count:
    count = Count(
        name="system calls per echo",
        metric="syscalls_per_request",
        program="server",
        args=(),
        connections=1,
        size=128,
        inflight=1,
        requests=2000,
        at_least=1.99,
        at_most=2.05,
        why="one recv and one send",
        calls=(),
    )
    return replace(count, **changes)  # type: ignore[arg-type]


def make_subject(name: str, baseline: bool = False) -> Subject:
    return Subject(name, "01", "server", (), Whose.REFERENCE, baseline)


def make_values(requests_per_s: float, cpu_us: float) -> dict[str, float]:
    values = {metric.key: 1.0 for metric in speed.METRICS}
    return values | {"requests_per_s": requests_per_s, "cpu_us_per_request": cpu_us}


def make_cell(connections: int = 50, size: int = 128) -> speed.Cell:
    """Two rounds of `slow` and `fast`; in the second, the client limited `fast`."""
    runs = (
        speed.Run(1, 1, "slow", False, make_values(1000, 8)),
        speed.Run(1, 2, "fast", False, make_values(3000, 4)),
        speed.Run(2, 1, "fast", True, make_values(5000, 3)),
        speed.Run(2, 2, "slow", False, make_values(2000, 4)),
    )
    subjects = (make_subject("slow", baseline=True), make_subject("fast"))
    load = LoadSpec(connections, size, duration_s=2.0, warmup_s=0.5)
    return speed.Cell(load, subjects, 2, runs)


def make_timing() -> speed.Cell:
    """Two rounds of a plain and a virtual call; the third program failed at once."""
    names = ("plain", "virtual", "broken")
    subjects = tuple(make_subject(name, name == "plain") for name in names)
    runs = (
        speed.Run(1, 1, "plain", False, {speed.NS: 2.0}),
        speed.Run(1, 2, "virtual", False, {speed.NS: 3.0}),
        speed.Run(1, 3, "broken", False, {}, "broken did not run to its end: no"),
        speed.Run(2, 1, "virtual", False, {speed.NS: 2.5}),
        speed.Run(2, 3, "plain", False, {speed.NS: 1.0}),
    )
    return speed.Cell(Timing("call", 1000, 2, ()), subjects, 2, runs)


MACHINE = replace(
    machine.describe(machine.Pinning(0, 1, "server on CPU 0, load on CPU 1")), busy=False
)


def make_result(kind: str = "checkpoint", cells: list[speed.Cell] | None = None) -> Result:
    judged = counts.judge(make_count(), "01-server", [counts.Sample(2.0, {"recvfrom": 1.0})])
    shown = replace(judged, verdict=counts.Verdict.SHOWN)
    of_kind = {"checkpoint": [judged], "ladder": [replace(shown, subject="slow")]}
    return Result(
        kind=kind,
        chapter="01" if kind == "checkpoint" else None,
        title="Checkpoint 01: A <title> & more",
        question="What does it cost?",
        quick=False,
        date=report.now(),
        machine=MACHINE,
        builds=[machine.Build("release", "GCC 12.2.0", "-O2", None)],
        subjects=[make_subject("slow", baseline=True), make_subject("fast")],
        counts=of_kind.get(kind, []),
        cells=cells or [make_cell()],
    )


# --- what the kernel and other programs print --------------------------------------------------

ROLLUP = "Rss:  900 kB\nPss_Anon:  100 kB\nPss_File:  700 kB\nPss_Shmem:  20 kB\nSwapPss:  4 kB\n"
COMMAND = "/usr/bin/c++ -I/home/me/x -O2 -DNDEBUG -DDIR=/home -Wall -std=c++20 -o a.o -c a.cpp"
CMAKE = 'set(CMAKE_CXX_COMPILER_ID "GNU")\nset(CMAKE_CXX_COMPILER_VERSION "12.2.0")\n'
STRACE_CALLS = {"recvfrom": 2000, "sendto": 2000, "accept4": 2, "arch_prctl": 1}  # and no total


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (syscalls.parse_table, STRACE_TABLE, STRACE_CALLS),
        (syscalls.parse_table, "", {}),
        (syscalls.parse_table, "strace: Process 1 attached\n", {}),
        (syscalls.parse_table, "% time seconds syscall\n", {}),
        (procfs.parse_ring, RING_FDINFO, procfs.RingTails(5, 7)),
        # of a locked ring, or an old kernel
        (procfs.parse_ring, "pos:\t0\nflags:\t02000002\nSqThread:\t-1\n", None),
        (procfs.own_bytes, ROLLUP, 124 * 1024),  # leaves file pages out
        (machine.parse_cpu_list, "0-2,5\n", {0, 1, 2, 5}),
        (machine.parse_cpu_ticks, "cpu  100 5 50 800 20 1 2 0 7 3\ncpu0 1 2 3\n", (820, 978)),
        (machine.parse_flags, COMMAND, "-O2 -DNDEBUG -std=c++20"),  # changes code, and no path
        (machine.parse_compiler, CMAKE, "GCC 12.2.0"),  # as people name it
        (machine.parse_compiler, "", None),
    ],
)
def test_what_others_print_is_understood(
    parse: Callable[[str], object], text: str, value: object
) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [("processor : 0\nmodel name\t: A CPU \n", "A CPU"), ("BogoMIPS : 50\n", "aarch64")],
)
def test_a_cpu_without_a_model_is_named_by_its_architecture(cpuinfo: str, model: str) -> None:
    assert machine.parse_cpu_model(cpuinfo, "aarch64") == model


def test_what_others_use_of_the_cpus_is_a_share() -> None:
    assert 0.0 <= machine.others_share() <= 1.0


# --- counts -----------------------------------------------------------------------------------


def test_a_unit_costs_the_difference_of_n_and_2n() -> None:
    def work(units: int) -> Counter[str]:
        return Counter(recvfrom=units + 1, sendto=units, mmap=28)

    assert counts.per_unit(work, 100) == {"recvfrom": 1.0, "sendto": 1.0, "mmap": 0.0}


def test_calls_per_operation_are_the_difference_of_two_whole_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[object]] = []

    @contextmanager
    def counted() -> Iterator[tuple[list[str], Counter[str]]]:
        calls: Counter[str] = Counter()
        yield ["strace"], calls
        calls.update(io_uring_enter=int(str(asked[-1][-1])) // 8, mmap=28)

    monkeypatch.setattr(syscalls, "require_strace", lambda: None)
    monkeypatch.setattr(syscalls, "counted", counted)
    monkeypatch.setattr(printed, "run_to_end", lambda args, under: asked.append([*under, *args]))
    monkeypatch.setattr(Subject, "run_command", lambda _: ["nops", "--batch", "8"])
    count = make_count(metric="syscalls_per_operation", requests=800, at_least=0.1, at_most=0.2)
    result = counts.measure(count, counts.Bench(make_subject("nops"), None), repeats=1)
    assert result.measured == Spread(0.125, 0.125, 0.125, 1)
    assert result.parts == {"io_uring_enter": 0.125}
    assert asked == [
        ["strace", "nops", "--batch", "8", "--count", "800"],
        ["strace", "nops", "--batch", "8", "--count", "1600"],
    ]


def test_a_program_that_fails_while_it_is_counted_is_a_course_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["/bin/sh", "-c", "echo no ring here >&2; exit 1"]
    monkeypatch.setattr(Subject, "run_command", lambda _: command)
    count = make_count(metric="syscalls_per_operation", requests=10)
    with pytest.raises(CourseError, match="sh did not run to its end: no ring here"):
        result = counts.measure(count, counts.Bench(make_subject("sh"), None), repeats=1)
        pytest.skip(result.reason)  # strace may not trace here


def test_an_exact_count_is_shown_to_its_last_digit() -> None:
    count = make_count(metric="syscalls_per_operation", at_least=0.015625, at_most=0.015625)
    result = counts.judge(count, "04-nops", [counts.Sample(0.015625, {})] * 3)
    assert result.verdict == counts.Verdict.PASS
    assert tables.expected_text(result) == tables.measured_text(result) == "0.015625"
    assert tables.spread_text(result) == ""
    off = counts.judge(count, "04-nops", [counts.Sample(0.0158, {})])
    assert off.verdict == counts.Verdict.FAIL
    assert "calls an operation" in counts.failures([off])[0]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("bytes per frame: 96", 96.0),
        ("  bytes per frame:   96.5 bytes  ", 96.5),
        ("bytes per frame: 1e3", 1000.0),
        ("bytes per frame: -1", -1.0),
    ],
)
def test_a_printed_number_is_read_by_its_name(line: str, number: float) -> None:
    text = f"other bytes per frame: 7\n{line}\nbytes per frame of the other: 8\n"
    assert printed.parse(text, "bytes per frame", "06-costs") == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            "06-costs printed no line 'bytes: NUMBER', where one was expected. It printed nothing",
        ),
        ("hello\n", "no line 'bytes: NUMBER', where one was expected. It printed:\n  hello"),
        ("bytes: 1\nbytes: 2\n", "printed 2 lines 'bytes: NUMBER', where one was expected."),
        ("bytes: many\n", "06-costs printed 'bytes: many', which is no number."),
        ("bytes:\n", "06-costs printed 'bytes: ', which is no number."),
        ("bytes: 12x\n", "06-costs printed 'bytes: 12x', which is no number."),
        ("bytes: nan\n", "which is no number"),
    ],
)
def test_what_is_no_printed_number_fails_with_a_sentence(text: str, said: str) -> None:
    with pytest.raises(CourseError, match=re.escape(said)):
        printed.parse(text, "bytes", "06-costs")


def test_a_printed_count_is_judged_and_told_in_its_own_unit() -> None:
    count = make_count(
        metric="printed", value="bytes per frame", unit="bytes", at_least=64, at_most=128
    )
    result = counts.judge(count, "06-costs", [counts.Sample(96.0, {})] * 3)
    assert result.verdict == counts.Verdict.PASS
    assert tables.measured_text(result) == "96.0 B"
    assert (result.value, result.unit) == ("bytes per frame", "bytes")
    big = counts.judge(count, "06-costs", [counts.Sample(640.0, {})])
    assert "640 bytes measured with 06-costs, 64 to 128 expected" in counts.failures([big])[0]


def test_ring_tails_wrap_at_32_bits() -> None:
    earlier = procfs.RingTails(procfs.U32 - 10, 5)
    assert procfs.RingTails(30, 9).since(earlier) == procfs.RingTails(40, 4)


def test_counting_reaps_no_child_of_somebody_else() -> None:
    syscalls.require_strace()
    other = subprocess.Popen(["false"])
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still there
    returncode, calls = syscalls.count_while(
        lambda words: processes.run(words, timeout_s=60).returncode, ["true"]
    )
    assert returncode == 0 and calls["execve"] == 1
    assert other.wait() == 1, "somebody else has waited for it, and its exit code is lost"


def test_a_process_without_a_ring_cannot_be_counted() -> None:
    assert procfs.ring_tails(os.getpid()) is None


def test_a_real_ring_is_found_in_proc() -> None:
    io_uring_setup, params = 425, ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None, use_errno=True).syscall(io_uring_setup, 4, params)
    if ring == -1:
        pytest.skip(f"io_uring_setup: {os.strerror(ctypes.get_errno())}")
    try:
        assert procfs.ring_tails(os.getpid()) == procfs.RingTails(0, 0)
    finally:
        os.close(ring)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([2.0, 2.0, 2.0], counts.Verdict.PASS),
        ([1.99], counts.Verdict.PASS),
        ([2.05], counts.Verdict.PASS),
        ([1.989], counts.Verdict.FAIL),
        ([2.051], counts.Verdict.FAIL),
        ([2.0, 2.04, 9.0], counts.Verdict.PASS),  # one run disturbed: the median decides
        ([2.0, 3.0, 3.0], counts.Verdict.FAIL),
    ],
)
def test_the_median_is_held_against_the_bounds(values: list[float], verdict: str) -> None:
    samples = [counts.Sample(value, {}) for value in values]
    assert counts.judge(make_count(), "01-server", samples).verdict == verdict


def test_a_failed_count_says_measured_expected_and_why() -> None:
    result = counts.judge(make_count(), "01-server", [counts.Sample(3.0, {"poll": 1.0})])
    sentence = (
        "system calls per echo: 3 calls a request measured with 01-server, 1.99 to 2.05 expected: "
        "one recv and one send."
    )
    assert counts.failures([result]) == [sentence]


@pytest.mark.parametrize(("required", "failures"), [("", 0), ("0", 0), ("1", 1)])
def test_what_cannot_be_measured_fails_only_where_features_are_required(
    monkeypatch: pytest.MonkeyPatch, required: str, failures: int
) -> None:
    def no_strace() -> None:
        raise syscalls.CannotCount("strace may not trace here (EPERM)")

    monkeypatch.setenv(counts.REQUIRE_VARIABLE, required)
    monkeypatch.setattr(syscalls, "require_strace", no_strace)
    bench = counts.Bench(make_subject("threads"), None)
    result = counts.measure(make_count(), bench, repeats=3)
    assert result.verdict == counts.Verdict.NOT_MEASURED
    assert "strace may not trace here (EPERM)" in result.sentence()
    assert len(counts.failures([result])) == failures


# --- speed ------------------------------------------------------------------------------------


def test_spread_is_median_and_extremes_of_what_was_measured() -> None:
    assert summarize([3.0, None, 1.0, 9.0]) == Spread(3.0, 1.0, 9.0, 3)
    assert summarize([None]) is None


def test_ratios_are_paired_round_by_round() -> None:
    assert paired_ratios([2.0, 9.0, None, 4.0], [1.0, 3.0, 1.0, 0.0]) == [2.0, 3.0, None, None]


def test_a_round_that_the_client_limited_compares_only_cpu() -> None:
    cell, (slow, fast) = make_cell(), make_result().subjects
    assert cell.baseline == slow
    assert cell.ratio(fast, speed.BY_KEY["requests_per_s"]) == Spread(3.0, 3.0, 3.0, 1)
    assert cell.ratio(fast, speed.BY_KEY["cpu_us_per_request"]) == Spread(0.625, 0.5, 0.75, 2)
    assert cell.limited_rounds(fast) == 1


def test_every_subject_takes_every_place_of_a_round() -> None:
    subjects = [make_subject(name) for name in "abc"]
    orders = [[each.name for each in speed.order_of_round(subjects, index)] for index in range(3)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]


@pytest.mark.parametrize("busy", [0, 2, 3])
def test_a_run_that_other_programs_got_in_the_way_of_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, busy: int
) -> None:
    tries: list[str] = []

    def load_once(subject: Subject, *_: object) -> speed.Measured:
        tries.append(subject.name)
        if len(tries) <= busy:
            raise TooBusy("Not one request was answered in the measured time.")
        return make_values(1000, 8), False

    monkeypatch.setattr(speed, "_load_once", load_once)
    load, pinning = LoadSpec(50, 128, duration_s=2.0), machine.Pinning(None, None, "")
    cell = speed.measure([make_subject("asio")], load, 1, pinning, lambda _: None)
    assert len(tries) == min(busy + 1, speed.TRIES)
    failed = ["asio, 50 clients, 128 B: Not one request was answered in the measured time."]
    assert cell.failures() == (failed if busy == speed.TRIES else [])
    assert [run.values for run in cell.runs] == [{} if busy == 3 else make_values(1000, 8)]


def test_a_timing_has_spreads_and_ratios_like_a_load() -> None:
    cell = make_timing()
    (metric,) = cell.metrics
    plain, virtual, broken = cell.subjects
    assert cell.spread(virtual, metric) == Spread(2.75, 2.5, 3.0, 2)
    assert cell.ratio(virtual, metric) == Spread(2.0, 1.5, 2.5, 2)
    assert cell.baseline == plain
    assert cell.spread(broken, metric) is None
    assert cell.failures() == ["broken: broken did not run to its end: no"]


LOADED = LoadReport(
    completed=20_000,
    requests_on_wire=25_000,
    began_monotonic_s=10.0,
    ended_monotonic_s=12.0,
    requests_per_s=10_000.0,
    latency_us={"p50": 50.0, "p99": 90.0, "p999": 99.0},
    client={"cpu_us_per_request": 1.5, "limited": False},
)


def make_reading(at_s: float, cpu_s: float = 0.0) -> procfs.CpuTime:
    """A fifth of the CPU time is user time."""
    return procfs.CpuTime(at_s, cpu_s, cpu_s / 5, cpu_s)


def test_cost_of_a_request_is_cpu_rate_by_request_rate() -> None:
    life = speed.Life(4096, voluntary_switches=25_000, involuntary_switches=2500)
    values = speed.values_of(LOADED, make_reading(10.0, 1.0), make_reading(12.0, 2.0), life)
    assert values["server_busy"] == pytest.approx(0.5)
    assert values["cpu_us_per_request"] == pytest.approx(50.0)
    assert values["cpu_user_us_per_request"] == pytest.approx(10.0)
    assert values["cpu_system_us_per_request"] == pytest.approx(40.0)
    assert values["voluntary_switches_per_request"] == pytest.approx(1.0)
    assert values["involuntary_switches_per_request"] == pytest.approx(0.1)
    assert set(values) == {metric.key for metric in speed.METRICS}


def test_only_readings_of_the_measured_time_count() -> None:
    readings = [make_reading(at_s) for at_s in (9.9, 10.1, 11.0, 11.9, 12.1)]
    first, last = speed.window(readings, LOADED)
    assert (first.at_s, last.at_s) == (10.1, 11.9)


@pytest.mark.parametrize("at_s", [[], [11.0], [11.0, 11.1], [9.0, 11.0, 12.5]])
def test_a_load_that_was_read_too_seldom_is_refused(at_s: list[float]) -> None:
    with pytest.raises(CourseError, match="could not be read often enough"):
        speed.window([make_reading(each) for each in at_s], LOADED)


def test_cpu_time_counts_a_child_and_its_threads() -> None:
    spin = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        used = procfs.cpu_time(child.pid)
        assert 0.2 <= used.total_s < 2.0
        assert procfs.settle(child.pid, timeout_s=5.0), "it waits for input and uses no CPU"
        assert procfs.peak_resident_bytes(child.pid) > 1024 * 1024
        child.stdin.close()


def test_settling_gives_up_on_a_process_that_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(procfs, "_clock_s", lambda pid, fields: next(ticks))
    assert not procfs.settle(os.getpid(), timeout_s=0.3)


@pytest.mark.parametrize(
    ("text", "wrong"), [('{"completed": 1}', ".*latency_us"), ("not json", "")]
)
def test_load_report_without_a_key_is_a_course_error(text: str, wrong: str) -> None:
    with pytest.raises(CourseError, match="loadgen's report cannot be read: " + wrong):
        parse_report(text)


# --- machine ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "siblings", "server", "load", "note"),
    [
        ({0, 1, 2, 3}, {0, 1}, 0, 2, "server on CPU 0, load on CPU 2"),  # shares no core
        ({0, 1}, {0, 1}, 0, 1, "two threads of one core"),
        ({3}, {3}, None, None, "CPU 3 is the only one"),
    ],
)
def test_server_and_load_are_kept_apart_as_far_as_can_be(
    allowed: set[int], siblings: set[int], server: int | None, load: int | None, note: str
) -> None:
    pinning = machine.choose_cpus(allowed, siblings)
    assert (pinning.server_cpu, pinning.load_cpu) == (server, load)
    assert note in pinning.note


def test_pinning_ends_with_its_block() -> None:
    before = os.sched_getaffinity(0)
    with machine.pinned() as pinning:
        if pinning.load_cpu is not None:
            assert os.sched_getaffinity(0) == {pinning.load_cpu}
    assert os.sched_getaffinity(0) == before


def test_a_busy_machine_is_said_to_be_so() -> None:
    busy = replace(make_result(), machine=replace(MACHINE, busy=True, others_share=0.42))
    assert any("Other programs used 42 %" in note for note in tables.notes(busy))


def test_more_connections_than_descriptors_are_refused_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (256, 512))
    with pytest.raises(CourseError, match="allows 512. Raise the hard limit"):
        machine.allow_descriptors(1000)


# --- results ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["checkpoint", "ladder", "matrix"])
def test_results_keep_their_schema(kind: str) -> None:
    report.ADAPTER.validate_json(report.json_of(make_result(kind)))


def test_a_result_with_a_timing_keeps_the_schema_and_tells_who_failed() -> None:
    result = replace(make_result(), cells=[], timing=make_timing())
    report.ADAPTER.validate_json(report.json_of(result))
    document = json.loads(report.json_of(result))
    assert document["timing"]["runs"][2]["ns_per_operation"] is None
    assert document["timing"]["ratios"]["virtual"]["median"] == 2.0
    assert document["timing"]["summary"]["broken"] is None
    assert result.failures() == ["broken: broken did not run to its end: no"]


def test_deviations_from_the_schema_are_named() -> None:
    document = json.loads(report.json_of(make_result()))
    document["cells"][0]["runs"][0]["values"].pop("p99_us")
    document["cells"][0]["ratios"]["fast"]["more"] = 1
    document["machine"]["cores"] = "two"
    document["more"] = 1
    with pytest.raises(ValidationError) as raised:
        report.ADAPTER.validate_json(json.dumps(document))
    found = {(each["type"], *each["loc"]) for each in raised.value.errors()}
    assert ("unexpected_keyword_argument", "more") in found
    assert ("int_type", "machine", "cores") in found
    assert ("missing", "cells", 0, "runs", 0, "values", "Values", "p99_us") in found
    assert ("extra_forbidden", "cells", 0, "ratios", "fast", "more") in found


def test_latest_points_at_the_newest_result(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        report.link_latest(tmp_path / name)
    assert (tmp_path / "latest").resolve() == tmp_path / "second"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["first", "latest", "second"]


def test_a_folder_that_cannot_be_made_is_a_course_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="Name another folder with --out"):
        report.new_folder("01", tmp_path / "file" / "results")


def rendered(result: Result) -> str:
    from rich.console import Console

    console = Console(width=tables.WIDTH, file=open(os.devnull, "w"), record=True)  # noqa: SIM115
    for table in tables.tables_of(result):
        console.print(table, width=tables.WIDTH)
    return console.export_text()


def test_of_many_contenders_each_has_a_row() -> None:
    cell = make_cell()
    many = [make_subject(f"contender {i}", i == 0) for i in range(tables.SUBJECTS_MANY)]
    runs = [replace(cell.runs[0], subject=each.name, place=i) for i, each in enumerate(many)]
    cell = replace(cell, subjects=tuple(many), runs=tuple(runs))
    text = rendered(replace(make_result(), subjects=many, cells=[cell]))
    for each in many:
        line = next(line for line in text.splitlines() if line.startswith(f" {each.name} "))
        assert "1,000" in line
    assert max(len(line.rstrip()) for line in text.splitlines()) <= tables.WIDTH


@pytest.mark.parametrize("kind", ["checkpoint", "ladder", "matrix"])
def test_tables_fit_80_columns_and_cut_nothing(kind: str) -> None:
    result = make_result(kind)
    long = [make_subject("a thread each, yours", True), make_subject("a thread each, reference")]
    runs = [replace(run, subject=long[run.subject == "fast"].name) for run in make_cell().runs]
    wide = replace(make_cell(), runs=tuple(runs), subjects=tuple(long))
    cells = [replace(wide, work=replace(wide.load, connections=each)) for each in (1, 50, 1000)]
    result = replace(result, subjects=long, cells=cells if kind == "matrix" else [wide])
    text = rendered(result)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= tables.WIDTH
    assert "…" not in text


def test_the_ladder_counts_and_times_in_tables_of_their_own() -> None:
    result = make_result("ladder")
    text = rendered(result)
    assert re.search(r"slow +1,500 +6\.00 µs", text)
    assert re.search(r"server +system calls a request +bytes of an idle client.*\s+slow +2\.00 *$",
                     text, re.DOTALL | re.MULTILINE)  # fmt: skip
    assert "| slow | 2.00 |" in tables.markdown(result)


def test_a_timing_is_a_table_with_its_notes() -> None:
    result = replace(make_result(), cells=[], timing=make_timing())
    text = rendered(result)
    assert "2 rounds of 1,000 calls each" in text
    assert re.search(r"virtual +2\.75 ns +2\.00×", text)
    assert re.search(r"plain +1\.50 ns +1 ", text)
    assert re.search(r"broken +– +–", text)
    notes = " ".join(tables.notes(result))
    assert "× plain: the ratio to it" in notes and "p50" not in notes
    assert "Fewer than 3 rounds count in this ratio" in notes
    assert "All are the course's solutions." in notes
    assert "| virtual | 2.75 ns (2.50–3.00 ns) | 2.00×? (1.50–2.50×) |" in tables.markdown(result)


def test_limited_runs_are_marked_and_explained() -> None:
    result = make_result()
    assert re.search(r"requests per second +1,500 +4,000\*", rendered(result))
    assert any("1 of 4 runs the load generator was at its own limit" in note
               for note in tables.notes(result))  # fmt: skip


def test_markdown_holds_every_metric_and_the_verdicts() -> None:
    text = tables.markdown(make_result())
    assert "| system calls per echo | 2.00 |  | 1.99–2.05 | pass | recvfrom 1.00 |" in text
    for metric in speed.METRICS:
        assert f"| {metric.label.strip()} |" in text
    assert "| × server CPU per request | 1 (baseline) | 0.62×? (0.50–0.75×) |" in text


@pytest.mark.parametrize("kind", ["checkpoint", "ladder"])
def test_a_ratio_of_too_few_rounds_says_that_its_spread_is_not_known(kind: str) -> None:
    """In the cell's two rounds two ratios of the CPU count, and one of the requests."""
    result = make_result(kind)
    assert "0.62×?" in rendered(result)
    assert any("? Fewer than 3 rounds count" in note for note in tables.notes(result))
    if kind == "checkpoint":
        assert re.search(r"× requests per second +1 +3\.00×\?", rendered(result))

    two = make_cell()
    calm = [replace(run, client_limited=False) for run in two.runs]
    third = [replace(run, round=3) for run in calm if run.round == 1]
    enough = make_result(kind, cells=[replace(two, rounds=3, runs=(*calm, *third))])
    assert "×?" not in rendered(enough)
    assert not any("rounds count" in note for note in tables.notes(enough))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (112_345.6, "", "112,346"),
        (9.8765, "us", "9.88 µs"),
        (1.5, "ns", "1.50 ns"),
        (12_345, "ns", "12.3 µs"),
        (12_345, "us", "12.3 ms"),
        (0.00004, "", "<0.001"),
        (0, "", "0"),
        (3 * 1024 * 1024, "bytes", "3.0 MiB"),
        (0.987, "share", "99 %"),
        (1.2, "ratio", "1.20×"),
    ],
)
def test_numbers_are_written_for_readers(value: float, unit: str, text: str) -> None:
    assert tables.with_unit(value, unit) == text


# --- plots ------------------------------------------------------------------------------------

NAMESPACE = {"svg": plot.SVG}


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
              for each in channels]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", plot.COLORS)
@pytest.mark.parametrize("background", ["#ffffff", "#0d1117", "#1e2129"])
def test_colors_can_be_told_on_light_and_dark(color: str, background: str) -> None:
    low, high = sorted(map(luminance, (color, background)))
    assert (high + 0.05) / (low + 0.05) >= 3.0


def texts_of(root: ET.Element) -> list[str]:
    return ["".join(each.itertext()).strip() for each in root.iter(f"{{{plot.SVG}}}text")]


def dots_of(root: ET.Element) -> tuple[int, int]:
    """How many are filled, and how many hollow."""
    styles = [each.attrib.get("style", "") for each in root.iter(f"{{{plot.SVG}}}use")]
    dots = [style for style in styles if any(f"stroke: {each}" in style for each in plot.COLORS)]
    filled = [style for style in dots if any(f"fill: {each}" in style for each in plot.COLORS)]
    hollow = [style for style in dots if "fill: none" in style or "fill-opacity: 0" in style]
    assert len(filled) + len(hollow) == len(dots)
    return len(filled), len(hollow)


def test_a_timings_plot_shows_every_run_and_says_who_failed() -> None:
    root = ET.fromstring(
        plot.strip_plot(replace(make_result(), timing=make_timing()), make_timing())
    )
    assert {"plain", "virtual", "broken", "failed", "0"} <= set(texts_of(root))
    assert "Time per call, ns (less is better)" in texts_of(root)
    description = root.findtext("svg:desc", "", NAMESPACE)
    assert "virtual 2.75 ns (2.50 ns to 3.00 ns)" in description
    assert dots_of(root) == (4, 0), "every run that came to an end is a dot"


@pytest.fixture(scope="module")
def plots() -> list[str]:
    cells = [make_cell(connections, size) for size in (1, 128) for connections in (1, 50)]
    matrix = make_result("matrix", cells)
    return [*plot.plots_of(make_result()).values(), *plot.plots_of(matrix).values()]


@pytest.fixture(params=[0, 2], ids=["checkpoint", "matrix"])
def svg(request: pytest.FixtureRequest, plots: list[str]) -> str:
    return plots[request.param]


def test_plots_are_well_formed_and_720_units_wide(svg: str) -> None:
    root = ET.fromstring(svg)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top, width) == (0, 0, plot.WIDTH)
    assert height > 300
    assert "width" not in root.attrib


def test_plots_say_what_they_show(svg: str) -> None:
    root = ET.fromstring(svg)
    told = [root.find(f"svg:{each}", NAMESPACE) for each in ("title", "desc")]
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-labelledby"].split() == [each.attrib["id"] for each in told]
    assert "slow" in told[1].text and "fast" in told[1].text


def test_plots_keep_text_as_text_and_label_directly(svg: str) -> None:
    texts = texts_of(ET.fromstring(svg))
    assert "slow" in texts and "fast" in texts
    assert any("Linux" in text for text in texts), "the machine is in the caption"
    assert "0" in texts, "the axis starts at zero"
    assert "legend" not in svg


def test_plots_take_the_pages_ink_and_the_systems_font(svg: str) -> None:
    assert plot.INK not in svg and "currentColor" in svg
    assert "#000000" not in svg and "fill: #ffffff" not in svg.lower()
    assert "system-ui" in svg
    assert "prefers-color-scheme" in svg


def test_every_run_is_a_dot_and_limited_ones_are_hollow(plots: list[str]) -> None:
    filled, hollow = dots_of(ET.fromstring(plots[0]))
    assert filled + hollow == 4 * len(plot.TITLES)
    assert hollow == 2, "requests per second and p99 of the one limited run"


def test_plots_on_one_page_share_no_id(plots: list[str]) -> None:
    ids = [each for svg in plots for each in re.findall(r'\bid="([^"]+)"', svg)]
    assert len(ids) == len(set(ids))
    for svg in plots:
        referred = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert referred <= set(re.findall(r'\bid="([^"]+)"', svg))


# --- what can be asked for --------------------------------------------------------------------


@pytest.mark.reads_course
def test_yours_comes_beside_the_reference_which_is_the_baseline() -> None:
    subjects = of_checkpoint(find_chapter("01"), Whose.YOURS)
    whose = [(each.whose, each.baseline) for each in subjects if each.chapter == "01"]
    assert (Whose.YOURS, False) in whose and (Whose.REFERENCE, True) in whose
    assert len({each.name for each in subjects}) == len(subjects)
    assert sum(each.baseline for each in subjects) == 1


@pytest.mark.reads_course
def test_with_solution_nothing_is_yours() -> None:
    for chapter in all_chapters():
        subjects = of_checkpoint(chapter, Whose.REFERENCE)
        assert {each.whose for each in subjects} == {Whose.REFERENCE}


@pytest.mark.reads_course
def test_a_program_that_is_no_server_to_keep_is_nobodys_but_the_courses() -> None:
    subjects = of_checkpoint(find_chapter("12"), Whose.YOURS)
    assert {each.whose for each in subjects if each.program == "laboratory"} == {Whose.REFERENCE}
    assert {each.whose for each in subjects if each.program == "server"} == set(Whose)


@pytest.mark.reads_course
@pytest.mark.parametrize("chapter", all_chapters(), ids=lambda chapter: chapter.number)
def test_every_program_that_is_measured_is_built(
    chapter: Chapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(connections: int) -> None:
        raise InterruptedError  # what comes next is measuring

    built: dict[str, list[str]] = {}
    monkeypatch.setattr(builds, "build", lambda preset, targets: built.update({preset: targets}))
    monkeypatch.setattr(commands, "allow_descriptors", stop)
    plan = commands.plan_of(Options(chapter.number))
    with pytest.raises(InterruptedError):
        commands._measure(plan)
    for subject in [*plan.subjects, *plan.timed, *(each for each, _ in plan.counts)]:
        assert subject.target in built[subject.whose.preset]


@pytest.mark.reads_course
def test_a_chapter_without_a_server_brings_the_programs_of_its_counts() -> None:
    subjects = of_checkpoint(find_chapter("04"), Whose.YOURS)
    assert [(each.target, each.whose) for each in subjects] == [("04-nops", Whose.YOURS)]
    assert "--port" not in subjects[0].run_command()
    assert list(commands.plan_of(Options("04")).loads) == []


@pytest.mark.reads_course
def test_the_ladder_has_a_rung_for_every_chapter_with_a_server() -> None:
    chapters = all_chapters()
    rungs = of_ladder(chapters)
    assert [rung.chapter for rung in rungs] == [
        chapter.number
        for chapter in chapters
        if any(program.contract for program in chapter.programs)
        or (chapter.checkpoint.load and chapter.checkpoint.load.path)
    ]
    assert rungs[0].baseline and not any(rung.baseline for rung in rungs[1:])


def serving_http(chapter: Chapter) -> Chapter:
    """The same chapter, if its server spoke HTTP."""
    load = chapter.checkpoint.load
    assert load
    checkpoint = replace(
        chapter.checkpoint,
        load=replace(load, path="/1k.txt", size=1024),
        contenders=(
            Contender("floor", chapter.number, "constant", baseline=True),
            Contender("files", chapter.number, "server", ("--root", "site")),
            Contender("epoll", "02", "server"),
        ),
    )
    programs = [replace(each, contract=False) for each in chapter.programs]
    return replace(chapter, checkpoint=checkpoint, programs=tuple(programs))


@pytest.mark.reads_course
def test_a_server_of_http_is_a_rung_with_its_own_load_and_its_own_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chapters = {each.number: each for each in all_chapters()[:2]}
    chapters["02"] = serving_http(chapters["02"])
    monkeypatch.setattr(commands, "all_chapters", lambda: list(chapters.values()))
    monkeypatch.setattr(commands, "find_chapter", chapters.get)
    plan = commands.plan_of(Options(ladder=True, rounds=3))
    echoes, speaks = plan.subjects
    assert (echoes.path, speaks.path) == ("", "/1k.txt")
    assert speaks.args == ("--root", "site")
    assert [(load.size, load.path) for load in plan.loads] == [(128, ""), (1024, "/1k.txt")]
    assert [plan.under(load) for load in plan.loads] == [[echoes], [speaks]]
    counted = [(subject, count.metric, count.path, count.args) for subject, count in plan.counts]
    assert counted == [
        (subject, metric, subject.path, subject.args)
        for subject in plan.subjects
        for metric in ("syscalls_per_request", "bytes_per_idle_connection")
    ]


@pytest.mark.reads_course
@pytest.mark.parametrize(
    ("chapter", "flags", "message"),
    [
        (None, {}, "Name a chapter, such as ./course bench 01"),
        ("99", {}, "There is no chapter 99"),
        (None, {"ladder": True, "matrix": True}, "name one"),
        ("01", {"ladder": True}, "leave out '01'"),
        ("04", {"matrix": True}, "Chapter 04 has no server"),
        ("01", {"rounds": 0}, "--rounds 0: takes 1 to"),
        ("01", {"out": Path(__file__)}, "that is a file"),
    ],
)
def test_what_cannot_be_asked_is_said(
    chapter: str | None, flags: dict[str, object], message: str
) -> None:
    with pytest.raises(CourseError, match=re.escape(message)):
        commands.run_bench(Options(chapter, **flags))  # type: ignore[arg-type]


@pytest.mark.reads_course
def test_the_matrix_is_clients_by_bytes() -> None:
    plan = commands.plan_of(Options(matrix=True))
    assert len(plan.loads) == 6 * 4
    assert {load.connections for load in plan.loads} == {1, 50, 150, 300, 500, 1000}
    assert {load.size for load in plan.loads} == {1, 128, 512, 1000}


def test_with_many_servers_the_matrix_has_fewer_rounds() -> None:
    assert commands.matrix_rounds(100.0) == commands.MATRIX_ROUNDS
    assert commands.matrix_rounds(commands.MATRIX_LONGEST_S / 2) == 2
    assert commands.matrix_rounds(commands.MATRIX_LONGEST_S * 2) == 1


def test_the_notes_say_whose_code_ran() -> None:
    result = make_result()
    said = " ".join(tables.notes(result))
    assert "p50, p99, p99.9: so many percent of the answers" in said
    assert "All servers are the course's solutions" in said
    yours = [replace(result.subjects[0], whose=Whose.YOURS), result.subjects[1]]
    said = " ".join(tables.notes(replace(result, subjects=yours)))
    assert "Your code: slow. All other servers are the course's solutions." in said


def test_counts_alone_have_no_notes_on_speed() -> None:
    busy = replace(MACHINE, busy=True, others_share=0.42)
    counted = replace(make_result(), cells=[], machine=busy)
    assert tables.notes(counted) == []
    assert "measured" in tables.markdown(counted)
    assert "figures say nothing" in tables.notes(replace(counted, quick=True))[0]


def test_a_quick_run_says_that_its_figures_say_nothing() -> None:
    quick = replace(make_result(), quick=True)
    assert "figures say nothing" in tables.notes(quick)[0]
    assert "figures say nothing" in tables.markdown(quick)
    assert "figures say nothing" in plot.strip_plot(quick, make_cell())
