# SPDX-License-Identifier: MIT
"""What the course needs from the system: why, for which command, and how it gets there.

A need is met when trying it works, never because a package is installed: a machine with its own
newer CMake is left alone.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from course_tool import apt, builds, catch2, console, processes
from course_tool.errors import CourseError

PROBE_TIMEOUT_S = 60
CMAKE_OLDEST = (3, 25)
LIBURING_OLDEST = "2.3"
# The version that .clang-format and .clang-tidy were written with comes first: others lay out and
# warn a little differently.
CLANG_VERSIONS = (19, *range(builds.NEWEST, builds.CLANG_OLDEST - 1, -1))

# What each purpose needs on top of another one.
PURPOSES: Mapping[str, tuple[str, ...]] = {
    "start": ("start",),
    "bench": ("start", "bench"),
    "fuzz": ("start", "fuzz"),
    "verify": ("start", "bench"),
    "verify --all": ("start", "bench", "fuzz", "verify"),
}


@dataclass(frozen=True)
class Need:
    """Something that has to be here."""

    name: str
    why: str
    purpose: str  # the first of PURPOSES' parts that needs it
    met: Callable[[], bool] = field(repr=False)
    packages: Callable[[str], tuple[str, ...]] = field(repr=False)  # of a package manager


def _runs(program: str, *args: str) -> Callable[[], bool]:
    """Met when the program runs and succeeds."""
    words = [program, *(args or ["--version"])]
    return lambda: shutil.which(program) is not None and _succeeds(words)


def _succeeds(words: Sequence[str], input_text: str | None = None) -> bool:
    return processes.run(words, timeout_s=PROBE_TIMEOUT_S, input_text=input_text).returncode == 0


def _has_compiler() -> bool:
    named = os.environ.get("CXX", "").split()
    if named:
        return builds.is_new_enough(named[0])
    builds.usable_compiler.cache_clear()
    builds.newest_clang.cache_clear()
    return builds.usable_compiler() is not None


def _has_cmake() -> bool:
    if not shutil.which("cmake"):
        return False
    said = processes.run(["cmake", "--version"], timeout_s=PROBE_TIMEOUT_S).stdout
    found = re.search(r"version (\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= CMAKE_OLDEST


def _has_liburing() -> bool:
    new_enough = _runs("pkg-config", f"--atleast-version={LIBURING_OLDEST}", "liburing")
    return new_enough() and _headers("liburing.h")()


def _headers(*headers: str) -> Callable[[], bool]:
    """Asks the compiler, which alone knows where it looks; only the preprocessor runs."""
    question = "".join(f"#if !__has_include(<{each}>)\n#error none\n#endif\n" for each in headers)

    def met() -> bool:
        compiler = (os.environ.get("CXX") or builds.usable_compiler() or "").split()
        args = [*compiler, "-E", "-x", "c++", "-o", "/dev/null", "-"]
        return bool(compiler) and _succeeds(args, question)

    return met


def _has_sanitizing_clang() -> bool:
    """A Clang with its runtime: linking a program under ASan and UBSan is the proof."""
    builds.newest_clang.cache_clear()
    args = ["-fsanitize=address,undefined", "-x", "c++", "-o", "/dev/null", "-"]
    clang = builds.newest_clang()
    return clang is not None and _succeeds([clang, *args], "int main() {}\n")


def clang_tool(name: str) -> str | None:
    """clang-format or clang-tidy in the version that the course prefers; a full path."""
    for version in CLANG_VERSIONS:
        found = shutil.which(f"{name}-{version}")
        if found:
            return found
    return shutil.which(name)


def chromium() -> str | None:
    """The browser that the site's tests drive."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def _named(*names: str) -> Callable[[str], tuple[str, ...]]:
    """Package names in the order of apt.MANAGERS; one name alone is the same everywhere."""
    everywhere = names * len(apt.MANAGERS) if len(names) == 1 else names
    by_manager = dict(zip(apt.MANAGERS, everywhere, strict=True))
    return lambda manager: tuple(by_manager[manager].split())


def _clang_packages(manager: str) -> tuple[str, ...]:
    if manager == "apt-get":
        return _debian_clang()
    return _named("", "clang clang-tools-extra compiler-rt", "clang compiler-rt",
                  "clang clang-tools", "clang clang-extra-tools compiler-rt")(manager)  # fmt: skip


@functools.cache
def _debian_clang() -> tuple[str, ...]:
    """clang-19 and its tools, or the newest that the distribution has whole."""
    for version in CLANG_VERSIONS:
        names = (f"clang-{version}", f"clang-tidy-{version}", f"clang-format-{version}",
                 f"libclang-rt-{version}-dev")  # fmt: skip
        if all(map(apt.candidate, names)):
            return names
    return ("clang", "clang-tidy", "clang-format")


def all_needs() -> list[Need]:
    """Everything, in the order in which it is needed; Catch2 is catch2.py's."""
    return [
        # What turns the sources into programs.
        Need("a C++ compiler", "g++ 12 or clang++ 16, or newer, compiles the course", "start",
             _has_compiler, _named("g++", "gcc-c++", "gcc", "gcc-c++", "g++")),
        Need("CMake 3.25", "describes the build", "start", _has_cmake, _named("cmake")),
        Need("Ninja", "runs the build", "start", _runs("ninja"),
             _named("ninja-build", "ninja-build", "ninja", "ninja", "ninja-build")),
        Need("pkg-config", "finds liburing", "start", _runs("pkg-config"),
             _named("pkg-config", "pkgconf-pkg-config", "pkgconf", "pkgconf-pkg-config",
                    "pkgconf")),
        Need("git", "says what you changed, and brings tests/ back", "start", _runs("git"),
             _named("git")),
        # What the programs are built with.
        Need(f"liburing {LIBURING_OLDEST}", "the ring, from chapter 05 on, and the doctor",
             "start", _has_liburing,
             _named("liburing-dev", "liburing-devel", "liburing", "liburing-devel",
                    "liburing-dev")),
        Need("CLI11", "reads the servers' flags", "start", _headers("CLI/CLI.hpp"),
             _named("libcli11-dev", "cli11-devel", "cli11", "cli11-devel", "cli11-dev")),
        Need("fmt", "prints", "start", _headers("fmt/core.h"),
             _named("libfmt-dev", "fmt-devel", "fmt", "fmt-devel", "fmt-dev")),
        Need("asio", "chapter 03, and the servers to compare with", "start",
             _headers("asio.hpp"),
             _named("libasio-dev", "asio-devel", "asio", "asio-devel", "asio-dev")),
        # What measures and checks.
        Need("strace", "counts system calls at the checkpoints", "bench", _runs("strace"),
             _named("strace")),
        Need("Clang with its sanitizers", "tests under ASan and UBSan, and fuzzes", "fuzz",
             _has_sanitizing_clang, _clang_packages),
        Need("clang-tidy", "checks the C++ sources", "verify",
             lambda: clang_tool("clang-tidy") is not None, _clang_packages),
        Need("clang-format", "checks the C++ sources' layout", "verify",
             lambda: clang_tool("clang-format") is not None, _clang_packages),
        Need("Chromium", "opens the site's pages in its tests", "verify",
             lambda: chromium() is not None, _named("chromium")),
        Need("wrk", "a second opinion on the load generator", "verify",
             lambda: shutil.which("wrk") is not None, _named("wrk")),
    ]  # fmt: skip


def missing(purpose: str) -> list[Need]:
    """What `purpose` (start, bench, fuzz or verify) needs and this machine lacks."""
    parts = PURPOSES[purpose]
    return [need for need in all_needs() if need.purpose in parts and not need.met()]


def install_command(needs: Sequence[Need]) -> str:
    """What the reader types to get these; empty for a package manager that we do not know."""
    manager = apt.manager()
    return apt.command_for(_names(needs, manager), manager) if manager else ""


def _names(needs: Sequence[Need], manager: str) -> list[str]:
    return list(dict.fromkeys(name for need in needs for name in need.packages(manager)))


def _welcome() -> list[str]:
    """What makes builds quick and is no need: it comes with what is installed anyway."""
    return [name for name in ("ccache",) if not shutil.which(name) and apt.candidate(name)]


def ensure(purpose: str = "start", yes: bool = False) -> None:
    """Installs what a command needs and this machine lacks, saying what and why; then Catch2."""
    lacking = missing(purpose)
    if lacking:
        _install(lacking, purpose, yes)
        still = missing(purpose)
        if still:
            raise CourseError(_not_met(still))
    catch2.ensure()


def _install(needs: Sequence[Need], purpose: str, yes: bool) -> None:
    console.err.print(f"./course {purpose} needs what this machine lacks:")
    for need in needs:
        console.err.print(f"  {need.name}: {need.why}")
    command = install_command(needs)
    if apt.manager() != "apt-get":
        how = f"Install it with:\n  {command}" if command else "Install it, by your system's means,"
        raise CourseError(f"{how}\nthen run ./course {purpose} again.")
    names = _names(needs, "apt-get")
    if not apt.may_install(names, yes):
        raise CourseError(f"Nothing was installed. To do it yourself: {command}")
    with console.progress("Installing packages", total=0) as steps:

        def note(line: str) -> None:
            steps.at(0, text=line.strip()[:60])

        if not apt.has_lists():
            apt.update(note)
            _debian_clang.cache_clear()
        apt.install([*_names(needs, "apt-get"), *_welcome()], note)


def _not_met(needs: Sequence[Need]) -> str:
    lines = "".join(f"\n  {need.name} ({need.why})" for need in needs)
    return (
        f"Installed what the distribution has, and these are still not usable:{lines}\n"
        "  The distribution's may be too old: install a newer one yourself, and put it in PATH."
    )
