# SPDX-License-Identifier: MIT
"""What MkDocs calls while it builds the site; the work is in the modules beside this one.

README.md in this folder says what a page may write. A problem is a warning that names the page,
and `mkdocs build --strict` fails on it.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "common" / "tool"))  # course_tool: the chapters, the marks, the commands

import chapter_page  # noqa: E402
import figures  # noqa: E402
import includes  # noqa: E402
import ladder  # noqa: E402
import markers  # noqa: E402
import source_pages  # noqa: E402
import traces  # noqa: E402
from course_tool.chapters import all_chapters  # noqa: E402

log = logging.getLogger("mkdocs.hooks.course")
sources = source_pages.SourcePages(ROOT)


def on_config(config: Any) -> Any:
    """Lists the chapters in the navigation: whoever adds one writes its page and nothing else."""
    chapters = [chapter for chapter in all_chapters(ROOT) if has_page(chapter)]
    for section in config.nav:
        if "Chapters" in section:
            section["Chapters"] = [f"chapters/{chapter.folder}.md" for chapter in chapters]
    config.extra["ring"] = ladder.emblem(len(chapters))
    return config


def has_page(chapter: Any) -> bool:
    if chapter.page.is_file():
        return True
    log.warning("Chapter %s has no page: write %s.", chapter.number, chapter.page_name)
    return False


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each file that a page shows a part of."""
    sources.add_to(files, config)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Replaces the markers, and checks and completes the headings of a chapter's page."""
    name = page.file.src_uri
    problems: list[str] = []
    chapter = chapter_page.chapter_of(name)
    if chapter is not None:
        problems += chapter_page.check(markdown, chapter)
        page.meta["subtitle"] = f"{chapter.minutes.total} min"
        page.meta.setdefault("description", f"Chapter {chapter.number}: {chapter.idea}.")
        markdown = chapter_page.complete_headings(markdown, chapter)
    markdown = includes.check(markdown, ROOT, problems)
    markdown = source_pages.name_sections(markdown, problems)
    markdown = markers.expand(markdown, chapter, config.extra, problems)
    for problem in problems:
        log.warning("docs/%s: %s", name, problem)
    return markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Puts the drawings in place, as elements of the page; and links each block to its file."""
    problems: list[str] = []
    html = traces.inline(figures.inline(html, problems), problems)
    html = sources.link(html, page.url)
    html = sources.fill(html, page.file.src_uri)
    for problem in problems:
        log.warning("docs/%s: %s", page.file.src_uri, problem)
    return html
