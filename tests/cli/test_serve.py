# SPDX-License-Identifier: MIT
"""./course serve: the site on this machine only, and a port that is taken."""

from __future__ import annotations

import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from live_course import LiveCourse, flat, wait_until


@pytest.fixture
def site(live: LiveCourse) -> LiveCourse:
    (live.root / "mkdocs.yml").write_text("site_name: Live\ntheme:\n  name: mkdocs\n")
    (live.root / "docs" / "index.md").write_text("# The first page\n")
    (live.root / "docs" / "chapters" / "01-first.md").write_text("# The first chapter\n")
    return live


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def page(port: int, path: str = "/") -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(
    site: LiveCourse, stop: signal.Signals, tmp_path: Path
) -> None:
    port = free_port()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tool = site.start("serve", "--port", str(port), env={"TMPDIR": str(scratch)})
    wait_until(lambda: page(port), "the site")
    assert "The first page" in (page(port) or "")
    assert "The first chapter" in (page(port, "/chapters/01-first/") or "")
    tool.send_signal(stop)
    out, err = tool.communicate(timeout=60)
    assert tool.returncode == 128 + stop
    assert f"http://127.0.0.1:{port}" in out
    assert err.count("interrupted") == 1 and "Traceback" not in err
    assert page(port) is None
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("solution", [[], ["--solution"]])
def test_a_chapters_own_server_serves_the_site(site: LiveCourse, solution: list[str]) -> None:
    site.take_the_contract_away()
    port = free_port()
    tool = site.start("serve", "--by", "01", "--port", str(port), *solution)
    wait_until(lambda: page(port), "the site")
    assert "The first chapter" in (page(port, "/chapters/01-first/") or "")
    tool.send_signal(signal.SIGINT)
    out, err = tool.communicate(timeout=60)
    assert tool.returncode == 0, err
    assert f"The course is on http://127.0.0.1:{port}" in out
    assert f"listening on 127.0.0.1:{port}\n" in out and "stopped in good order" in out
    built = site.root / "build" / ("reference" if solution else "student")
    assert (built / "bin" / "01-server").is_file()
    assert page(port) is None


def test_an_echo_server_serves_no_pages(site: LiveCourse) -> None:
    site.refused("serve", "--by", "01", said="01-server echoes what clients send, and serves no")
    site.refused("serve", "--by", "99", said="There is no chapter 99")
    site.refused("serve", "--solution", said="name a chapter with --by", code=2)


def test_a_port_in_use_is_said_with_what_to_do(site: LiveCourse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = site.run("serve", "--port", str(port))
        site.take_the_contract_away()
        site.refused("serve", "--by", "1", "--port", str(port), said=f"Port {port} is in use")
    assert done.code == 1
    assert f"Port {port} is in use" in done.err
    assert f"./course serve --port {port + 1}" in done.err


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_bad_ports(site: LiveCourse, port: str) -> None:
    site.refused("serve", "--port", port, said="--port", code=2)


def test_a_site_that_cannot_be_made_is_said(site: LiveCourse) -> None:
    (site.root / "mkdocs.yml").write_text("site_name: Live\ntheme: {name: nowhere}\n")
    done = site.run("serve", "--port", str(free_port()))
    assert done.code == 1
    assert "nowhere" in flat(done.err)
    site.take_the_contract_away()
    by = ("serve", "--by", "01", "--port", str(free_port()))
    site.refused(*by, said=("exited with 1. The end of its output", "nowhere"))


def test_without_the_sites_configuration_it_says_so(live: LiveCourse) -> None:
    live.refused("serve", said="mkdocs.yml is missing")
