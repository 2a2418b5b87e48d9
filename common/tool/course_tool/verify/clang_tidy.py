# SPDX-License-Identifier: MIT
"""The clang-tidy that verify asks: the pinned one from PyPI, which verify alone installs.

From version 21 on clang-tidy leaves the code of system headers alone, where version 19, which
Debian 12 can have, spends half of its time, and finds nothing that it would tell. The wheel is
46 MB that a student never needs, so requirements.txt does not name it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

from course_tool import console, processes
from course_tool.errors import CourseError
from course_tool.paths import VENV, relative

VERSION = "23.1.4"
PIP_TIMEOUT_S = 600


def installed() -> Path | None:
    """The pinned program in .venv; None if it is not there, or is another version."""
    importlib.invalidate_caches()
    package = importlib.util.find_spec("clang_tidy")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "data" / "bin" / "clang-tidy"
    return program if program.is_file() and _says_version(program) else None


def _says_version(program: Path) -> bool:
    try:
        return f"version {VERSION}" in processes.run([program, "--version"], timeout_s=30).stdout
    except CourseError:  # a wheel for another libc
        return False


def ensure() -> None:
    """Installs it where it is missing; if that fails, whoever wants it asks install() why."""
    if not installed():
        install()


def install() -> str | None:
    """Installs the wheel into .venv; what went wrong, in a line, if it could not."""
    args = [sys.executable, "-I", "-m", "pip", "install", "--disable-pip-version-check"]
    args += ["--no-input", "--no-deps", "--only-binary=:all:", "--retries", "2"]
    what = f"Installing clang-tidy {VERSION} in {relative(VENV)}/ (46 MB, for verify alone)"
    try:
        with console.progress(what):
            finished = processes.run([*args, f"clang-tidy=={VERSION}"], timeout_s=PIP_TIMEOUT_S)
    except CourseError as error:
        return str(error).splitlines()[0]
    if finished.returncode == 0 and installed():
        return None
    said = [line for line in finished.stderr.splitlines() if line.startswith("ERROR:")]
    return said[-1].removeprefix("ERROR: ") if said else "it is installed, and does not run"
