# SPDX-License-Identifier: MIT
"""./course fuzz: what it hands to libFuzzer, and what it says of what libFuzzer says."""

from __future__ import annotations

import pytest
from conftest import edit
from live_course import LiveCourse, flat

# Says what libFuzzer would say; $SAYS picks the end.
FUZZER = """\
#!/bin/sh
for word; do echo "given: $word" >> given; done
for word; do case $word in -artifact_prefix=*) kept=${word#*=} ;; esac; done
{
  echo "#1	INITED cov: 12 ft: 13"
  case $SAYS in
    a-promise)
      echo 'FOUND: the answer depends on the cut'
      echo '  sent: “GET /[b]\\x0d”'
      echo '  byte by byte:'
      echo '    refused: 400, a control byte'
      echo '==7== ERROR: libFuzzer: deadly signal' ;;
    the-sanitizer) echo '==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1' ;;
    a-todo) echo 'TODO 01.1: Add' ;;
    trouble) echo 'no such flag'; exit 1 ;;
    *) echo 'stat::number_of_executed_units: 123456'; echo 'stat::new_units_added: 7'; exit 0 ;;
  esac
  echo 'GET /' > "${kept}crash-0815"
  echo "artifact_prefix='$kept'; Test unit written to ${kept}crash-0815"
} >&2
exit 77
"""


@pytest.fixture
def fuzzable(live: LiveCourse) -> LiveCourse:
    """Chapter 01 has a fuzz target; what is built is the script."""
    (live.root / "cmake" / "fuzz").write_text(FUZZER)
    (live.root / "cmake" / "fuzz").chmod(0o755)
    tests = live.root / "tests" / "01-first"
    (tests / "corpus").mkdir(parents=True)
    (tests / "fuzz_main.cpp").write_text("// built\n")
    edit(
        live.root / "CMakeLists.txt",
        "  add_custom_target(${number}-server",
        "  add_custom_target(${number}-fuzz\n"
        '    COMMAND ${CMAKE_COMMAND} -E copy "${CMAKE_SOURCE_DIR}/cmake/fuzz"\n'
        '      "${CMAKE_BINARY_DIR}/bin/${number}-fuzz")\n'
        "  add_custom_target(${number}-server",
    )
    live.link_dependencies()
    return live


def test_it_says_how_much_was_tried(fuzzable: LiveCourse) -> None:
    done = fuzzable.run("fuzz", "01", "--seconds", "7")
    assert done.code == 0, done.err
    assert done.out == "123,456 inputs, 7 of them reached something new: nothing found.\n"
    given = (fuzzable.root / "given").read_text()
    assert "-max_total_time=7\n" in given
    assert f"{fuzzable.root}/.course/fuzz/01/corpus\n" in given
    assert given.endswith(f"{fuzzable.root}/tests/01-first/corpus\n")
    assert (fuzzable.root / "build" / "student-fuzz" / "bin" / "01-fuzz").is_file()


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("a-promise", "An input was found: the answer depends on the cut"),
        ("the-sanitizer", "An input was found: AddressSanitizer: heap-buffer-overflow"),
        ("a-todo", "An input was found: TODO 01.1: Add"),
    ],
)
def test_a_finding_is_kept_and_can_be_seen_again(
    fuzzable: LiveCourse, says: str, reason: str
) -> None:
    done = fuzzable.run("fuzz", "01", "--solution", env={"SAYS": says})
    assert done.code == 1
    kept = ".course/fuzz/01/crash-0815"
    assert reason in done.out
    assert f"The input is kept in {kept}." in done.out
    assert f"  build/fuzz/bin/01-fuzz -handle_abrt=0 {kept}\n" in done.out
    assert "move the file to tests/01-first/corpus/" in done.out
    assert (fuzzable.root / kept).read_text() == "GET /\n"


def test_what_a_check_shows_is_printed_as_it_is(fuzzable: LiveCourse) -> None:
    done = fuzzable.run("fuzz", "01", env={"SAYS": "a-promise"})
    said = [
        "An input was found: the answer depends on the cut",
        "  sent: “GET /[b]\\x0d”",
        "  byte by byte:",
        "    refused: 400, a control byte",
        "The input is kept in .course/fuzz/01/crash-0815. To see it again:",
    ]
    assert done.out.splitlines()[: len(said)] == said


def test_trouble_without_a_finding_shows_its_words(fuzzable: LiveCourse) -> None:
    said = ("01-fuzz exited with 1", "no such flag")
    fuzzable.refused("fuzz", "01", said=said, env={"SAYS": "trouble"})


def test_a_chapter_without_a_target_is_told_which_have_one(fuzzable: LiveCourse) -> None:
    done = fuzzable.refused("fuzz", "02", said="Chapter 02 has nothing to fuzz.")
    assert "These have: 01." in flat(done.err)
