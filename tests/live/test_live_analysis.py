"""Runs are judged while they grow, and what is found can be asked for in SQL."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analyzer import analyze
from cascade_runtime.vocabulary.schema import EVENT_TABLES
from cascade_runtime.vocabulary.trace_meta import TraceMeta
from collector.hot.options import StoreOptions
from collector.storage.embedded import EmbeddedStore
from collector.trace.samples import resolve_trace
from collector.trace.trace_folder import TraceFolder, open_trace
from collector.wire.arrow_body import encode_arrow
from collector.wire.batch import ARROW
from collector.wire.decode import decode
from dashboard.live.run_watch import RunWatch
from tests.live.servers import Server, cascade


def slices(sample: str, num: int) -> list[dict[str, pa.Table]]:
    """A trace's rows cut into ``num`` stretches of time, as a live run brings them."""
    with open_trace(resolve_trace(sample)) as source:
        tables = {name: source.table(name) for name in EVENT_TABLES}
    times = pa.concat_arrays([t["wall_ns"].combine_chunks() for t in tables.values()])
    low, high = pc.min(times).as_py(), pc.max(times).as_py() + 1
    edges = [low + (high - low) * i // num for i in range(num + 1)]
    cut = []
    for a, b in itertools.pairwise(edges):
        part = {}
        for name, rows in tables.items():
            inside = pc.and_(pc.greater_equal(rows["wall_ns"], a), pc.less(rows["wall_ns"], b))
            part[name] = rows.filter(inside)
        cut.append(part)
    return cut


def hung(sample: str, step: int, rank: int) -> dict[str, pa.Table]:
    """A trace's rows up to the end of a step whose collectives never completed on ``rank``."""
    with open_trace(resolve_trace(sample)) as source:
        tables = {name: source.table(name) for name in EVENT_TABLES}
    rows = tables["steps"].filter(pc.equal(tables["steps"]["step"], step))
    last = pc.max(rows["wall_ns"]).as_py()
    tables = {n: t.filter(pc.less_equal(t["wall_ns"], last)) for n, t in tables.items()}
    told = tables["collectives"].to_pylist()
    for row in told:
        if row["step"] >= step and row["rank"] == rank:
            row.update(completed=False, complete_ns=None, done_seq=None)
    tables["collectives"] = pa.Table.from_pylist(told, tables["collectives"].schema)
    return tables


def running(meta: TraceMeta) -> TraceMeta:
    """What the run said of itself while it ran."""
    return msgspec.structs.replace(meta, ended_ns=None, clean_end=None)


def send(store: EmbeddedStore, tables: dict[str, pa.Table]) -> None:
    store.append(decode(ARROW, encode_arrow(tables))).result(timeout=20)


def test_a_growing_run_is_judged_and_segments_are_read_once(tmp_path: Path) -> None:
    with open_trace(resolve_trace("kill-one")) as source:
        meta, expected = source.meta, analyze(source).report
    options = StoreOptions(publish_every_s=3600, segment_rows=200)
    store = EmbeddedStore(tmp_path / "data", options)
    store.put_meta(running(meta))
    watch = RunWatch(Path(store.run(meta.run_id).path))
    verdicts = []
    for part in slices("kill-one", 4):
        send(store, part)
        store.publish()
        assert watch.judge()
        verdicts.append(watch.verdict)
        assert not watch.judge()  # nothing has changed
    assert verdicts == ["unknown"] * 4  # what is not here yet is neither proof nor accusation
    segments = list(watch.root.glob("events/*/0*.parquet"))
    assert len(segments) > 8
    before = watch._cache.num_read
    send(store, {"steps": one_more_step(meta.run_id)})
    store.publish()
    assert watch.judge()
    # Only what was written again is read again: tails and the open collectives, column set by set.
    tails = [f for f in watch.root.glob("events/*/*.parquet") if f not in segments]
    assert watch._cache.num_read - before <= 4 * len(tails)
    store.put_meta(meta)
    store.publish()
    assert watch.judge()
    assert watch.verdict == expected.verdict == "ok"
    assert store.run(meta.run_id).verdict == "ok"
    assert watch._cache.num_bytes == 0  # it has ended
    assert not RunWatch(watch.root).judge()  # as after a restart
    store.close()


@pytest.mark.parametrize("sample", ["clean", "kill-one"])
def test_a_sound_run_is_never_accused_while_it_grows(tmp_path: Path, sample: str) -> None:
    """Cut anywhere, also where one actor's rows are further along than another's."""
    rng = random.Random(5)
    parts = slices(sample, 24)
    with open_trace(resolve_trace(sample)) as source:
        meta = source.meta
    for trial in range(5):
        upto = rng.randrange(1, 24)
        late = {rank: upto - rng.randrange(3) for rank in range(meta.world_size)}
        store = EmbeddedStore(tmp_path / f"{trial}", StoreOptions(publish_every_s=3600))
        store.put_meta(running(meta))
        for number, part in enumerate(parts[:upto]):
            known = [rank for rank, end in late.items() if number < end]
            send(
                store,
                {
                    n: t.filter(pc.is_in(t["rank"], pa.array(known, pa.int32())))
                    for n, t in part.items()
                },
            )
        store.publish()
        watch = RunWatch(Path(store.run(meta.run_id).path))
        watch.judge()
        store.close()
        assert watch.verdict == "unknown", f"seed 5, trial {trial}, cut {upto}, late {late}"


def test_a_run_that_fell_silent_is_judged_by_what_is_missing(tmp_path: Path) -> None:
    """A hang never ends a run: after the quiet time, absence is evidence."""
    with open_trace(resolve_trace("kill-one")) as source:
        meta = source.meta
    now = 0.0
    store = EmbeddedStore(tmp_path / "data", StoreOptions(publish_every_s=3600))
    store.put_meta(running(meta))
    send(store, hung("kill-one", step=90, rank=0))
    store.publish()
    watch = RunWatch(Path(store.run(meta.run_id).path), quiet_s=30, mono_s=lambda: now)
    assert watch.judge()
    assert watch.verdict == "unknown"
    assert not watch.judge()
    now = 31.0
    assert cascade("analyze", str(watch.root)).returncode == 3  # unknown: rows came just now
    assert watch.judge()
    assert watch.verdict == "violated"  # G4: completed on one member, never on another
    assert not watch.judge()
    store.close()


def one_more_step(run_id: str) -> pa.Table:
    with open_trace(resolve_trace("kill-one")) as source:
        rows = source.table("steps").filter(pc.equal(source.table("steps")["rank"], 0))
    last = rows.slice(rows.num_rows - 1)
    with open_trace(resolve_trace("kill-one")) as source:
        seqs = [
            value
            for name in EVENT_TABLES
            for rank, value in zip(
                *source.table(name, ["rank", "seq"]).to_pydict().values(), strict=True
            )
            if rank == 0
        ]
    at = last.schema.get_field_index("seq")
    return last.set_column(at, last.schema.field(at), pa.array([max(seqs) + 1], pa.int64()))


def test_live_judgement_equals_a_whole_one(tmp_path: Path) -> None:
    """However a run came in, its last judgement is that of its whole trace."""
    sample = resolve_trace("kill-one")
    with open_trace(sample) as source:
        meta, whole = source.meta, analyze(source)
    store = EmbeddedStore(tmp_path / "data", StoreOptions(publish_every_s=3600, segment_rows=300))
    watch = RunWatch(tmp_path / "data" / "runs" / meta.run_id)
    for part in slices("kill-one", 3):
        send(store, part)
        store.publish()
        watch.judge()
    store.put_meta(meta)  # the run's own description comes last here
    store.publish()
    watch.judge()
    with TraceFolder(watch.root) as source:
        for name, rows in whole.results.items():
            assert sorted(map(str, source.result(name).to_pylist())) == sorted(
                map(str, rows.to_pylist())
            )
    store.close()


def test_results_of_a_served_run_come_by_sql(serve: Callable[..., Server]) -> None:
    server = serve("served")
    assert cascade("push", "kill-one", server.url).returncode == 0
    until = time.monotonic() + 60
    while time.monotonic() < until:
        (run,) = server.get("/v1/runs")["runs"]
        if run["verdict"] == "ok":
            break
        time.sleep(0.1)
    assert run["verdict"] == "ok"
    for statement in ("SELECT count(*) FROM waits", "SELECT count(*) FROM regime_timeline"):
        answer = httpx.post(server.url + "/v1/sql", json={"sql": statement}, timeout=30)
        assert answer.status_code == 200, answer.text
        assert answer.json()["rows"][0][0] > 0
