# SPDX-License-Identifier: MIT
"""Configuring and building: the first error on top, and no work that is not needed."""

from __future__ import annotations

import fcntl
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import edit
from course_tool import builds, ctests, processes
from course_tool.builds import BuildError
from course_tool.errors import CourseError

CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
add_executable(01-server main.cpp)
enable_testing()
add_test(NAME "01.1 it runs" COMMAND 01-server)
add_test(NAME "01.2 it fails" COMMAND sh -c "echo 'TODO 01.2: write it' >&2; exit 1")
add_test(NAME "01.2 it hangs" COMMAND sh -c "echo waiting; sleep 30")
add_test(NAME "01.3 it crashes" COMMAND sh -c "echo here; kill -SEGV $$")
add_test(NAME "01.3 it is skipped" COMMAND sh -c
  "printf 'x\\\\nexplicitly with message:\\\\n  no io_uring: EPERM\\\\n\\\\n====\\\\n'; exit 4")
set_tests_properties("01.2 it hangs" PROPERTIES TIMEOUT 1)
set_tests_properties("01.3 it is skipped" PROPERTIES SKIP_RETURN_CODE 4)
set_tests_properties("01.1 it runs" "01.2 it fails" "01.2 it hangs" "01.3 it crashes"
  "01.3 it is skipped" PROPERTIES LABELS "01;contract")
"""

PRESETS = """\
{"version": 6, "configurePresets": [{"name": "student", "generator": "Ninja",
  "binaryDir": "${sourceDir}/build/${presetName}"}]}
"""


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    for each in (builds.compiler_version, builds.newest_clang, builds.usable_compiler):
        each.cache_clear()
    yield
    for each in (builds.compiler_version, builds.newest_clang, builds.usable_compiler):
        each.cache_clear()


@pytest.fixture
def no_cxx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)


def use(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "ROOT", root)
    monkeypatch.setattr(builds, "BUILD", root / "build")
    monkeypatch.setattr(builds, "relative", lambda path: str(path.relative_to(root)))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "some project"
    root.mkdir()
    (root / "CMakeLists.txt").write_text(CMAKE_LISTS)
    (root / "CMakePresets.json").write_text(PRESETS)
    (root / "main.cpp").write_text("int main() {}\n")
    use(root, monkeypatch)
    return root


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is run, in order."""
    seen: list[list[str]] = []
    run = processes.run

    def noting(args: list[str], **options: object) -> processes.Finished:
        seen.append([str(arg) for arg in args])
        return run(args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(processes, "run", noting)
    return seen


def configurations(commands: list[list[str]]) -> int:
    return sum(command[:2] == ["cmake", "--preset"] for command in commands)


# Real builds


def test_a_small_project_from_nothing_to_its_tests(
    project: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long story, because a configuration takes a second."""
    builds.build("student", ["01-server"])
    assert builds.program("student", "01-server").is_file()
    assert configurations(commands) == 1

    builds.build("student", ["01-server"])
    assert configurations(commands) == 1, "nothing changed"
    (project / "CMakePresets.json").write_text(PRESETS + "\n")
    builds.build("student", ["01-server"])
    assert configurations(commands) == 2, "the presets changed, which ninja does not watch"

    (project / "main.cpp").write_text("int main() {\n  return nothing;\n}\n")
    with pytest.raises(BuildError) as caught:
        builds.build("student", ["01-server"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("main.cpp:2:10: error: ")
    assert "nothing" in lines[0]
    assert "return nothing;" in lines[1]
    assert lines[-1] == "  The full log: build/student/course-build.log"
    assert "nothing" in (project / "build/student/course-build.log").read_text()

    (project / "main.cpp").write_text("int f();\nint main() { return f(); }\n")
    with pytest.raises(BuildError, match="undefined reference to `f"):
        builds.build("student", ["01-server"])

    (project / "main.cpp").write_text("int main() {}\n")
    with pytest.raises(BuildError, match="The build has no target 02-server. Is its chapter"):
        builds.build("student", ["02-server"])
    builds.build("student", ["01-server"])
    check_the_test_results()

    edit(project / "CMakeLists.txt", "enable_testing()", 'message(FATAL_ERROR "fmt is missing.")')
    with pytest.raises(BuildError, match="^CMake: fmt is missing.\n"):
        builds.build("student", ["01-server"])

    moved = project.rename(project.with_name("moved"))
    edit(moved / "CMakeLists.txt", 'message(FATAL_ERROR "fmt is missing.")', "enable_testing()")
    use(moved, monkeypatch)
    builds.build("student", ["01-server"])
    assert builds.program("student", "01-server").is_file()
    cache = (moved / "build/student/CMakeCache.txt").read_text()
    assert str(project) not in cache


def check_the_test_results() -> None:
    results = {result.name: result for result in ctests.run_tests("student", label="01", jobs=4)}
    statuses = {name: result.status for name, result in results.items()}
    assert statuses == {
        "01.1 it runs": "passed",
        "01.2 it fails": "failed",
        "01.2 it hangs": "timeout",
        "01.3 it crashes": "crashed",
        "01.3 it is skipped": "skipped",
    }
    assert results["01.2 it fails"].output == "TODO 01.2: write it\n"
    assert results["01.2 it hangs"].output == "waiting\n"
    assert results["01.2 it hangs"].seconds > 0.9
    assert results["01.3 it is skipped"].output == "no io_uring: EPERM"
    assert results["01.1 it runs"].tags == ("01", "contract", "01.1")
    assert [each.name for each in ctests.run_tests("student", name_regex=r"^01\.1 ")] == [
        "01.1 it runs"
    ]
    assert sorted(ctests.listed_tests("student")) == sorted(statuses)
    chosen = {"01.3 it crashes", "01.1 it runs", "99 there is none"}
    some = ctests.run_tests("student", names=chosen)
    assert {each.name for each in some} == {"01.3 it crashes", "01.1 it runs"}
    with pytest.raises(CourseError, match="None of these tests is built in build/student/: 99"):
        ctests.run_tests("student", names=["99 there is none"])
    with pytest.raises(CourseError, match="No test has label 02 in build/student/"):
        ctests.run_tests("student", label="02")
    with pytest.raises(CourseError, match=r"No test has label 01 and a name like \^99"):
        ctests.run_tests("student", label="01", name_regex="^99")


def test_a_configuration_that_was_killed_is_done_again(project: Path) -> None:
    where = project / "build" / "student"
    where.mkdir(parents=True)
    (where / builds.STAMP_NAME).write_text(builds.UNFINISHED)
    (where / "CMakeCache.txt").write_text("half of a ca")
    builds.configure("student")
    assert (where / "build.ninja").is_file()


def test_an_error_in_a_cmake_file_says_where(project: Path) -> None:
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE\n"
    )
    with pytest.raises(BuildError, match=r"^CMake: CMakeLists.txt:2: Parse error"):
        builds.configure("student")


def test_a_second_build_in_the_same_folder_waits(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = project / "build" / "student"
    where.mkdir(parents=True)
    with (where / "course-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=builds.configure, args=("student",))
        second.start()
        second.join(0.3)
        assert second.is_alive()
    second.join(30)
    assert (where / "build.ninja").is_file()
    assert "Waiting for another ./course that builds in build/student/" in capfd.readouterr().err


# What is said of compilers


def only(names: list[str], scripts: Callable[[str, str], Path]) -> str:
    """A PATH with these programs alone."""
    folder = scripts("nothing", "")
    for name in names:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.usefixtures("no_cxx")
def test_no_compiler_is_a_sentence(
    project: Path, scripts: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", only(["cmake", "ninja"], scripts))
    with pytest.raises(
        BuildError, match=r"needs a C\+\+ compiler.*and there is none\. `./course start`"
    ):
        builds.build("student", ["01-server"])
    fake_compiler("c++", "#define __GNUC__ 9", scripts)
    builds.usable_compiler.cache_clear()
    with pytest.raises(BuildError, match=r"and c\+\+ is too old"):
        builds.build("student", ["01-server"])
    monkeypatch.setenv("CXX", "g++-99 -m32")
    with pytest.raises(BuildError, match=r"says CXX=g\+\+-99, and there is no such program"):
        builds.build("student", ["01-server"])


@pytest.mark.parametrize(("has", "lacks"), [(["ninja"], "cmake"), (["cmake"], "ninja")])
def test_no_cmake_or_ninja_is_a_sentence(
    project: Path,
    scripts: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
    has: list[str],
    lacks: str,
) -> None:
    monkeypatch.setenv("PATH", only(has, scripts))
    with pytest.raises(BuildError, match=f"There is no {lacks} here"):
        builds.build("student", ["01-server"])


def fake_compiler(name: str, macros: str, scripts: Callable[[str, str], Path]) -> Path:
    return scripts(name, f"#!/bin/sh\necho '{macros}'\n")


@pytest.mark.usefixtures("no_cxx")
def test_the_compiler_is_the_default_one_where_that_is_new_enough(
    scripts: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = "#define __GNUC__ 4\n#define __clang_major__"
    folder = fake_compiler("c++", "#define __GNUC__ 12", scripts)
    fake_compiler("clang++-16", f"{clang} 16", scripts)
    fake_compiler("clang++-18", f"{clang} 18", scripts)
    fake_compiler("clang++-20", "broken", scripts)
    fake_compiler("clang++", f"{clang} 14", scripts)
    monkeypatch.setenv("PATH", str(folder))
    assert builds.compiler_for("student") is None
    assert builds.compiler_for("asan") == str(folder / "clang++-18")
    assert builds.compiler_for("student-asan") == str(folder / "clang++-18")
    monkeypatch.setenv("CXX", "mine")
    assert builds.compiler_for("asan") is None


@pytest.mark.usefixtures("no_cxx")
def test_an_old_default_compiler_is_passed_over(
    scripts: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_compiler("c++", "#define __GNUC__ 11", scripts)
    fake_compiler("g++-12", "#define __GNUC__ 12", scripts)
    monkeypatch.setenv("PATH", str(folder))
    assert builds.compiler_for("student") == str(folder / "g++-12")
    assert builds.compiler_for("tsan") == str(folder / "g++-12"), "no Clang: GCC has to do"


# What is picked out of a build's output

GCC = """\
[1/3] Building CXX object a.o
FAILED: CMakeFiles/x.dir/a.o
/usr/bin/c++ -c {root}/chapters/01-x/a.hpp
In file included from {root}/tests/a.cpp:3:
{root}/chapters/01-x/a.hpp:12:34: error: 'foo' was not declared in this scope
   12 |   return foo;
      |          ^~~
{root}/chapters/01-x/a.hpp:13:1: error: second
ninja: build stopped: subcommand failed.
"""


def test_the_first_error_of_a_compiler_comes_first_and_from_the_root() -> None:
    said = builds.build_failure(GCC.replace("{root}", str(builds.ROOT))).splitlines()
    assert said[0] == "chapters/01-x/a.hpp:12:34: error: 'foo' was not declared in this scope"
    assert said[1:] == ["   12 |   return foo;", "      |          ^~~"]


@pytest.mark.parametrize(
    ("output", "first"),
    [
        ("x.cpp:1:10: fatal error: nope.hpp: No such file\n", "x.cpp:1:10: fatal error: nope.hpp"),
        ("a note\n/usr/bin/ld: x.o: undefined reference to `f()'\n", "/usr/bin/ld: x.o: undefined"),
        ("ld.lld: error: undefined symbol: f\n", "ld.lld: error: undefined symbol: f"),
        ("cc1plus: out of memory\nninja: build stopped\n", "The build failed, and no compiler"),
        ("", "The build failed, and no compiler"),
        ("CMake Error: Could not read presets from /x\n", "CMake: Could not read presets"),
    ],
)
def test_other_failures_are_said_too(output: str, first: str) -> None:
    assert builds.build_failure(output).startswith(first)


def test_warnings_are_those_of_the_students_files_once_each() -> None:
    own = "{root}/chapters/01-x/a.hpp:12:34: warning: unused variable 'n' [-Wunused-variable]\n"
    output = (
        "[1/3] Building CXX object a.o\n" + own + "   12 |   int n;\n" + own
        + "{root}/tests/01-x/a_test.cpp:1:1: warning: not yours\n"
        + "/elsewhere/chapters/b.hpp:1:1: warning: not yours\n"
        + "../../chapters/01-x/b.hpp:7: warning: another\n"
        + "{root}/chapters/01-x/b.hpp:8:1: note: no warning\n"
    )  # fmt: skip
    assert builds.students_warnings(output.replace("{root}", str(builds.ROOT))) == [
        "chapters/01-x/a.hpp:12: unused variable 'n' [-Wunused-variable]",
        "chapters/01-x/b.hpp:7: another",
    ]


def test_a_release_build_is_lent_to_its_own_clone_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path, monkeypatch)
    (tmp_path / "CMakePresets.json").write_text(PRESETS)
    proved = tmp_path / "build" / "verify" / "release"
    assert builds.lend(proved) == {}, "nothing is built there"
    proved.mkdir(parents=True)
    (proved / "build.ninja").touch()
    [(name, value)] = builds.lend(proved).items()
    monkeypatch.setenv(name, value)
    assert builds.folder("release") == proved
    assert builds._configured("release"), "it is taken as it is"
    assert builds.folder("student-release") == tmp_path / "build" / "student-release"
    monkeypatch.setattr(builds, "BUILD", tmp_path / "another clone" / "build")
    assert builds.folder("release") == tmp_path / "another clone" / "build" / "release"


def test_a_sanitizers_report_names_the_line(tmp_path: Path) -> None:
    source, program = tmp_path / "main.cpp", tmp_path / "program"
    source.write_text("int main() {\n  int* gone = new int;\n  delete gone;\n  return *gone;\n}\n")
    compiler = builds.compiler_for("asan") or "c++"
    args = [compiler, "-g1", "-fsanitize=address", source, "-o", program]
    processes.run(args, timeout_s=300, check=True)
    report = processes.run([program], timeout_s=60, env=builds.report_options()).stderr
    assert "heap-use-after-free" in report
    assert "main.cpp:4" in report


def test_what_a_killed_test_leaves_is_removed(tmp_path: Path) -> None:
    program = tmp_path / "01-cases"
    program.write_text('#!/bin/sh\nmkdir "$TMPDIR/site"\necho "$TMPDIR"\nkill -SEGV $$\n')
    program.chmod(0o755)
    result = ctests.run_case(program, "it crashes", timeout_s=30, env={})
    assert result.status == "crashed"
    assert "course-tests-" in result.output and not Path(result.output.strip()).exists()
