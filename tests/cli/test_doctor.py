# SPDX-License-Identifier: MIT
"""./course doctor: what it says of machines that lack something, and of this one."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT, call
from course_tool import builds, chapters, console, doctor, packages
from course_tool.doctor import Answer, Report, judge
from course_tool.doctor import host as this_host
from course_tool.doctor import kernel as this_kernel
from course_tool.doctor.host import Check, State
from course_tool.doctor.kernel import Feature, Kernel
from course_tool.errors import CourseError

pytestmark = pytest.mark.timeout(600)  # the first that needs the program builds it

TOOL = ROOT / "common" / "tool"
FEATURES_PAGE = ROOT / "docs" / "reference" / "features.md"

RING = Feature("ring", "setup", "5.1", "a ring", True, None, "", "")
BUFFERS = Feature(
    "register_buffer_ring", "buffers", "5.19", "a pool", False, "EINVAL",
    "io_uring_register PBUF_RING: EINVAL: Linux has it from 5.19 on", "boot Linux 5.19 or newer",
)  # fmt: skip
NO_RING = replace(
    RING, ok=False, errno="EPERM", reason="io_uring_setup: EPERM: seccomp", fix="fix it"
)
BUNDLE = replace(BUFFERS, name="recv_bundle", since="6.10", fix="boot Linux 6.10 or newer")

GOOD = Check("CMake", State.GOOD, "3.25.1")
WORKING = Kernel("2.3", "6.18.0", (RING, replace(BUFFERS, ok=True, errno=None)))


@pytest.fixture
def first(course: Path) -> chapters.Chapter:
    """A chapter that needs nothing of io_uring."""
    return chapters.load_chapter(course / "solutions" / "01-first")


def needing(chapter: chapters.Chapter, number: str, *features: str) -> chapters.Chapter:
    return replace(chapter, number=number, slug="some", features=features)


def report_of(kernel: Kernel, *about: chapters.Chapter, host: Check = GOOD) -> Report:
    return Report((host,), kernel, tuple(judge(each, kernel, [host]) for each in about))


# --- verdicts ---


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (["01"], "chapter 01"),
        (["01", "02", "03"], "chapters 01–03"),
        (["01", "02", "04", "06", "07"], "chapters 01–02, 04 and 06–07"),
        (["01", "03"], "chapters 01 and 03"),
    ],
)
def test_neighboring_chapters_are_named_as_a_range(numbers: list[str], words: str) -> None:
    assert doctor.in_words(numbers) == words


def test_a_machine_with_everything_can_do_every_chapter(first: chapters.Chapter) -> None:
    report = report_of(WORKING, first, needing(first, "09", "ring", "register_buffer_ring"))
    assert report.ok
    assert report.verdict() == "This machine can do every chapter."


def test_a_chapter_whose_feature_is_missing_is_named_with_it(first: chapters.Chapter) -> None:
    kernel = Kernel("2.3", "5.15.0", (RING, BUFFERS))
    later = [needing(first, "02", "ring"), needing(first, "09", "ring", "register_buffer_ring")]
    report = report_of(kernel, first, *later)
    assert not report.ok
    assert [each.answer for each in report.chapters] == [Answer.YES, Answer.YES, Answer.NO]
    assert report.verdict() == ("You can do chapters 01–02. 09 needs register_buffer_ring: EINVAL.")


def test_without_io_uring_the_first_chapters_can_be_done(first: chapters.Chapter) -> None:
    kernel = Kernel("2.3", "6.18.0", (NO_RING, BUFFERS))
    assert report_of(kernel, first).ok
    assert report_of(kernel, first).verdict() == (
        "You can do chapter 01. "
        "But io_uring does not work here (EPERM): chapters from 04 on need it."
    )
    both = report_of(kernel, first, needing(first, "04", "ring", "register_buffer_ring"))
    assert both.verdict() == "You can do chapter 01. 04 needs ring and 1 more: EPERM."


def test_a_missing_compiler_stops_every_chapter(first: chapters.Chapter) -> None:
    lacking = Check("a C++ compiler", State.MISSING, "not here", "compiles", "apt install g++")
    report = report_of(WORKING, first, host=lacking)
    assert [each.answer for each in report.chapters] == [Answer.NO]
    assert not report.ok
    assert report.verdict() == "This machine cannot build the course yet. It lacks: a C++ compiler."


def test_what_only_benchmarks_need_stops_no_chapter(first: chapters.Chapter) -> None:
    limited = Check("strace", State.LIMITED, "not here", "counts", "apt install strace")
    assert report_of(WORKING, first, host=limited).ok


def test_a_feature_that_the_doctor_does_not_know_is_the_authors_mistake(
    first: chapters.Chapter,
) -> None:
    with pytest.raises(CourseError, match=r"chapter\.toml: features names 'multishot_telepathy'"):
        judge(needing(first, "09", "multishot_telepathy"), WORKING)


# --- what is shown ---


def shown(report: Report, capsys: pytest.CaptureFixture[str], width: int = 100) -> str:
    console.out.width = width
    doctor.render(report)
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console is shared by all tests: `shown` sets its width for one."""
    monkeypatch.setattr(console.out, "_width", console.out._width)


def test_the_report_ends_with_the_verdict(
    first: chapters.Chapter, capsys: pytest.CaptureFixture[str]
) -> None:
    report = report_of(Kernel("2.3", "5.15.0", (RING, BUFFERS)), needing(first, "09", BUFFERS.name))
    text = shown(report, capsys)
    assert "09 needs register_buffer_ring: a pool" in text
    assert f"why: {BUFFERS.reason}" in text
    assert f"fix: {BUFFERS.fix}" in text
    assert text.strip().splitlines()[-1] == report.verdict()


def test_what_no_chapter_needs_is_said_in_one_line(
    first: chapters.Chapter, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(report_of(Kernel("2.3", "6.1.0", (RING, BUNDLE)), first), capsys)
    assert "needed by no chapter: recv_bundle (Linux 6.10)." in text
    assert BUNDLE.fix not in text


def test_tables_fit_a_narrow_terminal(
    first: chapters.Chapter, capsys: pytest.CaptureFixture[str]
) -> None:
    long = Check("Clang with its sanitizers", State.GOOD, "a value that goes on for quite a while")
    text = shown(report_of(WORKING, first, host=long), capsys, width=40)
    framed = [line for line in text.splitlines() if line.startswith(("┏", "│", "└"))]
    assert framed
    assert max(map(len, framed)) <= 40


def test_absent_packages_are_installed_by_one_command(
    first: chapters.Chapter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        packages, "install_command", lambda needs: f"get {' '.join(need.name for need in needs)}"
    )
    absent = []
    for name, purpose in (("CMake", "start"), ("Ninja", "start"), ("wrk", "verify")):
        need = packages.Need(name, f"why {name}", purpose, lambda: False, lambda manager: ())
        state = State.MISSING if purpose == "start" else State.LIMITED
        absent.append(Check(name, state, "not here", need.why, f"get {name}", need))
    report = Report(tuple(absent), WORKING, (judge(first, WORKING, absent),))
    text = shown(report, capsys)
    assert "  Ninja: why Ninja\n  fix: get CMake Ninja\n" in text
    assert "  wrk: why wrk\n  fix: get wrk\n" in text
    assert json.loads(doctor.to_json(report))["host"][0] == {
        "name": "CMake",
        "state": "missing",
        "value": "not here",
        "why": "why CMake",
        "fix": "get CMake",
    }


def test_a_doctor_that_cannot_be_built_leaves_the_host_part(
    first: chapters.Chapter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(preset: str, targets: list[str]) -> None:
        raise builds.BuildError(f"common/doctor/main.cpp:1:1: error: broken in {preset}")

    monkeypatch.setattr(builds, "build", broken)
    kernel = this_kernel.ask()
    assert "common/doctor/main.cpp:1:1: error" in kernel.problem
    report = report_of(kernel, first, needing(first, "09", "ring"))
    assert [each.answer for each in report.chapters] == [Answer.YES, Answer.UNKNOWN]
    assert report.verdict() == "You can do chapter 01. Whether chapter 09 can be done is unknown."
    text = shown(report, capsys)
    assert "CMake" in text
    assert "common/doctor/main.cpp:1:1: error" in text


def test_a_student_tree_in_pieces_leaves_the_reference_to_build_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tried = []

    def build(preset: str, targets: list[str]) -> None:
        tried.append(preset)
        if preset == "student":
            raise builds.BuildError("CMake: chapters/01-blocking-echo is not there")

    monkeypatch.setattr(builds, "BUILD", tmp_path)
    monkeypatch.setattr(builds, "build", build)
    assert this_kernel.build() == "reference"
    assert tried == ["student", "reference"]


def test_the_build_that_is_in_use_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "build.ninja").write_text("")
    monkeypatch.setattr(builds, "BUILD", tmp_path)
    monkeypatch.setattr(builds, "build", lambda preset, targets: None)
    assert this_kernel.build() == "reference"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 7}', "io_uring works\n"])
def test_an_answer_that_is_not_the_doctors_is_an_error(text: str) -> None:
    with pytest.raises(CourseError, match="doctor's answer"):
        this_kernel.parse(text)


# --- the host ---


def test_every_version_belongs_to_a_need() -> None:
    named = {this_host.version_key(need) for need in packages.all_needs()}
    assert set(this_host.VERSIONS) <= named


def test_a_need_that_is_not_met_says_how_to_meet_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for_all = packages.Need(
        "CMake 99", "describes the build", "start", lambda: False, lambda manager: ("cmake",)
    )
    for_some = replace(for_all, name="wrk", why="a second opinion", purpose="verify")
    monkeypatch.setattr(packages, "all_needs", lambda: [for_all, for_some])
    first, second = this_host._needs()
    assert (first.name, first.state) == ("CMake", State.MISSING)
    assert "cmake" in first.fix.lower()
    assert (second.name, second.state, second.why) == ("wrk", State.LIMITED, "a second opinion")


@pytest.mark.parametrize(
    ("check", "kind", "limits", "state"),
    [
        (this_host._descriptors, resource.RLIMIT_NOFILE, (1024, 4096), State.LIMITED),
        (this_host._descriptors, resource.RLIMIT_NOFILE, (1024, 1_048_576), State.GOOD),
        (this_host._descriptors, resource.RLIMIT_NOFILE, (-1, -1), State.GOOD),
        (this_host._locked_memory, resource.RLIMIT_MEMLOCK, (65536, 65536), State.LIMITED),
        (this_host._locked_memory, resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20), State.GOOD),
    ],
)
def test_limits_are_compared_with_what_the_chapters_need(
    check, kind: int, limits: tuple[int, int], state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda asked: limits if asked == kind else (-1, -1))
    monkeypatch.setattr(this_host, "_may_lock_all", lambda: False)
    found = check()
    assert found.state is state, found
    assert bool(found.fix) == (state is not State.GOOD)


def test_a_containers_limit_on_threads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"/sys/fs/cgroup/pids.max": 512, "/proc/sys/kernel/threads-max": 100_000}
    monkeypatch.setattr(this_host, "_number", numbers.get)
    found = this_host._tasks()
    assert found.state is State.LIMITED
    assert found.value == "512"


def test_strace_that_may_not_trace_is_a_limit(scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = (
        "#!/bin/sh\necho 'strace: ptrace(PTRACE_TRACEME): Operation not permitted' >&2\nexit 1\n"
    )
    monkeypatch.setenv("PATH", str(scripts("strace", refusing)))
    found = this_host._tracing()
    assert found.state is State.LIMITED
    assert "not permitted" in found.value
    assert "SYS_PTRACE" in found.fix


# --- this kernel, and a kernel that refuses ---

# A seccomp filter, as a container's runtime sets one, in front of a program: for one system call
# number, or for one second argument of it, the answer is an errno. The numbers are the same on all
# architectures that the course runs on.
REFUSE = """
import ctypes, os, struct, sys
number, argument, error = (int(each) for each in sys.argv[1:4])
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
def step(code, k, on_true=0, on_false=0):
    return struct.pack("HBBI", code, on_true, on_false, k)
code = [step(LOAD, 0), step(EQUAL, number, 1, 0), step(RETURN, ALLOW)]
if argument >= 0:
    code += [step(LOAD, 24), step(EQUAL, argument, 1, 0), step(RETURN, ALLOW)]
code.append(step(RETURN, ERRNO | error))
text = ctypes.create_string_buffer(b"".join(code))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program)):
    sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[4], sys.argv[4:])
"""
IO_URING_SETUP = 425
IO_URING_REGISTER = 427
REGISTER_PBUF_RING = 22
ANY = -1


def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TOOL), "COLUMNS": "80"}
    env |= {name: os.environ[name] for name in (builds.LENT,) if name in os.environ}
    return call(*args, timeout=60, cwd=ROOT, env=env)


def refused(
    call: int, argument: int, error: int, *args: str | Path
) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-c", REFUSE, str(call), str(argument), str(error), *args)


@pytest.fixture(scope="session")
def program() -> Path:
    """The doctor's program, built."""
    return builds.program(this_kernel.build(), "doctor")


@pytest.mark.reads_course
def test_the_program_answers_for_every_feature(program: Path) -> None:
    finished = run(program, "--json")
    assert finished.returncode == 0, finished.stderr
    kernel = this_kernel.parse(finished.stdout)
    assert not kernel.problem
    assert len(kernel.features) > 80
    for each in kernel.features:
        assert each.ok == (not each.reason) == (not each.fix), each


@pytest.mark.reads_course
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (errno.EPERM, r"kernel\.io_uring_disabled|seccomp filter"),
        (errno.ENOSYS, "seccomp filter"),
        (errno.ENOMEM, "locked memory|out of memory"),
    ],
)
def test_a_refused_ring_is_named_by_its_cause(program: Path, error: int, cause: str) -> None:
    finished = refused(IO_URING_SETUP, ANY, error, program, "--json")
    assert finished.returncode == 0, finished.stderr
    kernel = this_kernel.parse(finished.stdout)
    assert not any(each.ok for each in kernel.features)
    ring = kernel.forbidden
    assert ring is not None
    assert ring.errno == errno.errorcode[error]
    assert ring.reason.startswith(f"io_uring_setup: {ring.errno} (")
    assert re.search(cause, ring.reason)
    assert ring.fix


@pytest.mark.reads_course
def test_the_program_says_what_can_be_done_without_io_uring(program: Path) -> None:
    finished = refused(IO_URING_SETUP, ANY, errno.EPERM, program)
    assert finished.returncode == 0
    assert "io_uring cannot be used here" in finished.stdout
    assert "Chapters 01 to 03 need none of it" in finished.stdout


@pytest.mark.reads_course
def test_an_older_kernel_lacks_only_what_it_lacks(program: Path, first: chapters.Chapter) -> None:
    here = this_kernel.parse(run(program, "--json").stdout)
    if here.forbidden or not here.feature("register_buffer_ring").ok:
        pytest.skip("this machine has no buffer rings to take away")
    finished = refused(IO_URING_REGISTER, REGISTER_PBUF_RING, errno.EINVAL, program, "--json")
    kernel = this_kernel.parse(finished.stdout)
    lost = {each.name for each in kernel.features if not each.ok}
    had = {each.name for each in here.features if each.ok}
    assert lost & had == had & {
        "register_buffer_ring", "multishot_recv", "recv_bundle", "incremental_buffers"
    }  # fmt: skip
    verdict = judge(needing(first, "09", "provide_buffers", "register_buffer_ring"), kernel)
    assert [each.name for each in verdict.missing] == ["register_buffer_ring"]
    assert verdict.missing[0].errno == "EINVAL"


@pytest.mark.reads_course
def test_one_feature_can_be_asked_for(program: Path) -> None:
    assert run(program, "--feature", "multishot_telepathy").returncode == 2
    assert refused(
        IO_URING_SETUP, ANY, errno.EPERM, program, "--feature", "ring"
    ).returncode == 1  # fmt: skip


@pytest.mark.reads_course
def test_the_command_prints_one_json_document_even_where_io_uring_is_forbidden(
    program: Path,
) -> None:
    command = (sys.executable, "-m", "course_tool", "doctor", "--json")
    finished = refused(IO_URING_SETUP, ANY, errno.EPERM, *command)
    document = json.loads(finished.stdout)
    assert finished.returncode == (0 if document["ok"] else 1), finished.stderr
    assert document["schema"] == doctor.SCHEMA
    can = {each["number"]: each["can"] for each in document["chapters"]}
    assert can["01"] == "yes"
    with_ring = {each.number for each in chapters.all_chapters() if "ring" in each.features}
    assert {number for number, answer in can.items() if answer == "no"} == with_ring >= {"04", "05"}
    assert "EPERM" in document["verdict"]
    assert {"name", "state", "value", "why", "fix"} <= document["host"][0].keys()


# --- the page, and the chapters ---


@pytest.mark.reads_course
def test_the_reference_page_lists_what_is_tried(program: Path) -> None:
    tried = this_kernel.parse(run(program, "--json").stdout).features
    row = r"^\| `(\w+)` \| (≤ 6\.1|[\d.]+), (?:[\d.]+|–) \|"
    rows = re.findall(row, FEATURES_PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {each.name: each.since or "≤ 6.1" for each in tried}


@pytest.mark.reads_course
def test_chapters_need_only_what_is_tried(program: Path) -> None:
    tried = {each.name for each in this_kernel.parse(run(program, "--json").stdout).features}
    for chapter in chapters.all_chapters():
        assert set(chapter.features) <= tried, f"{chapter.folder}/chapter.toml"
