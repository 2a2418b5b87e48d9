# SPDX-License-Identifier: MIT
"""Configures and builds a preset, and puts the compiler's first error on top when that fails."""

from __future__ import annotations

import functools
import os
import re
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from course_tool import console, processes
from course_tool.errors import CourseError
from course_tool.files import digest, locked
from course_tool.paths import BUILD, ROOT, relative

CONFIGURE_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 1800
CONTEXT_LINES = 8
GCC_OLDEST = 12
CLANG_OLDEST = 16
NEWEST = 30  # of the version numbers in compilers' names that we try
SANITIZER_PRESETS = frozenset(
    {"asan", "tsan", "fuzz", "student-asan", "student-tsan", "student-fuzz"}
)

LOG_NAME = "course-build.log"
STAMP_NAME = "course-configured"
UNFINISHED = "unfinished"
LENT = "COURSE_RELEASE_BUILD"

# The compilers' English, in UTF-8, without colors; ninja's counter in the form that we read.
PLAIN_ENV = {
    "LC_ALL": "C.UTF-8",
    "NINJA_STATUS": "[%f/%t] ",
    "CLICOLOR_FORCE": "0",
    "TERM": "dumb",
}


class BuildError(CourseError):
    """Its first line is the compiler's first error: path:line:col: error: message."""


def folder(preset: str) -> Path:
    """build/<preset>, or what lend() lends; to this clone alone: a test's clone builds its own."""
    lent = os.environ.get(LENT) if preset == "release" else None
    return Path(lent) if lent and Path(lent).is_relative_to(BUILD) else BUILD / preset


def lend(release: Path) -> dict[str, str]:
    """The environment in which a ./course of this clone takes `release` for its release build."""
    if not (release / "build.ninja").is_file():
        return {}
    (release / STAMP_NAME).write_text(_stamp("release"))
    return {LENT: str(release)}


def program(preset: str, name: str) -> Path:
    """Where `name` (such as 01-server) is built; it may not be there yet."""
    return folder(preset) / "bin" / name


@functools.cache
def compiler_version(compiler: str) -> tuple[str, int] | None:
    """('gcc', 12) or ('clang', 19), as the compiler's own macros say; None if it does not run."""
    try:
        asked = [compiler, "-dM", "-E", "-x", "c++", "/dev/null"]
        macros = processes.run(asked, timeout_s=30, env=PLAIN_ENV).stdout
    except CourseError:
        return None
    for kind, macro in (("clang", "__clang_major__"), ("gcc", "__GNUC__")):
        found = re.search(rf"^#define {macro} (\d+)$", macros, re.MULTILINE)
        if found:
            return kind, int(found[1])
    return None


def is_new_enough(compiler: str) -> bool:
    """The floors that cmake/compiler.cmake also checks."""
    kind, version = compiler_version(compiler) or ("", 0)
    return version >= {"clang": CLANG_OLDEST, "gcc": GCC_OLDEST}.get(kind, version + 1)


@functools.cache
def newest_clang() -> str | None:
    """The newest clang++ that the course can use, as a full path."""
    return _newest("clang++", range(NEWEST, CLANG_OLDEST - 1, -1))


def _newest(name: str, versions: range) -> str | None:
    for candidate in [*(f"{name}-{version}" for version in versions), name]:
        found = shutil.which(candidate)
        if found and is_new_enough(found):
            return found
    return None


@functools.cache
def usable_compiler() -> str | None:
    """The compiler CMake would take if it is new enough, else the newest one that is."""
    for name in ("c++", "g++"):
        found = shutil.which(name)
        if found:
            if is_new_enough(found):
                return found
            break
    return _newest("g++", range(NEWEST, GCC_OLDEST - 1, -1)) or newest_clang()


def report_options() -> dict[str, str]:
    """An environment in which a sanitizer's report names functions and lines.

    Debian's Clang looks for an llvm-symbolizer of its own version, which its package lacks.
    """
    program = shutil.which("llvm-symbolizer") or shutil.which("addr2line")
    if program is None:
        return {}
    options = {}
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
        said = os.environ.get(name)
        first = f"external_symbolizer_path={program}"  # what is said later counts
        if name == "TSAN_OPTIONS":  # Catch2's own handler of a crash would hide the race in reports
            first += ":report_signal_unsafe=0"
        options[name] = f"{first}:{said}" if said else first
    return options


def compiler_for(preset: str) -> str | None:
    """The compiler that we name to CMake; None leaves the choice to it."""
    if os.environ.get("CXX"):
        return None
    if preset in SANITIZER_PRESETS and newest_clang():
        return newest_clang()  # GCC keeps no tail call under its sanitizers
    compiler = usable_compiler()
    default = shutil.which("c++") or shutil.which("g++")
    return None if compiler == default else compiler


def _require_programs() -> None:
    for name, why in (("cmake", "describes the build"), ("ninja", "runs the build")):
        if not shutil.which(name):
            raise BuildError(f"There is no {name} here; it {why}. `./course start` installs it.")
    chosen = os.environ.get("CXX", "").split()
    if chosen and not shutil.which(chosen[0]):
        raise BuildError(
            f"The environment says CXX={chosen[0]}, and there is no such program. "
            "Unset CXX, or name a compiler that is installed."
        )
    if not chosen and not usable_compiler():
        old = [name for name in ("c++", "g++", "clang++") if shutil.which(name)]
        found = f"{old[0]} is too old" if old else "there is none"
        raise BuildError(
            f"The course needs a C++ compiler, g++ {GCC_OLDEST} or clang++ {CLANG_OLDEST} or "
            f"newer, and {found}. `./course start` installs one; or name yours: "
            "CXX=/path/to/g++ ./course"
        )


def _alone_in(where: Path) -> AbstractContextManager[None]:
    """One ./course at a time in a build folder: ninja itself takes no lock."""
    waits = f"Waiting for another ./course that builds in {relative(where)}/ …"
    return locked(where / "course-lock", lambda: console.err.print(waits))


def _cache_entry(where: Path, name: str) -> str | None:
    cache = where / "CMakeCache.txt"
    if not cache.is_file():
        return None
    found = re.search(rf"^{name}:\w+=(.*)$", cache.read_text(errors="replace"), re.MULTILINE)
    return found[1] if found else None


def _belongs_elsewhere(where: Path) -> bool:
    """A moved clone, or a compiler that is gone: nothing in that cache holds any more."""
    home = _cache_entry(where, "CMAKE_HOME_DIRECTORY")
    made_in = _cache_entry(where, "CMAKE_CACHEFILE_DIR")
    compiler = _cache_entry(where, "CMAKE_CXX_COMPILER")
    if home is not None and Path(home) != ROOT or made_in is not None and Path(made_in) != where:
        return True
    return compiler is not None and not shutil.which(compiler)


def _was_interrupted(where: Path) -> bool:
    """CMake that was killed half-way leaves a cache that it may not understand itself."""
    stamp = where / STAMP_NAME
    return stamp.is_file() and stamp.read_text() == UNFINISHED


def _stamp(preset: str) -> str:
    """What a configuration depends on beyond the CMake files, which ninja watches by itself."""
    compiler = repr((compiler_for(preset), os.environ.get("CXX")))
    return digest((ROOT / "CMakePresets.json").read_bytes(), compiler.encode())


def _configured(preset: str) -> bool:
    where = folder(preset)
    stamp = where / STAMP_NAME
    return (
        (where / "build.ninja").is_file()
        and stamp.is_file()
        and stamp.read_text() == _stamp(preset)
    )


def configure(preset: str) -> None:
    """Runs CMake where it is needed: the first time, or when the preset or the compiler changed."""
    _require_programs()
    with _alone_in(folder(preset)):
        _configure(preset)


def _configure(preset: str) -> None:
    where = folder(preset)
    if _belongs_elsewhere(where) or _was_interrupted(where):
        _wipe(where)
    if _configured(preset):
        return
    (where / STAMP_NAME).write_text(UNFINISHED)
    compiler = compiler_for(preset)
    if compiler and _cache_entry(where, "CMAKE_CXX_COMPILER") not in (None, compiler):
        _wipe(where)  # CMake would start over in the middle of its run, and lose the preset
    args = ["cmake", "--preset", preset]
    if compiler:
        args.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    with console.progress(f"Configuring the {preset} build"):
        finished = processes.run(args, timeout_s=CONFIGURE_TIMEOUT_S, cwd=ROOT, env=PLAIN_ENV)
    if finished.returncode != 0:
        (where / STAMP_NAME).unlink()
        log = _write_log(preset, finished)
        raise BuildError(f"{_cmake_error(finished.stderr)}\n  The full log: {relative(log)}")
    (where / STAMP_NAME).write_text(_stamp(preset))


def _wipe(where: Path) -> None:
    """Empties a build folder but for the lock that we hold in it."""
    for entry in where.iterdir():
        if entry.name == "course-lock":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def build(preset: str, targets: list[str], compiler_cpu_s: int | None = None) -> list[str]:
    """Builds the targets of a preset; configures first where that is needed.

    Returns what the compiler warns of in chapters/, as far as it was compiled now.
    """
    _require_programs()
    with _alone_in(folder(preset)):
        _configure(preset)
        args = ["cmake", "--build", folder(preset), "--target", *targets]
        with console.progress(f"Building {', '.join(targets)} ({preset})", total=0) as steps:
            finished = processes.run(
                processes.limited(args, compiler_cpu_s) if compiler_cpu_s else args,
                timeout_s=BUILD_TIMEOUT_S,
                cwd=ROOT,
                env=PLAIN_ENV,
                on_line=lambda line: show_ninja_line(line, steps),
            )
        log = _write_log(preset, finished)
        output = finished.stdout + finished.stderr
        if finished.returncode != 0:
            raise BuildError(f"{build_failure(output)}\n  The full log: {relative(log)}")
        return students_warnings(output)


def show_ninja_line(line: str, steps: console.Steps) -> None:
    found = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
    if found:
        steps.at(int(found[1]), int(found[2]), found[3].rsplit("/", 1)[-1][:40])


def _write_log(preset: str, finished: processes.Finished) -> Path:
    log = log_of(preset)
    command = " ".join(finished.args)
    log.write_text(f"$ {command}\n{finished.stdout}{finished.stderr}", encoding="utf-8")
    return log


def keep_log(preset: str, name: str, text: str) -> Path:
    """Keeps what is too long for the screen; a file a name, the last one wins."""
    file_name = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")[:80]
    log = folder(preset) / "course-logs" / f"{file_name}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CourseError(f"could not write {relative(log)}: {error.strerror}.") from error
    return log


def build_failure(output: str) -> str:
    """The first error in a build's output, with the lines around it that explain it."""
    unknown = re.search(r"ninja: error: unknown target '([^']*)'", output)
    if unknown:
        return f"The build has no target {unknown[1]}. Is its chapter listed in CMakeLists.txt?"
    lines = [line.rstrip() for line in output.splitlines()]
    for index, line in enumerate(lines):
        if re.match(r"\S[^:]*:\d+:(\d+:)? (fatal )?error: ", line):
            return "\n".join([_from_root(line), *_context(lines[index + 1 :])])
    if "CMake Error" in output:
        return _cmake_error(output)
    for index, line in enumerate(lines):
        if re.search(r"undefined reference to|multiple definition of|ld: error:|: error: ", line):
            return "\n".join([_from_root(line), *_context(lines[index + 1 :])])
    tail = [line for line in lines if line][-CONTEXT_LINES:]
    return "\n  ".join(
        ["The build failed, and no compiler said why. The end of its output:", *tail]
    )


def students_warnings(output: str) -> list[str]:
    """`file:line: message`, once each: a header is compiled into several programs.

    A ccache with a base_dir makes the paths relative to the build folder.
    """
    found = re.finditer(
        r"^(\.\./)*(?P<where>chapters/[^:\n]+:\d+):(\d+:)? warning: (?P<message>.*\S)",
        _from_root(output),
        re.MULTILINE,
    )
    return list(dict.fromkeys(f"{each['where']}: {each['message']}" for each in found))


def log_of(preset: str) -> Path:
    """What the last configuration that failed, or the last build, has printed."""
    return folder(preset) / LOG_NAME


def _context(following: list[str]) -> list[str]:
    """The quoted source, caret and notes below an error, up to the next error or command."""
    context = []
    for line in following[:CONTEXT_LINES]:
        if re.match(r"\[\d+/\d+\] |ninja: |FAILED: ", line) or ": error: " in line:
            break
        context.append(_from_root(line))
    return context


def _from_root(line: str) -> str:
    return line.replace(f"{ROOT}/", "")


def _cmake_error(output: str) -> str:
    """The first CMake error without its call stack; where it is, unless a message() says it all."""
    found = re.search(
        r"CMake Error at (?P<where>.+:\d+)(?: \((?P<command>\w+)\))?:\n"
        r"(?P<text>(?:\n|  [^\n]*(?:\n|$))+)|CMake Error: (?P<line>[^\n]+)",
        output,
    )
    if not found:
        tail = [line for line in output.splitlines() if line.strip()][-CONTEXT_LINES:]
        return "\n  ".join(["CMake failed. The end of its output:", *tail])
    text = found["line"] or " ".join(found["text"].split())
    if found["where"] and found["command"] != "message":
        text = f"{found['where']}: {text}"
    return _from_root(f"CMake: {text}")
