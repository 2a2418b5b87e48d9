# SPDX-License-Identifier: MIT
"""What ./course verify need not look at again: a page that was in order and is what it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from seen import WORK, Seen

SETUP, HOME = "setup/", ""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "setup").mkdir(parents=True)
    (folder / "setup" / "index.html").write_text("how to begin")
    (folder / "index.html").write_text("what it is")
    (folder / "style.css").write_text("body {}")
    (folder / "search_index.json").write_text("{}")
    return folder


def looks(site: Path, address: str, *problems: str, what: str = "on a phone") -> bool:
    """Whether a new run looks at the page, and then finds these problems."""
    looked = []

    def find() -> list[str]:
        looked.append(address)
        return list(problems)

    Seen(site).look(what, address, find)
    return bool(looked)


def test_without_verify_every_page_is_looked_at(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WORK, raising=False)
    assert looks(site, SETUP) and looks(site, SETUP)


def test_a_page_is_looked_at_until_it_is_in_order_and_again_when_it_changes(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WORK, str(tmp_path / "work"))
    for _ in range(2):
        with pytest.raises(AssertionError, match="too pale"):
            looks(site, SETUP, "too pale: 'begin'")
    assert looks(site, SETUP)
    assert not looks(site, SETUP)
    assert looks(site, SETUP, what="on a laptop"), "another way to look"
    assert looks(site, HOME), "another page"
    (site / "setup" / "index.html").write_text("how to start")
    assert looks(site, SETUP) and not looks(site, HOME)
    (site / "search_index.json").write_text("{1}")
    assert not looks(site, SETUP), "no page shows the index of all"
    (site / "style.css").write_text("body { color: red }")
    assert looks(site, SETUP) and looks(site, HOME)
