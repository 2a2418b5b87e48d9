# SPDX-License-Identifier: MIT
"""A chapter's page: its headings, and the parts of it that chapter.toml and the tests hold."""

from __future__ import annotations

import html
import re
from typing import Any

import stubs
from course_tool import sections
from course_tool.chapters import all_chapters
from course_tool.errors import CourseError
from course_tool.markdown import without_fences
from course_tool.paths import ROOT
from source_pages import stub_title

INCLUDED = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
EMPTY_SECTION = re.compile(r"^## +(.*?)(?: *\{[^}\n]*\})? *\n\s*(?=## |\Z)", re.MULTILINE)
HEADING = re.compile(r"^(#{1,6}) +(.*?)(?: *\{ *#([\w-]+) *\})? *$")

# The H2 headings of every chapter's page, in this order. Only the background has a free title.
SECTIONS = {
    "outcomes": "What you will be able to do",
    "start": "Start",
    "where": "Where we are",
    "predict": "Predict before you code",
    "background": None,
    "tasks": "Tasks",
    "checkpoint": "Checkpoint",
    "wrong": "What goes wrong",
    "questions": "Questions",
    "further": "Further",
    "changed": "What changed",
    "teaching": "Teaching notes",
}
HINT_TITLES = ("Hint 1: a question", "Hint 2: a nudge", "Hint 3: nearly there")


def chapter_of(page_name: str) -> Any:
    """The chapter whose page this is, or None."""
    for chapter in all_chapters(ROOT):
        if chapter.page_name == f"docs/{page_name}":
            return chapter
    return None


def headings(markdown: str) -> list[tuple[int, str, str]]:
    """(level, title, id or "") of every heading outside fences."""
    found = map(HEADING.match, without_fences(markdown).split("\n"))
    return [(len(each[1]), each[2], each[3] or "") for each in found if each]


def _section_id(title: str, identifier: str) -> str:
    """The id of an H2: written in the page, or known by its title; "" if it is neither."""
    if identifier:
        return identifier
    return next((key for key, fixed in SECTIONS.items() if fixed == title), "")


def _task_id(task: Any) -> str:
    return "task-" + task.id.replace(".", "-")


def check(markdown: str, chapter: Any) -> list[str]:
    """Sentences about what the page lacks."""
    found = headings(markdown)
    sections = [each for each in found if each[0] == 2]
    problems = _check_sections(sections)
    empty = EMPTY_SECTION.findall(markdown)
    problems += [f"its section `## {each[1]}` is empty." for each in sections if each[1] in empty]
    titles = [title for level, title, _ in found if level == 1]
    if titles != [chapter.title]:
        problems.append(f"its title is {titles}; chapter.toml says {chapter.title!r}.")
    tasks = [title for level, title, _ in found if level == 3 and title.startswith("Task ")]
    wanted = [f"Task {task.id}: {task.title}" for task in chapter.tasks]
    if tasks != wanted:
        problems.append(f"its tasks are {tasks}; chapter.toml has {wanted}.")
    for marker in _wanted_markers(chapter):
        if f"\n{marker}\n" not in markdown:
            problems.append(f"it lacks {marker}.")
    return problems


def _wanted_markers(chapter: Any) -> list[str]:
    wanted = ["{{ chapter_facts }}", "{{ you_are_here }}", "{{ checkpoint_counts }}"]
    for task in chapter.tasks:
        wanted += [f'{{{{ task("{task.id}") }}}}', f'{{{{ hints("{task.id}") }}}}']
    return wanted


def _check_sections(found: list[tuple[int, str, str]]) -> list[str]:
    problems = []
    ids = [_section_id(title, identifier) for _, title, identifier in found]
    for key, title in SECTIONS.items():
        if key not in ids:
            heading = f"## {title}" if title else "## A title of yours { #background }"
            problems.append(f"it lacks the section `{heading}` (#{key}).")
    for (_, title, _), key in zip(found, ids, strict=True):
        if key not in SECTIONS:
            problems.append(f"`## {title}` is not a section of a chapter's page.")
    known = [key for key in ids if key in SECTIONS]
    if not problems and known != list(SECTIONS):
        problems.append(f"its sections stand as {known}; the order is {list(SECTIONS)}.")
    return problems


def complete_headings(markdown: str, chapter: Any) -> str:
    """Gives the title its number, and sections and tasks the ids that other pages link to."""
    number = f'<span class="chapter-number">{chapter.number}</span>'
    wanted = {f"# {chapter.title}": f"# {number} {chapter.title}"}
    wanted |= {
        f"## {title}": f"## {title} {{ #{key} }}" for key, title in SECTIONS.items() if title
    }
    for task in chapter.tasks:
        heading = f"### Task {task.id}: {task.title}"
        wanted[heading] = f"{heading} {{ #{_task_id(task)} }}"
    lines = markdown.split("\n")
    return "\n".join(wanted.pop(line.rstrip(" "), line) for line in lines)


def facts(chapter: Any) -> str:
    """{{ chapter_facts }}: time, kernel, what it builds on, what the student edits."""
    minutes = chapter.minutes
    features = ", ".join(f"`{feature}`" for feature in chapter.features)
    files = ", ".join(f"`{name}`" for name in chapter.files)
    rows = [
        (
            "Time",
            f"**{minutes.total} minutes**: {minutes.reading} to read, {minutes.tasks} for the "
            f"tasks, {minutes.checkpoint} for the checkpoint",
        ),
        ("Kernel", f"Linux {chapter.kernel} or newer" + (f", with {features}" if features else "")),
        ("Builds on", _builds_on(chapter)),
        ("You edit", f"{files} in `chapters/{chapter.folder}/`"),
    ]
    body = "\n".join(
        f"<div markdown><dt>{name}</dt><dd markdown>{text}</dd></div>" for name, text in rows
    )
    return f'<dl class="facts" markdown>\n{body}\n</dl>'


def _builds_on(chapter: Any) -> str:
    pages = {each.number: each.folder for each in all_chapters(ROOT)}
    links = [f"[chapter {number}]({pages[number]}.md)" for number in chapter.builds_on]
    return ", ".join(links) or "nothing: it stands alone"


def _find_task(chapter: Any, identifier: str) -> Any:
    for each in chapter.tasks:
        if each.id == identifier:
            return each
    have = ", ".join(each.id for each in chapter.tasks)
    raise CourseError(f"this chapter has no task {identifier}. It has {have}.")


def task(chapter: Any, identifier: str) -> str:
    """{{ task("01.2") }}: the file, the stub, the command and the tests that turn green."""
    found = _find_task(chapter, identifier)
    path = f"chapters/{chapter.folder}/{found.file}"
    stub = stubs.of_task(chapter.solution / found.file, found.id)
    tests = "\n".join(f"- `{name}`" for name in stubs.test_names(chapter.tests, found.id))
    if not tests:
        raise CourseError(f"no test under tests/{chapter.folder}/ starts with {found.id}.")
    return (
        f'```cpp title="{stub_title(path, found.id)}"\n{stub}\n```\n\n'
        f"```sh\n./course test {chapter.number} -t {found.id}\n```\n\n"
        f'These tests turn green:\n\n<div class="tests" markdown>\n\n{tests}\n\n</div>\n'
    )


def hints(chapter: Any, identifier: str) -> str:
    """{{ hints("01.2") }}: three folded boxes."""
    found = _find_task(chapter, identifier)
    boxes = (
        f'??? hint "{title}"\n\n    {text}\n'
        for title, text in zip(HINT_TITLES, found.hints, strict=True)
    )
    return "\n".join(boxes)


def checkpoint_counts(chapter: Any) -> str:
    """{{ checkpoint_counts }}: what the checkpoint asserts, as a table."""
    rows = [
        f"| {count.name} | {_range(count)} | {html.escape(count.why, quote=False)} |"
        for count in chapter.checkpoint.counts
    ]
    return "\n".join(["| count | must come out as | because |", "|---|---|---|", *rows])


def _range(count: Any) -> str:
    unit = " bytes" if count.metric.startswith("bytes_") or count.unit == "bytes" else ""
    low, high = f"{count.at_least:,g}", f"{count.at_most:,g}{unit}"
    if count.at_least == 0:
        return f"at most {high}"
    return high if count.at_least == count.at_most else f"{low} to {high}"


def line_counts(chapter: Any, section: str, *programs: str) -> str:
    """{{ line_counts("read", "a.cpp", "b.cpp") }}: lines of code, counted, as a table.

    For each program: those of its section, of its own file, and of the chapter's headers beneath
    it. What all of them include is no difference between them, and is left out.
    """
    beneath = {each: _included(chapter, each) for each in programs}
    shared = set.intersection(*beneath.values()) if len(programs) > 1 else set()
    rows = []
    for each in programs:
        heart = code_lines(_section(chapter, each, section))
        whole = code_lines(_text(chapter, each))
        names = sorted(beneath[each] - shared)
        under = sum(code_lines(_text(chapter, name)) for name in names)
        told = f"{under}: " + ", ".join(f"`{name}`" for name in names) if names else "none"
        rows.append(f"| `{each}` | {heart} | {whole} | {told} |")
    head = f"| program | its {section} | its file | the chapter's headers beneath it |"
    return "\n".join([head, "|---|---:|---:|---|", *rows])


def _included(chapter: Any, name: str) -> set[str]:
    """The chapter's own headers that a file includes, and those that they include."""
    found: set[str] = set()
    left = [name]
    while left:
        for each in INCLUDED.findall(_text(chapter, left.pop())):
            if each not in found and (chapter.solution / each).is_file():
                found.add(each)
                left.append(each)
    return found


def code_lines(text: str) -> int:
    """Lines that hold more than a comment, a mark, or nothing."""
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))


def _text(chapter: Any, name: str) -> str:
    file = chapter.solution / name
    if not file.is_file():
        raise CourseError(f"there is no solutions/{chapter.folder}/{name}.")
    return str(file.read_text(encoding="utf-8"))


def _section(chapter: Any, name: str, section: str) -> str:
    for each in sections.scan(_text(chapter, name))[0]:
        if each.name == section:
            return "\n".join(each.body)
    raise CourseError(f"{name} has no section {section!r}.")
