# SPDX-License-Identifier: MIT
"""What the course needs from the system, how it asks, and how it gets Catch2."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import call
from course_tool import apt, catch2, packages
from course_tool.catch2 import Mirror, Release, find_mirror
from course_tool.errors import CourseError
from course_tool.packages import Need
from course_tool.paths import ROOT

Scripts = Callable[[str, str], Path]


def need(name: str, met: bool = False, purpose: str = "start", package: str = "") -> Need:
    return Need(name, f"why {name}", purpose, lambda: met, lambda manager: (package or name,))


def needs(monkeypatch: pytest.MonkeyPatch, *all_of_them: Need) -> None:
    monkeypatch.setattr(packages, "all_needs", lambda: list(all_of_them))
    monkeypatch.setattr(catch2, "ensure", lambda: None)


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def apt_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log = tmp_path / "state" / "apt.log"
    monkeypatch.setattr(apt, "LOG", log)
    return log


# Which need is for which command


def test_every_need_has_a_reason_and_a_package_for_every_manager() -> None:
    found = packages.all_needs()
    assert {each.purpose for each in found} == {"start", "bench", "fuzz", "verify"}
    for each in found:
        assert each.why
        for manager in apt.MANAGERS:
            assert all(each.packages(manager)), f"{each.name} with {manager}"
            assert each.packages(manager), f"{each.name} with {manager}"


def test_a_command_needs_what_is_its_own_and_what_start_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    purposes = ("start", "bench", "fuzz", "verify")
    needs(monkeypatch, need("met", met=True), *(need(each, purpose=each) for each in purposes))
    assert [each.name for each in packages.missing("start")] == ["start"]
    assert [each.name for each in packages.missing("bench")] == ["start", "bench"]
    assert [each.name for each in packages.missing("fuzz")] == ["start", "fuzz"]
    assert [each.name for each in packages.missing("verify")] == ["start", "bench"]
    everything = [each.name for each in packages.missing("verify --all")]
    assert everything == ["start", "bench", "fuzz", "verify"]


def test_what_this_machine_builds_with_counts_as_met() -> None:
    met = {each.name: each.met() for each in packages.all_needs() if each.purpose == "start"}
    assert all(met.values()), met


def test_an_old_cmake_is_not_met_and_a_newer_one_of_your_own_is(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cmake,) = (each for each in packages.all_needs() if each.name.startswith("CMake"))
    for version, met in (("3.24.4", False), ("3.25.0", True), ("4.1.0-rc1", True)):
        folder = scripts("cmake", f"#!/bin/sh\necho 'cmake version {version}'\n")
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        assert cmake.met() is met, version


def test_another_distribution_gets_the_exact_command(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = [each for each in packages.all_needs() if each.name in ("Ninja", "fmt")]
    needs(monkeypatch, *(Need(n.name, n.why, "start", lambda: False, n.packages) for n in lacking))
    for manager, command in (
        ("dnf", "dnf install -y ninja-build fmt-devel"),
        ("pacman", "pacman -S --needed ninja fmt"),
        ("zypper", "zypper install -y ninja fmt-devel"),
        ("apk", "apk add ninja-build fmt-dev"),
    ):
        monkeypatch.setattr(apt, "manager", lambda manager=manager: manager)
        with pytest.raises(CourseError) as caught:
            packages.ensure("start")
        assert command in str(caught.value)
        assert "run ./course start again" in str(caught.value)


def test_a_system_we_do_not_know_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    needs(monkeypatch, need("thing"))
    monkeypatch.setattr(apt, "manager", lambda: None)
    with pytest.raises(CourseError, match="by your system's means"):
        packages.ensure("start")
    assert "  thing: why thing\n" in capfd.readouterr().err


def test_nothing_is_installed_where_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    needs(monkeypatch, need("thing", met=True))
    monkeypatch.setattr(apt, "install", lambda *_: pytest.fail("it was called"))
    packages.ensure("start")


def test_what_is_still_not_usable_after_the_install_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs(monkeypatch, need("thing", package="libthing-dev"))
    monkeypatch.setattr(apt, "manager", lambda: "apt-get")
    monkeypatch.setattr(apt, "has_lists", lambda: True)
    monkeypatch.setattr(apt, "may_install", lambda names, yes: True)
    installed: list[list[str]] = []
    monkeypatch.setattr(apt, "install", lambda names, note: installed.append(names))
    with pytest.raises(CourseError, match=r"(?s)still not usable.*thing \(why thing\)"):
        packages.ensure("start")
    assert installed == [["libthing-dev"]]


# May we?


def test_root_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(apt, "has_terminal", lambda: pytest.fail("it was asked"))
    assert apt.may_install(["x"], yes=False)
    assert apt.command_for(["x"]) == "apt-get install -y --no-install-recommends x"


@pytest.mark.usefixtures("not_root")
def test_without_sudo_the_command_is_said(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scripts("other", "")))
    with pytest.raises(CourseError, match="There is no sudo here.*apt-get install .* x y$"):
        apt.may_install(["x", "y"], yes=True)


@pytest.mark.usefixtures("not_root")
def test_without_a_terminal_nobody_is_asked(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "has_terminal", lambda: False)
    monkeypatch.setenv("PATH", str(scripts("sudo", "#!/bin/sh\nexit 1\n")))
    with pytest.raises(CourseError, match=r"(?s)no terminal\. .*sudo apt-get install .*--yes"):
        apt.may_install(["x"], yes=False)
    with pytest.raises(CourseError, match="sudo wants a password, and there is no terminal. Run: "):
        apt.may_install(["x"], yes=True)
    scripts("sudo", "#!/bin/sh\nexit 0\n")
    assert apt.may_install(["x"], yes=True)
    monkeypatch.setenv("CI", "true")
    assert apt.may_install(["x"], yes=False)


@pytest.mark.usefixtures("not_root")
@pytest.mark.parametrize(("answer", "may"), [("\n", True), ("y\n", True), ("n\n", False)])
def test_on_a_terminal_the_reader_is_asked_once(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch, answer: str, may: bool
) -> None:
    monkeypatch.setattr(apt, "has_terminal", lambda: True)
    monkeypatch.setattr(apt, "unlock_sudo", lambda: None)
    monkeypatch.setenv("PATH", str(scripts("sudo", "#!/bin/sh\n")))
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert apt.may_install(["x"], yes=False) is may
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert apt.may_install(["x"], yes=True), "--yes: no question"


# apt-get


@pytest.fixture
def fake_apt(scripts: Scripts, monkeypatch: pytest.MonkeyPatch, apt_log: Path) -> Callable[[], str]:
    """An apt that writes down what is asked of it; it knows `known`, and `fresh` once updated."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    calls = apt_log.parent.with_name("calls")
    folder = scripts(
        "apt-get",
        f'#!/bin/sh\necho "$*" >> "{calls}"\n'
        'case "$*" in *unfetchable*) echo "E: Failed to fetch it" >&2; exit 100 ;; esac\n',
    )
    scripts("dpkg", f'#!/bin/sh\n[ "$1" = --audit ] || echo "dpkg $*" >> "{calls}"\n')
    scripts(
        "apt-cache",
        "#!/bin/sh\n"
        f'case "$2" in fresh) grep -q update "{calls}" 2>/dev/null || exit 0 ;; esac\n'
        'echo "$2:"; echo "  Candidate: 1.0-1"\n',
    )
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: calls.read_text() if calls.exists() else ""


def test_a_known_package_is_installed_at_once(fake_apt: Callable[[], str]) -> None:
    apt.install(["known"], lambda line: None)
    assert fake_apt().startswith("install -y --no-install-recommends ")
    assert fake_apt().endswith(" known\n")
    assert "update" not in fake_apt()


def test_an_unknown_package_brings_fresh_lists_first(fake_apt: Callable[[], str]) -> None:
    apt.install(["known", "fresh"], lambda line: None)
    assert [call.split()[0] for call in fake_apt().splitlines()] == ["update", "install"]


def test_an_install_that_fails_says_what_apt_said_and_where_the_rest_is(
    fake_apt: Callable[[], str], apt_log: Path
) -> None:
    with pytest.raises(CourseError) as caught:
        apt.install(["unfetchable"], lambda line: None)
    assert "apt-get could not install unfetchable. It said:\n  E: Failed to fetch it\n" in str(
        caught.value
    )
    assert "By hand: apt-get install" in str(caught.value)
    assert "Failed to fetch it" in apt_log.read_text()


def test_lists_that_could_not_be_fetched_are_named_first(
    fake_apt: Callable[[], str], scripts: Scripts
) -> None:
    scripts(
        "apt-get",
        '#!/bin/sh\ncase "$*" in *install*) echo "E: no candidate" >&2; exit 100 ;; esac\n'
        'echo "W: Failed to fetch the lists" >&2\n',
    )
    with pytest.raises(CourseError, match=r"said:\n  W: Failed to fetch the lists\n  E: no cand"):
        apt.install(["fresh"], lambda line: None)


def test_a_dpkg_that_was_interrupted_is_finished_first(
    fake_apt: Callable[[], str], scripts: Scripts
) -> None:
    calls_before = fake_apt()
    folder = scripts("x", "")
    text = (folder / "dpkg").read_text()
    scripts("dpkg", text.replace("#!/bin/sh\n", "#!/bin/sh\n[ $1 != --audit ] || echo half\n"))
    apt.install(["known"], lambda line: None)
    assert fake_apt().removeprefix(calls_before).startswith("dpkg --configure -a\ninstall ")


# Where this machine gets its packages from

DEB822 = """\
# A comment
Types: deb
URIs: http://first.example/security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/security.gpg

Types: deb
# URIs: http://old.example/debian
URIs: http://mirror.example/debian
  http://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg
"""


def settings(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        file = f"{stem}.{suffix}"
        folder = tmp_path if file == "sources.list" else tmp_path / "sources.list.d"
        (folder / file).write_text(text)
    return tmp_path


DEBIAN = Mirror("http://mirror.example/debian", "/usr/share/keyrings/debian.gpg")


def test_the_mirror_is_found_in_the_deb822_format(tmp_path: Path) -> None:
    assert find_mirror(settings(tmp_path, debian_sources=DEB822), "bookworm") == DEBIAN


@pytest.mark.parametrize(
    "line",
    [
        "deb [arch=amd64 signed-by={key}] http://mirror.example/debian bookworm main contrib",
        "  deb-src [signed-by={key}]\thttp://mirror.example/debian bookworm contrib main # ours",
    ],
)
def test_the_mirror_is_found_in_the_one_line_format(tmp_path: Path, line: str) -> None:
    before = (
        "#deb http://old.example/debian bookworm main\n"
        "deb cdrom:[Debian 12]/ bookworm main\n"
        "deb http://first.example/security bookworm-security main\n"
        "deb http://extra.example/debian bookworm contrib\n"
    )
    text = before + line.format(key=DEBIAN.signed_by) + "\n"
    assert find_mirror(settings(tmp_path, sources_list=text), "bookworm") == DEBIAN


def test_a_mirror_without_a_key_of_its_own_trusts_what_apt_trusts(tmp_path: Path) -> None:
    found = find_mirror(
        settings(tmp_path, a_list="deb http://a.example/d bookworm main"), "bookworm"
    )
    assert found == Mirror("http://a.example/d", "")


@pytest.mark.parametrize(
    "stanza",
    [
        DEB822.replace("Types: deb\n", "Types: deb\nEnabled: no\n"),
        DEB822.replace("bookworm bookworm-updates", "trixie"),
        DEB822.replace("main contrib", "contrib"),
        "",
    ],
)
def test_no_mirror_is_none(tmp_path: Path, stanza: str) -> None:
    assert find_mirror(settings(tmp_path, debian_sources=stanza), "bookworm") is None


def test_apt_is_given_settings_of_its_own(tmp_path: Path) -> None:
    options = catch2._private_apt(DEBIAN, "trixie", tmp_path)
    words = dict(word.split("=", 1) for word in options if word != "-o")
    for key in ("Dir::State::Lists", "Dir::Cache", "Dir::Etc::SourceList"):
        assert words[key].startswith(str(tmp_path)), "the system's own are left alone"
    assert words["Dir::Etc::SourceParts"] == "/dev/null"
    assert Path(words["Dir::Etc::SourceList"]).read_text() == (
        "Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian.gpg\n"
    )


# Catch2


def test_the_pinned_release_is_the_one_that_cmake_pins() -> None:
    release = catch2.pinned_release()
    assert release.version.startswith("3.")
    assert release.url.startswith("https://")
    assert len(release.sha256) == 64


@pytest.mark.parametrize(
    ("reached", "reason"), [(False, "[Cc]ould ?n.t connect"), (True, "what came is another file")]
)
def test_plain_cmake_without_a_network_names_course_start(
    tmp_path: Path, reached: bool, reason: str
) -> None:
    portal = tmp_path / "portal.html"
    portal.write_text("<p>Log in first.")
    url = portal.as_uri() if reached else "http://127.0.0.1:1/catchorg/Catch2/v3.tar.gz"
    dependencies = (ROOT / "cmake" / "dependencies.cmake").read_text()
    lists = dependencies.replace(catch2.pinned_release().url, url)
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(c CXX)\n{lists}"
    )
    without = "-DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON"
    done = call("cmake", "-B", "build", without, cwd=tmp_path, timeout=60)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert re.search(
        f"Catch2 3.3 or newer is missing, and it could not be fetched from {url}: {reason}", said
    )
    assert "Run `./course start`" in said and "apt install catch2" in said
    assert said.count("CMake Error") == 1


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A source archive that builds and installs as Catch2 does, in no time."""
    lists = (
        "cmake_minimum_required(VERSION 3.25)\nproject(c NONE)\n"
        "file(WRITE ${CMAKE_BINARY_DIR}/x.cmake ok)\n"
        "install(FILES ${CMAKE_BINARY_DIR}/x.cmake DESTINATION lib)\n"
    )
    path = tmp_path / "source.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        entry = tarfile.TarInfo("Catch2-9/CMakeLists.txt")
        entry.size = len(lists)
        tar.addfile(entry, io.BytesIO(lists.encode()))
    return path


@pytest.fixture
def wanted(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Catch2, in a folder of its own; returns where it will be installed."""
    deps = tmp_path / "a clone" / ".deps"
    deps.parent.mkdir()
    monkeypatch.setattr(catch2, "DEPS", deps)
    monkeypatch.setattr(catch2, "INSTALLED", deps / "catch2")
    monkeypatch.setattr(catch2, "LOG", tmp_path / "catch2.log")
    monkeypatch.setattr(catch2, "_distribution_has_it", lambda: False)
    pin(monkeypatch, archive.as_uri(), archive)
    return deps / "catch2"


def pin(monkeypatch: pytest.MonkeyPatch, url: str, archive: Path) -> None:
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setattr(catch2, "pinned_release", lambda: Release(url, sha256))


def fake_apt_source(archive: Path, scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt-get whose `source` leaves this archive in the current folder."""
    text = f'#!/bin/sh\ncase "$*" in *source*) cp "{archive}" catch2_9.orig.tar.gz ;; esac\n'
    folder = scripts("apt-get", text)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(catch2, "this_suite", lambda: "bookworm")
    monkeypatch.setattr(catch2, "find_mirror", lambda settings, codename: DEBIAN)


def no_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch2, "this_suite", lambda: "elsewhere")


def test_catch2_comes_through_apt_where_the_next_suite_has_it(
    wanted: Path, archive: Path, scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_apt_source(archive, scripts, monkeypatch)
    pin(monkeypatch, "file:///nowhere/v9.tar.gz", archive)
    catch2.ensure()
    assert (wanted / "lib" / "x.cmake").read_text() == "ok"
    assert sorted(each.name for each in wanted.parent.iterdir()) == ["catch2", "lock"]


def test_another_version_in_the_next_suite_leads_to_the_upstream_release(
    wanted: Path, tmp_path: Path, scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.tar.gz"
    other.write_bytes(b"another version")
    fake_apt_source(other, scripts, monkeypatch)
    catch2.ensure()
    assert (wanted / "lib" / "x.cmake").is_file()


def test_without_network_both_ways_are_named_and_nothing_is_left(
    wanted: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_apt(monkeypatch)
    pin(monkeypatch, "http://127.0.0.1:9/v9.9.tar.gz", archive)
    with pytest.raises(CourseError) as caught:
        catch2.ensure()
    said = str(caught.value)
    assert said.startswith(
        "Could not get the source of Catch2 9.9:\n  apt: no later suite is known"
    )
    assert "http://127.0.0.1:9/v9.9.tar.gz: " in said
    assert "Check the network" in said
    assert [each.name for each in wanted.parent.iterdir()] == ["lock"]


def test_an_archive_that_is_not_the_pinned_one_is_not_built(
    wanted: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_apt(monkeypatch)
    archive.write_bytes(archive.read_bytes() + b"x")
    with pytest.raises(CourseError, match="is not the release that the course pins: its SHA-256"):
        catch2.ensure()
    assert not wanted.exists()


def test_what_is_built_is_kept_until_the_pin_changes(
    wanted: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_apt(monkeypatch)
    catch2.ensure()
    (wanted / "mine").write_text("still there")
    catch2.ensure()
    assert (wanted / "mine").exists()
    archive.write_bytes(archive.read_bytes() + b"\0" * 512)
    pin(monkeypatch, archive.as_uri(), archive)
    catch2.ensure()
    assert not (wanted / "mine").exists()
    assert (wanted / "lib" / "x.cmake").is_file()


def test_what_a_killed_run_left_is_swept_and_done_again(
    wanted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_apt(monkeypatch)
    left = wanted.parent / "making-catch2-abc"
    left.mkdir(parents=True)
    (left / "half").write_text("")
    wanted.mkdir()  # without its stamp: made by hand, or by something older
    catch2.ensure()
    assert not left.exists()
    assert (wanted / "lib" / "x.cmake").is_file()
