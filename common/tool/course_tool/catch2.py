# SPDX-License-Identifier: MIT
"""Catch2 3 for a machine whose distribution has an older one: fetched, checked, built once.

The source comes from the next Debian suite through apt, with lists and settings of our own, so that
nothing of the system's configuration is touched; else from the upstream release. Both give the
same file, and its SHA-256 stands in cmake/dependencies.cmake, the one place that names a version.
"""

from __future__ import annotations

import email
import os
import re
import shutil
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course_tool import apt, builds, console, processes
from course_tool.errors import CourseError
from course_tool.files import digest, locked
from course_tool.paths import DEPS, ROOT, STATE, relative

OLDEST = "3.3"  # brought SKIP
INSTALLED = DEPS / "catch2"
LOG = STATE / "catch2.log"

CONFIGURE_TIMEOUT_S = 300
BUILD_TIMEOUT_S = 1800
APT_TIMEOUT_S = 600
DOWNLOAD_TIMEOUT_S = 300
STALL_TIMEOUT_S = 30
CHUNK_BYTES = 64 * 1024

# Suites whose successor is known to carry the release that we pin.
NEXT_SUITE = {"bookworm": "trixie"}


@dataclass(frozen=True)
class Release:
    url: str
    sha256: str

    @property
    def version(self) -> str:
        found = re.search(r"/v([\d.]+)\.tar\.gz$", self.url)
        return found[1] if found else "3"


@dataclass(frozen=True)
class Mirror:
    """Where this machine gets its Debian packages from."""

    uri: str
    signed_by: str  # a keyring's path, or empty for apt's own trust


def ensure() -> None:
    """Makes sure that CMake will find Catch2 >= 3.3; builds it in .deps/ if nothing else has it."""
    if _built() or _distribution_has_it():
        return
    release = pinned_release()
    console.err.print(
        f"Catch2 {OLDEST} or newer runs the tests, and this distribution has none: getting "
        f"{release.version} and building it in {relative(INSTALLED)}/, once."
    )
    waits = "Another ./course is getting Catch2; waiting for it …"
    with locked(DEPS / "lock", lambda: console.err.print(waits)):
        if _built():
            return  # another ./course has built it while we waited
        _sweep()
        with tempfile.TemporaryDirectory(prefix="making-catch2-", dir=DEPS) as scratch:
            source = _source(release, Path(scratch))
            _build(source, Path(scratch) / "build", Path(scratch) / "installed", release)


def pinned_release() -> Release:
    """What cmake/dependencies.cmake pins."""
    file = ROOT / "cmake" / "dependencies.cmake"
    text = file.read_text(encoding="utf-8")
    url = re.search(r"URL\s+(https://\S+/catchorg/Catch2/\S+\.tar\.gz)", text)
    sha256 = re.search(r"SHA256=([0-9a-f]{64})", text)
    if not url or not sha256:
        raise CourseError(f"{relative(file)} does not say which release of Catch2 it wants.")
    return Release(url[1], sha256[1])


def _stamp() -> Path:
    return INSTALLED / "made-from"


def _built() -> bool:
    """The folder appears whole, by a rename; the stamp says of which release it is."""
    try:
        return _stamp().read_text(encoding="utf-8").strip() == pinned_release().sha256
    except OSError:
        return False


def _distribution_has_it() -> bool:
    """Asks CMake itself, in a project that is nothing but the question."""
    with tempfile.TemporaryDirectory(prefix="course-catch2-") as folder:
        question = (
            "cmake_minimum_required(VERSION 3.25)\nproject(question NONE)\n"
            f"find_package(Catch2 {OLDEST} REQUIRED)\n"
        )
        (Path(folder) / "CMakeLists.txt").write_text(question, encoding="utf-8")
        args = ["cmake", "-S", folder, "-B", f"{folder}/build", "-G", "Ninja"]
        return processes.run(args, timeout_s=60, env=builds.PLAIN_ENV).returncode == 0


def _sweep() -> None:
    """Removes what a killed run has left; we hold the lock, so nobody is using it."""
    for left in DEPS.glob("making-catch2-*"):
        shutil.rmtree(left, ignore_errors=True)


def _source(release: Release, scratch: Path) -> Path:
    """Fetches and unpacks the source; returns its folder."""
    tried: list[str] = []
    for way in (_from_next_suite, _from_upstream):
        try:
            archive = way(release, scratch)
            break
        except CourseError as error:
            tried.append(str(error))
    else:
        todo = (
            "Check the network (and https_proxy, if you are behind a proxy), and run "
            f"./course start again; or install Catch2 {OLDEST} or newer yourself."
        )
        failed = f"Could not get the source of Catch2 {release.version}:"
        raise CourseError("\n  ".join([failed, *tried, todo]))
    folder = scratch / "source"
    folder.mkdir()
    processes.run(["cmake", "-E", "tar", "xzf", archive], cwd=folder, timeout_s=60, check=True)
    return next(path for path in folder.iterdir() if path.is_dir())


def _check_sum(archive: Path, release: Release) -> None:
    have = digest(archive.read_bytes())
    if have != release.sha256:
        raise CourseError(
            f"{archive.name} is not the release that the course pins: its SHA-256 is {have}."
        )


# The first way: the source package of the next suite.


def _from_next_suite(release: Release, scratch: Path) -> Path:
    codename = this_suite()
    suite = NEXT_SUITE.get(codename)
    if apt.manager() != "apt-get" or not suite:
        raise CourseError("apt: no later suite is known for this distribution.")
    mirror = find_mirror(Path("/etc/apt"), codename)
    if mirror is None:
        raise CourseError(f"apt: its settings name no mirror for {codename} main.")
    options = _private_apt(mirror, suite, scratch / "apt")
    with console.progress(f"Asking apt for Catch2 of Debian {suite}"):
        for action in (["update"], ["source", "--download-only", "catch2"]):
            finished = processes.run(
                ["apt-get", *options, *action],
                timeout_s=APT_TIMEOUT_S,
                cwd=scratch / "apt",
                env={"LC_ALL": "C.UTF-8"},
            )
            if finished.returncode != 0:
                raise CourseError(f"apt-get {action[0]} for {suite}: {_first_complaint(finished)}")
    for archive in (scratch / "apt").glob("catch2_*.orig.tar.*"):
        _check_sum(archive, release)
        return archive
    raise CourseError(f"apt: {suite} gave no source archive of Catch2.")


def _first_complaint(finished: processes.Finished) -> str:
    said = finished.stderr + finished.stdout
    first = next(iter(apt.complaints(said) or said.splitlines()), "it said nothing")
    return textwrap.shorten(first, 160)


def this_suite() -> str:
    """The distribution's code name, such as bookworm; empty if it does not say."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)"?$', text, re.MULTILINE)
    return found[1] if found else ""


def _private_apt(mirror: Mirror, suite: str, folder: Path) -> list[str]:
    """Options that give apt lists, sources and a cache of its own, and leave the system's alone."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    signed_by = f"Signed-By: {mirror.signed_by}\n" if mirror.signed_by else ""
    sources = folder / "next.sources"
    sources.write_text(
        f"Types: deb-src\nURIs: {mirror.uri}\nSuites: {suite}\nComponents: main\n{signed_by}",
        encoding="utf-8",
    )
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Update::Error-Mode": "any",  # an update that fetched nothing is no success
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": str(STALL_TIMEOUT_S),
    }
    if os.geteuid() == 0:  # the _apt user that root's downloads run as may not enter a home folder
        settings["APT::Sandbox::User"] = "root"
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def find_mirror(settings: Path, codename: str) -> Mirror | None:
    """Reads apt's sources, in both of their formats, for the one that gives `codename` main."""
    for file in sorted((settings / "sources.list.d").glob("*.sources")):
        for mirror in _mirrors_deb822(file.read_text(encoding="utf-8"), codename):
            return mirror
    one_line = [settings / "sources.list", *sorted((settings / "sources.list.d").glob("*.list"))]
    for file in filter(Path.is_file, one_line):
        for mirror in _mirrors_one_line(file.read_text(encoding="utf-8"), codename):
            return mirror
    return None


def _mirrors_deb822(text: str, codename: str) -> Iterator[Mirror]:
    without_comments = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    for stanza in re.split(r"\n\s*\n", without_comments.strip()):
        fields = email.message_from_string(stanza)  # Debian's format is that of mail headers
        gives = (
            fields.get("enabled", "yes").lower() != "no"
            and codename in fields.get("suites", "").split()
            and "main" in fields.get("components", "").split()
        )
        uris = fields.get("uris", "").split()
        if gives and uris and not uris[0].startswith("cdrom:"):
            keyring = fields.get("signed-by", "")
            yield Mirror(uris[0], keyring if keyring.startswith("/") else "")


def _mirrors_one_line(text: str, codename: str) -> Iterator[Mirror]:
    entry = r"^\s*deb(?:-src)?\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#\n]*)"
    for options, uri, suite, components in re.findall(entry, text, re.MULTILINE):
        if suite == codename and "main" in components.split() and not uri.startswith("cdrom:"):
            found = re.search(r"signed-by=(/[^\s,]+)", options)
            yield Mirror(uri, found[1] if found else "")


# The second way: the upstream release.


def _from_upstream(release: Release, scratch: Path) -> Path:
    archive = scratch / "catch2-upstream.tar.gz"
    deadline_s = time.monotonic() + DOWNLOAD_TIMEOUT_S
    with console.progress(f"Downloading Catch2 {release.version}", total=0) as steps:
        try:
            with urllib.request.urlopen(release.url, timeout=STALL_TIMEOUT_S) as answer:
                total = int(answer.headers.get("Content-Length") or 0) // 1024
                with archive.open("wb") as file:
                    while chunk := answer.read(CHUNK_BYTES):
                        if time.monotonic() > deadline_s:
                            raise TimeoutError(f"not done after {DOWNLOAD_TIMEOUT_S} s")
                        file.write(chunk)
                        steps.at(file.tell() // 1024, total or None, "KiB")
        except (OSError, urllib.error.URLError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise CourseError(f"{release.url}: {reason}") from error
    _check_sum(archive, release)
    return archive


def _build(source: Path, build: Path, installed: Path, release: Release) -> None:
    compiler = builds.compiler_for("reference")
    configure: list[str | Path] = ["cmake", "-S", source, "-B", build, "-G", "Ninja"]
    configure += [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_CXX_FLAGS_RELEASE=-O1",  # half the time of -O2 to build; tests do not wait for it
        "-DCMAKE_CXX_STANDARD=20",
        "-DCMAKE_UNITY_BUILD=ON",  # many sources as one: they spend most of it in the same headers
        "-DCMAKE_UNITY_BUILD_BATCH_SIZE=28",
        "-DBUILD_TESTING=OFF",
        "-DCATCH_INSTALL_DOCS=OFF",
        "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DCMAKE_INSTALL_PREFIX={INSTALLED}",
    ]
    if compiler:
        configure.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("", encoding="utf-8")
    with console.progress(f"Building Catch2 {release.version}", total=0) as steps:
        for args, timeout_s in (
            (configure, CONFIGURE_TIMEOUT_S),
            (["cmake", "--build", build], BUILD_TIMEOUT_S),
            (["cmake", "--install", build, "--prefix", installed], CONFIGURE_TIMEOUT_S),
        ):
            finished = processes.run(
                args,
                timeout_s=timeout_s,
                env=builds.PLAIN_ENV,
                on_line=lambda line: builds.show_ninja_line(line, steps),
            )
            with LOG.open("a", encoding="utf-8") as log:
                log.write(finished.log)
            if finished.returncode != 0:
                failure = builds.build_failure(finished.stdout + finished.stderr)
                raise builds.BuildError(
                    f"Catch2 does not build here: {failure}\n  The full log: {relative(LOG)}"
                )
    (installed / _stamp().name).write_text(release.sha256 + "\n", encoding="utf-8")
    if INSTALLED.exists():
        os.rename(INSTALLED, build.parent / "replaced")  # goes with the rest of the scratch folder
    os.rename(installed, INSTALLED)
