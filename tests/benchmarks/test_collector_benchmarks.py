"""The collector's benchmarks run at small sizes, and what they check themselves can fail."""

import json
import selectors
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from benchmarks import (
    _collector,
    _paced,
    _postgres,
    _rows,
    crash_safety,
    ingest,
    ingest_connections,
)
from benchmarks import reads_during_ingest as reads
from benchmarks._asking import Asked, Asker
from benchmarks._load import Failed, Queue, Sent, closed_loop
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from collector.wire.batch import ARROW, MSGPACK, NDJSON
from collector.wire.decode import decode

ROOT = Path(__file__).parents[2]


def quick(name):
    command = [sys.executable, "-m", "benchmarks", name, "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert line["name"] == name
    return line


def has_postgres():
    try:
        return bool(_postgres.program("postgres") and _postgres.program("initdb"))
    except Failed:
        return False


# ---- they run ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(320)
@pytest.mark.skipif(not has_postgres(), reason="PostgreSQL is not installed")
def test_ingest():
    line = quick("ingest")
    assert line["figure"]["rows/s"] > 0
    assert set(line["against"]) >= set(ingest.PEERS)


@pytest.mark.slow
@pytest.mark.timeout(320)
def test_ingest_connections():
    line = quick("ingest_connections")
    assert (line["figure"]["resets"], line["figure"]["errors"]) == (0, 0)


@pytest.mark.long
@pytest.mark.timeout(320)
def test_reads_during_ingest():
    line = quick("reads_during_ingest")
    assert line["figure"]["p95"] > 0 and line["against"]["/v1/sql p95"] > 0


@pytest.mark.long
@pytest.mark.timeout(320)
def test_crash_safety():
    line = quick("crash_safety")
    assert line["figure"] == {"lost": 0, "doubled": 0} and line["holds"]


# ---- rows ----------------------------------------------------------------------------------------


def taken(num_batches, *, whole=False, start=0, size=500):
    host = _rows.Host("run-a", 3, start=start, whole=whole)
    return [host.take(size) for _ in range(num_batches)]


def keys(records):
    return [(r[2], r[3], r[4]) for r in records if r[0] != _rows.DONE]


@pytest.mark.parametrize("start", [0, 1234, 6178])
def test_rows_are_unique_and_contiguous_for_every_actor(start):
    found = [key for batch in taken(30, start=start) for key in keys(batch.records)]
    assert len(found) == len(set(found)) == 15_000
    actors = {}
    for rank, incarnation, seq in found:
        actors.setdefault((rank, incarnation), []).append(seq)
    assert len(actors) > 10  # the sample was told more than once
    assert all(seqs == list(range(len(seqs))) for seqs in actors.values())


def test_rows_keep_the_table_mix():
    records = [r for batch in taken(40) for r in batch.records if r[0] != _rows.DONE]
    share = sum(r[0] == "updates" for r in records) / len(records) * 100
    assert share == pytest.approx(_rows.mix()["updates"], abs=2)


def test_a_batch_says_what_it_brings_each_actor():
    for batch in taken(20, start=777):
        rows = [r for r in batch.records if r[0] != _rows.DONE]
        assert batch.num_rows == len(rows) == 500
        assert sum(done for _, _, done in batch.actors.values()) == len(batch.records) - 500
        for (rank, incarnation), (first, last, _) in batch.actors.items():
            mine = [r[4] for r in rows if (r[2], r[3]) == (rank, incarnation)]
            assert mine == (list(range(first, last + 1)) if first >= 0 else [])


@pytest.mark.parametrize("form", [MSGPACK, ARROW, NDJSON])
def test_the_collector_takes_every_form(form):
    from collector.web.unpack import unpack

    for batch in taken(15, whole=form == ARROW):
        body, packing = _rows.body_of(form, batch.records)
        plain = unpack(packing, body, 1 << 28) if packing else body
        assert decode(form, plain).num_rows == len(batch.records)


def test_whole_collectives_are_the_union_of_both_records():
    whole = [r for b in taken(10, whole=True) for r in b.records if r[0] == "collectives"]
    parts = [r for b in taken(10) for r in b.records if r[0] in ("collectives", _rows.DONE)]
    done = {tuple(r[2:5]): r for r in parts if r[0] == _rows.DONE}
    names = [c.name for c in EVENT_TABLES["collectives"].columns]
    at = names.index("done_seq") + 1
    completed = [r for r in whole if tuple(r[2:5]) in done]
    assert len(completed) > 100
    assert all(r[at] == done[tuple(r[2:5])][5] for r in completed)


# ---- what a count that is off does ---------------------------------------------------------------


def test_ingest_fails_when_rows_are_missing_or_doubled():
    ingest.check_count("x", 500, 500)
    for found in (499, 501):
        with pytest.raises(Failed, match=str(found)):
            ingest.check_count("x", 500, found)


def rounds(rate, num=5):
    sent = Sent(num_rows=rate, seconds=1.0, latencies_ms=[1.0])
    return [ingest.Round(sent, 1.0) for _ in range(num)]


def judged(ours, marks, key):
    found = {"ours": rounds(ours), "postgres, marks": rounds(marks), "ours again": rounds(ours)}
    return ingest.judge(found | {"postgres, primary key": rounds(key)})


def test_ingest_is_judged_against_the_faster_peer_and_the_rate():
    assert judged(150_000, 100_000, 10_000).holds
    assert judged(150_000, 10_000, 100_000).holds
    assert not judged(149_000, 100_000, 10_000).holds
    assert not judged(149_000, 10_000, 100_000).holds
    assert not judged(99_000, 10_000, 10_000).holds
    assert judged(150_000, 10_000, 100_000).figure["ratio"] == 1.5


@pytest.mark.slow
@pytest.mark.skipif(not has_postgres(), reason="PostgreSQL is not installed")
@pytest.mark.parametrize("how", ["marks", "key"])
def test_the_peer_stores_every_row_and_drops_duplicates(how):
    with _postgres.Postgres(how) as server:
        (queue,) = _postgres.queues(how, 1, 4, 500)
        client = _postgres.Client(server.address)
        assert [client.ask(request) for request in queue.requests] == [200] * 4
        assert server.num_rows(_collector.RUN_ID) == 2000
        if how == "key":
            client.ask(queue.requests[1])
        else:  # the session goes on after a refusal
            with pytest.raises(Failed, match="does not follow"):
                client.ask(queue.requests[1])
            with pytest.raises(Failed, match="does not follow"):
                client.ask(queue.requests[1])
        client.close()
        assert server.num_rows(_collector.RUN_ID) == 2000


# ---- loads ---------------------------------------------------------------------------------------


class Canned:
    """A client that is answered from a list of statuses."""

    def __init__(self, statuses):
        self._statuses = iter(statuses)

    def ask(self, _request):
        return next(self._statuses)

    def close(self):
        pass


def test_a_closed_loop_sends_again_what_was_not_taken():
    sent = closed_loop([Queue([b"a", b"b"], [3, 4])], Canned, [200, 429, 503, 200])
    assert (sent.num_rows, sent.num_again, len(sent.latencies_ms)) == (7, 2, 2)


def test_a_closed_loop_fails_on_a_refusal():
    with pytest.raises(Failed, match="422"):
        closed_loop([Queue([b"a", b"b"], [3, 4])], Canned, [200, 422])


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Stub:
    """A server that does with each request what it is told: an answer, or None to hang up.

    The first ``held`` requests are answered only when ``release`` is set.
    """

    def __init__(self, answer, held=0):
        self._answer, self._held = answer, held
        self.release = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.close()
        self._thread.join()
        self._stopped.close()
        self._socket.close()

    def _run(self):
        selector = selectors.DefaultSelector()
        selector.register(self._socket, selectors.EVENT_READ)
        selector.register(self._stopped, selectors.EVENT_READ)
        lines = []
        while True:
            for key, _ in selector.select():
                if key.fileobj is self._stopped:
                    for line in lines:
                        line.close()
                    selector.close()
                    return
                if key.fileobj is self._socket:
                    lines.append(self._socket.accept()[0])
                    selector.register(lines[-1], selectors.EVENT_READ)
                    continue
                self._answer_one(key.fileobj, selector)

    def _answer_one(self, line, selector):
        if not line.recv(1 << 16) or self._answer is None:
            selector.unregister(line)
            line.close()
            return
        if self._held:
            self._held -= 1
            self.release.wait(20)
        line.sendall(self._answer)


def paced(stub, num_requests=4, period_s=0.05):
    plans = [_paced.Plan([b"x"] * num_requests, [5] * num_requests, 0.0)]
    return _paced.run_paced(stub.address, plans, period_s, 0.0)


def test_a_paced_load_counts_what_was_answered():
    with Stub(ANSWER) as stub:
        done = paced(stub)
    assert (done.num_rows, done.num_requests, done.num_resets, done.errors) == (20, 4, 0, [])
    assert len(done.latencies_ms) == len(done.lags_ms) == 4


def test_a_stall_is_charged_to_every_request_that_it_kept():
    with Stub(ANSWER, held=1) as stub:
        timer = threading.Timer(0.5, stub.release.set)
        timer.start()
        done = paced(stub)
        timer.join()
    # Timetabled at 0, 50, 100 and 150 ms; the connection was free again after 300 ms at the earliest.
    assert len(done.latencies_ms) == 4 and min(done.latencies_ms) > 100
    assert len(done.lags_ms) == 1  # of the others the generator could not be early or late


def test_a_hang_up_is_a_reset_and_ends_that_connection():
    with Stub(None) as stub:
        done = paced(stub)
    assert (done.num_rows, done.num_resets) == (0, 1)
    assert "closed by the collector" in done.errors[0]


def test_a_refusal_is_an_error():
    with Stub(b"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n") as stub:
        done = paced(stub, 2)
    assert (done.num_rows, len(done.errors)) == (0, 2)


def connections(ms=10.0, lag=1.0, **other):
    run = _paced.Paced(1700, 100, [ms] * 100, [lag] * 100, seconds=1.0, **other)
    return ingest_connections.judge([run], 100)


def test_connections_hold_by_time_resets_errors_and_a_generator_in_time():
    assert connections().holds
    assert not connections(ms=151.0).holds
    assert not connections(num_resets=1).holds
    assert not connections(errors=["503"]).holds
    late = connections(lag=21.0)
    assert not late.holds and late.notes[-1].startswith("void")


# ---- reads ---------------------------------------------------------------------------------------


def asked(ms, *, load_was_on=True):
    sent = Sent(num_rows=1000, seconds=1.0, end=10.0)
    return [reads.Round([Asked("a", 1.0, ms, 1)] * 20, sent=sent, load_was_on=load_was_on)]


def test_reads_are_judged_by_the_dashboards_path():
    assert reads.judge({"query": asked(149.0), "/v1/sql": asked(900.0)}).holds
    assert not reads.judge({"query": asked(151.0), "/v1/sql": asked(1.0)}).holds


def test_reads_without_load_are_void():
    result = reads.judge({"query": asked(1.0, load_was_on=False), "/v1/sql": asked(1.0)})
    assert not result.holds and result.notes[-1].startswith("void")


@pytest.mark.parametrize("empty", ["query", "/v1/sql"])
def test_reads_without_an_answer_are_void(empty):
    nothing = [reads.Round(sent=Sent(num_rows=0, seconds=0.0, end=10.0))]
    result = reads.judge({"query": asked(1.0), "/v1/sql": asked(1.0)} | {empty: nothing})
    assert not result.holds and result.notes[-1].startswith("void")
    assert result.figure["p95"] == (None if empty == "query" else 1.0)
    assert result.against["/v1/sql p95"] == (1.0 if empty == "query" else None)


def test_a_round_of_reads_without_an_answer_is_in_no_spread():
    nothing = [reads.Round(sent=Sent(num_rows=1000, seconds=1.0, end=10.0))]
    result = reads.judge({"query": asked(1.0) + nothing, "/v1/sql": asked(1.0)})
    assert not result.holds and result.spread == {"p95": [1.0]} and result.figure["p95"] == 1.0


def test_questions_are_asked_once_however_short_the_time():
    for _ in range(5):
        assert Asker(lambda sql: 7, [("a", "SELECT 1")]).stop()[0].num_rows == 7


# ---- crash safety --------------------------------------------------------------------------------


def found(num_rows=10, num_distinct=10, last_seq=9, num_done=2):
    return {(0, 0): crash_safety.Found(num_rows, num_distinct, last_seq, num_done)}


ACKED = crash_safety.Acked({(0, 0): 10}, {(0, 0): 2}, 1, 0)


@pytest.mark.parametrize(
    ("witness", "lost", "doubled", "unknown"),
    [
        (found(), 0, 0, 0),
        (found(9, 9, 9), 1, 0, 0),
        (found(11, 10, 9), 0, 1, 0),
        (found(10, 9, 9), 1, 1, 0),
        (found(11, 11, 10), 0, 0, 1),
        (found(num_done=1), 1, 0, 0),
        ({}, 12, 0, 0),
        (found() | {(7, 0): crash_safety.Found(3, 3, 2)}, 0, 0, 3),
    ],
)
def test_what_is_lost_and_what_is_doubled(witness, lost, doubled, unknown):
    count = crash_safety.compare(ACKED, witness, with_done=True)
    assert (count.lost, count.doubled, count.unknown) == (lost, doubled, unknown)


@pytest.mark.parametrize("name", ["lost", "doubled", "unknown"])
def test_one_row_of_one_witness_is_enough(name):
    good = crash_safety.Count()
    bad = crash_safety.Count(**{name: 1})
    for counts in ({"a": good, "b": bad}, {"a": bad, "b": good}):
        ordeal = crash_safety.Ordeal(ACKED, counts, 1, [1.0], 1.0)
        assert not crash_safety.judge(ordeal).holds
    assert crash_safety.judge(crash_safety.Ordeal(ACKED, {"a": good}, 1, [1.0], 1.0)).holds
    nothing = crash_safety.Acked()
    assert not crash_safety.judge(crash_safety.Ordeal(nothing, {"a": good}, 1, [1.0], 1.0)).holds


def test_the_folder_is_looked_through_for_double_rows(tmp_path):
    import shutil

    from collector.data_folder import run_folder

    root = run_folder(tmp_path, crash_safety.RUN_ID)
    shutil.copytree(_rows.SAMPLE, root)
    meta = json.loads((root / "trace.json").read_text()) | {"run_id": crash_safety.RUN_ID}
    (root / "trace.json").write_text(json.dumps(meta))
    rename_run(root)
    before = crash_safety.in_folder(tmp_path)
    assert sum(f.num_rows for f in before.values()) == _rows.sample().num_rows
    (file,) = (root / "events" / "steps").glob("*.parquet")
    shutil.copy(file, file.with_name("again.parquet"))
    after = crash_safety.in_folder(tmp_path)
    doubled = sum(f.num_rows - f.num_distinct for f in after.values())
    assert doubled == sum(item.record[0] == "steps" for item in _rows.sample().items)


def rename_run(root):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in (root / "events").glob("*/*.parquet"):
        rows = pq.ParquetFile(file).read()
        at = rows.schema.get_field_index("run_id")
        ids = pa.array([crash_safety.RUN_ID] * rows.num_rows, pa.string())
        pq.write_table(rows.set_column(at, "run_id", ids), file)
