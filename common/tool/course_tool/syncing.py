# SPDX-License-Identifier: MIT
"""`./course sync`: chapters/ from solutions/, and what that changed."""

from __future__ import annotations

from course_tool import console, marks


def sync(*, check: bool) -> int:
    """Returns 1 if `check` found something to do."""
    drifts = marks.sync_all(check=check)
    for drift in drifts:
        console.out.print(str(drift))
    if not drifts:
        console.out.print("chapters/ is what solutions/ makes of it.")
    elif check:
        console.out.print("`./course sync` makes these right.")
    else:
        console.out.print(f"{len(drifts)} files made again.")
    return 1 if check and drifts else 0
