# SPDX-License-Identifier: MIT
"""The strict build has nothing to say; links and anchors of the built pages have a target."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

from building import Page, Site

from course_tool.verify.rules_pages import outside_requests


def test_the_strict_build_has_no_complaint(site: Site) -> None:
    assert not site.problems, "\n".join(site.problems)


def test_every_link_within_the_site_has_its_target(site: Site) -> None:
    dead = dead_links(site)
    assert not dead, "\n".join(dead)


def dead_links(site: Site) -> list[str]:
    pages = {page.name: page for page in site.pages()}
    return [problem for page in pages.values() for problem in _dead_links(site, pages, page)]


def _dead_links(site: Site, pages: dict[str, Page], page: Page) -> list[str]:
    dead = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = _target(page.name, unquote(parts.path))
        if not (site.folder / target).is_file():
            dead.append(f"{page.name} links to {link}, but the site has no {target}")
        elif parts.fragment and unquote(parts.fragment) not in pages[target].ids | {"__tabbed"}:
            dead.append(f"{page.name} links to {link}, but {target} has no such anchor")
    return dead


def _target(page: str, path: str) -> str:
    """The file of the site that a link from a page leads to."""
    base = "" if path.startswith("/") else posixpath.dirname(page)
    joined = posixpath.normpath(posixpath.join(base, path.lstrip("/"))) if path else page
    if path.rpartition("/")[2] in {"", ".", ".."} and path:
        joined = posixpath.join(joined, "index.html")
    return posixpath.normpath(joined)


def test_no_file_of_the_site_names_another_host_to_fetch_from(site: Site) -> None:
    files = [*site.folder.rglob("*.html"), *site.folder.rglob("*.css")]
    found = [
        f"{file.relative_to(site.folder)} asks another host for {url}"
        for file in sorted(files)
        for _, url in outside_requests(file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_what_only_the_hooks_read_is_not_published(site: Site) -> None:
    published = {file.relative_to(site.folder).parts[0] for file in site.folder.iterdir()}
    assert not published & {"_hooks", "_theme", "figures", "outputs", "plan.toml"}
    assert not list(Path(site.folder).rglob("*.py"))
