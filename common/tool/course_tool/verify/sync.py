# SPDX-License-Identifier: MIT
"""chapters/ is what the generator makes of solutions/, and every mark has its pair and its use.

A clone in which a student works differs there by intent, and looks like an author's slip: a filled
task is a filled task. So the item fails, says what to do in either case, and stands alone: all
other items make their own starters from solutions/. --student turns the failure into a note.
"""

from __future__ import annotations

from course_tool import marks
from course_tool.chapters import all_chapters
from course_tool.verify.outcome import Context, Outcome

WHAT_TO_DO = (
    "If this is your own work on the chapter, all is well: `./course verify --student` counts it "
    "as yours. If you maintain the course: change solutions/, then run `./course sync`."
)


def prove_sync(context: Context) -> Outcome:
    outcome = Outcome("files")
    drifts = marks.sync_all(check=True)
    edited = [drift for drift in drifts if drift.path.parts[0] == "chapters"]
    stale = [drift for drift in drifts if drift not in edited]
    outcome.fail_all(f"{drift}. Run `./course sync`." for drift in stale)
    if context.options.student:
        if edited:
            outcome.notes.append(f"left out, as your work: {_folders(edited)}")
    else:
        outcome.fail_all(f"{drift}. {WHAT_TO_DO}" for drift in edited)
    generated = sum(len(marks.starter_files(chapter)) for chapter in all_chapters()) + 1
    outcome.proved += max(0, generated - len(drifts))
    return outcome


def _folders(drifts: list[marks.Drift]) -> str:
    files = sorted(str(drift.path) for drift in drifts)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more


def prove_marks(context: Context) -> Outcome:
    outcome = Outcome("sections")
    outcome.fail_all(marks.lint())
    for chapter in all_chapters():
        for source in sorted(chapter.solution.iterdir()):
            if source.suffix in marks.CPP_SUFFIXES and not outcome.failures:
                outcome.proved += len(marks.parse(source))
    return outcome
