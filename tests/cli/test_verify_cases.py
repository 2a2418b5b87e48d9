# SPDX-License-Identifier: MIT
"""Which objects and programs `./course verify` makes for a mistake or an open task."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from conftest import edit
from course_tool.chapters import Chapter, all_chapters
from course_tool.processes import Finished
from course_tool.verify import layout, starters, variants
from course_tool.verify.cases import Case, cases_in, with_cases
from course_tool.verify.variants import Origin, Variant

ALONE = """\
int three() { return 3; }

TEST_CASE("01.1 a sum is \\"one\\" thing", "[01.1]") {
  CHECK(add(1, 2) == three());
}
"""
WITH_A_PROGRAM = """\
TEST_CASE("01.2 it says yes",
          "[01.2]") {
  run_program(program("01-server"), {});
}

TEST_CASE("01.3 it subtracts", "[01.3]") {
  CHECK(run_anything());
}
"""


@pytest.fixture
def chapter(course: Path) -> Chapter:
    edit(
        course / "solutions" / "01-first" / "chapter.toml",
        "[checkpoint]\n",
        '[[programs]]\nname = "client"\nsummary = "the client"\ncontract = false\n\n[checkpoint]\n',
    )
    tests = course / "tests" / "01-first"
    tests.mkdir(parents=True)
    (tests / "alone_test.cpp").write_text(ALONE)
    (tests / "server_test.cpp").write_text(WITH_A_PROGRAM)
    (tests / "helper.cpp").write_text("int help() { return 1; }\n")
    return all_chapters(course)[0]


def of(task: str, chapter: Chapter) -> tuple[list[str], list[str]]:
    """The files and the programs of a task's cases."""
    variant = Variant(task, chapter, {}, lambda case: case.task == task)
    return list(variant.files), variant.programs[1:]


def test_cases_are_read_with_their_lines_and_tags() -> None:
    assert list(cases_in(WITH_A_PROGRAM)) == [
        Case("01.2 it says yes", '"[01.2]"', 1, WITH_A_PROGRAM.split("\n\n")[0]),
        Case("01.3 it subtracts", '"[01.3]"', 6, WITH_A_PROGRAM.split("\n\n")[1].strip()),
    ]
    assert [case.title for case in cases_in(ALONE)] == ['01.1 a sum is "one" thing']


def test_a_case_needs_its_file_and_the_programs_it_names(chapter: Chapter) -> None:
    assert of("01.1", chapter) == (["alone_test.cpp"], [])
    assert of("01.2", chapter) == (["server_test.cpp"], ["01-server"])
    assert of("01.3", chapter) == (["server_test.cpp"], [])


def test_what_stands_between_the_cases_counts_for_all_of_them(chapter: Chapter) -> None:
    helper = '\nbool run_anything() {\n  return run_program(program("01-client"), {}).ok;\n}\n'
    file = chapter.tests / "server_test.cpp"
    file.write_text(WITH_A_PROGRAM + helper)
    assert of("01.3", chapter) == (["server_test.cpp"], ["01-client"])


def test_a_header_of_the_tests_counts_for_the_file_that_includes_it(chapter: Chapter) -> None:
    (chapter.tests / "ready.hpp").write_text('inline auto a = program("01-client");\n')
    assert of("01.1", chapter) == (["alone_test.cpp"], [])
    (chapter.tests / "alone_test.cpp").write_text('#include "ready.hpp"\n' + ALONE)
    assert of("01.1", chapter) == (["alone_test.cpp"], ["01-client"])


def test_a_program_that_is_not_named_may_be_any(chapter: Chapter) -> None:
    file = chapter.tests / "server_test.cpp"
    file.write_text(WITH_A_PROGRAM.replace('program("01-server")', "course_test::program(name)"))
    assert of("01.2", chapter) == (["server_test.cpp"], ["01-server", "01-client"])


def test_a_task_is_tried_open_and_before_the_rest_by_its_own_cases(chapter: Chapter) -> None:
    cases = [*cases_in(ALONE), *cases_in(WITH_A_PROGRAM)]
    made = {variant.name: variant for variant in starters.variants_of(chapter)}
    assert list(made)[:3] == ["01.1", "01.1-before-the-rest", "01.2"]
    assert list(made)[-1] == chapter.tasks[-1].id  # nothing comes after it
    assert [made["01.1-before-the-rest"].wanted(case) for case in cases] == [True, False, False]
    assert [made["01.2"].wanted(case) for case in cases] == [False, True, False]


def test_the_other_cases_are_blank_lines() -> None:
    made = with_cases(WITH_A_PROGRAM, lambda case: case.task == "01.3")
    assert made.count("\n") == WITH_A_PROGRAM.count("\n"), "the lines keep their numbers"
    first, second = cases_in(WITH_A_PROGRAM)
    assert made.strip() == second.text
    assert first.text not in made


class Build:
    """What an Origin asks of a BuildFolder, and all that it runs there."""

    def __init__(self, chapter: Chapter) -> None:
        self.path = chapter.root
        self.built: list[str] = []
        self.ran: list[list[str]] = []
        self._chapter = chapter

    def commands(self) -> list[dict[str, str]]:
        flags = [f"-I{self._chapter.root}/solutions/01-first", "-Werror"]
        files = {
            "tests/01-first/alone_test.cpp": "01-cases.dir/alone_test.cpp.o",
            "tests/01-first/server_test.cpp": "01-cases.dir/server_test.cpp.o",
            "tests/01-first/helper.cpp": "01-cases.dir/helper.cpp.o",
            "solutions/01-first/server.cpp": "01-server.dir/server.cpp.o",
        }
        return [
            {
                "command": shlex.join(["c++", *flags, "-o", name, "-c", f"{self.path}/{file}"]),
                "file": f"{self.path}/{file}",
            }
            for file, name in files.items()
        ]

    def build(self, targets: list[str]) -> Finished:
        self.built = targets
        return Finished((), 0, "", "", 0.1)

    def run(self, words: list[str], **_: object) -> Finished:
        links = {
            "bin/01-cases": "01-cases.dir/alone_test.cpp.o 01-cases.dir/server_test.cpp.o "
            "01-cases.dir/helper.cpp.o -o bin/01-cases support.a /usr/lib/libfmt.so",
            "bin/01-server": "01-server.dir/server.cpp.o -o bin/01-server common.a",
        }
        if words[0] == "ninja":
            return Finished((), 0, f": && c++ {links[words[-1]]} && :\n", "", 0.1)
        self.ran.append(words)
        return Finished((), 0, "", "", 0.1)


def test_what_includes_a_changed_file_is_made_again_and_the_rest_is_shared(
    chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Build(chapter)
    monkeypatch.setattr(variants, "run", build.run)
    monkeypatch.setattr(variants, "WORK", tmp_path / "work")
    seen = {"tests/01-first/server_test.cpp": [], "solutions/01-first/server.cpp": ["work.hpp"]}
    monkeypatch.setattr(
        variants,
        "included",
        lambda name: [f"solutions/01-first/{each}" for each in seen.get(name, [])],
    )
    monkeypatch.setattr(variants, "relative", lambda file: str(file.relative_to(chapter.root)))
    texts = {file.name: file.read_text() for file in chapter.solution.glob("*.hpp")}
    variant = Variant("one", chapter, texts | {"work.hpp": "new"}, lambda case: case.task == "01.2")
    origin = Origin(build)  # type: ignore[arg-type]
    origin.build_shared([variant])
    assert build.built == [
        "01-cases.dir/helper.cpp.o", "01-cases.dir/server_test.cpp.o", "common.a",
        "program-headers", "support.a", "test-headers",
    ]  # fmt: skip
    assert origin.make(variant) is None
    linked, compiled, server = (" ".join(words) for words in build.ran)
    mine = tmp_path / "work" / "variants" / "one"
    assert linked == (
        f"c++ 01-cases.dir/server_test.cpp.o 01-cases.dir/helper.cpp.o -o {mine}/01-cases "
        "support.a /usr/lib/libfmt.so"
    )
    assert compiled == (
        f"c++ -I{mine}/01-first -Werror -o {mine}/01-server-server.cpp.o "
        f"-c {mine}/01-first/server.cpp -Wno-error"
    )
    assert server == f"c++ {mine}/01-server-server.cpp.o -o {mine}/01-server common.a"
    assert (mine / "01-first" / "work.hpp").read_text() == "new"

    build.ran.clear()
    seen["tests/01-first/server_test.cpp"] = ["work.hpp"]
    again = Origin(build)  # type: ignore[arg-type]
    assert again.make(variant) is None
    assert " ".join(build.ran[0]) == (
        f"c++ -I{mine}/01-first -Werror -o {mine}/01-cases-server_test.cpp.o "
        f"-c {mine}/server_test.cpp -iquote {chapter.tests} -Wno-error"
    )
    assert [case.task for case in cases_in((mine / "server_test.cpp").read_text())] == ["01.2"]


def test_a_case_in_a_file_that_is_not_looked_at_is_refused(chapter: Chapter) -> None:
    problems = list(layout.test_names(chapter, "tests/01-first/helper.cpp", ALONE))
    assert problems == [
        'tests/01-first/helper.cpp:3: “01.1 a sum is "one" thing” stands in no *_test.cpp; '
        "the mistakes' builds look for it there."
    ]
