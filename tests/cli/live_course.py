# SPDX-License-Identifier: MIT
"""A small course that can be built and tested in a second: real CMake and CTest, no compiler.

Its tests are scripts that look at the sources: a task is green when its COURSE_TODO is gone, unless
the student's file says otherwise in a comment such as `// 01.2: crash`. They print as
tests/support/test_main.cpp does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import ROOT, call, edit, git
from ready_tool import ReadyTool

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(live LANGUAGES NONE)
set(COURSE_TREE solutions CACHE STRING "")
enable_testing()
function(course_chapter)
endfunction()
add_custom_target(echo-contract)
foreach(folder IN ITEMS 01-first 02-second)
  string(SUBSTRING ${folder} 0 2 number)
  set(sources "${CMAKE_SOURCE_DIR}/${COURSE_TREE}/${folder}")
  include("${sources}/CMakeLists.txt")
  add_custom_target(${number}-cases
    COMMAND "@python@" -I -S "${CMAKE_SOURCE_DIR}/cmake/compile.py" "${sources}")
  add_custom_target(${number}-tests DEPENDS ${number}-cases)
  add_custom_target(${number}-server
    COMMAND ${CMAKE_COMMAND} -E copy "${CMAKE_SOURCE_DIR}/cmake/server"
      "${CMAKE_BINARY_DIR}/bin/${number}-server")
  foreach(case IN ITEMS "${number}.1 adds" "${number}.1 adds large numbers" "${number}.2 says yes"
      "${number}.3 subtracts" "${number} contract: one byte comes back"
      "${number} the programs greet")
    add_test(NAME "${case}"
      COMMAND "@python@" -I -S "${CMAKE_SOURCE_DIR}/tests/case.py" "${case}" "${sources}")
    set_tests_properties("${case}" PROPERTIES SKIP_RETURN_CODE 4 LABELS ${number}
      TIMEOUT 100 TIMEOUT_AFTER_MATCH "3;waiting for a byte")
  endforeach()
endforeach()
"""

PRESETS = {
    "version": 6,
    "configurePresets": [
        {
            "name": name,
            "generator": "Ninja",
            "binaryDir": "${sourceDir}/build/${presetName}",
            "cacheVariables": {"COURSE_TREE": tree},
        }
        for name, tree in [
            ("student", "chapters"),
            ("grade", "chapters"),
            ("student-carry", "chapters"),
            ("student-asan", "chapters"),
            ("student-fuzz", "chapters"),
            ("reference", "solutions"),
            ("asan", "solutions"),
            ("fuzz", "solutions"),
        ]
    ],
}

COMPILE = '''\
"""Fails as a compiler does if a source says SYNTAX ERROR; takes a second if it says SLOW."""
import pathlib, sys, time
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.hpp")):
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if "SLOW" in line:
            time.sleep(600)
        if "WARNS" in line:
            for _ in range(2):  # programs
                print(f"{file}:{number}:5: warning: unused variable 'x' [-Wunused-variable]")
        if "SYNTAX ERROR" in line or line.startswith("#error"):
            print("In file included from nowhere:")
            print(f"{file}:{number}:5: error: expected ';' before '}}' token")
            print(f"{file}:{number + 1}:1: error: a second one, that follows from the first")
            sys.exit(1)
'''

CASE = '''\
"""One test case: `case.py NAME SOURCES`."""
import os, pathlib, re, signal, sys, time

name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
key = name.split(" ")[0]
if "contract" in name or "greet" in name:
    key += " " + name.split()[1].rstrip(":")
BAR = "-" * 79
HERE = f"{pathlib.Path(__file__).resolve()}"


def report(*failures):
    for number, failure in enumerate(failures, start=7):
        print(f"{BAR}\\n{name}\\n{BAR}\\n{HERE}:{number}: {failure}\\n")
    print("=" * 79 + "\\ntest cases: 1 | 0 passed | 1 failed", flush=True)


for file in sorted(folder.glob("*.hpp")):
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if f'COURSE_TODO("{key}")' in line or " " in key and "COURSE_TODO" in line:
            print(f"TODO {key}: A title\\n  write it at {file}:{number}\\n"
                  f"  read     docs/chapters/01-first.md", file=sys.stderr, flush=True)
            report(f"FAILED:\\ndue to unexpected exception with message:\\n  TODO {key}: A title")
            sys.exit(1)

text = "".join(file.read_text() for file in sorted(folder.glob("*.hpp")))
wanted = re.search(rf"// {key}: (\\w+)", text)
kind = wanted[1] if wanted and "large" not in name else "pass"
if kind == "red":
    report("FAILED:\\n  CHECK( add(2, 2) == 4 )\\nwith expansion:\\n  5 == 4\\nwith message:\\n"
           "  the carry was added twice: clear it before the next digit comes, "
           "and not after the last one")
    print("01-server (pid 17) is running; its stderr:\\n    it said this", file=sys.stderr)
    sys.exit(1)
if kind == "loud":
    print("hello, I am lost\\n" * 100_000, flush=True)
    report("FAILED:\\n  CHECK( add(2, 2) == 4 )")
    sys.exit(1)
if kind == "mute":
    sys.exit(1)
if kind == "waits":
    print(f"TODO 01.1: A title\\n  write it at {folder}/work.hpp:6\\n"
          f"  read     docs/chapters/01-first.md", file=sys.stderr, flush=True)
    report("FAILED:\\ndue to unexpected exception with message:\\n  TODO 01.1: A title")
    sys.exit(1)
if kind == "many":
    report(*[f"FAILED:\\n  CHECK( {number} == 0 )" for number in range(4)])
    sys.exit(1)
if kind == "crash":
    print("about to fall over", file=sys.stderr, flush=True)
    report("FAILED:\\n  {Unknown expression after the reported line}\\ndue to a fatal error "
           "condition:\\n  SIGSEGV - Segmentation violation signal")
    os.kill(os.getpid(), signal.SIGSEGV)
if kind == "hang":
    print("waiting for a byte", file=sys.stderr, flush=True)
    (pathlib.Path(__file__).parents[1] / "hanging").touch()
    time.sleep(600)
if kind == "spins":
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    while True:
        pass
if kind == "stays":
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "left behind"],
                     start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if kind == "skip":
    if os.environ.get("COURSE_REQUIRE_FEATURES") == "1":
        report("FAILED:\\nexplicitly with message:\\n  this machine has no ring: EPERM")
        sys.exit(1)
    report("SKIPPED:\\nexplicitly with message:\\n  this machine has no ring: EPERM")
    sys.exit(4)
print("All tests passed (1 assertion in 1 test case)")
'''

# By way of the shell: a shebang cannot name an interpreter whose path holds a space.
SERVER = """\
#!/bin/sh
''''exec '@python@' -I -S "$0" "$@" #'''
import os, signal, socket, sys
arguments = sys.argv[1:]
if "--exit" in arguments:
    sys.exit(int(arguments[arguments.index("--exit") + 1]))
if "--abort" in arguments:
    os.abort()
if "--ask" in arguments:
    print("you said", input(), flush=True)
    sys.exit()
def stop(*_):
    os.write(1, b"stopped in good order\\n")  # print() may be in the middle of a line
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
if "--deaf" in arguments:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if "--root" in arguments:
    import functools, http.server
    value = lambda flag: arguments[arguments.index(flag) + 1]
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=value("--root"))
    pages = http.server.ThreadingHTTPServer((value("--host"), int(value("--port"))), handler)
    print("listening on 127.0.0.1:%d" % pages.server_port, flush=True)
    pages.serve_forever()
listener = socket.create_server(("127.0.0.1", 0))
print("listening on 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
while True:
    client, _ = listener.accept()
    with client:
        while data := client.recv(100):
            client.sendall(data)
"""


@dataclass
class Done:
    code: int
    out: str
    err: str


class LiveCourse:
    """A clone of two chapters with the real tool in it."""

    timeout_s = 300

    ready: ReadyTool | None = None  # a start costs more than what most commands then do

    def __init__(self, root: Path, ready: ReadyTool) -> None:
        self.root = root
        self.ready = ready
        self._add_second_chapter()
        source = ROOT / "common" / "tool" / "course_tool"
        unfinished = shutil.ignore_patterns("*.pyc.*")  # another test may be compiling just now
        shutil.copytree(source, root / "common" / "tool" / "course_tool", ignore=unfinished)
        (root / "CMakePresets.json").write_text(json.dumps(PRESETS))
        self._write("CMakeLists.txt", CMAKE_LISTS)
        self._write("cmake/compile.py", COMPILE)
        self._write("cmake/server", SERVER).chmod(0o755)
        self._write("tests/case.py", CASE)
        for folder in ("01-first", "02-second"):
            self._make_starter(folder)

    def _add_second_chapter(self) -> None:
        first, second = (self.root / "solutions" / name for name in ("01-first", "02-second"))
        shutil.copytree(first, second)
        for file in second.iterdir():
            text = file.read_text().replace("01", "02").replace("first", "second")
            file.write_text(text)

    def _make_starter(self, folder: str) -> None:
        from course_tool import marks
        from course_tool.chapters import load_chapter

        chapter = load_chapter(self.root / "solutions" / folder)
        chapter.starter.mkdir(parents=True)
        for name, content in marks.starter_files(chapter).items():
            (chapter.starter / name).write_bytes(content)

    def _write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@python@", sys.executable))
        return file

    def take_the_contract_away(self) -> None:
        """Chapter 01 then has no server, and its tests of the whole are what its sources name."""
        edit(self.root / "solutions/01-first/chapter.toml", "contract = true", "contract = false")
        edit(self.root / "CMakeLists.txt", '"${number} contract: one byte comes back"', "")
        whole = 'TEST_CASE("01 the programs greet", "[01]") {\n}\n'
        self._write("tests/01-first/whole_test.cpp", whole)

    # ---- what a student has ----

    @property
    def yours(self) -> Path:
        return self.root / "chapters" / "01-first"

    def solve(self, *tasks: str, chapter: str = "01-first") -> None:
        """Replaces the COURSE_TODO of these tasks, or of all."""
        for file in (self.root / "chapters" / chapter).glob("*.hpp"):
            wanted = "|".join(map(re.escape, tasks)) or r"\d\d\.\d"
            before = file.read_text()
            text = re.sub(rf'COURSE_TODO\("({wanted})"\);', "solved();", before)
            if text != before:
                file.write_text(text)

    def say(self, text: str, chapter: str = "01-first") -> None:
        """Adds a comment for the compiler or the tests to read."""
        with (self.root / "chapters" / chapter / "work.hpp").open("a") as file:
            file.write(f"// {text}\n")

    def state(self) -> dict[str, Any]:
        return json.loads((self.root / ".course" / "state.json").read_text())

    def link_dependencies(self) -> None:
        """Catch2 as this clone has it: getting it is test_packages.py's concern."""
        (self.root / ".deps").symlink_to(ROOT / ".deps")
        shutil.copy2(ROOT / "cmake" / "dependencies.cmake", self.root / "cmake")

    def commit(self) -> None:
        (self.root / ".gitignore").write_text("/build/\n/.course/\n/.deps\n__pycache__/\n")
        git(self.root, "init", "-q")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "the course")

    # ---- the tool ----

    def environment(self, **more: str) -> dict[str, str]:
        left_out = ("NO_COLOR", "FORCE_COLOR", "COURSE_REQUIRE_FEATURES", "CXX", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        return {**kept, "PYTHONPATH": str(self.root / "common" / "tool"), **more}

    def command(self, *args: str | Path) -> list[str]:
        return [sys.executable, "-m", "course_tool", *map(str, args)]

    def run(
        self,
        *args: str | Path,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        typed: str = "",
    ) -> Done:
        """Runs ./course to its end; without a terminal, as in a script.

        With an environment or input of its own it is started afresh.
        """
        how: dict[str, Any] = {
            "cwd": cwd or self.root,
            "env": self.environment(**(env or {})),
            "timeout": self.timeout_s,
        }
        if self.ready and self.ready.usable() and env is None and not typed:
            finished = self.ready.run(args, **how)
        else:
            finished = call(*self.command(*args), input=typed, **how)
        assert "Traceback" not in finished.stderr, finished.stderr
        return Done(finished.returncode, finished.stdout, finished.stderr)

    def refused(
        self, *args: str | Path, said: str | tuple[str, ...], code: int = 1, **how: Any
    ) -> Done:
        """Runs what is to fail, with a message that holds what is `said`."""
        done = self.run(*args, **how)
        assert done.code == code
        for text in [said] if isinstance(said, str) else said:
            assert text in flat(done.err)
        return done

    def start(self, *args: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*args),
            cwd=self.root,
            env=self.environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def flat(text: str) -> str:
    """One line, without a table's borders and the folds of a narrow terminal."""
    return " ".join(re.sub("[┃│┏┓┡┩└┘━─┳╇┴┼├┤]", " ", text).split())


def eventually(true: Callable[[], object], deadline_s: float = 60.0) -> bool:
    end = time.monotonic() + deadline_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def wait_until(true: Callable[[], object], what: str, deadline_s: float = 60.0) -> None:
    assert eventually(true, deadline_s), f"waited {deadline_s} s for {what}"


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip()
