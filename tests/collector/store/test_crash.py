"""Crashes: a seeded walk against a model, every step of publishing cut short, kill -9."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.errors import CascadeError
from collector.hot import publisher, run_files
from collector.hot.journal import Journal
from collector.trace import durable
from tests.collector.store.rows import (
    RUN,
    batch,
    check,
    copy_of,
    done,
    entered,
    gap,
    in_folder,
    json_batch,
    queried,
    rows_of,
    send,
    sent_meta,
    step,
    steps,
)


@pytest.fixture(autouse=True)
def quick(no_views_file, monkeypatch):
    """Syncs matter when power fails, which no test can do."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


# ---- a walk --------------------------------------------------------------------------------------


class Sender:
    """Makes records of an actor: steps, collectives whose completion comes later or never, gaps."""

    def __init__(self, chance, rank):
        self.chance, self.rank, self.seq, self.open, self.sent = chance, rank, 0, [], []

    def next_batch(self):
        records = []
        for _ in range(self.chance.randrange(1, 8)):
            what = self.chance.choice(["step", "step", "entered", "done", "gap"])
            if what == "done" and self.open:
                seq = self.open.pop(self.chance.randrange(len(self.open)))
                records.append(done(seq, self.rank))
                continue
            if what == "entered":
                self.open.append(self.seq)
                records.append(entered(self.seq, self.rank))
            elif what == "gap":
                records.append(gap(self.seq, self.seq, self.seq + 2, self.rank))
                self.seq += 2
            else:
                records.append(step(self.seq, self.rank))
            self.seq += 1
        if self.sent and self.chance.random() < 0.3:
            records += self.chance.choice(self.sent)  # once more
        if self.chance.random() < 0.2:
            self.chance.shuffle(records)
        self.sent.append(records)
        return records


@pytest.mark.parametrize("seed", range(5))
def test_walk(embedded, tmp_path, seed):
    chance = random.Random(seed)
    options = {"segment_rows": 12, "idle_s": 0.0}
    store = embedded(**options)
    senders = [Sender(chance, rank) for rank in range(2)]
    acknowledged = []
    for turn in range(45):
        what = chance.choice(["send"] * 6 + ["publish", "seal", "reopen", "crash", "meta"])
        if what == "send":
            records = chance.choice(senders).next_batch()
            send(store, *records)
            acknowledged += records
        elif what == "publish":
            store.publish()
        elif what == "seal":
            store.put_meta(sent_meta(name=f"turn {turn}"))
            store._publisher.publish_all()
        elif what == "meta":
            store.put_meta(sent_meta(name=f"turn {turn}", ended_ns=None))
        elif what == "reopen":
            store = embedded(**options)
        else:
            store = embedded(copy_of(embedded.data, tmp_path / f"crash-{turn}"), **options)
        if turn % 5 == 4 and acknowledged:
            assert queried(store) == rows_of(acknowledged), (seed, turn, what)
    check(store, acknowledged)
    check(embedded(copy_of(embedded.data, tmp_path / "last"), **options), acknowledged)
    for sender in senders:
        for records in sender.sent:
            assert send(embedded.store, *records).num_rows == 0


# ---- every step of publishing --------------------------------------------------------------------


class CutOffError(OSError):
    """Where the k-th step should have been."""


class Steps:
    """Counts the steps that change disk or journal; the k-th does not happen, nor any after it."""

    def __init__(self, monkeypatch):
        self.num, self.at, self.after = 0, None, False
        for place, name in (
            (durable, "publish"),
            (run_files, "sync_folder"),
            (run_files, "write_parquet"),
            (publisher, "write_file"),
            (publisher, "write_views"),
            (Path, "rename"),
            (Journal, "flushed"),
        ):
            monkeypatch.setattr(place, name, self._counted(getattr(place, name)))

    def _counted(self, real):
        def call(*args, **more):
            self._step()
            result = real(*args, **more)
            if self.after:
                self._step()
            return result

        return call

    def _step(self):
        if self.at is not None:
            self.num += 1
            if self.num > self.at:
                raise CutOffError(28, "the test ends here")

    def cut(self, at):
        self.num, self.at = 0, at


BEFORE = [entered(0), entered(1), *steps(2, 6), done(0), done(9), gap(7, 7, 8)]
SINCE = [done(1), entered(9), *steps(10, 14), entered(15), entered(16), done(16)]


@pytest.mark.parametrize("whole", [False, True], ids=["tails", "segments"])
def test_publishing_cut_short_anywhere(embedded, tmp_path, monkeypatch, whole):
    """The k-th step fails, for every k: nothing is lost, nothing doubled, crash or no crash."""
    cutter = Steps(monkeypatch)
    cutter.after = whole
    k, expected = 0, [*BEFORE, *SINCE]
    while True:
        store = embedded(tmp_path / f"data-{k}", segment_rows=6)
        send(store, *BEFORE)
        store.publish()
        send(store, *SINCE)
        cutter.cut(k)
        with suppress(CascadeError, OSError):
            store._publisher.publish(store._catalog.find(RUN), whole=whole)
        num_steps = cutter.num
        cutter.cut(None)
        after_a_crash = copy_of(embedded.data, tmp_path / f"copy-{k}")
        for data in (None, after_a_crash):
            store = store if data is None else embedded(data, segment_rows=6)
            assert queried(store) == rows_of(expected), k
            assert send(store, *expected).num_rows == 0
            send(store, done(15), *steps(17, 20))
            store.publish()
            assert in_folder(store) == rows_of([*expected, done(15), *steps(17, 20)])
        if num_steps <= k:
            break
        k += 1
    assert k >= 5


def test_a_run_that_goes_on_while_it_is_sealed(embedded, tmp_path):
    """Rows that come between the snapshot and the journal's forgetting stay hot."""
    store = embedded()
    store.put_meta(sent_meta())
    send(store, *steps(0, 3))
    run = store._catalog.find(RUN)
    write_open = run.files.write_open

    def meanwhile(rows, commit):
        send(store, *steps(4, 6))
        write_open(rows, commit)

    run.files.write_open = meanwhile
    store._publisher.publish(run, whole=True)
    run.files.write_open = write_open
    store.publish()
    store = embedded(copy_of(embedded.data, tmp_path / "copy"))
    check(store, steps(0, 6))
    send(store, *steps(7, 8))
    check(store, steps(0, 8))


def test_a_snapshot_holds_whole_commits_only(embedded, tmp_path, monkeypatch):
    """Two batches of one commit, published in between: what is forgotten is in the folder."""
    store = embedded()
    send(store, step(0))
    run = store._catalog.find(RUN)
    hold_writer(store, lambda: [store.append(batch([step(n)])) for n in (1, 2, 3)])
    store.marks(RUN)
    snapshots = []
    apply = run.rows.apply

    def spied(commit, parts):
        apply(commit, parts)
        snapshots.append((commit, len(parts), run.rows.snapshot().tables["steps"]))

    monkeypatch.setattr(run.rows, "apply", spied)
    forms = (batch, json_batch, batch)  # of one form they are one part
    hold_writer(store, lambda: [store.append(form([step(4 + n)])) for n, form in enumerate(forms)])
    store.marks(RUN)
    ((_, num_parts, chunks),) = snapshots
    assert num_parts == 3
    assert sum(rows.num_rows for rows in chunks) == 7


def hold_writer(store, meanwhile):
    """Do something while the writer is busy: what is appended then is one commit."""
    free = threading.Event()
    held = store._writer.do(free.wait)
    meanwhile()
    free.set()
    held.result(20)


# ---- kill -9 -------------------------------------------------------------------------------------

VICTIM = """
import json, sys
from pathlib import Path
from collector.hot.options import StoreOptions
from collector.storage.embedded import EmbeddedStore
from tests.collector.store.rows import batch, done, entered, steps
store = EmbeddedStore(Path(sys.argv[1]), StoreOptions(publish_every_s=0.01, segment_rows=300))
first = int(sys.argv[2])
while True:
    waiting = []
    for _ in range(4):
        records = [entered(first), *steps(first + 1, first + 19), done(first)]
        waiting.append((first, store.append(batch(records))))
        first += 20
    for start, future in waiting:
        future.result()
        print(start, flush=True)
"""


@pytest.mark.chaos
def test_kill_9(embedded):
    """Killed at any moment: every acknowledged row is there once."""
    chance = random.Random(9)
    acknowledged, first = set(), 0
    for _ in range(6):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(embedded.data), str(first)],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [victim.stdout.readline() for _ in range(chance.randrange(1, 60))]
        victim.send_signal(signal.SIGKILL)
        lines += victim.stdout.readlines()
        victim.stdout.close()
        victim.wait()
        acknowledged |= {int(line) for line in lines if line.endswith("\n")}
        store = embedded()
        rows = queried(store)
        keys = [row.seq for row in rows]
        assert len(keys) == len(set(keys)) == store.run(RUN).num_rows
        assert {start + n for start in acknowledged for n in range(20)} <= set(keys)
        assert all(row.done_seq is not None for row in rows if row.seq in acknowledged)
        first = max(keys) + 1
        store.publish()
        assert in_folder(store) == rows
        embedded.close()
