# SPDX-License-Identifier: MIT
"""How `./course verify` judges starters, tasks, mistakes, suites and the site, without a build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest
from conftest import ROOT, body, edit
from course_tool import marks
from course_tool.chapters import Chapter, all_chapters
from course_tool.ctests import Status, TestResult
from course_tool.errors import CourseError
from course_tool.verify import (
    cases,
    dependencies,
    memory,
    mistakes,
    solutions,
    starter_builds,
    starters,
    style,
    suites,
    sync,
    tidy_units,
    trees,
    variants,
)
from course_tool.verify.outcome import Context, Outcome, VerifyOptions
from course_tool.verify.variants import Variant


def result(name: str, status: Status, output: str = "", seconds: float = 0.1) -> TestResult:
    return TestResult(name, status, seconds, output, ())


@pytest.fixture
def chapter(course: Path) -> Chapter:
    return all_chapters(course)[0]


# Starters and tasks


def test_a_test_that_is_red_by_its_todo_is_what_we_want() -> None:
    red = result("01.1 a", "failed", "TODO 01.1: Add\n  write it at …")
    assert starters.red_problem(red, "01.1") is None
    assert starters.red_problem(red, None) is None
    crashed = result("01.1 a", "crashed", "TODO 01.1: Add\nterminate called")
    assert starters.red_problem(crashed, "01.1") is None


@pytest.mark.parametrize(
    ("bad", "todo", "sentence"),
    [
        (result("01.1 a", "passed"), None, "“01.1 a” passes on the starter, so it proves nothing"),
        (result("01.1 a", "passed"), "01.1", "“01.1 a” passes with task 01.1 open"),
        (result("01.1 a", "skipped", "no ring"), None, "was skipped on the starter, so nothing"),
        (result("01.1 a", "timeout", "TODO 01.1: "), "01.1", "“01.1 a” hangs with task 01.1 open"),
        (result("01.1 a", "failed", "TODO 01.1: ", 31), "01.1", "takes 31 s to be red"),
        (result("01.1 a", "failed", "CHECK(false)"), None, "not by its TODO: it names no task"),
        (result("01.1 a", "failed", "TODO 01.2: "), "01.1", "it names task 01.2 instead"),
    ],
)
def test_a_test_that_is_not_red_by_its_todo_is_named(
    bad: TestResult, todo: str | None, sentence: str
) -> None:
    assert sentence in (starters.red_problem(bad, todo) or "")


def test_a_test_that_needs_a_later_task_is_named() -> None:
    assert starters.order_problem(result("01.1 a", "passed"), "01.1") is None
    problem = starters.order_problem(result("01.1 a", "failed"), "01.1")
    assert problem is not None
    assert problem.startswith("“01.1 a” is red while the tasks after 01.1 are open")


def test_a_warning_is_an_error_in_the_starters_build(
    chapter: Chapter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trees, "WORK", tmp_path)
    said: dict[str, str] = {}
    monkeypatch.setattr(trees.BuildFolder, "configure", lambda self, *_, **own: said.update(own))
    trees.student_build({chapter: {"work.hpp": "int three();\n"}})
    assert said["COURSE_WERROR"] == "ON"
    assert (tmp_path / "trees/student/chapters/01-first/work.hpp").is_file()


def test_a_build_that_is_configured_follows_the_files_of_cmake(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trees.builds, "folder", lambda preset: tmp_path)
    monkeypatch.setattr(trees, "_cmake_arguments", lambda *_: ["--preset", "reference"])
    (tmp_path / "verify-configured").write_text(f"{ROOT}\n--preset\nreference")
    built: list[Sequence[str]] = []
    monkeypatch.setattr(trees.BuildFolder, "build", lambda self, targets: built.append(targets))
    trees.BuildFolder("reference").configure("reference", ROOT)
    assert built == [["build.ninja"]], "commands() would be those of an earlier CMakeLists.txt"


def test_a_task_without_a_test_is_named(chapter: Chapter) -> None:
    tests = chapter.tests
    tests.mkdir(parents=True)
    (tests / "a_test.cpp").write_text('TEST_CASE("01.1 a") {\n}\nTEST_CASE("01 c") {\n}\n')
    (tests / "b_test.cpp").write_text('TEST_CASE("01.3 b") {\n}\n')
    assert starters.tasks_without_test([chapter]) == [
        "task 01.2 has no test: no case in tests/01-first/ starts with “01.2 ”."
    ]


def test_one_task_is_open_and_the_others_are_solved(chapter: Chapter) -> None:
    texts = starters.with_open(chapter, chapter.tasks[1:2])
    assert texts["more.hpp"].count('COURSE_TODO("01.2");') == 2
    assert "COURSE_TODO" not in texts["work.hpp"]
    assert "step(7);" in texts["work.hpp"]
    assert texts["CMakeLists.txt"] == "course_chapter(01 first)\n"
    assert "chapter.toml" not in texts
    with_first_open = starters.with_open(chapter, chapter.tasks[:1])
    assert with_first_open["work.hpp"].count("COURSE_TODO") == 1


def test_a_chapter_must_not_see_the_starter_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "chapters"
    made = "-o tests/02-b/CMakeFiles/02-cases.dir/loop_test.cpp.o -c loop_test.cpp"
    good = {
        "file": "loop_test.cpp",
        "command": f"g++ -I{folder}/02-b -I{tmp_path}/solutions/01-a {made}",
    }
    bad = good | {"command": f"g++ -I{folder}/02-b -I{folder}/01-a {made}"}
    foreign = {"file": "log.cpp", "command": "g++ -o common/log.cpp.o -c log.cpp"}
    assert list(starter_builds.foreign_chapters([good, foreign], folder)) == []
    assert list(starter_builds.foreign_chapters([bad], folder)) == [
        "loop_test.cpp of chapter 02 is compiled with the starter chapters/01-a: "
        "link chapter-01-base instead."
    ]


def test_clang_sees_every_program_and_every_header_of_the_starters(tmp_path: Path) -> None:
    folder = tmp_path / "01-first"
    folder.mkdir()
    for name in ("server.cpp", "echo.hpp", "loop.hpp"):
        (folder / name).write_text("")

    def command(target: str, file: Path | str) -> dict[str, str]:
        said = f"clang++ -I '{folder}' -o x/CMakeFiles/{target}.dir/a.o -c '{file}'"
        return {"command": said, "file": str(file)}

    peer = command("01-peer", "/solutions/03-third/server.cpp")
    peer["command"] = peer["command"].replace("-I", "-DPEER -I")  # a chapter's flags are its tests'
    checks = starter_builds.starter_checks(
        [
            command("common", "/common/flags.cpp"),
            command("01-server", folder / "server.cpp"),
            peer,
            command("01-cases", "/tests/01-first/one_test.cpp"),
            command("01-cases", "/tests/01-first/two_test.cpp"),
        ],
        tmp_path,
    )
    flags = ["clang++", "-I", str(folder), "-fsyntax-only"]
    headers = [folder / "echo.hpp", folder / "loop.hpp"]
    included = [word for header in headers for word in ("-include", str(header))]
    assert [(check.args, check.files) for check in checks] == [
        ([*flags, str(folder / "server.cpp")], [folder / "server.cpp"]),
        ([*flags, "-x", "c++", *included, "/dev/null"], headers),
    ]


def test_a_tree_holds_what_it_is_given_and_leaves_the_rest_untouched(
    chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "WORK", tmp_path / "work")
    tree = trees.Tree("mine")
    tree.make()
    tree.make()
    tree.write_chapter(chapter, {"a.hpp": "one\n", "b.hpp": "two\n"})
    folder = tree.chapters / "01-first"
    before = (folder / "a.hpp").stat().st_mtime_ns
    tree.write_chapter(chapter, {"a.hpp": "one\n", "c.hpp": "three\n"})
    assert sorted(file.name for file in folder.iterdir()) == ["a.hpp", "c.hpp"]
    assert (folder / "a.hpp").stat().st_mtime_ns == before
    assert (tree.root / "solutions").is_symlink()
    assert not tree.chapters.is_symlink()


# Mistakes


HEAD = """\
# task: 01.1
# mistake: adds one less
# caught-by: 01.1 a sum is the sum of its parts
# says: the sum is too small
"""
DIFF = """\
--- a/solutions/01-first/work.hpp
+++ b/solutions/01-first/work.hpp
@@ -5,5 +5,5 @@
 inline int add(int a, int b) {
   // --8<-- [start:task-01-1]
-  step(0);
+  step(9);
   step(1);
   step(2);
"""


def patch(folder: Path, text: str, name: str = "01.1-adds-one-less.patch") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def test_an_entry_is_read(tmp_path: Path) -> None:
    mistake = mistakes.read_mistake(patch(tmp_path / "m", HEAD + "# under: asan\n" + DIFF))
    assert mistake.task == "01.1"
    assert mistake.sentence == "adds one less"
    assert mistake.caught_by == "01.1 a sum is the sum of its parts"
    assert mistake.says == "the sum is too small"
    assert mistake.under == "asan"


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (HEAD.replace("# says: the sum is too small\n", ""), "no line `# says: …`"),
        (HEAD.replace("mistake:", "error:"), "'# error: adds one less' is no entry"),
        (HEAD + "# a remark\n", "'# a remark' is no entry"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(tmp_path: Path, head: str, sentence: str) -> None:
    with pytest.raises(CourseError, match="01.1-adds-one-less.patch") as caught:
        mistakes.read_mistake(patch(tmp_path / "m", head + DIFF))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "sentence"),
    [
        (HEAD.replace("01.1\n", "01.9\n", 1) + DIFF, "01.9-x.patch", "is no task of any"),
        (HEAD + DIFF, "01.2-x.patch", "has to begin with its task, 01.1-"),
        (HEAD.replace("the sum is too small", "sum") + DIFF, "01.1-x.patch", "in any output"),
        (HEAD + "# under: valgrind\n" + DIFF, "01.1-x.patch", "it takes asan or tsan"),
        (HEAD + DIFF.replace("solutions/01-first", "tests/01-first"), "01.1-x.patch", "it changes"),
    ],
)
def test_an_entry_that_cannot_hold_is_named(
    chapter: Chapter, tmp_path: Path, text: str, name: str, sentence: str
) -> None:
    mistake = mistakes.read_mistake(patch(tmp_path / "m", text, name))
    problems = mistakes.mistake_problems(mistake, [chapter])
    assert len(problems) == 1
    assert sentence in problems[0]
    assert name in problems[0]


def test_a_mistake_is_made_in_a_copy(chapter: Chapter, tmp_path: Path) -> None:
    mistake = mistakes.read_mistake(patch(tmp_path / "m", HEAD + DIFF))
    assert mistakes.mistake_problems(mistake, [chapter]) == []
    before = (chapter.solution / "work.hpp").read_text()
    texts = mistakes.patched_texts(mistake, chapter, tmp_path / "scratch" / "one")
    assert "step(9);" in texts["work.hpp"]
    assert texts["more.hpp"] == (chapter.solution / "more.hpp").read_text()
    assert (chapter.solution / "work.hpp").read_text() == before
    assert not (tmp_path / "scratch" / "one").exists()


def test_a_mistake_is_made_inside_a_git_clone_too(committed: Path) -> None:
    chapter = all_chapters(committed)[0]
    mistake = mistakes.read_mistake(patch(committed / "m", HEAD + DIFF))
    texts = mistakes.patched_texts(mistake, chapter, committed / "build" / "scratch" / "one")
    assert "step(9);" in texts["work.hpp"]


@pytest.mark.parametrize("diff", ["", DIFF.replace("step(0)", "steps(0)")])
def test_a_patch_that_does_not_fit_is_refused(chapter: Chapter, tmp_path: Path, diff: str) -> None:
    mistake = mistakes.read_mistake(patch(tmp_path / "m", HEAD + diff))
    with pytest.raises(CourseError, match="the patch does not fit the solution"):
        mistakes.patched_texts(mistake, chapter, tmp_path / "scratch" / "one")


def test_a_task_without_a_mistake_is_named(chapter: Chapter, tmp_path: Path) -> None:
    made = [mistakes.read_mistake(patch(tmp_path / "m", HEAD + DIFF))]
    problems = mistakes.tasks_without_mistake([chapter], made)
    assert [problem.split(" in ")[0] for problem in problems] == [
        "task 01.2 has no mistake",
        "task 01.3 has no mistake",
    ]


class FakeOrigin:
    """One beside which a variant's programs are scripts."""

    def __init__(self, script: str) -> None:
        self._script = script

    def build_shared(self, variants: list[Variant]) -> None:
        pass

    def make(self, variant: Variant) -> None:
        variant.write()
        program = variant.folder / variant.programs[0]
        program.write_text(f"#!/bin/sh\n{self._script}\n")
        program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ('test "$1" = "01.1 a \\[sum\\]\\, whole" && echo the sum is too small; exit 1', None),
        ("echo the sum is too small >&2; kill -ABRT $$", None),
        ("echo the sum is wrong; exit 1", "is red, but its output lacks “the sum is too small”"),
        ("exit 0", "every test passed"),
        ('test "$1" != "01.1 another"', "passed; “01.1 another” noticed"),
        ("exit 4", "was skipped"),
        ("exec sleep 30", "hangs until it is stopped"),
    ],
)
def test_a_mistake_is_judged_by_what_its_case_says(
    chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    entry = HEAD.replace("a sum is the sum of its parts", "a [sum], whole")
    mistake = mistakes.read_mistake(patch(tmp_path / "m", entry + DIFF))
    chapter.tests.mkdir(parents=True)
    names = ["01.1 a [sum], whole", "01.1 another"]
    cases = [f'TEST_CASE("{name}", "[01.1]") {{\n}}\n' for name in names]
    (chapter.tests / "sum_test.cpp").write_text("".join(cases))
    monkeypatch.setattr(variants, "TEST_TIMEOUT_S", 1)
    monkeypatch.setattr(variants, "WORK", tmp_path / "work")
    monkeypatch.setattr(mistakes, "WORK", tmp_path / "work")
    made = mistakes._made_of([mistake], {"01.1": chapter}, Outcome("mistakes"))
    beside = FakeOrigin(script)
    found = mistakes.judge(context(False, tmp_path), mistake, made[mistake], cast(Any, beside))
    assert found is None if problem is None else problem in (found or "")


def test_a_mistake_that_no_test_can_find_is_named(
    chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mistakes, "WORK", tmp_path / "work")
    no_such_test = mistakes.read_mistake(patch(tmp_path / "m", HEAD + DIFF))
    does_not_fit = mistakes.read_mistake(patch(tmp_path / "m", HEAD, "01.1-nothing.patch"))
    outcome = Outcome("mistakes")
    assert not mistakes._made_of([no_such_test, does_not_fit], {"01.1": chapter}, outcome)
    assert "no test is called “01.1 a sum is the sum of its parts”" in outcome.failures[0]
    assert "the patch does not fit the solution" in outcome.failures[1]


def test_the_catalogue_tells_what_it_cannot_read(tmp_path: Path) -> None:
    patch(tmp_path / "m", HEAD + DIFF)
    patch(tmp_path / "m", DIFF, "01.2-no-head.patch")
    outcome = Outcome("mistakes")
    assert [each.name for each in mistakes.read_catalogue(outcome, tmp_path / "m")] == [
        "01.1-adds-one-less"
    ]
    assert len(outcome.failures) == 1
    assert "01.2-no-head.patch: its head has no line `# task: …`" in outcome.failures[0]


# What is remembered


def test_what_held_is_known_until_something_it_depends_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = memory.Memory(context(False, tmp_path), "tidy", "clang-tidy 23")
    assert not first.holds("a.cpp", "its text")
    first.remember("a.cpp", "its text")
    again = memory.Memory(context(False, tmp_path), "tidy", "clang-tidy 23")
    assert again.holds("a.cpp", "its text")
    assert not again.holds("a.cpp", "another text")
    assert not memory.Memory(context(False, tmp_path), "headers", "clang-tidy 23").holds(
        "a.cpp", "its text"
    )
    monkeypatch.setattr(memory.platform, "release", lambda: "another kernel")
    assert not memory.Memory(context(False, tmp_path), "tidy", "clang-tidy 23").holds(
        "a.cpp", "its text"
    )
    outcome = Outcome("files")
    first.tell(outcome)
    assert outcome.notes == [], "nothing was known at first"
    again.tell(outcome)
    assert outcome.notes[0].startswith("1 of them held in an earlier run, and nothing")


@pytest.mark.reads_course
def test_the_tools_tests_are_run_again_if_something_that_they_read_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = {"common/tool/a.py": "1", "solutions/14-server": "1", "docs/a.md": "1"}
    ran: list[tuple[str, set[str]]] = []

    def of_files(*beginnings: str) -> str:
        return str([pair for pair in content.items() if pair[0].startswith(beginnings or "")])

    def of_named(names: Sequence[str]) -> str:
        return of_files(*(f"solutions/{name}" for name in names))

    def run(
        _context: Context,
        _folder: Path,
        what: Sequence[Path],
        _jobs: int,
        marker: str,
        _env: object,
    ) -> tuple[Outcome, Counter[str]]:
        ran.append((marker, {file.name for file in what}))
        bad = ["a test is red"] if "red" in content.values() else []
        return Outcome("tests", 100, bad), Counter({file.stem: 1 for file in what})

    def prove(of_item: Callable[[Context], Outcome] = suites.prove_tool) -> Outcome:
        ran.clear()
        return of_item(Context(VerifyOptions(), tmp_path, lambda text: None))

    monkeypatch.setattr(suites, "of_files", of_files)
    monkeypatch.setattr(suites, "of_named", of_named)
    monkeypatch.setattr(suites, "_pytest", run)
    first = prove()
    assert [marker for marker, _ in ran] == ["not reads_course", "reads_course and not slow"]
    assert first.proved == 200 and ran[0][1] == {"cli"}
    assert {"test_soak.py", "test_bench_run.py"} <= ran[1][1]
    prove(suites.prove_slow)
    assert ran == [("slow", {"test_real_chapter.py", "test_soak.py"})]
    again = prove()
    assert ran == []
    assert again.notes[-1].startswith(f"{again.proved} of them held in an earlier run")
    content["docs/a.md"] = "2"
    prove()
    assert len(ran) == 1 and "test_soak.py" not in ran[0][1] and "test_bench_run.py" in ran[0][1]
    content["solutions/14-server"] = "2"
    prove(suites.prove_slow)
    assert ran == [("slow", {"test_soak.py"})]
    content["common/tool/a.py"] = "red"
    assert (len(prove().failures), len(ran)) == (2, 2)
    assert (len(prove().failures), len(ran)) == (2, 2), "what is red is not remembered"


def test_the_site_is_known_until_any_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, built = "", []
    monkeypatch.setattr(suites, "of_files", lambda: content)
    monkeypatch.setattr(
        suites, "_built_site", lambda _: built.append(content) or Outcome("pages", 2)
    )
    for each in ("one", "one", "two"):
        content = each
        outcome = suites.prove_site(context(False, tmp_path))
        assert (outcome.unit, outcome.proved) == ("pages", 2)
    assert built == ["one", "two"]


def test_the_content_of_files_is_every_byte_of_those_that_are_meant(
    committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "ROOT", committed)
    picture = committed / "docs" / "a.png"
    picture.write_bytes(b"\xff\xfe")
    before = memory.of_files(), memory.of_files("solutions/")
    picture.write_bytes(b"\xfe\xff")
    assert memory.of_files() != before[0]
    assert memory.of_files("solutions/") == before[1]


@pytest.mark.reads_course
def test_a_source_is_read_with_all_that_it_includes() -> None:
    source, header = "tests/support/bytes.cpp", "tests/support/bytes.hpp"
    assert dependencies.included(source) == [source, header]
    through = dependencies.included("tests/support/contract_clients.cpp")
    assert "common/runtime/unique_fd.hpp" in through, "by way of another header"
    as_it_is = dependencies.with_headers(source)
    assert dependencies.with_headers(source, {"tests/support/client.hpp": "else"}) == as_it_is
    assert dependencies.with_headers(source, {header: "// changed\n"}) != as_it_is


FIFTH = "solutions/05-ring-echo"


def parts_that_change(number: str, file: str) -> set[str]:
    """Which tests of a chapter are run again once a file is another; the others' name is "rest"."""
    chapter = next(each for each in all_chapters() if each.number == number)
    files = sorted(chapter.tests.glob("*_test.cpp"))
    names = [next(cases.cases_in(file.read_text())).title for file in files]
    found = set()
    for before, after in zip(
        dependencies.parts_of(chapter),
        dependencies.parts_of(chapter, {file: "// changed\n"}),
        strict=True,
    ):
        if before.content != after.content:
            own = [file.name for file, name in zip(files, names, strict=True) if before.holds(name)]
            found.add(own[0] if own else "rest")
    return found


@pytest.mark.reads_course
def test_a_test_is_known_by_the_sources_that_it_and_its_programs_are_made_of() -> None:
    assert parts_that_change("05", "solutions/06-task/task.hpp") == set()
    assert parts_that_change("05", "tests/04-raw-ring/ring_test.cpp") == set()
    assert parts_that_change("05", f"{FIFTH}/late.cpp") == {"rest", "late_completion_test.cpp"}
    everywhere = parts_that_change("05", f"{FIFTH}/ring.hpp")
    assert everywhere >= {"rest", "ring_test.cpp"}
    assert parts_that_change("05", f"{FIFTH}/chapter.toml") >= everywhere, "it may be read"
    own = parts_that_change("05", "tests/05-ring-echo/ring_test.cpp")
    assert own == {"ring_test.cpp"}


@pytest.mark.reads_course
def test_every_test_is_of_one_part() -> None:
    fifth = next(each for each in all_chapters() if each.number == "05")
    parts = [*dependencies.parts_of(fifth), dependencies.part_of_no_chapter()]
    texts = [file.read_text() for file in fifth.tests.glob("*_test.cpp")]
    titles = [case.title for text in texts for case in cases.cases_in(text)]
    assert len(titles) > 20
    others = ("05 contract: one byte comes back", "05 first-loop fails: all", "a feature")
    for name in (*titles, *others):
        assert [part.holds(name) for part in parts].count(True) == 1, name
    assert not any(part.holds("06.1 a task") for part in parts)


@pytest.mark.reads_course
def test_a_program_that_is_made_in_another_way_is_of_all_that_it_could_be_made_of() -> None:
    sources = dependencies._sources_of("14-peer-threads")
    assert {"solutions/14-http-server/peer_threads.cpp"} < set(sources)
    assert dependencies._sources_of("05-asio-uring")[0] == "solutions/03-asio-echo/server.cpp"
    assert dependencies._sources_of("05-first-loop") == [f"{FIFTH}/first_loop.cpp"]


# What tests take


def test_a_test_that_has_too_little_reserve_is_told_and_is_no_failure() -> None:
    outcome = Outcome("tests")
    results = [result(f"01.1 {seconds}", "passed", seconds=seconds) for seconds in range(1, 15)]
    solutions.tell_slowest(outcome, "asan", results)
    assert outcome.holds
    assert [each["seconds"] for each in outcome.slowest] == list(range(14, 4, -1))
    assert outcome.slowest[0] == {
        "test": "01.1 14", "build": "asan", "seconds": 14, "limit_s": trees.TEST_TIMEOUT_S
    }  # fmt: skip
    slow = [note for note in outcome.notes if "split the test" in note]
    assert len(slow) == 2 and "“01.1 14” took 14.0 of its 120 s (asan)" in slow[0]


def test_a_solutions_test_that_fails_beside_others_is_run_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[str], int]] = []

    def run_tests(_preset: str, *, names: list[str], jobs: int, **_: Any) -> list[TestResult]:
        asked.append((names, jobs))
        return [result(name, "failed" if "never" in name else "passed") for name in names]

    monkeypatch.setattr(solutions, "run_tests", run_tests)
    first = [
        result("01.1 a", "passed"),
        result("01.1 second", "timeout", "it waited"),
        result("01.1 never", "crashed"),
    ]
    outcome, folder = Outcome("tests"), trees.BuildFolder("tsan")
    where = context(False, tmp_path)
    results = solutions._again_alone(where, outcome, folder, "tsan", first)
    assert asked == [(["01.1 second", "01.1 never"], 1)]
    assert [each.status for each in results] == ["passed", "passed", "failed"]
    [note] = outcome.notes
    assert note.startswith("in order only at the second try: “01.1 second” hangs")
    assert (tmp_path / "logs" / "tsan-01-1-second.log").read_text() == "it waited"
    asked.clear()
    many = [result(f"01.1 {number}", "failed") for number in range(21)]
    assert solutions._again_alone(where, outcome, folder, "tsan", many) == many and not asked


# clang-tidy


@pytest.mark.reads_course
def test_clang_tidy_is_not_asked_again_about_what_it_found_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy = tmp_path / "clang-tidy"
    tidy.write_text('#!/bin/sh\nfor file; do :; done\nexec grep -q clean "$file"\n')
    tidy.chmod(0o755)
    files = [tmp_path / "good.cpp", tmp_path / "bad.cpp"]
    files[0].write_text("clean\n")
    files[1].write_text("dirty\n")
    commands = [{"file": str(file), "command": "c++ -o a.o"} for file in files]
    monkeypatch.setattr(style, "solution_commands", lambda: commands)
    monkeypatch.setattr(style, "_alone", lambda: trees.BuildFolder("alone"))
    monkeypatch.setattr(style, "with_headers", lambda name: Path(ROOT / name).read_text())
    monkeypatch.setattr(style.clang_tidy, "installed", lambda: tidy)
    outcome = style.prove_tidy(context(False, tmp_path))
    assert (outcome.proved, len(outcome.failures)) == (1, 1)
    tidy.write_text("#!/bin/sh\nexit 1\n")
    assert style.prove_tidy(context(False, tmp_path)).proved == 1, "known to be clean"
    files[0].write_text("dirty too\n")
    assert len(style.prove_tidy(context(False, tmp_path)).failures) == 2, "it has changed since"


def test_clang_tidy_reads_a_chapters_tests_as_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tidy_units, "ROOT", tmp_path)
    chapter = tmp_path / "tests" / "01-echo"
    chapter.mkdir(parents=True)
    for name, text in (("a_test.cpp", "one\ntwo\n"), ("b_test.cpp", "three"), ("main.cpp", "")):
        (chapter / name).write_text(text)
    commands = [
        {"file": str(chapter / name), "command": f"c++ -Ix -o {name}.o -c {name}"}
        for name in ("b_test.cpp", "main.cpp", "a_test.cpp")
    ]
    tests, alone = tidy_units.tidy_units(commands)
    assert (tests.name, alone.name) == ("01-echo-from-a_test.cpp", "main.cpp")
    assert alone.arguments(tmp_path, tmp_path)[-1] == chapter / "main.cpp"
    checks, joined, *flags = tests.arguments(tmp_path, tmp_path / "joined")
    assert joined.read_text() == "one\ntwo\nthree\n"
    assert str(checks).startswith("--checks=-") and flags[:2] == ["--", "-Ix"]
    assert flags[-2:] == ["-iquote", str(chapter)]
    found = "tests/01-echo/b_test.cpp:1: it is odd"
    assert tests.first_finding(f"{joined}:3:7: error: it is odd\n") == found
    there = f"{tmp_path}/common/x.hpp:9:1: warning: too"
    assert tests.first_finding(there) == "common/x.hpp:9: too"


def test_without_the_pinned_clang_tidy_the_systems_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(style.clang_tidy, "installed", lambda: None)
    monkeypatch.setattr(style.clang_tidy, "install", lambda: "no network")
    monkeypatch.setattr(style, "llvm_program", lambda name, outcome: f"/usr/bin/{name}-19")
    outcome = Outcome("files")
    assert style.tidy_program(outcome) == "/usr/bin/clang-tidy-19"
    assert outcome.notes == [
        f"clang-tidy {style.clang_tidy.VERSION} could not be installed (no network); "
        "clang-tidy-19 takes its place, and three times as long"
    ]


# The generator's part


def context(student: bool, work: Path) -> Context:
    return Context(VerifyOptions(student=student), work, lambda text: None)


@pytest.fixture
def one_course(committed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of verify.sync looks at this clone."""
    chapters = all_chapters(committed)
    drift = marks.sync_all
    monkeypatch.setattr(sync, "all_chapters", lambda: chapters)
    monkeypatch.setattr(sync.marks, "sync_all", lambda check: drift(check, committed))
    monkeypatch.setattr(sync.marks, "lint", list)
    return committed


def test_starters_as_they_are_made_hold(one_course: Path, tmp_path: Path) -> None:
    outcome = sync.prove_sync(context(False, tmp_path))
    assert outcome.holds
    assert outcome.proved == 4  # two headers, CMakeLists.txt, the table of tasks


def test_an_edited_starter_fails_with_what_to_do(one_course: Path, tmp_path: Path) -> None:
    edit(one_course / "chapters" / "01-first" / "work.hpp", "// Add.", "// Add up.")
    outcome = sync.prove_sync(context(False, tmp_path))
    assert len(outcome.failures) == 1
    assert "chapters/01-first/work.hpp:4: is `// Add up.`" in outcome.failures[0]
    assert "`./course verify --student`" in outcome.failures[0]
    assert "`./course sync`" in outcome.failures[0]
    assert (one_course / "chapters" / "01-first" / "work.hpp").read_text().count("// Add up.") == 1


def test_a_students_work_is_said_and_not_counted(one_course: Path, tmp_path: Path) -> None:
    edit(one_course / "chapters" / "01-first" / "work.hpp", 'COURSE_TODO("01.1");', "return a + b;")
    outcome = sync.prove_sync(context(True, tmp_path))
    assert outcome.holds
    assert outcome.notes == ["left out, as your work: chapters/01-first/work.hpp"]


def test_a_stale_table_fails_even_for_a_student(one_course: Path, tmp_path: Path) -> None:
    edit(one_course / marks.TASK_ENTRIES, "Subtract", "Take away")
    outcome = sync.prove_sync(context(True, tmp_path))
    assert len(outcome.failures) == 1
    assert "Run `./course sync`." in outcome.failures[0]


def test_sections_are_counted(one_course: Path, tmp_path: Path) -> None:
    assert sync.prove_marks(context(False, tmp_path)).proved == 5
    extra = body("task-01-3", 2)
    (one_course / "solutions" / "01-first" / "bad.hpp").write_text(extra.rsplit("//", 1)[0])
    with pytest.raises(CourseError, match="section task-01-3 is started and never ended"):
        sync.prove_marks(context(False, tmp_path))


# The suites


def test_a_junit_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        dedent("""\
        <testsuites><testsuite>
          <testcase classname="tests.cli.test_a" name="test_good"/>
          <testcase classname="tests.cli.test_a" name="test_bad">
            <failure message="assert 1 == 2&#10;more">trace</failure></testcase>
          <testcase classname="test_b" name="test_broken"><error message="no fixture"/></testcase>
          <testcase classname="test_b" name="test_left"><skipped message="no browser"/></testcase>
        </testsuite></testsuites>
        """)
    )
    assert list(suites.read_junit(report)) == [
        (("test_a", "test_good"), None),
        (("test_a", "test_bad"), "test_a::test_bad is red: assert 1 == 2"),
        (("test_b", "test_broken"), "test_b::test_broken is red: no fixture"),
        (
            ("test_b", "test_left"),
            "test_b::test_left was skipped, so nothing is proved: no browser",
        ),
    ]


def test_a_test_that_fails_beside_others_is_run_again_alone(tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "test_a.py").write_text(
        dedent(f"""\
        import pathlib
        import pytest
        def tried(name):
            with open({str(tmp_path)!r} + "/tries", "a") as tries:
                tries.write(name + "\\n")
            return pathlib.Path({str(tmp_path)!r}, "tries").read_text().count(name)
        @pytest.mark.parametrize("word", ["a b/c", "d"])
        def test_second_try(word):
            assert word == "d" or tried("second") == 2
        def test_never():
            assert tried("never") == 9, "as always"
        """)
    )
    outcome, held = suites._pytest(context(False, tmp_path / "work"), folder, [folder], 2)
    assert (outcome.proved, held) == (2, {"test_a": 2})
    assert len(outcome.failures) == 1 and "test_never is red: AssertionError" in outcome.failures[0]
    [note] = outcome.notes
    assert "at the second try" in note and "test_a::test_second_try[a b/c] is red" in note
    assert sorted((tmp_path / "tries").read_text().split()) == ["never"] * 2 + ["second"] * 2


def test_the_warnings_of_mkdocs_are_the_failures() -> None:
    said = dedent("""\
        INFO    -  Building documentation to directory: /somewhere/site
        WARNING -  Doc file 'index.md' contains a link 'gone.md', but the target is not found.
        WARNING -  docs/chapters/01-a.md: it lacks the section `## Questions` (#questions).
        WARNING -  docs/chapters/01-a.md: it lacks the section `## Questions` (#questions).
        ERROR   -  A plugin failed.

        Aborted with 3 warnings in strict mode!
        """)
    assert suites.site_problems(said) == [
        "Doc file 'index.md' contains a link 'gone.md', but the target is not found.",
        "docs/chapters/01-a.md: it lacks the section `## Questions` (#questions).",
        "A plugin failed.",
    ]


def test_a_page_that_asks_another_host_is_not_proved(tmp_path: Path) -> None:
    for name in ("good", "bad", "worse"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("<p>words</p>")
    image = '<img src="https://example.org/a.png">'
    (tmp_path / "bad" / "index.html").write_text(image * 2)
    (tmp_path / "worse" / "index.html").write_text(image)
    (tmp_path / "site.css").write_text("a { background: url(//example.org/b.png) }")
    outcome = Outcome("pages")
    suites.check_requests(tmp_path, outcome)
    assert outcome.proved == 1
    assert [each.partition(";")[0] for each in outcome.failures] == [
        "the site: bad/index.html and 1 more: asks another host for https://example.org/a.png",
        "the site: site.css: asks another host for //example.org/b.png",
    ]
