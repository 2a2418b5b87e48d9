# SPDX-License-Identifier: MIT
"""Pages that `./course verify` has looked at before, and that are byte for byte as they were."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from course_tool.files import digest
from course_tool.verify.memory import Memory, of_files
from course_tool.verify.outcome import Context, VerifyOptions

# Set by verify: where it keeps what it knows. Without it every page is looked at.
WORK = "COURSE_VERIFY_WORK"


class Seen:
    """Looks at a page of the site unless that is known to end well."""

    def __init__(self, site: Path) -> None:
        self._site = site
        self._memory: Memory | None = None
        if os.environ.get(WORK):
            context = Context(VerifyOptions(), Path(os.environ[WORK]), lambda text: None)
            common = [file for file in sorted(site.rglob("*")) if _is_common(file)]
            assets = digest(*(_named(site, file) for file in common))
            lookers = of_files("tests/site/", "common/tool/", "docs/traces/")
            self._memory = Memory(context, "pages-seen", assets, lookers)

    def look(self, what: str, address: str, find_problems: Callable[[], list[str]]) -> None:
        """Fails with the problems that are found of a page, such as "setup/"."""
        page = self._site / address / "index.html"
        content = what, digest(_named(self._site, page))
        if self._memory and self._memory.holds(*content):
            return
        problems = find_problems()
        assert not problems, "\n".join(problems)
        if self._memory:
            self._memory.remember(*content)


def _is_common(file: Path) -> bool:
    """Whether any page may load it: styles, scripts, pictures. The search's index holds all text
    of all pages, and shows itself only to those who search."""
    return file.is_file() and file.suffix not in (".html", ".xml", ".gz", ".json")


def _named(site: Path, file: Path) -> bytes:
    return str(file.relative_to(site)).encode() + b"\0" + digest(file.read_bytes()).encode()
