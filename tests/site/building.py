# SPDX-License-Identifier: MIT
"""Builds the site as a reader gets it, and serves the result on 127.0.0.1."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from course_tool.verify.suites import site_problems

BUILD_TIMEOUT_S = 600


@dataclass(frozen=True)
class Page:
    """What a built page holds that others can point at, and what it points at itself."""

    name: str  # "chapters/01-blocking-echo/index.html"
    links: tuple[str, ...]
    ids: frozenset[str]


@dataclass(frozen=True)
class Site:
    folder: Path
    problems: tuple[str, ...]  # what MkDocs and our hooks complained about

    def pages(self) -> list[Page]:
        return [_read_page(self.folder, file) for file in sorted(self.folder.rglob("*.html"))]


def build_site(
    root: Path, folder: Path, cwd: Path, builder: str = "mkdocs", clone_url: str = ""
) -> Site:
    """`mkdocs build --strict`; its complaints are returned, not raised."""
    finished = subprocess.run(
        [sys.executable, "-m", builder, "build", "--strict"]
        + ["-f", str(root / "mkdocs.yml"), "-d", str(folder)],
        cwd=cwd,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "COURSE_CLONE_URL": clone_url},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
    )
    said = finished.stdout + finished.stderr
    problems = site_problems(said)
    if finished.returncode != 0 and not problems:
        problems = [f"{builder} ended with {finished.returncode} and said: {said[-2000:]}"]
    return Site(folder, tuple(problems))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.ids.add(value)
            if (tag, name) in {("a", "href"), ("link", "href"), ("script", "src"), ("img", "src")}:
                self.links.append(value or "")


def _read_page(folder: Path, file: Path) -> Page:
    reader = _Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    name = file.relative_to(folder).as_posix()
    return Page(name, tuple(reader.links), frozenset(reader.ids))


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass  # pytest's report is the log


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serves a folder on a port of the kernel's choice until the block ends."""
    handler = partial(_QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join(timeout=10)
