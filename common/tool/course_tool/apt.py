# SPDX-License-Identifier: MIT
"""Installs the distribution's packages where that is apt's job; elsewhere it says the command.

The standard library alone: bootstrap.py needs it before there is a .venv.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from course_tool import foreground, processes
from course_tool.errors import CourseError
from course_tool.paths import STATE, relative

UPDATE_TIMEOUT_S = 600
INSTALL_TIMEOUT_S = 1800
DPKG_GRACE_S = 120  # dpkg that is killed half-way has to be repaired by hand
LOG = STATE / "apt.log"

# The command that installs on each family of distributions, in the order we look for them.
MANAGERS = {
    "apt-get": "apt-get install -y --no-install-recommends",
    "dnf": "dnf install -y",
    "pacman": "pacman -S --needed",
    "zypper": "zypper install -y",
    "apk": "apk add",
}
_OPTIONS = ("-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0")
_ENV = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def manager() -> str | None:
    """The package manager of this machine, if it is one that we know."""
    return next((name for name in MANAGERS if shutil.which(name)), None)


def command_for(names: Sequence[str], manager_name: str | None = None) -> str:
    """What the reader types to install packages by hand."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}{MANAGERS[manager_name or 'apt-get']} {' '.join(names)}"


def candidate(package: str) -> str | None:
    """The version that apt would install (or has); None if it knows no such package."""
    shown = processes.run(["apt-cache", "policy", package], timeout_s=60, env=_ENV).stdout
    found = re.search(r"^  Candidate: (\S+)$", shown, re.MULTILINE)
    return None if found is None or found[1] == "(none)" else found[1]


def has_lists() -> bool:
    """False in a fresh container image: apt has never asked its mirrors what they have."""
    return any(Path("/var/lib/apt/lists").glob("*_Packages*"))


def has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def may_install(names: Sequence[str], yes: bool) -> bool:
    """True if we install; False if the reader said no. Root is never asked, nor is a script."""
    if os.geteuid() == 0:
        return True
    command = command_for(names)
    if not shutil.which("sudo"):
        as_root = command.removeprefix("sudo ")
        raise CourseError(f"There is no sudo here, and you are not root. As root, run: {as_root}")
    if has_terminal():
        if not yes and not _asked(f"May I run `{command}`? [Y/n] "):
            return False
        unlock_sudo()
        return True
    if not (yes or os.environ.get("CI")):
        raise CourseError(
            f"To install packages I would have to ask, and there is no terminal. Run it yourself: "
            f"{command}\n  or call ./course with --yes, if sudo needs no password here."
        )
    if processes.run(["sudo", "-n", "true"], timeout_s=30).returncode != 0:
        raise CourseError(f"sudo wants a password, and there is no terminal. Run: {command}")
    return True


def unlock_sudo() -> None:
    """Lets sudo ask for the password now, on the terminal; what follows runs without one."""
    if foreground.run_on_terminal(["sudo", "-v"]) != 0:
        raise CourseError("sudo did not let you: install the packages as root, or ask who may.")


def _asked(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def install(names: Sequence[str], on_line: Callable[[str], None]) -> None:
    """Installs packages; asks apt for fresh lists when it does not know one of them."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("", encoding="utf-8")
    if _half_configured():
        _apt(["dpkg", "--configure", "-a"], INSTALL_TIMEOUT_S, on_line)
    fetched = "" if all(map(candidate, names)) else update(on_line)
    install_args = ["apt-get", "install", "-y", "--no-install-recommends", *_OPTIONS, *names]
    finished = _apt(install_args, INSTALL_TIMEOUT_S, on_line)
    if finished.returncode != 0 and not fetched and _lists_are_old(finished):
        fetched = update(on_line)
        finished = _apt(install_args, INSTALL_TIMEOUT_S, on_line)
    if finished.returncode != 0:
        raise CourseError(_failure(names, fetched, finished))


def update(on_line: Callable[[str], None]) -> str:
    """Fetches the package lists, as far as their mirrors answer; returns what apt said of it."""
    finished = _apt(["apt-get", "update", *_OPTIONS], UPDATE_TIMEOUT_S, on_line)
    return finished.stdout + finished.stderr


def _apt(
    args: Sequence[str], timeout_s: float, on_line: Callable[[str], None]
) -> processes.Finished:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n", *(f"{k}={v}" for k, v in _ENV.items())]
    finished = processes.run(
        [*sudo, *args], timeout_s=timeout_s, env=_ENV, on_line=on_line, asks_first_s=DPKG_GRACE_S
    )
    with LOG.open("a", encoding="utf-8") as log:
        log.write(finished.log)
    return finished


def _half_configured() -> bool:
    """An interrupted dpkg: it refuses all work until what it began is configured."""
    audit = processes.run(["dpkg", "--audit"], timeout_s=60, env=_ENV)
    updates = "/var/lib/dpkg/updates"
    journal = os.listdir(updates) if os.path.isdir(updates) else []
    return bool(audit.stdout.strip()) or any(name.isdecimal() for name in journal)


def _lists_are_old(finished: processes.Finished) -> bool:
    said = finished.stdout + finished.stderr
    return bool(re.search(r"404 +Not Found|Unable to locate package|no installation cand", said))


def _failure(names: Sequence[str], fetched: str, finished: processes.Finished) -> str:
    lines = (finished.stdout + finished.stderr).splitlines()
    told = complaints(fetched)[:2] + (complaints("\n".join(lines)) or lines)[-3:]
    return "\n  ".join(
        [
            f"apt-get could not install {', '.join(names)}. It said:",
            *(textwrap.shorten(line, 160, placeholder=" …") for line in told),
            f"The whole of it: {relative(LOG)}. By hand: {command_for(names)}",
        ]
    )


def complaints(output: str) -> list[str]:
    return [line for line in output.splitlines() if re.match(r"[EW]: ", line)]
