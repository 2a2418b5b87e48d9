# SPDX-License-Identifier: MIT
"""The launcher and the making of .venv, from a clone that holds nothing but those."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from conftest import alive_with, call, edit, make_tool_only
from course_tool import apt, bootstrap
from course_tool.errors import CourseError

Scripts = Callable[[str, str], Path]

MAKE_TIMEOUT_S = 500
DONE = 7  # what the tool in this clone returns


def environment(**extra: str) -> dict[str, str]:
    """Our own, but for what pip would take from it; pip can reach nothing."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    return {**kept, "PIP_CONFIG_FILE": "/dev/null", **extra}


def start(
    root: Path, *args: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = environment() if env is None else env
    return call(root / "course", *args, cwd=root, env=env, timeout=MAKE_TIMEOUT_S)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .venv without pip, which is made and copied in no time."""
    folder = tmp_path_factory.mktemp("made") / "venv"
    args = [base_python(), "-m", "venv", "--without-pip", folder]
    subprocess.run(args, timeout=MAKE_TIMEOUT_S, check=True)
    return folder


def base_python() -> str:
    return sys._base_executable  # type: ignore[attr-defined,no-any-return]


@pytest.fixture
def ready(tool_only: Path, made: Path) -> Path:
    """A clone that is set up, without the seconds that this takes."""
    shutil.copytree(made, tool_only / ".venv", symlinks=True)
    stamp(tool_only)
    return tool_only


def stamp(root: Path) -> None:
    ask = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
    python = root / ".venv" / "bin" / "python"
    version = call(python, "-c", ask, check=True).stdout.strip()
    say = (
        "import sys, json; sys.path.insert(0, 'common/tool'); "
        f"from course_tool import bootstrap as b; print(json.dumps(b._wanted('{version}')))"
    )
    wanted = call(sys.executable, "-I", "-c", say, cwd=root, check=True)
    (root / ".venv" / "made-from.json").write_text(wanted.stdout)


def reached_the_tool(done: subprocess.CompletedProcess[str], root: Path, *args: str) -> bool:
    wanted = "|".join([str(root / ".venv"), *args])
    assert (done.returncode, done.stdout.strip()) == (DONE, wanted), done.stderr
    return True


# The launcher


def test_a_clone_that_is_set_up_starts_the_tool_and_says_nothing(ready: Path) -> None:
    done = start(ready, "test", "a b", "--", "*")
    assert reached_the_tool(done, ready, "test", "a b", "--", "*")
    assert done.stderr == ""


def test_a_start_of_the_tool_is_two_starts_of_python(ready: Path, tmp_path: Path) -> None:
    """One says its version, and one goes on as the tool: each costs the reader's time."""
    python, started = ready / ".venv" / "bin" / "python", tmp_path / "started"
    python.rename(python.with_name("real"))
    script = f"#!/bin/sh\necho started >> '{started}'\nexec '{python.with_name('real')}' \"$@\"\n"
    python.write_text(script)
    python.chmod(0o755)
    assert reached_the_tool(start(ready), ready)
    assert started.read_text().count("started") == 2


def test_it_starts_from_anywhere_and_through_links(ready: Path, tmp_path: Path) -> None:
    (ready / "docs").mkdir()
    bin_folder = tmp_path / "my bin"
    bin_folder.mkdir()
    (bin_folder / "absolute").symlink_to(ready / "course")
    (bin_folder / "relative").symlink_to("../another clone/course")
    (bin_folder / "twice").symlink_to("relative")
    path = f"{bin_folder}:{os.environ['PATH']}"
    for command, cwd in (
        (["../course"], ready / "docs"),
        (["sh", "course"], ready),
        (["another clone/course"], tmp_path),
        (["absolute"], Path("/")),
        (["my bin/relative"], tmp_path),
        (["twice"], ready),
    ):
        done = call(*command, cwd=cwd, env=environment(PATH=path, CDPATH="/:/tmp"))
        assert reached_the_tool(done, ready)


OLD = '#!/bin/sh\ncase "$*" in *version_info*) echo 3.9 ;; *) echo "old $*"; exit 9 ;; esac\n'
BROKEN = '#!/bin/sh\necho "shim: python not found" >&2\nexit 127\n'


def test_an_old_python_and_one_that_does_not_run_are_named(
    tool_only: Path, scripts: Scripts
) -> None:
    folder = scripts("python3", OLD)
    scripts("python3.13", BROKEN)
    (folder / "sh").symlink_to("/bin/sh")
    done = start(tool_only, env={"PATH": str(folder)})
    assert done.returncode == 1
    assert done.stderr.startswith(
        "course: the tool needs Python 3.11 or newer, and there is none on PATH: "
        f"{folder}/python3 is too old, {folder}/python3.13 does not run.\n"
    )
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (tool_only / ".venv").exists()


def test_no_python_at_all_is_a_sentence(tool_only: Path, scripts: Scripts) -> None:
    done = start(tool_only, env={"PATH": str(scripts("nothing", ""))})
    assert done.returncode == 1
    assert done.stderr.startswith("course: the tool needs Python 3.11 or newer, and there is none")


def test_a_stub_does_not_hide_the_python_behind_it(ready: Path, scripts: Scripts) -> None:
    (ready / ".venv" / "bin" / "python").unlink()
    folder = scripts("python3", OLD)
    behind = folder / "behind"
    behind.mkdir()
    (behind / "python3").symlink_to(base_python())
    # With requirements that cannot be met we see that it started, and need not wait for pip.
    (ready / "requirements.txt").unlink()
    done = start(ready, env=environment(PATH=f"{folder}::{behind}:/no/such"))
    assert done.returncode == 1
    assert "requirements.txt is missing. Is the clone whole?" in done.stderr


def test_a_clone_that_is_not_whole_is_a_sentence(tool_only: Path) -> None:
    (tool_only / "common" / "tool" / "course_tool" / "bootstrap.py").unlink()
    done = start(tool_only)
    assert done.returncode == 1
    assert "bootstrap.py is missing. Is the clone whole?" in done.stderr


# Making .venv


@pytest.fixture(scope="module")
def first_start(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The one real start of these tests, from nothing; it takes some seconds."""
    root = make_tool_only(tmp_path_factory.mktemp("first") / "a clone")
    return root, start(root, "--version")


def test_the_first_start_makes_the_environment_and_says_so(
    first_start: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    tool_only, done = first_start
    assert reached_the_tool(done, tool_only, "--version")
    assert done.stderr.startswith(
        "Setting up the course's Python packages in .venv/: there is none yet.\n"
        "  Making the virtual environment …\n"
    )
    assert "requirements.txt: done in" in done.stderr
    assert start(tool_only).stderr == "", "the second start has nothing to do"


def make_venv_fail_fast(root: Path) -> None:
    """Lets us see that .venv is made anew without the seconds: its Python refuses."""
    edit(
        root / "common" / "tool" / "course_tool" / "bootstrap.py",
        "def _make_venv() -> None:\n",
        'def _make_venv() -> None:\n    raise CourseError("made anew")\n',
    )


REASONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "requirements": (
        lambda root: (root / "requirements.txt").write_text("# other\n"),
        "requirements.txt has changed",
    ),
    "unfinished": (lambda root: (root / ".venv/made-from.json").unlink(), "it was not finished"),
    "garbled": (
        lambda root: (root / ".venv/made-from.json").write_text("{half"),
        "it was not finished",
    ),
    "python gone": (
        lambda root: relink(root / ".venv/bin/python", "/no/such/python3"),
        "its Python is gone or does not run",
    ),
    "python broken": (
        lambda root: relink(root / ".venv/bin/python", "/bin/false"),
        "its Python is gone or does not run",
    ),
    "other python": (
        lambda root: edit(root / ".venv/made-from.json", '"python": "3.', '"python": "2.'),
        "Python has changed",
    ),
    "no environment": (
        lambda root: (root / ".venv/pyvenv.cfg").unlink(),
        "its Python is gone or does not run",
    ),
    "nothing in it": (lambda root: empty(root / ".venv"), "its Python is gone or does not run"),
}


def relink(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("case", REASONS)
def test_an_environment_that_does_not_hold_any_more_is_made_anew(ready: Path, case: str) -> None:
    damage, reason = REASONS[case]
    damage(ready)
    make_venv_fail_fast(ready)
    done = start(ready)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"Setting up the course's Python packages in .venv/: {reason}.",
        "course: made anew",
    ]
    assert not (ready / ".venv").exists(), "nothing half-made is left"


def test_a_clone_that_has_moved_makes_its_environment_anew(ready: Path) -> None:
    make_venv_fail_fast(ready)
    moved = ready.rename(ready.with_name("moved clone"))
    assert "in .venv/: the clone has been moved.\n" in start(moved).stderr


@pytest.fixture
def with_pip(tool_only: Path, first_start: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    """A clone whose .venv is made in no time: it borrows the first start's pip."""
    borrowed = first_start[0] / ".venv" / "lib"
    edit(
        tool_only / "common" / "tool" / "course_tool" / "bootstrap.py",
        '"-m", "venv", VENV]',
        '"-m", "venv", "--without-pip", VENV]',
    )
    edit(
        tool_only / "common" / "tool" / "course_tool" / "bootstrap.py",
        "def _install_requirements() -> None:\n",
        "def _install_requirements() -> None:\n    shutil.rmtree(VENV / 'lib')\n"
        f"    (VENV / 'lib').symlink_to({str(borrowed)!r})\n",
    )
    return tool_only


def test_without_network_it_says_so_and_leaves_nothing(with_pip: Path) -> None:
    tool_only = with_pip
    (tool_only / "requirements.txt").write_text("typer==0.1\n")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        done = start(tool_only, env=environment(PIP_INDEX_URL=index))
    assert done.returncode == 1
    assert "course: pip could not reach the package index" in done.stderr
    assert "run ./course again" in done.stderr
    assert "typer==0.1" in (tool_only / ".course" / "pip.log").read_text()
    assert not (tool_only / ".venv").exists()


@pytest.fixture
def silent_index() -> Iterator[str]:
    """A package index that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/simple"


def test_ctrl_c_leaves_no_process_and_the_next_start_goes_on(
    with_pip: Path, silent_index: str
) -> None:
    tool_only = with_pip
    (tool_only / "requirements.txt").write_text("typer==0.1\n")
    started = subprocess.Popen(
        [str(tool_only / "course")],
        env=environment(PIP_INDEX_URL=silent_index),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    for line in started.stderr:
        if "Installing the packages" in line:
            break
    second = subprocess.Popen(
        [str(tool_only / "course")], env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert second.stderr is not None
    assert second.stderr.readline() == "Another ./course is setting up .venv/; waiting for it …\n"
    second.kill()
    second.communicate(timeout=10)
    started.send_signal(signal.SIGINT)
    said = started.communicate(timeout=20)[1]
    assert (started.returncode, said.splitlines()[-1]) == (
        130,
        "course: interrupted; the next ./course goes on from here",
    )
    assert alive_with(str(tool_only)) == []
    assert not (tool_only / ".venv").exists()


# Debian's Python, which cannot make an environment by itself


@pytest.fixture
def no_ensurepip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")


@pytest.mark.usefixtures("no_ensurepip")
def test_a_missing_ensurepip_is_installed_by_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    package = f"python3.{sys.version_info.minor}-venv"
    installed: list[str] = []

    def install(names: list[str], note: Callable[[str], None]) -> None:
        installed.extend(names)
        monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: "there")

    monkeypatch.setattr(apt, "manager", lambda: "apt-get")
    monkeypatch.setattr(apt, "may_install", lambda names, yes: True)
    monkeypatch.setattr(apt, "install", install)
    bootstrap._require_ensurepip(yes=False)
    assert installed == [package]


@pytest.mark.usefixtures("no_ensurepip")
def test_whoever_says_no_to_ensurepip_gets_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "manager", lambda: "apt-get")
    monkeypatch.setattr(apt, "may_install", lambda names, yes: False)
    with pytest.raises(CourseError, match="Nothing was installed.*apt-get install .*-venv"):
        bootstrap._require_ensurepip(yes=False)


@pytest.mark.usefixtures("no_ensurepip")
def test_a_missing_ensurepip_elsewhere_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "manager", lambda: "dnf")
    with pytest.raises(CourseError, match="ensurepip module is missing. Install a complete Python"):
        bootstrap._require_ensurepip(yes=False)


def test_yes_counts_before_the_double_dash_only() -> None:
    assert bootstrap._says_yes(["start", "--yes"])
    assert bootstrap._says_yes(["-y", "start"])
    assert not bootstrap._says_yes(["run", "01", "--", "--yes"])


def test_every_requirement_is_pinned_and_named_once() -> None:
    lines = bootstrap.REQUIREMENTS.read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    names = [pin.partition("==")[0].lower().replace("_", "-") for pin in pins]
    assert all("==" in pin for pin in pins)
    assert len(names) == len(set(names))
    assert json.dumps(sorted(names))  # all of it is plain text
