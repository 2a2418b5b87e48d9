# SPDX-License-Identifier: MIT
"""The rules about the tree as a whole: what stands where, and that the lists agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_tool.chapters import Chapter
from course_tool.verify.cases import cases_in

TOP_LEVEL = frozenset(
    {
        ".ci", ".clang-format", ".clang-tidy", ".devcontainer", ".github", ".gitignore",
        "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "chapters", "cmake",
        "common", "course", "docs", "mkdocs.yml", "requirements.txt", "solutions", "tests",
    }
)  # fmt: skip


def unknown_entries(names: Sequence[str]) -> Iterator[str]:
    for entry in sorted({name.partition("/")[0] for name in names} - TOP_LEVEL):
        yield f"{entry}: the top level has no place for it; put it into one of the folders there."


def unlisted_chapters(cmake: str, folders: Sequence[str]) -> Iterator[str]:
    """COURSE_CHAPTERS of CMakeLists.txt against the folders in solutions/."""
    found = re.search(r"set\(COURSE_CHAPTERS\s+([^)]*)\)", cmake)
    listed = found[1].split() if found else []
    for folder in folders:
        if folder not in listed:
            yield f"CMakeLists.txt: COURSE_CHAPTERS lacks {folder}, so nobody builds it."
    for folder in listed:
        if folder not in folders:
            yield f"CMakeLists.txt: COURSE_CHAPTERS lists {folder}, which solutions/ lacks."
    if listed != sorted(listed):
        yield "CMakeLists.txt: COURSE_CHAPTERS is not in the order of the course."


def repeated_headers(names: Sequence[str]) -> Iterator[str]:
    """Every include is a name alone, so a name must not stand in two folders."""
    seen: dict[str, str] = {}
    for name in names:
        base = name.rpartition("/")[2]
        ours = name.startswith(("solutions/", "common/", "tests/support/"))
        if not (ours and base.endswith(".hpp")):
            continue
        if base in seen:
            yield f"{name}: {seen[base]} has the same name; an include could not tell them apart."
        seen.setdefault(base, name)


def missing_parts(chapter: Chapter) -> Iterator[str]:
    for part, what in (
        (chapter.tests, "tests"),
        (chapter.starter, "starter"),
        (chapter.page, "page"),
    ):
        if not part.exists():
            yield f"{part.relative_to(chapter.root)}: chapter {chapter.number} has no {what}."


def test_names(chapter: Chapter, name: str, text: str) -> Iterator[str]:
    """A case is named as a sentence after its task, and tagged with it; the tool relies on both."""
    tasks = {task.id for task in chapter.tasks}
    for case in cases_in(text):
        tags = set(re.findall(r"\[(\d\d\.\d+)\]", case.tags))
        task, said = case.task, f"{name}:{case.line}: “{case.title}”"
        if not case.title.startswith(chapter.number):
            yield f"{said} has to start with its task, as in {chapter.number}.1."
        elif task and task not in tasks:
            yield f"{said} names task {task}; chapter.toml has no such task."
        elif tags != ({task} if task else set()):
            wanted = f"the tag [{task}] alone" if task else "no task's tag, as its name has none"
            yield f"{said} needs {wanted}."
        elif not name.endswith("_test.cpp"):
            yield f"{said} stands in no *_test.cpp; the mistakes' builds look for it there."


def check_tree(root: Path, names: Sequence[str], chapters: Sequence[Chapter]) -> Iterator[str]:
    yield from unknown_entries(names)
    yield from repeated_headers(names)
    folders = [chapter.folder for chapter in chapters]
    yield from unlisted_chapters((root / "CMakeLists.txt").read_text(encoding="utf-8"), folders)
    for chapter in chapters:
        yield from missing_parts(chapter)
        for file in sorted(chapter.tests.glob("*.cpp")):
            name = file.relative_to(root).as_posix()
            yield from test_names(chapter, name, file.read_text(encoding="utf-8"))
