# SPDX-License-Identifier: MIT
"""Makes .venv where it is missing or out of date, then becomes the tool.

Started by ./course with any Python >= 3.11, the .venv's own if that runs; so it imports the
standard library alone, and of the tool only what does the same.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from course_tool import apt, processes
from course_tool.errors import CourseError
from course_tool.files import digest, locked, write_whole
from course_tool.paths import ROOT, STATE, VENV, relative

REQUIREMENTS = ROOT / "requirements.txt"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "made-from.json"  # written last: a .venv without it is unfinished
PIP_LOG = STATE / "pip.log"

VENV_TIMEOUT_S = 600
PIP_TIMEOUT_S = 1800
LINE_EVERY_S = 10.0
_NO_NETWORK = re.compile(
    r"name resolution|Network is unreachable|Connection refused|No route to host|timed out"
    r"|ProxyError|NewConnectionError|Name or service not known|ConnectionResetError",
    re.IGNORECASE,
)


def main(arguments: Sequence[str]) -> int:
    """Sets up what is missing, and runs the tool in .venv's Python."""
    tried_already = os.environ.pop("COURSE_SET_UP", None) is not None
    for stopping in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, signal.default_int_handler)
    try:
        if not _in_venv() or not _stamp_holds(_own_version()):
            if tried_already:
                raise CourseError(f"{relative(VENV)} is new and not usable. Delete it; try again.")
            _leave_venv(arguments)
            _set_up(yes=_says_yes(arguments))
            _enter(PYTHON, arguments, {"COURSE_SET_UP": "1"})
    except CourseError as error:
        print(f"course: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("course: interrupted; the next ./course goes on from here", file=sys.stderr)
        return 130
    from course_tool.__main__ import main as run_tool

    return run_tool()


def _says_yes(arguments: Sequence[str]) -> bool:
    ours = list(arguments[: arguments.index("--")]) if "--" in arguments else arguments
    return "--yes" in ours or "-y" in ours


def _in_venv() -> bool:
    return Path(sys.prefix).resolve() == VENV.resolve()


def _leave_venv(arguments: Sequence[str]) -> None:
    """A .venv cannot be made again by its own Python: go on with the one it was made from."""
    if not Path(sys.executable).is_relative_to(VENV):
        return
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    if base.is_relative_to(VENV):  # a .venv so unfinished that Python does not see it is one
        base = base.resolve()
    _enter(base, arguments, {})


def _enter(python: Path, arguments: Sequence[str], env: dict[str, str]) -> None:
    args = [str(python), "-I", os.path.abspath(__file__), *arguments]
    os.execve(python, args, {**os.environ, **env})


def _own_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _wanted(version: str) -> dict[str, str]:
    """All that a .venv depends on: a change in any of these makes it anew."""
    try:
        requirements = REQUIREMENTS.read_bytes()
    except OSError:
        raise CourseError(
            f"{relative(REQUIREMENTS)} is missing. Is the clone whole? `git status` shows it; "
            "`git checkout requirements.txt` brings it back."
        ) from None
    return {
        "clone": str(ROOT),
        "python": version,
        "requirements": digest(requirements),
    }


def _stamp_holds(version: str) -> bool:
    try:
        return json.loads(STAMP.read_text(encoding="utf-8")) == _wanted(version)
    except (OSError, ValueError):
        return False


def _venv_version() -> str | None:
    """What .venv's Python says of itself; None if it does not run, or not as an environment."""
    ask = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.prefix != sys.base_prefix)"
    if not PYTHON.exists():
        return None
    try:
        answer = processes.run([PYTHON, "-I", "-c", ask], timeout_s=30).stdout.split()
    except CourseError:
        return None
    return answer[0] if answer[1:] == ["True"] else None


def _set_up(yes: bool) -> None:
    with _only_one():
        version = _venv_version()
        if version and _stamp_holds(version):
            return  # another ./course has made it while we waited
        wanted = _wanted(_own_version())
        reason = _why(version)
        _say(f"Setting up the course's Python packages in {relative(VENV)}/: {reason}.")
        _require_ensurepip(yes)
        try:
            _make_venv()
            _install_requirements()
        except BaseException:
            shutil.rmtree(VENV, ignore_errors=True)
            raise
        write_whole(STAMP, json.dumps(wanted, indent=1) + "\n")


def _why(version: str | None) -> str:
    if not VENV.exists():
        return "there is none yet"
    if version is None:
        return "its Python is gone or does not run"
    try:
        have = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "it was not finished"
    reasons = {
        "clone": "the clone has been moved",
        "python": "Python has changed",
        "requirements": "requirements.txt has changed",
    }
    wanted = _wanted(version)
    changed = [why for key, why in reasons.items() if have.get(key) != wanted[key]]
    return " and ".join(changed) or "it was not finished"


@contextmanager
def _only_one() -> Iterator[None]:
    """Two ./course at once: the second waits, and then finds the work done."""
    with ExitStack() as stack:
        try:
            waits = f"Another ./course is setting up {relative(VENV)}/; waiting for it …"
            stack.enter_context(locked(STATE / "bootstrap.lock", lambda: _say(waits)))
        except OSError as error:
            raise CourseError(
                f"Cannot write in {ROOT}: {error.strerror}. The course needs to."
            ) from error
        yield


def _require_ensurepip(yes: bool) -> None:
    """Debian and Ubuntu keep the half of venv that brings pip in a package of its own."""
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    problem = (
        f"{sys.executable} cannot make a virtual environment: its ensurepip module is missing."
    )
    if apt.manager() != "apt-get" or not sys.executable.startswith("/usr/bin/"):
        raise CourseError(
            f"{problem} Install a complete Python 3.11 or newer, put it first in PATH, and run "
            "./course again."
        )
    _say(f"{problem} The package {package} holds it.")
    if not apt.may_install([package], yes):
        raise CourseError(f"Nothing was installed. To do it yourself: {apt.command_for([package])}")
    with _working(f"Installing {package}") as note:
        apt.install([package], note)
    importlib.invalidate_caches()
    if not importlib.util.find_spec("ensurepip"):
        raise CourseError(f"{package} is installed, and {sys.executable} still has no ensurepip.")


def _make_venv() -> None:
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    shutil.rmtree(VENV, ignore_errors=True)
    with _working("Making the virtual environment"):
        made = processes.run([sys.executable, "-I", "-m", "venv", VENV], timeout_s=VENV_TIMEOUT_S)
        if made.returncode != 0:
            said = (made.stdout + made.stderr).strip().splitlines()[-4:]
            failed = f"`{sys.executable} -m venv` failed. It said:"
            raise CourseError("\n  ".join([failed, *said, _disk_hint(made)]))


def _install_requirements() -> None:
    args = [PYTHON, "-I", "-u", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    args += ["--progress-bar", "off", "--retries", "2", "--prefer-binary", "-r", REQUIREMENTS]
    with _working("Installing the packages of requirements.txt") as note:
        finished = processes.run(args, timeout_s=PIP_TIMEOUT_S, on_line=note)
        PIP_LOG.write_text(finished.log, encoding="utf-8")
        if finished.returncode != 0:
            raise CourseError(_pip_failure(finished))


def _pip_failure(finished: processes.Finished) -> str:
    output = finished.stdout + finished.stderr
    lines = [line for line in finished.stderr.splitlines() if line.startswith("ERROR:")]
    errors = [textwrap.shorten(line, 160, placeholder=" …") for line in lines[-3:]]
    if _NO_NETWORK.search(output):
        what = (
            "pip could not reach the package index, so nothing was installed. The course needs the "
            "network this once.\n  Check it (and HTTPS_PROXY or PIP_INDEX_URL, if you are behind "
            "a proxy or use a mirror), and run ./course again."
        )
    else:
        what = "pip could not install the packages of requirements.txt. " + _disk_hint(finished)
    return "\n  ".join([what, *errors, f"The whole of it: {relative(PIP_LOG)}"])


def _disk_hint(finished: processes.Finished) -> str:
    if "No space left" in finished.stdout + finished.stderr:
        return "The disk is full: the course needs about 2 GB."
    return "Run ./course again when that is mended; it starts over."


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _working(description: str) -> Iterator[Callable[[str], None]]:
    """Says that something takes its time; yields what to call with each line of its output."""
    terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    started = time.monotonic()
    next_line_s = started + LINE_EVERY_S

    def note(line: str) -> None:
        nonlocal next_line_s
        text = line.strip()[:60]
        if terminal:
            print(f"\r\033[K  {description} … {text}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + LINE_EVERY_S
            _say(f"  {description} … {time.monotonic() - started:.0f} s: {text}")

    if terminal:
        note("")
    else:
        _say(f"  {description} …")
    try:
        yield note
    finally:
        if terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    _say(f"  {description}: done in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
