# SPDX-License-Identifier: MIT
"""The tool's entry: turns errors into a sentence, and every way to stop it into a clean end."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from types import FrameType

from course_tool import processes
from course_tool.errors import CourseError

LATER_S = 0.01
SAME_PRESS_S = 1.0  # whoever presses Ctrl-C twice at once means it once, and cleaning up goes on

WHAT_TO_DO = {
    errno.ENOSPC: "Make room, and run it again.",
    errno.EDQUOT: "Make room, and run it again.",
    errno.EROFS: "The course needs to write in its clone.",
    errno.EACCES: "The course needs to read and write in its clone.",
}

_stopped_by = 0
_stopped_at_s = 0.0


def _is_in_destructor(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def _stop(number: int, frame: FrameType | None) -> None:
    global _stopped_by, _stopped_at_s  # a signal handler has nowhere else to put it
    if _is_in_destructor(frame):  # what is raised in there is dropped, and the program goes on
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, LATER_S)
        return
    now_s = time.monotonic()
    if _stopped_by and now_s - _stopped_at_s < SAME_PRESS_S:
        return
    _stopped_by, _stopped_at_s = number, now_s
    raise KeyboardInterrupt


def main() -> int:
    """Runs the command line; returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        from course_tool.builds import report_options
        from course_tool.cli import app
        from course_tool.console import err

        os.environ.update(report_options())
        code = _run(app, err)
        if _stopped_by and code not in (0, 1, 2):
            err.print("course: interrupted")
            code = 128 + _stopped_by
        return code
    except KeyboardInterrupt:
        print("course: interrupted", file=sys.stderr)
        return 128 + _stopped_by
    finally:
        processes.kill_all()


def _run(app, err) -> int:  # type: ignore[no-untyped-def]
    try:
        code = _run_app(app)
        if sys.stdout:
            sys.stdout.flush()  # here, where a failure can still be said
        return code
    except CourseError as error:
        err.print(f"course: {error}")
    except BrokenPipeError:  # `| head -1` has seen enough
        _flush_or_drop()
    except OSError as error:
        if error.errno not in WHAT_TO_DO:
            raise
        what = f"{error.filename}: " if error.filename else ""
        err.print(f"course: {what}{error.strerror}. {WHAT_TO_DO[error.errno]}")
        _flush_or_drop()
    return 1


def _run_app(app) -> int:  # type: ignore[no-untyped-def]
    try:
        app(prog_name="./course")
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


def _flush_or_drop() -> None:
    """What has nowhere to go is dropped: the interpreter would complain of it at its end."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
