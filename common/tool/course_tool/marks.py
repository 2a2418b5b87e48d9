# SPDX-License-Identifier: MIT
"""One source for starter, solution and page: the marks in solutions/, and what is made from them.

    // --8<-- [start:task-01-2]
    the body of a task: the starter has COURSE_TODO("01.2"); in its place
    // --8<-- [end:task-01-2]

Sections with other names are for pages. They may hold tasks, lie inside one, or hold each other;
from starters their marks vanish. Marks count in C++ files only; other files are copied as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from course_tool import processes
from course_tool.chapters import Chapter, all_chapters
from course_tool.errors import CourseError
from course_tool.paths import ROOT, relative

CPP_SUFFIXES = frozenset({".hpp", ".cpp", ".h"})
TASKS_A_CHAPTER = range(3, 6)
TASK_LINES_A_CHAPTER = range(20, 61)
STARTER_LINES_MAX = 150
FENCE_LINES_MAX = 6
TASK_ENTRIES = "common/runtime/task_entries.inc"
_RECORD = "synced.json"

_MARK = re.compile(r"[ \t]*// --8<-- \[(?P<kind>start|end):(?P<name>[a-z][a-z0-9-]*)\]")
_LOOKS_LIKE_A_MARK = re.compile(r"8<.*\[\s*(start|end)|//.*\[(start|end)\s*:")
_TASK_SECTION = re.compile(r"task-(?P<chapter>\d\d)-(?P<task>\d+)[b-z]?")


@dataclass(frozen=True)
class Section:
    name: str
    first_line: int  # of the mark that starts it, counted from 1
    last_line: int  # of the mark that ends it
    body: tuple[str, ...]  # the lines between them, without the marks of other sections

    @property
    def task(self) -> str | None:
        """'01.2' for task-01-2 and task-01-2b; None for a page's section."""
        return _task_of(self.name)


@dataclass(frozen=True)
class Drift:
    """A generated file that is not what the generator makes."""

    path: Path  # from the clone's root
    line: int  # the first that differs; 0 if the file is missing or stale
    problem: str
    kept: Path | None = None  # where sync put an edited file before it wrote over it

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.problem}" + (f" (kept in {self.kept})" if self.kept else "")


@dataclass(frozen=True)
class _Use:
    """A page's `--8<-- "path:section"`."""

    page: Path
    line: int
    path: str
    section: str


def _task_of(name: str) -> str | None:
    found = _TASK_SECTION.fullmatch(name)
    return f"{found['chapter']}.{int(found['task'])}" if found else None


def _scan(text: str) -> tuple[list[Section], list[tuple[int, str]]]:
    """All sections that are whole, and (line, problem) for every mark that is not in order."""
    lines = text.splitlines()
    opened: dict[str, int] = {}
    sections: list[Section] = []
    problems: list[tuple[int, str]] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        mark = _MARK.fullmatch(line)
        if mark is None:
            if _LOOKS_LIKE_A_MARK.search(line):
                problems.append((number, "looks like a mark; a mark is `// --8<-- [start:name]`"))
            continue
        name = mark["name"]
        if mark["kind"] == "start":
            if name in seen:
                problems.append((number, f"section {name} is started a second time"))
            seen.add(name)
            opened[name] = number
        elif name not in opened:
            problems.append((number, f"section {name} is ended but was not started"))
        else:
            first = opened.pop(name)
            body = tuple(each for each in lines[first : number - 1] if not _MARK.fullmatch(each))
            sections.append(Section(name, first, number, body))
    problems += [(at, f"section {name} is started and never ended") for name, at in opened.items()]
    sections.sort(key=lambda section: section.first_line)
    return sections, sorted([*problems, *_bad_tasks(sections)])


def _bad_tasks(sections: list[Section]) -> Iterator[tuple[int, str]]:
    for section in sections:
        if section.name.startswith("task-") and section.task is None:
            yield (
                section.first_line,
                f"section {section.name}: a task's is called task-NN-K or task-NN-Kb",
            )
        if section.task is None:
            continue
        if not any(line.strip() for line in section.body):
            yield (
                section.first_line,
                f"section {section.name} is empty: what is the student to write?",
            )
        for other in sections:
            if other is section or not _overlap(section, other):
                continue
            if other.task is not None and other.first_line > section.first_line:
                yield other.first_line, f"task section {other.name} is nested in {section.name}"
            if other.task is None and not _holds(other, section) and not _holds(section, other):
                yield (
                    other.first_line,
                    f"section {other.name} crosses the task section {section.name}",
                )


def _overlap(one: Section, other: Section) -> bool:
    return one.first_line < other.last_line and other.first_line < one.last_line


def _holds(outer: Section, inner: Section) -> bool:
    return outer.first_line < inner.first_line and inner.last_line < outer.last_line


def parse(path: Path) -> list[Section]:
    """The sections of one file; marks that do not match are a CourseError."""
    sections, problems = _scan(path.read_text(encoding="utf-8"))
    if problems:
        line, problem = problems[0]
        raise CourseError(f"{relative(path)}:{line}: {problem}.")
    return sections


def starter_text(solution_text: str) -> str:
    """Makes the starter of one C++ file."""
    sections, problems = _scan(solution_text)
    if problems:
        line, problem = problems[0]
        raise CourseError(f"line {line}: {problem}.")
    tasks = {section.first_line: section for section in sections if section.task}
    starter: list[str] = []
    left_out_until = 0
    after_mark = False
    for number, line in enumerate(solution_text.splitlines(), start=1):
        if number in tasks:
            starter.append(_todo_line(tasks[number]))
            left_out_until = tasks[number].last_line
        if number <= left_out_until:
            continue
        if _MARK.fullmatch(line):
            after_mark = True
            continue
        doubled = after_mark and not line.strip() and (not starter or not starter[-1].strip())
        after_mark = after_mark and not line.strip()
        if not doubled:  # a mark between two blank lines leaves one
            starter.append(line)
    return "".join(f"{line}\n" for line in starter)


def _todo_line(section: Section) -> str:
    first = next(line for line in section.body if line.strip())
    indentation = first[: len(first) - len(first.lstrip())]
    return f'{indentation}COURSE_TODO("{section.task}");'


def starter_files(chapter: Chapter) -> dict[str, bytes]:
    """What the starter of a chapter consists of: file name -> content."""
    files = {}
    for source in _sources(chapter):
        content = source.read_bytes()
        if source.suffix in CPP_SUFFIXES:
            try:
                content = starter_text(content.decode("utf-8")).encode("utf-8")
            except CourseError as error:
                raise CourseError(f"{relative(source)}: {error}") from error
        files[source.name] = content
    return files


def _sources(chapter: Chapter) -> list[Path]:
    files = []
    for path in sorted(chapter.solution.iterdir()):
        if path.name == "chapter.toml" or path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir():
            raise CourseError(f"{relative(path)}/ is a folder; chapter folders are flat.")
        files.append(path)
    return files


def task_entries_text(chapters: Iterable[Chapter]) -> str:
    """The table from which COURSE_TODO says a task's title and page."""
    lines = ["// Generated by ./course sync from every chapter.toml. Do not edit."]
    for chapter in chapters:
        for task in chapter.tasks:
            fields = (task.id, task.title, chapter.page_name)
            lines.append("{" + ", ".join(map(_cpp_string, fields)) + "},")
    return "".join(f"{line}\n" for line in lines)


def _cpp_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def sync_all(check: bool, root: Path = ROOT) -> list[Drift]:
    """Lists what has drifted from solutions/; unless `check`, also makes it right.

    A starter that somebody has edited is kept aside in .course/ before it is written over.
    """
    chapters = all_chapters(root)
    wanted = {
        chapter.starter / name: content
        for chapter in chapters
        for name, content in starter_files(chapter).items()
    }
    wanted[root / TASK_ENTRIES] = task_entries_text(chapters).encode("utf-8")
    drifts = [drift for path, content in wanted.items() if (drift := _drift(path, content, root))]
    stale = [path for path in _committed_starters(root) if path not in wanted and path.exists()]
    drifts += [
        Drift(path.relative_to(root), 0, "is stale: solutions/ has no such file") for path in stale
    ]
    if not check:
        drifts = [_mend(drift, wanted.get(root / drift.path), root) for drift in drifts]
        _remember_generated(wanted, root)
    return sorted(drifts, key=lambda drift: drift.path)


def _mend(drift: Drift, content: bytes | None, root: Path) -> Drift:
    """Writes or removes one file; what somebody has edited in it is kept."""
    path = root / drift.path
    kept = _keep(path, root) if path.is_file() and not _is_generated(path, root) else None
    if content is None:
        path.unlink()
        if path.parent != root / "chapters" and not any(path.parent.iterdir()):
            path.parent.rmdir()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_bytes(content)
        os.replace(fresh, path)
    return replace(drift, kept=kept)


def _is_generated(path: Path, root: Path) -> bool:
    """True if the file is as it was committed, or as an earlier sync left it."""
    name = str(path.relative_to(root))
    content = path.read_bytes()
    if _generated_before(root).get(name) == hashlib.sha256(content).hexdigest():
        return True
    committed = _git(root, "ls-tree", "HEAD", "--", name)
    return bool(committed) and _git(root, "diff", "--quiet", "HEAD", "--", name) is not None


def _keep(path: Path, root: Path) -> Path:
    folder = root / ".course" / "kept" / time.strftime("sync-%Y%m%d-%H%M%S")
    kept = folder / path.relative_to(root)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(path.read_bytes())
    return kept.relative_to(root)


def _generated_before(root: Path) -> dict[str, str]:
    """File name -> SHA-256 of what the last sync wrote there."""
    try:
        return dict(json.loads((root / ".course" / _RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # no record, or not a readable one: then every edit counts as the reader's


def _remember_generated(wanted: Mapping[Path, bytes], root: Path) -> None:
    record = root / ".course" / _RECORD
    record.parent.mkdir(exist_ok=True)
    hashes = {
        str(path.relative_to(root)): hashlib.sha256(content).hexdigest()
        for path, content in wanted.items()
    }
    record.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


def _committed_starters(root: Path) -> list[Path]:
    """Files in chapters/ that git knows: all others there are the student's own."""
    listed = _git(root, "ls-files", "-z", "--", "chapters") or ""
    return [root / name for name in listed.split("\0") if name]


def _git(root: Path, *args: str) -> str | None:
    """What git prints; None if it fails, or if this is no git clone, or there is no git."""
    try:
        finished = processes.run(["git", "-C", root, *args], timeout_s=30)
    except CourseError:
        return None
    return finished.stdout if finished.returncode == 0 else None


def _drift(path: Path, wanted: bytes, root: Path) -> Drift | None:
    shown = path.relative_to(root)
    if not path.is_file():
        return Drift(shown, 0, "is missing")
    have = path.read_bytes()
    if have == wanted:
        return None
    have_lines = have.decode("utf-8", errors="replace").splitlines()
    wanted_lines = wanted.decode("utf-8", errors="replace").splitlines()
    for number in range(1, max(len(have_lines), len(wanted_lines)) + 1):
        got, want = _line(have_lines, number), _line(wanted_lines, number)
        if got != want:
            return Drift(shown, number, f"is {got}; ./course sync makes it {want}")
    return Drift(shown, len(have_lines), "differs in its line endings only")


def _line(lines: list[str], number: int) -> str:
    return f"`{lines[number - 1].strip()}`" if number <= len(lines) else "the end of the file"


def lint(root: Path = ROOT) -> list[str]:
    """Every mark, task and fence that is not in order, as `path:line: sentence`."""
    chapters = all_chapters(root)
    uses = list(_uses(root))
    problems: list[str] = []
    sections: dict[str, set[str]] = {}  # file, from the root -> names
    for path in _files_with_marks(root):
        name = str(path.relative_to(root))
        found, bad = _scan(path.read_text(encoding="utf-8"))
        problems += [f"{name}:{line}: {problem}." for line, problem in bad]
        sections[name] = {section.name for section in found}
        problems += _unused(name, found, uses)
    problems += _missing(sections, uses, root)
    for chapter in chapters:
        problems += _lint_chapter(chapter)
    problems += [f"{_name(path, root)}: a starter holds a mark." for path in _marked_starters(root)]
    problems += _long_fences(root)
    return problems


def _name(path: Path, root: Path) -> str:
    return str(path.relative_to(root))


def _files_with_marks(root: Path) -> Iterator[Path]:
    for folder in ("solutions", "tests", "common"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CPP_SUFFIXES and path.is_file():
                yield path


def _marked_starters(root: Path) -> Iterator[Path]:
    for path in sorted((root / "chapters").rglob("*")):
        if path.suffix in CPP_SUFFIXES and any(map(_MARK.fullmatch, path.read_text().splitlines())):
            yield path


def _pages(root: Path) -> Iterator[tuple[Path, list[str]]]:
    for page in sorted((root / "docs").rglob("*.md")):
        yield page, page.read_text(encoding="utf-8").splitlines()


def _uses(root: Path) -> Iterator[_Use]:
    for page, lines in _pages(root):
        for number, line in enumerate(lines, start=1):
            found = re.search(r"([\w./-]+\.(?:hpp|cpp|h)):([a-z][a-z0-9-]*)", line)
            if found and ("8<" in line or _inside_snippet_block(lines, number)):
                yield _Use(page, number, found[1], found[2])


def _inside_snippet_block(lines: list[str], number: int) -> bool:
    """pymdownx also takes a list of files between two lines that are only `--8<--`."""
    fences = sum(bool(re.fullmatch(r"\s*-+8<-+\s*", line)) for line in lines[: number - 1])
    return fences % 2 == 1


def _uses_file(use: _Use, name: str) -> bool:
    return name == use.path or name.endswith(f"/{use.path}")


def _unused(name: str, sections: list[Section], uses: list[_Use]) -> Iterator[str]:
    for section in sections:
        if section.task and name.startswith("solutions/"):
            continue  # its use is its task: _orphans looks for that
        if not any(use.section == section.name and _uses_file(use, name) for use in uses):
            where = f"{name}:{section.first_line}"
            yield f"{where}: section {section.name} is used by no page in docs/."


def _missing(sections: Mapping[str, set[str]], uses: list[_Use], root: Path) -> Iterator[str]:
    for use in uses:
        if not any(
            _uses_file(use, name) and use.section in have for name, have in sections.items()
        ):
            yield (
                f"{_name(use.page, root)}:{use.line}: includes {use.path}:{use.section}, "
                "and there is no such section."
            )


def _lint_chapter(chapter: Chapter) -> Iterator[str]:
    where = relative(chapter.solution)
    if len(chapter.tasks) not in TASKS_A_CHAPTER:
        yield f"{where}/chapter.toml: {len(chapter.tasks)} tasks; a chapter has 3 to 5."
    sources = {
        path: path.read_text(encoding="utf-8")
        for path in _sources(chapter)
        if path.suffix in CPP_SUFFIXES
    }
    for path, text in sources.items():
        if "COURSE_TODO(" in text:
            yield f"{relative(path)}: a solution leaves nothing to do; this holds COURSE_TODO."
        yield from _orphans(chapter, path, text)
        yield from _too_long(path, text)
    lines = sum(map(_task_lines, sources.values()))
    if lines not in TASK_LINES_A_CHAPTER:
        yield f"{where}: the tasks' bodies have {lines} lines in all; a chapter has 20 to 60."


def _orphans(chapter: Chapter, path: Path, text: str) -> Iterator[str]:
    """Task sections that chapter.toml does not know, or knows in another file."""
    files = {section: task.file for task in chapter.tasks for section in task.sections}
    for section in _scan(text)[0]:
        if section.task and files.get(section.name) != path.name:
            yield (
                f"{relative(path)}:{section.first_line}: no task in chapter.toml has the section "
                f"{section.name} in {path.name}."
            )


def _too_long(path: Path, text: str) -> Iterator[str]:
    if _scan(text)[1]:
        return  # its marks are not in order, which has been said
    lines = len(starter_text(text).splitlines())
    if lines > STARTER_LINES_MAX:
        yield f"{relative(path)}: its starter has {lines} lines; {STARTER_LINES_MAX} at most."


def _task_lines(text: str) -> int:
    """Lines that the student writes; blank ones do not count."""
    tasks = (section for section in _scan(text)[0] if section.task)
    return sum(bool(line.strip()) for section in tasks for line in section.body)


def _long_fences(root: Path) -> Iterator[str]:
    for page, lines in _pages(root):
        for language, first, body in _fences(lines):
            if language not in ("cpp", "c++", "cc", "hpp") or len(body) <= FENCE_LINES_MAX:
                continue
            if not any("8<" in line for line in body):
                yield (
                    f"{_name(page, root)}:{first}: a C++ fence of {len(body)} lines; over "
                    f"{FENCE_LINES_MAX}, include a section of a tested file."
                )


def _fences(lines: list[str]) -> Iterator[tuple[str, int, list[str]]]:
    """(language, number of the first line, body) of every fence of a page."""
    opened = ""  # its backticks or tildes; a longer or equal run of them ends the fence
    language, first = "", 0
    for number, line in enumerate(lines, start=1):
        fence = re.match(r"\s*(`{3,}|~{3,})\s*(.*)", line)
        if fence is None:
            continue
        if not opened:
            opened, first = fence[1], number
            found = re.match(r"\{?\s*\.?([\w+]+)", fence[2])
            language = found[1].lower() if found else ""
        elif fence[1].startswith(opened) and not fence[2].strip():
            yield language, first, lines[first : number - 1]
            opened = ""
