# SPDX-License-Identifier: MIT
"""The load generator against HTTP servers: all the ways to send a response, and some wrong ones."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar

import pytest
from loadgen_run import Run, loadgen, run
from scripted_http import Script, ScriptedHttp, bytewise, chunked, response, whole

pytestmark = pytest.mark.reads_course

BODY = bytes(range(32, 127)) * 11


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    loadgen()


def get(server: ScriptedHttp, *args: object, stall_s: float = 20) -> Run:
    """For a server that lets its clients wait forever, `stall_s` is short."""
    return run("http", "--port", server.port, "--stall-timeout", stall_s, "--path", "/page", *args)


def check_all_well(done: Run, requests: int) -> None:
    assert done.code == 0, done.err
    assert done.json["completed"] == requests
    assert done.json["ok"] is True


def test_requests_are_exact_and_well_formed() -> None:
    with ScriptedHttp(lambda _: response(BODY)) as server:
        done = get(server, "--conns", 4, "--requests", 50)
    check_all_well(done, 50)
    assert done.json["statuses"] == {"200": 50}
    assert done.json["target"]["path"] == "/page"
    assert server.requests == [f"GET /page HTTP/1.1\r\nHost: 127.0.0.1:{server.port}".encode()] * 50
    assert "Status:  50 x 200" in done.out
    sent = 50 * len(response(BODY))
    assert done.json["mib_per_s"] * done.json["seconds"] * 1024**2 == pytest.approx(sent, rel=0.01)


@pytest.mark.parametrize(
    "script",
    [
        lambda _: response(BODY),
        lambda _: response(b""),
        lambda _: chunked(BODY[:1], BODY[1:500], BODY[500:]),
        lambda _: chunked(BODY, trailer="X-Sum: 1\r\nX-More: 2\r\n"),
        lambda _: chunked(),
        lambda number: chunked(BODY) if number % 2 else response(BODY),
        lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" + response(BODY),
        lambda _: b"HTTP/1.1 204 No Content\r\n\r\n",
        lambda _: response(BODY, "Connection: keep-alive", version="1.0"),
        lambda _: response(BODY, "X-Odd:", "x-CASE:  \t spaced \t"),
    ],
    ids=[
        "length",
        "empty",
        "chunks",
        "trailer",
        "no-chunks",
        "both",
        "interim",
        "no-content",
        "http-1.0",
        "headers",
    ],  # fmt: skip
)
@pytest.mark.parametrize("cut", [whole, bytewise])
@pytest.mark.parametrize("inflight", [1, 5])
def test_every_form_of_response_is_read(script: Script, cut: object, inflight: int) -> None:
    with ScriptedHttp(script, cut=cut) as server:  # type: ignore[arg-type]
        done = get(server, "--conns", 2, "--inflight", inflight, "--requests", 20)
    check_all_well(done, 20)
    assert len(server.requests) == 20


def test_a_body_larger_than_any_buffer() -> None:
    large = BODY * 3000
    with ScriptedHttp(lambda _: response(large)) as server:
        done = get(server, "--conns", 2, "--inflight", 2, "--requests", 8)
    check_all_well(done, 8)


# --- Connections that end in good order


def test_an_announced_close_is_followed_by_a_new_connection() -> None:
    def script(number: int) -> bytes:
        return response(BODY, "Connection: close") if number == 2 else response(BODY)

    with ScriptedHttp(script, close_after=3) as server:
        done = get(server, "--conns", 2, "--requests", 60)
    check_all_well(done, 60)
    assert len(server.requests) == 60
    assert 18 <= done.json["reconnects"] <= 20
    assert 'after "Connection: close"' in done.out


def test_requests_behind_an_announced_close_are_sent_again() -> None:
    def script(number: int) -> bytes:
        return response(BODY, "Connection: close") if number == 2 else response(BODY)

    with ScriptedHttp(script, close_after=3) as server:
        done = get(server, "--conns", 1, "--inflight", 2, "--requests", 30)
    # The server may answer a request that it does not read with a reset, which may overtake its
    # answers: then we count that reset. Whatever was answered was right.
    assert done.json["errors"]["corrupted"] == 0
    assert done.json["completed"] + done.json["errors"]["reset"] * 2 >= 30


def test_a_body_that_ends_with_the_connection() -> None:
    with ScriptedHttp(lambda _: b"HTTP/1.0 200 OK\r\n\r\n" + BODY, close_after=1) as server:
        done = get(server, "--conns", 2, "--requests", 10)
    check_all_well(done, 10)
    assert done.json["reconnects"] == 8


# --- What is not as it should be


def test_statuses_are_counted_and_errors_are_failures() -> None:
    def script(number: int) -> bytes:
        return response(b"no", status="503 Busy") if number % 4 == 3 else response(BODY)

    with ScriptedHttp(script) as server:
        done = get(server, "--conns", 1, "--requests", 40)
    assert done.code == 1
    assert done.json["statuses"] == {"200": 30, "503": 10}
    assert done.json["completed"] == 40
    assert done.json["errors"]["other"] == 10
    assert done.err == "loadgen: 10 responses had a status of 400 or above\n"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (response(BODY[:500] + b"\x00" + BODY[501:]), "differs from the first one at offset 500"),
        (response(BODY + b"x"), f"a body of more than the {len(BODY)} bytes of the first one"),
        (response(BODY[:-1]), f"a body of {len(BODY) - 1} bytes where another had {len(BODY)}"),
        (response(BODY) + b"x", "'x"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "'SSH-2.0-OpenSSH_9.2??' starts no HTTP/1 response"),
        (b"HTTP/1.1 abc\r\n\r\n", "'HTTP/1.1 abc' is no HTTP/1 status line"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "'HTTP/2.0 200 OK' is no HTTP/1 status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n", "content-length '1e3'"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "content-length '-1'"),
        (b"HTTP/1.1 200 OK\r\nbad line\r\n\r\n", "'bad line' is no header"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer-encoding 'gzip'"),
        (chunked(BODY).replace(b"\r\n0\r\n", b"x\r\n0\r\n"), "a chunk that is longer than it said"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "a chunk without its size"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "a head of more than 65536 bytes"),
    ],
    ids=[
        "changed",
        "longer",
        "shorter",
        "extra",
        "ssh",
        "status",
        "version",
        "length",
        "negative",
        "header",
        "coding",
        "chunk",
        "chunk-size",
        "endless",
    ],  # fmt: skip
)
def test_a_wrong_response_is_said(wrong: bytes, complaint: str) -> None:
    with ScriptedHttp(lambda number: wrong if number == 3 else response(BODY)) as server:
        done = get(server, "--conns", 1, "--requests", 10)
    assert done.code == 1
    assert done.json["errors"]["corrupted"] == 1
    assert 3 <= done.json["completed"] <= 4
    assert "1 connection brought wrong bytes (connection 0, after " in done.err
    assert complaint in done.err


def test_threads_compare_their_bodies() -> None:
    """Each connection always gets the same body, but the two get different ones."""
    bodies = [BODY, BODY[::-1]]
    taken: ContextVar[bytes] = ContextVar("taken")  # by each connection

    def script(number: int) -> bytes:
        if number == 0:
            taken.set(bodies.pop())
        return response(taken.get())

    with ScriptedHttp(script) as server:
        done = get(server, "--conns", 2, "--threads", 2, "--requests", 20)
    assert done.code == 1
    assert "two threads got different bodies" in done.err


def half_then_close(data: bytes) -> Iterable[bytes]:
    yield data[: len(data) // 2]


@pytest.mark.parametrize(
    ("close_after", "kind", "sentence"),
    [
        (1, "closed", "were closed by the server before it had answered"),
        (None, "stalled", "no byte for 0.5 s;"),
    ],
)
def test_half_a_response(close_after: int | None, kind: str, sentence: str) -> None:
    server = ScriptedHttp(lambda _: response(BODY), cut=half_then_close, close_after=close_after)
    with server:
        done = get(server, "--conns", 2, "--requests", 10, stall_s=0.5)
    assert done.code == 1
    assert {k: n for k, n in done.json["errors"].items() if n} == {kind: 2}
    assert sentence in done.err
    assert "bytes of the body had come" in done.err
    assert done.seconds < 10
