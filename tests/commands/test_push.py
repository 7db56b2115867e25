"""``cascade push``: every row of a trace reaches a collector, once, whatever happens on the way."""

from __future__ import annotations

import json
import socket
import ssl
import time
from types import SimpleNamespace

import httpx
import msgspec
import pytest

from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector import client as client_module
from collector import push as push_module
from collector.client import CollectorAway, CollectorRefused
from collector.push import Collector, push
from collector.schema.rows import events_to_table
from collector.storage._interface import DiskLow, Mark, QueueFull, StoreDown
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import open_trace
from collector.trace.trace_writer import write_tables
from collector.web.app import create_app
from collector.web.settings import Limits, Settings
from collector.web.tokens import Tokens
from collector.wire.arrow_body import MAX_UNPACKED
from collector.wire.arrow_claims import claimed_bytes
from collector.wire.arrow_send import above, cut, keys_of, prefixes
from dashboard.commands import main
from dashboard.commands import push as command
from tests.collector.traces import RUN, done, entered, make_trace, segment, step, write_spool
from tests.collector.web.live import live
from tests.collector.web.stores import EchoSql, MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def app(store, tmp_path):
    return create_app(store, EchoSql(), Tokens(tmp_path / "data"))


@pytest.fixture
def trace(tmp_path):
    """Three actors, rows of two tables in turn, some of them in the spool only."""
    folder = make_trace(tmp_path / "trace")
    for rank in range(2):
        rows = [step(i, rank) for i in range(0, 400, 2)]
        calls = [entered(i, rank, done_seq=i + 1, completed=True) for i in range(1, 400, 2)]
        write_tables(folder, {"steps": rows, "collectives": calls})
    write_spool(folder, "2-0", segment([step(0, 2), entered(1, 2), done(1, 2), step(2, 2)]))
    return folder


class Bridge(httpx.BaseTransport):
    """Hands requests to a collector on a socket; ``before`` may answer, or raise, in its place."""

    def __init__(self, before):
        self._before = before
        self._real = httpx.HTTPTransport()
        self.requests = []

    def handle_request(self, request):
        self.requests.append((request.method, request.url.path))
        answer = self._before(request)
        return self._real.handle_request(request) if answer is None else answer

    def close(self):
        self._real.close()


def sent(
    trace, url, before=lambda request: None, timeout_s=20.0, waits=None, token=None, told=None
):
    client = httpx.Client(transport=Bridge(before), timeout=20.0)
    sleep = (waits if waits is not None else []).append
    with Collector(url, token, timeout_s, sleep, client) as collector, open_trace(trace) as source:
        return push(source, collector, told)


def keys_in(store, run_id=RUN):
    return {key[:3] for key in store.rows[run_id]}


WANTED = {(rank, 0, seq) for rank in range(2) for seq in range(400)} | {(2, 0, i) for i in range(3)}


@pytest.mark.parametrize("rows_each", [13, 100, 10_000])
def test_every_row_arrives_once_spool_included(app, store, trace, monkeypatch, rows_each):
    monkeypatch.setattr(push_module, "ROWS_EACH", rows_each)
    progress = []
    with live(app) as running:
        report = sent(trace, running.url, told=lambda *numbers: progress.append(numbers))
    assert keys_in(store) == WANTED
    assert (report.num_rows, report.num_stored, report.num_duplicates) == (803, 803, 0)
    assert report.uncovered == []
    assert store.metas[RUN].ended_ns == 9_000
    assert progress[-1] == (803, 803)
    assert len(progress) == -(-803 // rows_each)


def test_each_request_holds_a_contiguous_stretch_of_each_actor(trace):
    with open_trace(trace) as source:
        tables = {name: source.table(name) for name in EVENT_TABLES}
    next_seq = {}
    for batch in cut({n: t for n, t in tables.items() if t.num_rows}, 37):
        assert batch.num_rows == sum(t.num_rows for t in batch.tables.values()) <= 37
        seqs = {}
        for table in batch.tables.values():
            columns = [table[c].to_pylist() for c in ("rank", "incarnation", "seq")]
            for rank, incarnation, seq in zip(*columns, strict=True):
                seqs.setdefault((rank, incarnation), []).append(seq)
        for actor, mine in seqs.items():
            first = next_seq.get(actor, 0)
            assert sorted(mine) == list(range(first, first + len(mine)))
            next_seq[actor] = first + len(mine)
    assert next_seq == {(0, 0): 400, (1, 0): 400, (2, 0): 3}


def test_the_end_is_told_last_and_the_start_first(app, trace):
    order = []

    def before(request):
        if request.method == "PUT":
            order.append(msgspec.json.decode(request.read())["ended_ns"])
        elif request.method == "POST":
            order.append("rows")

    with live(app) as running:
        sent(trace, running.url, before)
    assert order == [None, "rows", 9_000]


def test_pushing_twice_sends_nothing_twice_and_does_not_open_the_run_again(app, store, trace):
    methods = []
    with live(app) as running:
        sent(trace, running.url)
        num_batches = len(store.batches)
        report = sent(trace, running.url, lambda request: methods.append(request.method))
    assert (report.num_skipped, report.num_stored, report.num_duplicates) == (803, 0, 0)
    assert len(store.batches) == num_batches
    assert methods == ["GET", "PUT", "GET"]  # its end, once
    assert store.metas[RUN].ended_ns == 9_000


def test_a_push_that_broke_off_goes_on_where_it_ended(app, store, trace, monkeypatch):
    monkeypatch.setattr(push_module, "ROWS_EACH", 50)
    num_posts = []

    def before(request):
        if request.method == "POST":
            num_posts.append(1)
            if len(num_posts) == 5:
                return httpx.Response(
                    422, json={"error": {"message": "m", "hint": "", "where": ""}}
                )
        return None

    with live(app) as running:
        with pytest.raises(CollectorRefused):
            sent(trace, running.url, before)
        assert store.metas[RUN].ended_ns is None
        report = sent(trace, running.url)
    assert (report.num_skipped, report.num_stored) == (200, 603)
    assert keys_in(store) == WANTED


def test_an_answer_that_was_lost_makes_duplicates_not_losses(app, store, trace):
    lost = []

    def before(request):
        if request.method == "POST" and not lost:
            lost.append(1)
            httpx.post(
                request.url, content=request.read(), headers=request.headers
            ).raise_for_status()
            raise httpx.ReadError("reset", request=request)

    with live(app) as running:
        report = sent(trace, running.url, before)
    assert (report.num_stored, report.num_duplicates, report.uncovered) == (0, 803, [])
    assert keys_in(store) == WANTED


@pytest.mark.parametrize("error", [QueueFull("full"), StoreDown("down"), DiskLow("low")])
def test_a_busy_collector_is_asked_again_after_the_time_it_gives(app, store, trace, error):
    waits = []

    def before(request):
        if request.method == "POST":
            store.refuse_with = error if len(waits) < 2 else None

    with live(app) as running:
        report = sent(trace, running.url, before, timeout_s=300.0, waits=waits)
    assert report.num_stored == 803
    least = {"QueueFull": 1, "StoreDown": 2, "DiskLow": 30}[type(error).__name__]
    assert len(waits) == 2
    assert all(least <= wait <= least + 0.2 for wait in waits)


def test_a_collector_that_stays_away_is_given_up_on_in_time(trace, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class Clock(list):
        def append(self, seconds):
            super().append(seconds)
            now[0] += seconds

    def before(request):
        raise httpx.ConnectError("refused", request=request)

    waits = Clock()
    with pytest.raises(CollectorAway) as caught:
        sent(trace, "http://127.0.0.1:1", before, timeout_s=60.0, waits=waits)
    assert "after trying for 60 s" in caught.value.message
    assert "again" in caught.value.hint
    assert 45 < sum(waits) <= 60
    assert max(waits) <= 10


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_nobody_at_the_address_is_an_error_at_once(trace, capsys):
    url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    assert main(["push", str(trace), url]) == 2
    assert time.monotonic() - began < 20
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cascade push: it cannot be reached")
    assert err.count("\n") == 3
    assert url in err
    assert "--wait 60" in err


def test_who_waits_for_a_collector_is_told_at_once_and_served(app, store, trace, capsys):
    with live(app) as running:
        refused = [2]

        def before(request):
            refused[0] -= 1
            if refused[0] >= 0:
                raise httpx.ConnectError("refused", request=request)

        told = []
        client = httpx.Client(transport=Bridge(before), timeout=20.0)
        collector = Collector(
            running.url,
            None,
            120.0,
            lambda seconds: None,
            client,
            first_wait_s=60.0,
            on_wait=lambda *what: told.append(what),
        )
        with collector, open_trace(trace) as source:
            assert push(source, collector).num_stored == 803
    assert told == [("it cannot be reached: refused", 60.0)]


def test_a_wait_is_said_before_it_begins(trace, capsys):
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["push", str(trace), url, "--wait", "0.2"]) == 2
    err = capsys.readouterr().err
    first, *rest = err.splitlines()
    assert first.startswith(f"cascade push: {url}: it cannot be reached")
    assert first.endswith("trying again for 0.2 s (Ctrl-C ends it)")
    assert "after trying for 0.2 s" in rest[0]


@pytest.mark.parametrize("word", ["-1", "nan", "inf", "soon"])
def test_a_time_to_wait_is_a_number_of_seconds(trace, word, capsys):
    assert main(["push", str(trace), "http://127.0.0.1:1", f"--wait={word}"]) == 2
    assert "--wait" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("on_terminal", "said"),
    [
        (True, "\r10 of 40 rows, 25 %, 10 rows/s   \r20 of 40 rows, 50 %, 4 rows/s   \n"),
        (False, "cascade push: 20 of 40 rows, 50 %, 4 rows/s\n"),
        (None, ""),
    ],
)
def test_how_progress_is_told(monkeypatch, capsys, on_terminal, said):
    now = iter([0.0, 1.0, 5.0])
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setattr(command, "_LINE_EVERY_S", 3.0)
    told = command._Progress(on_terminal)
    told(10, 40)
    told(20, 40)
    told.end()
    assert capsys.readouterr().err == said


def test_a_batch_that_is_too_large_is_sent_in_halves(store, tmp_path, trace):
    settings = Settings(limits=Limits(body_bytes=12_000))
    app = create_app(store, EchoSql(), Tokens(tmp_path / "data"), settings)
    with live(app) as running:
        report = sent(trace, running.url)
    assert (report.num_stored, report.uncovered) == (803, [])
    assert len(store.batches) > 2
    assert keys_in(store) == WANTED


def test_rows_that_take_much_memory_are_sent_in_bodies_of_few_bytes(app, store, trace, monkeypatch):
    """What a body may unpack to is bounded, and compressed lists of a large job hide their size."""
    monkeypatch.setattr(push_module, "BYTES_EACH", 10_000)
    claimed = []

    def before(request):
        if request.method == "POST":
            claimed.append(claimed_bytes(request.read()))

    with live(app) as running:
        report = sent(trace, running.url, before)
    assert (report.num_stored, report.uncovered) == (803, [])
    assert keys_in(store) == WANTED
    assert len(claimed) > 5
    assert max(claimed) < 2 * 10_000


def test_a_batch_is_far_below_what_a_body_may_unpack_to():
    assert push_module.BYTES_EACH * 4 <= MAX_UNPACKED


def test_a_row_that_is_too_large_alone_is_an_error(store, tmp_path, trace):
    settings = Settings(limits=Limits(body_bytes=10))
    app = create_app(store, EchoSql(), Tokens(tmp_path / "data"), settings)
    with live(app) as running, pytest.raises(CollectorRefused, match="larger than 10 bytes"):
        sent(trace, running.url)


def test_a_hole_in_the_trace_is_no_fault_of_the_push(app, store, tmp_path):
    folder = make_trace(tmp_path / "holes")
    write_tables(folder, {"steps": [step(i) for i in (0, 1, 5, 6)]})
    with live(app) as running:
        report = sent(folder, running.url)
    assert (report.num_stored, report.uncovered) == (4, [])


def test_rows_that_the_collector_does_not_vouch_for_are_named(
    app, store, trace, monkeypatch, capsys
):
    monkeypatch.setattr(store, "_mark", lambda run_id, rank, inc: Mark(run_id, rank, inc, 7))
    with live(app) as running:
        assert main(["push", str(trace), running.url]) == 2
    out = capsys.readouterr().out
    assert "rank 1, incarnation 0: the collector has its rows up to seq 7, the trace" in out
    assert "rank 2" not in out
    assert "every row" not in out


def test_a_sample_keeps_its_rows(app, store):
    with live(app) as running:
        assert main(["push", "clean", running.url]) == 0
    with open_trace(resolve_trace("clean")) as source:
        num_rows = sum(source.table(name).num_rows for name in EVENT_TABLES)
        run_id = source.meta.run_id
    assert len(store.rows[run_id]) == num_rows


# --- marks and keys ------------------------------------------------------------------------------


def test_what_marks_cover_is_left_out():
    tables = {"steps": events_to_table("steps", [step(i, r) for r in range(3) for i in range(4)])}
    left = above(keys_of(tables), {(0, 0): 3, (1, 0): 1, (1, 1): 9, (5, 0): 9})
    assert list(zip(left.rank.tolist(), left.seq.tolist(), strict=True)) == [
        *[(1, 2), (1, 3)],
        *[(2, i) for i in range(4)],
    ]


@pytest.mark.parametrize(
    ("seqs", "last"), [([0, 1, 2], 2), ([2, 1, 0, 1], 2), ([0, 2], 0), ([1, 2], -1)]
)
def test_how_far_an_actor_is_contiguous(seqs, last):
    tables = {"steps": events_to_table("steps", [step(i, 4) for i in seqs])}
    assert prefixes(keys_of(tables)) == {(4, 0): last}


def test_no_rows_at_all(app, store, tmp_path):
    assert prefixes(keys_of({})) == {}
    folder = make_trace(tmp_path / "empty")
    with live(app) as running:
        assert sent(folder, running.url).uncovered == []
    assert store.metas[RUN].ended_ns == 9_000


# --- the verb ------------------------------------------------------------------------------------


def test_it_says_where_to_look(app, trace, capsys):
    with live(app) as running:
        assert main(["push", str(trace), f"{running.url}/"]) == 0
    assert capsys.readouterr().out.endswith(f"look at it: {running.url}/dash/run/{RUN}\n")


def test_the_report_as_json(app, trace, capsys):
    with live(app) as running:
        assert main(["push", str(trace), running.url + "/", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run_id"] == RUN
    assert (told["num_rows"], told["num_stored"], told["uncovered"]) == (803, 803, [])


def test_the_token_comes_from_the_environment(tmp_path, store, trace, capsys, monkeypatch):
    tokens = Tokens(tmp_path / "data")
    write, read = tokens.add("w", "write"), tokens.add("r", "read")
    with live(create_app(store, EchoSql(), tokens)) as running:
        monkeypatch.delenv("CASCADE_TOKEN", raising=False)
        for token in (None, "wrong", read):
            if token is not None:
                monkeypatch.setenv("CASCADE_TOKEN", token)
            assert main(["push", str(trace), running.url]) == 2
            err = capsys.readouterr().err
            assert "CASCADE_TOKEN" in err
            assert read not in err
        monkeypatch.setenv("CASCADE_TOKEN", write)
        assert main(["push", str(trace), running.url]) == 0


NO_TOKENS = ["s3cret\nX-Evil: 1", "s3cret\r", "s3cr\u00e9t", "s3cret\x7f\x00", "s3cret two"]


@pytest.mark.parametrize("token", NO_TOKENS[:1] + NO_TOKENS[2:3] + NO_TOKENS[4:])
def test_a_token_that_cannot_be_sent_is_said_and_not_shown(trace, capsys, monkeypatch, token):
    monkeypatch.setenv("CASCADE_TOKEN", token)
    for words in ((), ("--json",)):
        assert main(["push", str(trace), "http://127.0.0.1:1", "--timeout", "0", *words]) == 2
        told = capsys.readouterr()
        assert "CASCADE_TOKEN" in told.err
        assert "s3c" not in told.err + told.out


@pytest.mark.parametrize("token", [*NO_TOKENS, "s3cret\tx"])
def test_no_client_takes_such_a_token(token):
    with pytest.raises(BadUsage) as caught:
        Collector("http://127.0.0.1:1", token + "x")
    assert "s3c" not in str(caught.value)


def test_spaces_and_line_ends_around_a_token_are_no_part_of_it(tmp_path, store, trace, monkeypatch):
    tokens = Tokens(tmp_path / "data")
    monkeypatch.setenv("CASCADE_TOKEN", f" {tokens.add('w', 'write')}\n")
    with live(create_app(store, EchoSql(), tokens)) as running:
        assert main(["push", str(trace), running.url]) == 0


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://collector.example:7654", True),
        ("http://192.0.2.1", True),
        ("https://collector.example", False),
        ("http://127.0.0.1:7654", False),
        ("http://127.9.9.9", False),
        ("http://[::1]:7654", False),
        ("http://LOCALHOST", False),
    ],
)
def test_a_token_that_others_can_read_on_the_way_is_warned_of(url, warned):
    told = client_module.readable_on_the_way(url, "s3cret")
    assert (told is not None) == warned
    assert "s3cret" not in (told or "")
    assert client_module.readable_on_the_way(url, None) is None


def test_the_warning_is_one_line_on_stderr(trace, capsys, monkeypatch):
    monkeypatch.setenv("CASCADE_TOKEN", "s3cret")
    monkeypatch.setattr(httpx.Client, "request", _unreachable)
    assert main(["push", str(trace), "http://collector.example", "--timeout", "0"]) == 2
    err = capsys.readouterr().err
    assert [line for line in err.splitlines() if "unencrypted" in line] == err.splitlines()[:1]


def _unreachable(self, method, url, **_):
    raise httpx.ConnectError("refused", request=httpx.Request(method, url))


def test_a_password_in_what_is_no_url_is_not_shown(trace, capsys):
    for url in ("http://u:s3cret@[", "http://u:s3cret@x", "http://u:s3cret@x\n"):
        assert main(["push", str(trace), url]) == 2
        assert "s3cret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    ["", "localhost:7654", "ftp://x", "http://", "http://u:p@x", "http://[", "\0", "http://x?a"],
)
def test_what_is_no_url(trace, capsys, url):
    assert main(["push", str(trace), url]) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "u:p" not in err


def test_something_else_that_answers_is_said(trace):
    for status, body in ((200, b"<html>"), (404, b""), (500, b"[]")):
        with pytest.raises(CollectorRefused):
            sent(
                trace,
                "http://127.0.0.1:1",
                lambda _, s=status, b=body: (
                    httpx.Response(s, content=b)
                    if _.method != "GET" or s == 200
                    else httpx.Response(404)
                ),
            )


def test_a_certificate_that_is_not_trusted_is_not_tried_again(trace):
    waits = []

    def before(request):
        raise httpx.ConnectError("tls", request=request) from ssl.SSLCertVerificationError("no")

    with pytest.raises(CollectorAway) as caught:
        sent(trace, "https://127.0.0.1:1", before, waits=waits)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert waits == []


def test_a_run_id_that_cannot_be_in_a_path_is_said_before_anything_is_sent(tmp_path, capsys):
    folder = make_trace(tmp_path / "t", run_id="a/b")
    assert main(["push", str(folder), "http://127.0.0.1:1"]) == 2
    assert "a/b" in capsys.readouterr().err


def test_a_trace_that_is_none(capsys):
    assert main(["push", "no-such-trace", "http://127.0.0.1:1"]) == 2
    assert "samples:" in capsys.readouterr().err


def test_what_was_there_already_is_told_as_that(app, trace, capsys):
    with live(app) as running:
        assert main(["push", str(trace), running.url]) == 0
        assert f"run {RUN}: 803 of 803 rows stored, 0 were there already" in capsys.readouterr().out
        assert main(["push", str(trace), running.url]) == 0
        assert f"run {RUN}: 0 of 803 rows stored, 803 were there already" in capsys.readouterr().out
