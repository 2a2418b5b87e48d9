# SPDX-License-Identifier: MIT
"""Every header of the course compiles alone: it includes what it needs.

Most of such a compile is the standard library's headers, again and again. Clang can make each of
them a module, which is read once; and it sees of the library what the header includes, as it would
without modules. What does not compile so has to do it without, by the course's compiler.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from course_tool import builds, processes
from course_tool.paths import ROOT, relative
from course_tool.verify.dependencies import with_headers
from course_tool.verify.memory import Memory
from course_tool.verify.outcome import Context, Outcome, check_all
from course_tool.verify.style import TOOL_TIMEOUT_S, cpp_files, solution_commands


def prove_headers(context: Context) -> Outcome:
    outcome = Outcome("headers")
    commands = solution_commands()
    headers = [ROOT / name for name in cpp_files() if name.endswith(".hpp")]
    compiler = shlex.split(commands[0]["command"])[0]
    memory = Memory(context, "headers", compiler)
    compilers = [[compiler]]
    clang = builds.newest_clang()
    if clang:
        compilers.insert(0, _with_modules(clang, headers, context.work / "modules"))

    def problem(header: Path) -> str | None:
        args = ["-fsyntax-only", "-x", "c++", "-include", str(header), "/dev/null"]
        args += _flags_near(header, commands)
        content = *args, with_headers(relative(header))
        if memory.holds(*content):
            return None
        for command in compilers:
            finished = processes.run([*command, *args], timeout_s=TOOL_TIMEOUT_S)
            if finished.returncode == 0:
                memory.remember(*content)
                return None
        return (
            f"{relative(header)} does not compile alone; include what it uses: "
            f"{builds.build_failure(finished.stderr)}"
        )

    check_all(outcome, "Compiling each header alone", headers, problem)
    memory.note(outcome)
    return outcome


def _with_modules(clang: str, headers: Sequence[Path], folder: Path) -> list[str]:
    """A Clang for which each of the library's headers that these include is a module."""
    texts = (header.read_text(encoding="utf-8") for header in headers)
    names = {name for text in texts for name in re.findall(r"^#include <([a-z_]+)>", text, re.M)}
    names.discard("cassert")  # what it is depends on a macro, each time
    included = [word for name in sorted(names) for word in ("-include", name)]
    args = [clang, "-std=c++20", "-x", "c++", "-M", *included, "/dev/null"]
    read = processes.run(args, timeout_s=TOOL_TIMEOUT_S).stdout.split()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (folder / "module.modulemap").open("w", encoding="utf-8") as modules:
        for path in map(Path, read):
            if path.name in names:
                modules.write(f'module {path.name} [system] {{ header "{path}" export * }}\n')
    return [
        clang, "-fmodules", f"-fmodule-map-file={folder}/module.modulemap",
        f"-fmodules-cache-path={folder}", "-Wno-error", "-Wno-unknown-warning-option",
    ]  # fmt: skip


def _flags_near(header: Path, commands: Iterable[dict[str, str]]) -> list[str]:
    """How a file beside the header is compiled; without any, the first file's flags will do."""
    commands = list(commands)
    folder = header.parent
    if folder == ROOT / "tests" / "support":
        # What tests share may speak of what chapters make: of the tests, those that see the most.
        tests = [each for each in commands if Path(each["file"]).parent.parent == ROOT / "tests"]
        folder = Path(max(tests, key=_folders_seen)["file"]).parent
    same_folder = [each for each in commands if Path(each["file"]).parent == folder]
    words = shlex.split((same_folder or commands)[0]["command"])
    flags = words[1 : words.index("-o")]
    return [*flags, "-I", str(header.parent)]


def _folders_seen(command: dict[str, str]) -> int:
    return sum(word.startswith("-I") for word in shlex.split(command["command"]))
