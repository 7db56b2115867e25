"""``cascade serve``: starts, says where it is, stops, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from collector.web.listen import adopt, is_loopback, listen, url_of
from collector.web.tokens import Tokens
from collector.wire.batch import MSGPACK
from collector.wire.records import encode_msgpack
from dashboard.commands import main, serve
from tests.collector.traces import RUN, step

ROOT = Path(__file__).parents[2]
LIMIT_S = 60


class Process:
    """A ``cascade serve`` of its own."""

    def __init__(self, *words, pass_fds=()):
        code = "import sys; from dashboard.commands import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", *map(str, words)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=pass_fds,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=LIMIT_S)[1])
        self.ready = json.loads(line)

    def stop(self, number=signal.SIGTERM):
        """Exit code and what it said."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@contextlib.contextmanager
def serving(*words, **how):
    process = Process(*words, "--json", "--no-analysis", **how)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.communicate()


def post(url, rows, **how):
    return httpx.post(
        f"{url}/v1/events", content=encode_msgpack(rows), headers={"content-type": MSGPACK}, **how
    )


def refused(capsys, *words):
    """The error of a command line that does not start."""
    assert main(["serve", *map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_rows_are_stored_across_a_stop_and_a_start(tmp_path):
    data = tmp_path / "data"
    rows = [step(i) for i in range(50)]
    with serving("--data", data, "--port", 0) as running:
        assert running.ready == {
            "url": running.ready["url"],
            "data": str(data),
            "pid": running.process.pid,
        }
        url = running.ready["url"]
        assert post(url, rows).json()["marks"][0]["seq"] == 49
        question = {"sql": "SELECT count(*) AS n FROM steps"}
        # what was stored a moment ago is in a file a few seconds later
        assert httpx.post(f"{url}/v1/sql", json=question).status_code == 200
        assert httpx.get(f"{url}/v1/readyz").json() == {"status": "ready"}
        code, _, err = running.stop()
    assert code == 0
    assert "Traceback" not in err
    assert all(json.loads(line) for line in err.splitlines())
    with serving("--data", data, "--port", 0, "--log-format", "text") as running:
        url = running.ready["url"]
        assert httpx.get(f"{url}/v1/runs/{RUN}").json()["marks"][0]["seq"] == 49
        assert post(url, rows).json()["num_duplicates"] == 50
        answer = httpx.post(f"{url}/v1/sql", json=question | {"format": "csv"})
        assert answer.text.split() == ["n", "50"]
        code, _, err = running.stop(signal.SIGINT)
    assert code == 0
    assert " info request request_id=" in err


def test_a_listening_socket_may_be_passed_on(tmp_path):
    with listen("127.0.0.1", 0) as sock:
        number = sock.fileno()
        url = url_of(sock, tls=False)
        with serving("--data", tmp_path, "--fd", number, pass_fds=[number]) as running:
            assert running.ready["url"] == url
            assert httpx.get(f"{url}/v1/healthz").status_code == 200
            assert running.stop()[0] == 0


def test_a_data_folder_in_use_is_said_in_words(tmp_path, capsys):
    with serving("--data", tmp_path, "--port", 0):
        err = refused(capsys, "--data", tmp_path, "--port", 0)
    assert str(tmp_path) in err


OPENSSL = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
OPENSSL += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]


def test_over_tls(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        [*OPENSSL, "-keyout", key, "-out", cert],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no openssl here")
    words = ("--data", tmp_path / "d", "--port", 0, "--tls-cert", cert, "--tls-key", key)
    with serving(*words) as running:
        url = running.ready["url"]
        assert url.startswith("https://")
        import ssl

        trust = ssl.create_default_context(cafile=str(cert))
        assert httpx.get(f"{url}/v1/healthz", verify=trust).status_code == 200


# --- ports and addresses -------------------------------------------------------------------------


def test_a_taken_default_port_means_the_next_free_one(monkeypatch):
    with listen("127.0.0.1", 0) as taken:
        monkeypatch.setattr("collector.web.listen.DEFAULT_PORT", taken.getsockname()[1])
        with listen("127.0.0.1", None) as sock:
            assert sock.getsockname()[1] > taken.getsockname()[1]


def test_a_taken_port_that_was_asked_for_is_an_error_with_a_hint(tmp_path, capsys):
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        err = refused(capsys, "--data", tmp_path / "d", "--port", port)
    assert f"127.0.0.1:{port}" in err
    assert "--port" in err
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "words", [("--port", 70_000), ("--port", -1), ("--host", "no.such.host.invalid")]
)
def test_an_address_that_is_none(tmp_path, capsys, words):
    assert refused(capsys, "--data", tmp_path / "d", *words)


@pytest.mark.parametrize("words", [("--fd", 9_999), ("--fd", -1)])
def test_a_descriptor_that_is_none(tmp_path, capsys, words):
    assert "--fd" in refused(capsys, "--data", tmp_path / "d", *words)


def test_a_socket_that_does_not_listen_is_not_taken():
    from cascade_runtime.vocabulary.errors import BadUsage

    with socket.socket() as sock, pytest.raises(BadUsage, match="listens"):
        adopt(os.dup(sock.fileno()))


def test_an_address_that_others_reach_needs_a_token_first(tmp_path, capsys):
    data = tmp_path / "d"
    err = refused(capsys, "--data", data, "--host", "0.0.0.0", "--port", 0)
    assert f"cascade serve --data {data} --new-token NAME" in err
    token = Tokens(data).add("t", "all")
    with serving("--data", data, "--host", "0.0.0.0", "--port", 0) as running:
        url = running.ready["url"].replace(socket.gethostname(), "127.0.0.1")
        assert httpx.get(f"{url}/v1/runs").status_code == 401
        headers = {"authorization": f"Bearer {token}", "host": "any.name"}
        assert httpx.get(f"{url}/v1/runs", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), ("::1", True)]
)
def test_what_only_this_machine_reaches(host, local):
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    with listen(host, 0) as sock:
        assert is_loopback(sock) is local
        assert url_of(sock, tls=False).startswith("http://")


# --- tokens --------------------------------------------------------------------------------------


def test_a_token_is_made_listed_and_revoked(tmp_path, capsys):
    data = str(tmp_path / "d")
    assert main(["serve", "--data", data, "--new-token", "agents", "--scope", "write"]) == 0
    out, err = capsys.readouterr()
    token = out.strip()
    assert Tokens(Path(data)).may(token) == {"write"}
    assert "agents" in err
    assert main(["serve", "--data", data, "--list-tokens"]) == 0
    out = capsys.readouterr().out
    assert out.split()[:2] == ["agents", "write"]
    assert token not in out
    assert main(["serve", "--data", data, "--revoke-token", "agents"]) == 0
    assert Tokens(Path(data)).may(token) is None


def test_the_same_as_json(tmp_path, capsys):
    data = str(tmp_path / "d")
    main(["serve", "--data", data, "--new-token", "a", "--json"])
    made = json.loads(capsys.readouterr().out)
    assert (made["name"], made["scope"]) == ("a", "all")
    assert Tokens(Path(data)).may(made["token"]) == {"read", "write"}
    main(["serve", "--data", data, "--list-tokens", "--json"])
    (listed,) = json.loads(capsys.readouterr().out)["tokens"]
    assert listed.keys() == {"name", "scope", "created_ns"}


@pytest.mark.parametrize(
    "words",
    [
        ("--new-token", "a b"),
        ("--new-token", ""),
        ("--revoke-token", "none"),
        ("--scope", "read"),
        ("--new-token", "a", "--list-tokens"),
        ("--tls-cert", "a.pem"),
        ("--tls-cert", "no.pem", "--tls-key", "no.pem", "--port", "0"),
        ("--keep-days", "0"),
        ("--keep-gb", "nan"),
        ("--max-body-mb", "-1"),
        ("--stop-deadline", "-1"),
        ("--port", "x"),
        ("--log-format", "xml"),
    ],
    ids=" ".join,
)
def test_usage_that_cannot_be_met(tmp_path, capsys, words):
    err = refused(capsys, "--data", tmp_path / "d", *words)
    assert err.startswith("cascade serve: ")
    assert "Traceback" not in err


def test_a_file_is_no_data_folder(tmp_path, capsys):
    (tmp_path / "d").write_text("")
    assert str(tmp_path / "d") in refused(capsys, "--data", tmp_path / "d")


# --- options that go through ---------------------------------------------------------------------


def test_retention_and_limits_reach_the_store_and_the_app(tmp_path, monkeypatch):
    from tests.collector.web.stores import MemoryStore, stub_kind

    store = MemoryStore()
    kind = stub_kind(store)
    seen = {}

    def run(self, sockets):
        seen["settings"] = self._context.settings

    monkeypatch.setattr(
        "cascade_runtime.vocabulary.plug.discover", lambda package: {"duckdb": kind}
    )
    monkeypatch.setattr("collector.web.server.CollectorServer.run", run)
    monkeypatch.setattr("collector.web.logs.set_up_logs", lambda form: None)
    words = ["--keep-days", "7", "--keep-gb", "1.5", "--max-body-mb", "2", "--stop-deadline", "3"]
    parsed = ["serve", "--data", str(tmp_path), "--port", "0", "--no-analysis", *words]
    assert main(parsed, {"serve": serve.PLUGIN}) == 0
    assert kind.opened == (tmp_path, {"keep_days": 7.0, "keep_bytes": 1_500_000_000})
    assert seen["settings"].limits.body_bytes == 2 << 20
    assert seen["settings"].stop_seconds == store.closed_with == 3.0
    assert seen["settings"].loopback is True
