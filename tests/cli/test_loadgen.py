# SPDX-License-Identifier: MIT
"""The load generator against echo servers: honest ones, and each kind of broken one."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import faulty_server as faulty
import pytest
from faulty_server import EchoServer, Honest
from loadgen_run import Run, loadgen, run, said, start

from course_tool import builds, processes

pytestmark = pytest.mark.reads_course

STALL_S = 0.5
SPARE_S = 10.0  # beyond the stall timeout: one second is promised, the rest is for a busy machine
PATIENT_S = 20  # the stall timeout beside a server that stalls nobody


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    loadgen()


def echo(server: EchoServer, *args: object, stall_s: float = PATIENT_S) -> Run:
    return run("echo", "--port", server.port, "--stall-timeout", stall_s, *args)


def errors_of(done: Run) -> dict[str, int]:
    """Only the kinds that occurred."""
    return {kind: count for kind, count in done.json["errors"].items() if count}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# --- Honest servers


def test_a_number_of_requests_is_exact_and_the_report_complete() -> None:
    with EchoServer(Honest()) as server:
        done = echo(server, "--conns", 7, "--requests", 1003, "--size", 100)
    assert done.code == 0, done.err
    assert done.err == ""
    assert server.received_bytes == 1003 * 100
    assert server.connections == 7
    assert f"Target: echo 127.0.0.1:{server.port} conns=7 size=100" in done.out
    assert "Completed 1,003 requests in" in done.out
    assert "Throughput: " in done.out
    assert "Latency: p50 " in done.out
    assert "us of CPU per request" in done.out
    result = done.json
    assert result["ok"] is True
    assert result["completed"] == result["requests_on_wire"] == 1003
    assert sum(count for _, count in result["histogram_us"]) == 1003
    assert errors_of(done) == {}
    assert result["target"] == {
        "host": "127.0.0.1",
        "port": server.port,
        "conns": 7,
        "size": 100,
        "path": None,
        "inflight": 1,
        "threads": 1,
        "requests": 1003,
        "duration_s": None,
        "warmup_s": 0,
    }


def test_figures_agree_with_each_other() -> None:
    with EchoServer(Honest()) as server:
        result = echo(server, "--conns", 3, "--requests", 2000, "--size", 1024).json
    rate = 2000 / result["seconds"]
    assert result["requests_per_s"] == pytest.approx(rate, rel=1e-3)
    assert result["mib_per_s"] == pytest.approx(rate / 1024, rel=1e-2)
    latency = result["latency_us"]
    assert latency["samples"] == 2000
    order = [latency[key] for key in ("p50", "p90", "p99", "p999", "max")]
    assert order == sorted(order)
    # In a closed loop the connections' waiting adds up to the length of the run.
    assert latency["mean"] * 2000 / 3 / 1e6 == pytest.approx(result["seconds"], rel=0.2)
    client = result["client"]
    cpu_s = client["cpu_user_s"] + client["cpu_sys_s"]
    assert client["cpu_us_per_request"] == pytest.approx(cpu_s * 1e6 / 2000, rel=1e-2)
    assert 0 < client["cpu_utilization"] <= client["ready_share"] <= 1


@pytest.mark.parametrize(
    ("conns", "size", "inflight", "threads", "requests"),
    [
        (1, 1, 1, 1, 500),
        (5, 1, 64, 2, 5000),
        (3, 16_381, 2, 1, 50),  # the pattern's period, and a byte more
        (3, 16_382, 2, 3, 50),
        (4, 300_001, 3, 2, 40),  # more than one receive buffer
        (50, 128, 8, 4, 3),  # fewer requests than connections
        (1, 16, 1024, 1, 4096),
    ],
)
def test_every_shape_of_load_is_exact(
    conns: int, size: int, inflight: int, threads: int, requests: int
) -> None:
    with EchoServer(Honest()) as server:
        done = echo(
            server, "--conns", conns, "--size", size, "--inflight", inflight,
            "--threads", threads, "--requests", requests,
        )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["completed"] == requests
    assert server.received_bytes == requests * size


def test_both_directions_may_be_full_at_once() -> None:
    """The server stops reading while it cannot write: a client that writes all first hangs."""
    with EchoServer(Honest()) as server:
        done = echo(
            server, "--conns", 2, "--size", 8 << 20, "--inflight", 4, "--requests", 10
        )  # fmt: skip
    assert done.code == 0, done.err
    assert server.received_bytes == 10 * (8 << 20)


def test_a_run_by_time_takes_that_time() -> None:
    with EchoServer(Honest()) as server:
        done = echo(server, "--conns", 4, "--duration", 0.5, "--warmup", 0.3)
    assert done.code == 0, done.err
    result = done.json
    assert result["seconds"] == pytest.approx(0.5, abs=0.1)
    assert 0 < result["completed"] < result["requests_on_wire"]
    assert server.received_bytes == result["requests_on_wire"] * 128
    # The requests that straddle the end of the warm-up count, but not their latency.
    assert result["completed"] - 4 <= result["latency_us"]["samples"] <= result["completed"]


def test_warm_up_comes_on_top_of_the_requests() -> None:
    with EchoServer(Honest()) as server:
        done = echo(server, "--conns", 4, "--requests", 200, "--warmup", 0.3)
    assert done.code == 0, done.err
    assert done.json["completed"] == done.json["latency_us"]["samples"] == 200
    assert server.received_bytes == done.json["requests_on_wire"] * 128
    assert done.json["requests_on_wire"] > 204


def test_a_slow_server_does_not_make_the_client_look_limited() -> None:
    class Slow(Honest):
        def answer(self, client: faulty.Client, data: bytes) -> bytes:
            time.sleep(0.001)
            return data

    with EchoServer(Slow()) as server:
        done = echo(server, "--conns", 2, "--requests", 200)
    assert done.json["client"]["limited"] is False
    assert "limited" not in done.out


def test_ipv6_works() -> None:
    try:
        server = EchoServer(Honest(), host="::1")
    except OSError:
        pytest.skip("this machine has no ::1")
    with server:
        done = run("echo", "--host", "::1", "--port", server.port, "--requests", 100)
    assert done.code == 0, done.err


def test_ten_thousand_connections_to_the_epoll_server() -> None:
    descriptors = 10_100
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < descriptors:
        pytest.skip(f"this machine allows a process fewer than {descriptors} descriptors")
    builds.build("release", ["02-server"])
    server = ["sh", "-c", f'ulimit -n {descriptors} && exec "$0"']
    with processes.Server([*server, builds.program("release", "02-server")]) as running:
        done = run(
            "echo", "--port", running.port, "--conns", 10_000, "--requests", 30_000,
            "--stall-timeout", 20,
        )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["completed"] == 30_000


# --- Wrong bytes


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (faulty.drop, "1 byte before these are missing"),
        (faulty.corrupt, "one byte was changed"),
        (faulty.swap, "two neighboring bytes changed places"),
        (faulty.double, "1 byte came twice"),
    ],
)
@pytest.mark.parametrize("size", [128, 4096, 100_000])
def test_one_wrong_byte_in_a_million_is_found(spoil: faulty.Spoil, cause: str, size: int) -> None:
    requests = 2 * faulty.MILLION // size
    with EchoServer(faulty.OneIn(spoil)) as server:
        done = echo(server, "--conns", 5, "--size", size, "--requests", requests)
    assert done.code == 1
    # The end of a connection that was given up leaves nobody else in trouble.
    assert errors_of(done).keys() == {"corrupted"}
    assert done.json["errors"]["corrupted"] >= 1
    assert done.json["ok"] is False
    assert "brought wrong bytes" in done.err
    assert cause in done.err
    assert "expected" in done.err
    assert "at offset" in done.err


def test_the_byte_that_differs_is_named() -> None:
    class Late(Honest):
        def answer(self, client: faulty.Client, data: bytes) -> bytes:
            if client.received_bytes == 1000:  # the tenth message of 100
                return data[:37] + bytes([data[37] ^ 0xFF]) + data[38:]
            return data

    with EchoServer(Late()) as server:
        done = echo(server, "--conns", 1, "--size", 100, "--requests", 20)
    assert (
        "1 connection brought wrong bytes (connection 0, after 9 answers: at offset 937:"
        in done.err
    )


def test_a_missing_last_byte_is_a_stall() -> None:
    with EchoServer(faulty.DropLast(128, message=3)) as server:
        done = echo(server, "--conns", 2, "--requests", 6, stall_s=STALL_S)
    assert done.code == 1
    assert errors_of(done) == {"stalled": 2}
    assert "127 of 128 bytes of echo 3 had come" in done.err


@pytest.mark.parametrize("threads", [1, 2])
def test_another_clients_bytes_do_not_pass(threads: int) -> None:
    with EchoServer(faulty.Mix(after_bytes=20_000)) as server:
        done = echo(server, "--conns", 6, "--requests", 2000, "--threads", threads)
    assert done.code == 1
    assert errors_of(done) == {"corrupted": 2}
    if threads == 1:  # a thread knows its own connections only
        assert "these bytes belong to connection " in done.err


def test_bytes_that_nobody_asked_for_do_not_pass() -> None:
    with EchoServer(faulty.Unasked()) as server:
        done = echo(server, "--conns", 3, "--requests", 30)
    assert done.code == 1
    assert done.json["completed"] == 30
    assert errors_of(done) == {"corrupted": 3}
    assert "17 bytes that nobody asked for" in done.err


# --- Servers that refuse, reset or hang


@pytest.mark.parametrize(
    ("fault", "kind", "sentence"),
    [
        (faulty.Silence(0), "stalled", "3 connections stalled: the server neither answered nor"),
        (faulty.Silence(1280), "stalled", "0 of 128 bytes of echo 11 had come"),
        (faulty.Half(1280), "stalled", "64 of 128 bytes of echo 11 had come"),
        (faulty.Close(1280), "closed", "3 connections were closed by the server before it had"),
        (faulty.Close(0), "closed", "0 of 128 bytes of echo 1 had come"),
        (faulty.Reset(1280), "reset", "3 connections were reset by the server"),
    ],
    ids=["silent", "falls silent", "half an answer", "closes", "closes at once", "resets"],
)
@pytest.mark.parametrize("amount", [("--requests", 3000), ("--duration", 20, "--warmup", 0)])
def test_each_kind_of_end_is_counted_and_said(
    fault: Honest, kind: str, sentence: str, amount: tuple[object, ...]
) -> None:
    with EchoServer(fault) as server:
        done = echo(server, "--conns", 3, *amount, stall_s=STALL_S)
    assert done.code == 1
    assert errors_of(done) == {kind: 3}
    assert done.json["ok"] is False
    assert sentence in done.err
    assert done.err.startswith("loadgen: ")
    assert len(done.err.splitlines()) == 1
    assert done.seconds < STALL_S + SPARE_S


def test_the_others_go_on_when_one_connection_ends() -> None:
    class CloseFirst(Honest):
        def answer(self, client: faulty.Client, data: bytes) -> bytes:
            client.ended = (
                client.writer.get_extra_info("peername")[1] % 4 == 0
                and client.received_bytes > 1000
            )
            return data

    with EchoServer(CloseFirst()) as server:
        done = echo(server, "--conns", 12, "--requests", 3000)
    assert done.code == 1
    lost = sum(errors_of(done).values())
    assert 1 <= lost < 12
    assert done.json["completed"] == 3000 - lost


def test_refused_connections_are_counted() -> None:
    done = run("echo", "--port", free_port(), "--conns", 5)
    assert done.code == 1
    assert errors_of(done) == {"refused": 5}
    assert done.json["completed"] == 0
    assert "5 connections were refused: nothing listens there" in done.err
    assert done.seconds < SPARE_S


@pytest.mark.parametrize(
    ("backlog", "stalled", "sentence"),
    [
        # A full backlog drops our SYN: no answer comes, neither yes nor no.
        (0, range(1, 10), "while connecting: no answer for 0.5 s"),
        (64, [9], "stalled"),
    ],
)
def test_a_server_that_accepts_nobody_is_a_stall(
    backlog: int, stalled: Sequence[int], sentence: str
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        port = listener.getsockname()[1]
        done = run("echo", "--port", port, "--conns", 9, "--stall-timeout", STALL_S)
    assert done.code == 1
    assert errors_of(done).keys() == {"stalled"}
    assert errors_of(done)["stalled"] in stalled
    assert sentence in done.err
    assert done.seconds < STALL_S + SPARE_S


# --- Signals, limits, flags


@pytest.mark.parametrize("fault", [Honest(), faulty.Silence(1280)], ids=["served", "hanging"])
def test_a_signal_ends_the_run_with_a_report(fault: Honest, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    with EchoServer(fault) as server:
        process = start("echo", "--port", server.port, "--conns", 3, "--duration", 30,
                        "--warmup", 0, "--stall-timeout", 20, "--json", file)  # fmt: skip
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENT_S)
    assert process.returncode == 130
    assert "stopped by a signal" in err
    result = json.loads(file.read_text())
    assert result["interrupted"] is True
    assert result["ok"] is False
    assert result["completed"] >= 30
    assert f"Completed {result['completed']:,} requests" in out


def test_too_few_descriptors_are_said_before_the_run(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    command = 'ulimit -n 64 && exec "$0" "$@"'
    args = [loadgen(), "echo", "--port", str(free_port()), "--conns", "100", "--json", file]
    done = subprocess.run(
        [shutil.which("sh") or "sh", "-c", command, *args],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert done.returncode == 1
    assert "100 connections need 132 descriptors, and this process may have 64" in done.stderr
    assert json.loads(file.read_text())["ok"] is False


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ([], "the first argument is echo or http"),
        (["ping"], "the first argument is echo or http, not 'ping'"),
        (["echo"], "--port is required"),
        (["echo", "--port", "0"], "--port: takes a whole number from 1 to 65535"),
        (["echo", "--port", "9", "--conns", "0"], "--conns: takes a whole number from 1 to 60000"),
        (["echo", "--port", "9", "--conns", "60001"], "--conns: takes a whole number"),
        (["echo", "--port", "9", "--size", "67108865"], "--size: takes a whole number from 1 to"),
        (["echo", "--port", "9", "--inflight", "1025"], "--inflight: takes a whole number"),
        (["echo", "--port", "9", "--conns", "3", "--threads", "4"], "--threads: 3 connections"),
        (["echo", "--port", "9", "--requests", "1.5"], "--requests: takes a whole number"),
        (["echo", "--port", "9", "--requests", "-1"], "--requests: takes a whole number"),
        (["echo", "--port", "9", "--requests", "1", "--duration", "1"], "excludes"),
        (["echo", "--port", "9", "--duration", "nan"], "--duration: takes seconds"),
        (["echo", "--port", "9", "--stall-timeout", "0"], "--stall-timeout: takes seconds"),
        (["echo", "--port", "9", "--host", "localhost"], "--host: takes an IPv4 or IPv6 address"),
        (["echo", "--port", "9", "--json", "/nowhere/at/all.json"], "--json /nowhere/at/all.json"),
        (["http", "--port", "9", "--path", "no-slash"], "--path: takes a path that starts with /"),
        (["http", "--port", "9", "--path", "/a b"], "--path: takes a path that starts with /"),
        (["echo", "--port", "9", "--bogus"], "--bogus"),
    ],
)
def test_a_bad_flag_is_a_sentence_and_exit_code_2(args: list[str], sentence: str) -> None:
    code, out, err = said(*args)
    assert code == 2
    assert sentence in err
    assert out == ""


@pytest.mark.parametrize("args", [["--help"], ["echo", "--help"], ["http", "--help"]])
def test_help_has_examples(args: list[str]) -> None:
    code, out, _ = said(*args)
    assert code == 0
    assert "loadgen echo --port 9000 --requests 100000" in out
    assert "Exit code:" in out
