# SPDX-License-Identifier: MIT
"""What the tests of the tool share: small clones to work in, and deadlines."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from course_tool.verify.suites import TOOL_ALONE
from ready_tool import ReadyTool

if TYPE_CHECKING:
    from live_course import LiveCourse

ROOT = Path(__file__).resolve().parents[2]

# What a test without the marker `reads_course` may read of this clone: `./course verify` does not
# repeat it while all of that is the same. `.venv` is what requirements.txt says, `.deps` what cmake
# pins.
ALONE = tuple(f"{ROOT}/{name}" for name in (*TOOL_ALONE, ".venv/", ".deps"))
_beyond: set[str] = set()


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """Python calls this before whatever reads a file or a folder, or starts a program."""
    if event in ("open", "os.listdir", "os.scandir"):
        names = args[:1]
    elif event == "subprocess.Popen":
        names = (args[0], *args[1])
    else:
        return
    for name in names:
        if isinstance(name, str | Path) and str(name).startswith(f"{ROOT}/"):
            path = os.path.normpath(name)
            if not f"{path}/".startswith(ALONE):
                _beyond.add(path)


sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    _beyond.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    result = yield
    if _beyond and not item.get_closest_marker("reads_course"):
        pytest.fail(f"it reads {min(_beyond)}: mark it with @pytest.mark.reads_course")
    return result

# A chapter that keeps every rule of chapter.toml; tests break it one key at a time.
CHAPTER_TOML = """\
    number = "01"
    slug = "first"
    title = "The first"
    idea = "an idea"
    kernel = "6.1"
    features = []
    builds_on = []
    files = ["work.hpp", "more.hpp"]

    [minutes]
    reading = 10
    tasks = 20
    checkpoint = 5

    [[tasks]]
    id = "01.1"
    title = "Add"
    file = "work.hpp"
    sections = ["task-01-1"]
    tag = "01.1"
    hints = ["What?", "So.", "Thus."]

    [[tasks]]
    id = "01.2"
    title = "Say \\"yes\\""
    file = "more.hpp"
    sections = ["task-01-2", "task-01-2b"]
    tag = "01.2"
    hints = ["What?", "So.", "Thus."]

    [[tasks]]
    id = "01.3"
    title = "Subtract"
    file = "work.hpp"
    sections = ["task-01-3"]
    tag = "01.3"
    hints = ["What?", "So.", "Thus."]

    [[programs]]
    name = "server"
    summary = "the server"
    contract = true

    [checkpoint]
    question = "How many?"

    [[checkpoint.counts]]
    name = "calls"
    metric = "syscalls_per_request"
    program = "server"
    args = []
    connections = 1
    size = 128
    inflight = 1
    requests = 2000
    at_least = 1.9
    at_most = 2.1
    why = "because"

    [[checkpoint.contenders]]
    name = "threads"
    chapter = "01"
    program = "server"
    args = []
    baseline = true

    [checkpoint.load]
    connections = 50
    size = 128
    inflight = 1
    duration_s = 2.0
    rounds = 5
"""


def body(section: str, lines: int, indent: str = "  ") -> str:
    """A marked section of so many lines."""
    filler = "".join(f"{indent}step({number});\n" for number in range(lines))
    return f"{indent}// --8<-- [start:{section}]\n{filler}{indent}// --8<-- [end:{section}]\n"


WORK_HPP = f"""\
// SPDX-License-Identifier: MIT
#pragma once

// Add.
inline int add(int a, int b) {{
{body("task-01-1", 8)}}}

// --8<-- [start:whole]
inline int subtract(int a, int b) {{
{body("task-01-3", 8)}}}
// --8<-- [end:whole]
"""

MORE_HPP = f"""\
// SPDX-License-Identifier: MIT
#pragma once

inline void one() {{
{body("task-01-2", 6)}}}

inline void two() {{
  if (true) {{
{body("task-01-2b", 1, indent="    ")}  }}
}}
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one chapter, in order in every way, in a folder whose name has a space."""
    root = tmp_path / "a clone"
    solution = root / "solutions" / "01-first"
    solution.mkdir(parents=True)
    (root / "docs" / "chapters").mkdir(parents=True)
    (root / "common" / "runtime").mkdir(parents=True)
    (solution / "chapter.toml").write_text(textwrap.dedent(CHAPTER_TOML))
    (solution / "work.hpp").write_text(WORK_HPP)
    (solution / "more.hpp").write_text(MORE_HPP)
    (solution / "CMakeLists.txt").write_text("course_chapter(01 first)\n")
    page = '--8<-- "solutions/01-first/work.hpp:whole"\n'
    (root / "docs" / "chapters" / "01-first.md").write_text(page)
    return root


def edit(file: Path, old: str, new: str) -> None:
    """Replaces text that has to be there."""
    text = file.read_text()
    assert old in text, f"{file.name} does not hold {old!r}"
    file.write_text(text.replace(old, new, 1))


def call(
    *args: str | Path, timeout: float = 30, check: bool = False, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, with nothing to read; gives back what it printed."""
    words = [str(arg) for arg in args]
    if "input" not in how:
        how["stdin"] = subprocess.DEVNULL
    return subprocess.run(
        words, capture_output=True, text=True, timeout=timeout, check=check, **how
    )


def git(root: Path, *args: str) -> str:
    """Runs git in a clone, as somebody who has a name."""
    named = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    return call("git", "-C", root, *named, *args, check=True).stdout


@pytest.fixture
def committed(course: Path) -> Path:
    """The same course with its starters made, as a git clone."""
    from course_tool import marks

    marks.sync_all(check=False, root=course)
    (course / ".gitignore").write_text("/.course/\n")
    git(course, "init", "-q")
    git(course, "add", "-A")
    git(course, "commit", "-q", "-m", "all")
    return course


@pytest.fixture(scope="session")
def ready_tool() -> Iterator[ReadyTool]:
    with closing(ReadyTool()) as ready:
        yield ready


@pytest.fixture
def live(course: Path, ready_tool: ReadyTool) -> LiveCourse:
    """A course of two chapters that can be built and tested in a second."""
    from live_course import LiveCourse

    return LiveCourse(course, ready_tool)


@pytest.fixture
def scripts(tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes executable scripts in a folder of their own, for a PATH."""
    folder = tmp_path / "fake bin"
    folder.mkdir()

    def make(name: str, text: str) -> Path:
        script = folder / name
        script.write_text(text)
        script.chmod(0o755)
        return folder

    return make


@pytest.fixture
def tool_only(tmp_path: Path) -> Path:
    """A clone that is the launcher and a tool which only says how it was called."""
    return make_tool_only(tmp_path / "another clone")


TOOL_BEFORE_VENV = (
    "__init__", "apt", "bootstrap", "errors", "files", "foreground", "paths", "processes"
)  # fmt: skip


def make_tool_only(root: Path) -> Path:
    """Makes that clone in a folder which is not there yet."""
    tool = root / "common" / "tool" / "course_tool"
    tool.mkdir(parents=True)
    shutil.copy2(ROOT / "course", root / "course")
    for name in TOOL_BEFORE_VENV:
        shutil.copy2(ROOT / "common" / "tool" / "course_tool" / f"{name}.py", tool / f"{name}.py")
    (tool / "__main__.py").write_text(
        "import sys\n\n\ndef main():\n    print(sys.prefix, *sys.argv[1:], sep='|')\n    return 7\n"
    )
    (root / "requirements.txt").write_text("# nothing: no network is needed\n")
    return root


def alive_with(text: str) -> list[str]:
    """The command lines of all processes that name `text`, but for our own."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # it ended while we looked
        if text in command and state != "Z":
            found.append(command)
    return found
