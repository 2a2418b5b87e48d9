# SPDX-License-Identifier: MIT
"""Every rule of `./course verify` that reads one file: what breaks it gets its sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from course_tool.verify import rules_cpp, rules_pages, rules_python, rules_text
from course_tool.verify.sources import Source
from course_tool.verify.style import RULES, british_words, check_source

Check = Callable[[Source], Iterator[str]]

CONTRACT = """\
// SPDX-License-Identifier: MIT
// A thing.
// Owns     nothing.
// Lifetime none.
// Threads  any.
// Errors   none.
#pragma once
"""
WIDE = "x" * 101


def found(check: Check, text: str, path: str = "solutions/01-first/work.hpp") -> list[str]:
    return list(check(Source(path, text)))


# What breaks a rule, and a part of the sentence that says so.
BREAKS = [
    (rules_text.width, f"ok\n{WIDE}\n", "work.hpp:2: the line has 101 columns"),
    (rules_text.width_of_prose, "word " * 30 + "\n", "work.hpp:1: the line has 150 columns"),
    (rules_text.line_ends, "one \ntwo\n", "work.hpp:1: blanks at the end"),
    (rules_text.line_ends, "one", "work.hpp:1: the last line has no line feed"),
    (rules_text.line_ends, "one\r\n", "carriage returns"),
    (rules_text.prose_words, "You simply call it.\n", "'simply' tells a reader who is stuck"),
    (rules_text.prose_words, "One.\nIt is, of\ncourse.\n", "work.hpp:2: 'of course'"),
    (rules_text.solution_words, "// FIXME later\n", "work.hpp:1: 'FIXME' leaves something open"),
    (rules_text.solution_words, "// currently 6\n", "'currently' leaves something open"),
    (rules_text.spdx, "#pragma once\n", "has to start with the line `// SPDX"),
    (rules_text.machine_traces, "cd /home/me/course\n", "'/home/me' is a folder of one machine"),
    (rules_text.machine_traces, "http://mirror.example.org\n", "the host of a package mirror"),
    (rules_cpp.contract, "// SPDX-License-Identifier: MIT\n", "needs the line `#pragma once`"),
    (
        rules_cpp.contract,
        CONTRACT.replace("// Owns     nothing.\n// Lifetime none.\n",
                         "// Lifetime none.\n// Owns     nothing.\n"),
        "stand in this order: Owns, Lifetime, Threads, Errors",
    ),
    (rules_cpp.contract, CONTRACT.replace("// A thing.", "int x;"), "only the contract's comment"),
    (rules_cpp.solution_length, "int x;\n" * 301, "work.hpp:301: the file has 301 lines"),
    (rules_cpp.includes, "#include <linux/io_uring.h>\n", "work.hpp:1: <linux/io_uring.h>"),
    (rules_cpp.includes, '#include "../common/a.hpp"\n', "included by name alone"),
    (
        rules_cpp.lambda_coroutines,
        "auto f = [&buffer](int fd) -> task<> {\n  co_await recv(fd, buffer);\n};\n",
        "work.hpp:1: a coroutine lambda that captures",
    ),
    (rules_cpp.typedefs, "  typedef int count;\n", "write `using name = type;`"),
    (rules_cpp.loopback_only, 'connect("10.0.0.7")\n', "10.0.0.7 is not of this machine"),
    (
        rules_python.function_length,
        "def long():\n" + "    x = 1\n" * 61,
        "work.hpp:1: long() has 62 lines; 60 is the limit",
    ),
    (rules_python.processes, 'subprocess.run(["ls"])\n', "a process needs a timeout"),
    (
        rules_python.processes,
        'subprocess.run("ls *", shell=True, timeout=1)\n',
        "never a shell line",
    ),
    (rules_pages.length, "word " * 200, "the page has 200 words; a chapter has 1300 to 2300"),
    (rules_pages.length, "word " * 2400, "more means two ideas"),
    (rules_pages.box_titles, '??? question "Why over\ntwo lines?"\n', "work.hpp:1: a box is not"),
    (rules_pages.box_titles, 'a\n    !!! belief “so”\n', "work.hpp:2: a box is not closed"),
    (
        rules_pages.source_requests,
        '<script src="https://cdn.example.org/a.js"></script>\n',
        "work.hpp:1: asks another host for https://cdn.example.org/a.js",
    ),
    (rules_pages.configured_requests, "  - https://cdn.example.org/a.js\n", "asks another host"),
]  # fmt: skip

# What looks like a break and is none.
KEEPS = [
    (rules_text.width, "x" * 100 + "\n"),
    (rules_text.width_of_prose, f"| {WIDE} | a table's row |\n"),
    (rules_text.width_of_prose, f'??? question "{"a title " * 20}"\n'),
    (rules_text.width_of_prose, f"```text\n{WIDE}\n```\n"),
    (rules_text.width_of_prose, f"See https://example.org/{WIDE} for more.\n"),
    (rules_text.solution_words, 'COURSE_TODO("01.1"); #include "todo.hpp"\n'),
    (rules_text.spdx, "// SPDX-License-Identifier: MIT\n"),
    (rules_text.spdx, ""),
    (rules_text.machine_traces, "build/work/ and ~/course and ${HOME}/work/x and /proc/1/fd\n"),
    (rules_cpp.contract, CONTRACT),
    (rules_cpp.contract, CONTRACT.replace("// Threads  any.\n", "")),  # a label may be left out
    (rules_cpp.contract, CONTRACT.replace("#pragma", "// Rule     one.\n// See      two\n#pragma")),
    (rules_cpp.includes, '#include "ring.hpp"\n#include <liburing/io_uring.h>\n'),
    (rules_cpp.lambda_coroutines, "run([&] { x = 1; });\nco_await f();\n"),
    (rules_cpp.lambda_coroutines, "auto f = [](int fd) -> task<> { co_return; };\n"),
    (
        rules_cpp.lambda_coroutines,
        "// NOLINTNEXTLINE(cppcoreguidelines-avoid-capturing-lambda-coroutines)\n"
        "auto f = [x]() -> task<int> { co_return x; };\n",
    ),
    (rules_cpp.typedefs, "using count = int;  // no typedef\nint typedefs;\n"),
    (rules_cpp.loopback_only, '"127.0.0.1", "0.0.0.0", "192.0.2.1", "256.1.1.1", "1.2.3"\n'),
    (rules_python.function_length, "def short():\n" + "    x = 1\n" * 59),
    (rules_python.processes, 'subprocess.run(["ls"], timeout=1)\n'),
    (rules_pages.length, "word " * 1300),
    (rules_pages.box_titles, '??? question "One line?"\n\n    !!! note\n\n    ???+ try "Yes"\n'),
    (rules_pages.box_titles, '```md\n??? question "In\ncode?"\n```\n!!!, and ??? in a sentence\n'),
    (rules_pages.source_requests, "[a link](https://example.org) <a href='https://example.org'>\n"),
    (rules_pages.source_requests, '<link rel="canonical" href="https://example.org/">\n'),
]  # fmt: skip


@pytest.mark.parametrize(("check", "text", "sentence"), BREAKS)
def test_a_rule_says_what_breaks_it_and_where(check: Check, text: str, sentence: str) -> None:
    problems = found(check, text)
    assert any(sentence in problem for problem in problems), problems


@pytest.mark.parametrize(("check", "text"), KEEPS)
def test_a_rule_lets_pass_what_keeps_it(check: Check, text: str) -> None:
    assert found(check, text) == []


def test_a_requests_rule_knows_every_way_to_fetch() -> None:
    for text in (
        "![a picture](https://example.org/a.png)",
        '<img alt="" src="//example.org/a.png">',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<iframe title="x" src="http://example.org">',
        "body { background: url('https://example.org/a.png') }",
        '@import "https://example.org/a.css";',
        '<image xlink:href="https://example.org/a.png"/>',
        'fetch("https://example.org/a.json")',
        'new WebSocket("wss://example.org")',
    ):
        problems = found(rules_pages.source_requests, text, "docs/assets/a.html")
        assert len(problems) == 1, text
        assert "example.org" in problems[0]


def test_code_in_a_page_is_no_request() -> None:
    fence = '```html\n<script src="https://example.org/a.js"></script>\n```\n'
    assert found(rules_pages.source_requests, fence, "docs/index.md") == []


def test_only_the_owner_of_processes_may_start_one_in_the_tool() -> None:
    text = 'subprocess.run(["ls"], timeout=1)\n'
    inside = found(rules_python.processes, text, "common/tool/course_tool/other.py")
    assert "through course_tool.processes" in inside[0]
    assert found(rules_python.processes, text, "common/tool/course_tool/processes.py") == []
    assert found(rules_python.processes, text, "tests/cli/test_other.py") == []


def test_british_spelling_is_told_with_its_american_form(tmp_path: Path) -> None:
    (tmp_path / "a.hpp").write_text("ok\nis cancelled, of the behaviour_of(colours), licence\n")
    (tmp_path / "b.md").write_text("canceled, cancellation, otherwise, promise, catalogue, raise\n")
    assert british_words(["a.hpp", "b.md"], tmp_path) == [
        "a.hpp:2: 'cancelled' is British; the course writes 'canceled'.",
        "a.hpp:2: 'behaviour' is British; the course writes 'behavior'.",
        "a.hpp:2: 'colours' is British; the course writes 'colors'.",
        "a.hpp:2: 'licence' is British; the course writes 'license'.",
    ]


def test_a_dead_link_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("# There\n")
    page = Source(
        "docs/page.md",
        "[good](there.md#part)\n[web](https://example.org/gone)\n[here](#part)\n"
        "```md\n[in code](gone.md)\n```\n[bad](gone.md)\n",
    )
    assert list(rules_pages.dead_links(tmp_path, page)) == [
        "docs/page.md:7: the link to gone.md is dead: there is no docs/gone.md."
    ]


def test_words_of_a_page_are_those_a_reader_reads() -> None:
    text = (
        "# Two words\n\nNot [a link](https://example.org/with/words) more.\n\n"
        '```cpp title="x"\nint none_of_this_counts;\n```\n\n{{ task("01.1") }}\n'
        '??? question "Why?"\n\n    Because.\n'
    )
    assert rules_pages.words_of_prose(text) == 8  # Two words Not a link more Why Because


def test_each_rule_concerns_some_file_of_the_course() -> None:
    paths = (
        "course", "CMakeLists.txt", "docs/chapters/01-first.md", "docs/assets/site.css",
        "mkdocs.yml", "README.md", "solutions/01-first/work.hpp", "common/runtime/log.hpp",
        "solutions/01-first/chapter.toml", "tests/01-first/work_test.cpp", "tests/cli/test_a.py",
    )  # fmt: skip
    for rule in RULES:
        assert any(rule.concerns(Source(path, "")) for path in paths), rule.name


def test_a_clean_file_breaks_no_rule() -> None:
    assert check_source(Source("solutions/01-first/work.hpp", CONTRACT)) == []
