# SPDX-License-Identifier: MIT
"""The rules about the tree as a whole: what stands where, and that the lists agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_tool.chapters import Chapter

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


_STRINGS = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
_TEST_CASE = re.compile(
    rf"^(?:TEMPLATE_)?TEST_CASE\(\s*{_STRINGS}(?:,\s*{_STRINGS})?", re.MULTILINE
)
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def test_names(chapter: Chapter, name: str, text: str) -> Iterator[str]:
    """A case is named as a sentence after its task, and tagged with it; the tool relies on both."""
    tasks = {task.id for task in chapter.tasks}
    for match in _TEST_CASE.finditer(text):
        title = "".join(_LITERAL.findall(match[1]))
        tags = set(re.findall(r"\[(\d\d\.\d+)\]", match[2] or ""))
        line = text.count("\n", 0, match.start()) + 1
        task = re.match(r"(\d\d\.\d+) ", title)
        if not title.startswith(chapter.number):
            yield f"{name}:{line}: “{title}” has to start with its task, as in {chapter.number}.1."
        elif task and task[1] not in tasks:
            yield f"{name}:{line}: “{title}” names task {task[1]}; chapter.toml has no such task."
        elif tags != ({task[1]} if task else set()):
            wanted = f"the tag [{task[1]}] alone" if task else "no task's tag, as its name has none"
            yield f"{name}:{line}: “{title}” needs {wanted}."


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
