# SPDX-License-Identifier: MIT
"""`./course reset`: back to the starter, with everything that was there kept aside first.

The starter is made from solutions/, so this works without git. Files that the starter does not
have stay where they are. When something fails midway, every file is put back as it was.
"""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from course_tool import console, marks, paths, state
from course_tool.chapters import Chapter, Task, find_chapter
from course_tool.errors import CourseError
from course_tool.files import write_whole
from course_tool.groups import contract_key
from course_tool.paths import relative
from course_tool.testing import find_task_of


@dataclass(frozen=True)
class Reset:
    restored: tuple[str, ...]  # names of the files that were written; empty: nothing to do
    kept: Path | None  # where all that was there is; None if nothing was there


def reset_and_show(name: str, task: str | None) -> None:
    """Resets a chapter, or one task of it, and says what happened to which file."""
    chapter = find_chapter(name)
    if task is None:
        what = f"chapters/{chapter.folder}/"
        done = reset_chapter(chapter)
    else:
        found = find_task_of(chapter, task)
        what = f"Task {found.id}"
        done = reset_task(chapter, found)
    if not done.restored:
        console.out.print(f"{what} is at its starter already; nothing was changed.")
        return
    console.out.print(f"{what} is back at its starter: {', '.join(done.restored)}.")
    if done.kept:
        console.out.print(f"What was there is kept in {relative(done.kept)}/. To bring it back:")
        console.out.print(f"  {restore_command(chapter, done.kept)}")


def restore_command(chapter: Chapter, kept: Path) -> str:
    """What a student types to undo a reset, from wherever they are."""
    folder = Path(os.path.relpath(kept))
    into = Path(os.path.relpath(chapter.starter))
    return f"cp -r {shlex.quote(f'{folder}/.')} {shlex.quote(f'{into}/')}"


def reset_chapter(chapter: Chapter, state_folder: Path = paths.STATE) -> Reset:
    """Makes every file of the starter what the generator makes."""
    done = _replace(chapter, marks.starter_files(chapter), state_folder)
    if done.restored:
        forgotten = [contract_key(chapter), *(task.id for task in chapter.tasks)]
        with state.changing(state_folder) as remembered:
            for key in forgotten:
                remembered.records.pop(key, None)
    return done


def reset_task(chapter: Chapter, task: Task, state_folder: Path = paths.STATE) -> Reset:
    """Brings back one task's COURSE_TODO lines, and leaves the rest of the file alone."""
    file = chapter.starter / task.file
    starter = marks.starter_files(chapter)[task.file].decode("utf-8")
    if not file.is_file():
        raise CourseError(
            f"{relative(file)} is missing. `./course reset {chapter.number}` brings it back."
        )
    yours = file.read_text(encoding="utf-8", errors="surrogateescape")
    text = with_task_undone(yours, starter, task)
    content = text.encode("utf-8", errors="surrogateescape")
    done = _replace(chapter, {task.file: content}, state_folder)
    if done.restored:
        with state.changing(state_folder) as remembered:
            remembered.records.pop(task.id, None)
    return done


def with_task_undone(yours: str, starter: str, task: Task) -> str:
    """Your text with the starter's in those places that differ around the task's COURSE_TODO."""
    ours, theirs = yours.splitlines(keepends=True), starter.splitlines(keepends=True)
    result: list[str] = []
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, first, last, their_first, their_last in matcher.get_opcodes():
        from_starter = theirs[their_first:their_last]
        todos = [line for line in from_starter if "COURSE_TODO(" in line]
        own = [line for line in todos if f'"{task.id}"' in line]
        if kind == "equal" or not own:
            result += ours[first:last]
        elif len(own) == len(todos):
            result += from_starter
        else:
            raise CourseError(
                f"{task.file} is too far from its starter to tell {task.id} from its neighbors. "
                f"`./course reset {task.id.partition('.')[0]}` resets the whole chapter."
            )
    return "".join(result)


def _replace(chapter: Chapter, wanted: dict[str, bytes], state_folder: Path) -> Reset:
    changed = {
        name: content for name, content in wanted.items() if _differs(chapter, name, content)
    }
    if not changed:
        return Reset((), None)
    if chapter.starter.exists() and not chapter.starter.is_dir():
        raise CourseError(
            f"chapters/{chapter.folder} is a file, and a chapter is a folder. Move it away, and "
            "run this again."
        )
    try:
        kept = _keep_aside(chapter, state_folder / "kept")
        _write_all(chapter.starter, changed)
    except OSError as error:
        raise CourseError(
            f"Could not reset chapters/{chapter.folder}/: {_reason(error)}. Your files are as they "
            "were."
        ) from error
    return Reset(tuple(changed), kept)


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # copytree's: a list of (from, to, why), and no errno
        return str(error.args[0][0][2])
    return f"{error.strerror} ({error.filename2 or error.filename})"


def _differs(chapter: Chapter, name: str, content: bytes) -> bool:
    file = chapter.starter / name
    return not file.is_file() or file.read_bytes() != content


def _keep_aside(chapter: Chapter, folder: Path) -> Path | None:
    """Copies the whole folder, extra files too; under its final name only when it is whole."""
    if not chapter.starter.is_dir() or not any(chapter.starter.iterdir()):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    kept = _free_name(folder / f"{chapter.folder}-{time.strftime('%Y%m%d-%H%M%S')}")
    unfinished = kept.with_name(f".{kept.name}.unfinished")
    try:
        shutil.copytree(chapter.starter, unfinished, symlinks=True)
        unfinished.rename(kept)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return kept


def _free_name(wanted: Path) -> Path:
    number = 1
    free = wanted
    while free.exists():
        number += 1
        free = wanted.with_name(f"{wanted.name}-{number}")
    return free


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    """All or none: each file is replaced whole, and a failure puts back those before it."""
    folder.mkdir(parents=True, exist_ok=True)
    before = {name: _content(folder / name) for name in files}
    done: list[str] = []
    try:
        for name, content in files.items():
            write_whole(folder / name, content)
            done.append(name)
    except BaseException:  # Ctrl-C as well
        for name in done:
            content_before = before[name]
            if content_before is None:
                (folder / name).unlink(missing_ok=True)
            else:
                write_whole(folder / name, content_before)
        raise


def _content(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
