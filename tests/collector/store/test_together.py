"""Batches of one commit are stored together; each is answered as if it had been stored alone."""

from __future__ import annotations

import random
import threading

import pytest

from collector.storage._interface import QueueFull
from collector.wire.batch import BadBatch
from collector.wire.records import encode_msgpack
from collector.wire.unread import unread
from tests.collector.store.rows import (
    RUN,
    batch,
    check,
    copy_of,
    done,
    entered,
    gap,
    json_batch,
    send,
    step,
    steps,
)


def later(records):
    found = unread(encode_msgpack(list(records)))
    assert found is not None
    return found


def in_one_commit(store, batches):
    """Append while the writer is held; the answers."""
    free, begun = threading.Event(), threading.Event()
    held = store._writer.do(lambda: (begun.set(), free.wait(20)))
    assert begun.wait(20)
    before = store._writer.num_commits
    futures = [store.append(one) for one in batches]
    free.set()
    held.result(20)
    answers = [future.exception(20) or future.result() for future in futures]
    assert store._writer.num_commits <= before + 1
    return answers


def counts(answers):
    return [
        answer.where if isinstance(answer, BadBatch) else (answer.num_rows, answer.num_duplicates)
        for answer in answers
    ]


def random_batches(rng, run):
    """What agents may send in a moment: in order, again, with holes, of two runs, or wrong."""
    streams = {}
    for rank in range(rng.randrange(1, 5)):
        for incarnation in range(rng.randrange(1, 3)):
            stream = []
            for seq in range(40):
                actor = {"rank": rank, "incarnation": incarnation, "run": run}
                if rng.random() < 0.4:
                    stream.append(entered(seq, **actor))
                    if rng.random() < 0.9:
                        stream.append(done(seq, **actor))
                else:
                    stream.append(step(seq, **actor))
                if len(stream) > 2 and rng.random() < 0.3:  # completions come later than they began
                    stream[-1], stream[-2] = stream[-2], stream[-1]
            streams[rank, incarnation] = stream
    batches = []
    while streams:
        key = rng.choice(sorted(streams))
        size = rng.randrange(1, 12)
        mine, streams[key] = streams[key][:size], streams[key][size:]
        if not streams[key]:
            del streams[key]
        if mine and rng.random() < 0.95:  # else a hole
            batches.append(mine)
        if rng.random() < 0.1:
            batches.append(list(rng.choice(batches or [mine])))
        if rng.random() < 0.05:
            batches.append(
                [step(rng.randrange(3), run=f"{run}-b"), step(50 + len(batches), run=run)]
            )
        if rng.random() < 0.05:
            batches.append([step(60 + len(batches), run=run), step(0, rank=-1, run=run)])  # no rank
        if rng.random() < 0.04:
            first = 100 + 3 * len(batches)
            batches.append([gap(first, first, first + 2, run=run)])
    return batches


@pytest.mark.parametrize("seed", range(3))
def test_a_group_is_stored_as_its_batches_one_by_one(embedded, tmp_path, seed):
    rng = random.Random(seed)
    store, num_bad = embedded(), 0
    for turn in range(6):
        one, other = f"one-{turn}", f"all-{turn}"
        state = rng.getstate()
        singly = [*random_batches(rng, one)]
        rng.setstate(state)
        together = [*random_batches(rng, other)]
        want = [in_one_commit(store, [later(records)])[0] for records in singly]
        found, at = [], 0
        while at < len(together):
            num = rng.randrange(1, 25)
            found += in_one_commit(store, map(later, together[at : at + num]))
            at += num
        assert counts(found) == counts(want)
        marks = [{(m.rank, m.incarnation): m.seq for m in store.marks(run)} for run in (one, other)]
        assert marks[0] == marks[1]
        good = [
            record
            for records, answer in zip(together, found, strict=True)
            for record in records
            if not isinstance(answer, BadBatch)
        ]
        num_bad += sum(isinstance(answer, BadBatch) for answer in found)
        if turn % 2:
            store.publish(other)
        if turn == 4:  # what is stored as one is read again as one
            store = embedded(copy_of(embedded.data, tmp_path / f"copy-{turn}"))
        check(store, good, other)
    assert num_bad


def test_many_batches_are_one_part_and_each_has_its_receipt(embedded):
    store = embedded()
    sent = [steps(0, 16, rank=rank) for rank in range(30)]
    committed = []
    commit = store._journal.commit
    store._journal.commit = lambda number, parts, runs: (
        committed.append([part.num_rows for part in parts]),
        commit(number, parts, runs),
    )
    answers = in_one_commit(store, map(later, sent))
    assert committed == [[17 * 30]]
    assert counts(answers) == [(17, 0)] * 30
    assert [[(m.rank, m.seq) for m in answer.marks] for answer in answers] == [
        [(rank, 16)] for rank in range(30)
    ]
    check(store, [row for rows in sent for row in rows])


def test_a_duplicate_among_many_takes_no_other_one_with_it(embedded):
    store = embedded()
    send(store, *steps(0, 3, rank=7))
    sent = [steps(0, 3, rank=rank) for rank in range(20)]
    assert counts(in_one_commit(store, map(later, sent))) == [
        (0, 4) if rank == 7 else (4, 0) for rank in range(20)
    ]
    check(store, [row for rows in sent for row in rows])


def test_completions_join_rows_of_the_same_commit_of_memory_and_of_the_folder(embedded):
    store = embedded()
    send(store, *[entered(seq) for seq in range(4)])
    store.publish(RUN)  # these are records in memory and in the file of open ones
    send(store, *[entered(seq) for seq in range(4, 8)])
    sent = [
        [entered(8)],
        [done(8), done(0)],
        [done(5)],
        [entered(9), done(9)],
        [done(1)],
        [done(6)],
    ]
    assert counts(in_one_commit(store, map(later, sent))) == [(len(s), 0) for s in sent]
    check(store, [entered(seq) for seq in range(8)] + [record for s in sent for record in s])


@pytest.mark.parametrize("make", [batch, json_batch, later])
def test_a_completion_twice_in_one_batch_is_one(embedded, make):
    store = embedded()
    send(store, entered(0), entered(1))
    (answer,) = in_one_commit(store, [make([done(0), done(1), done(0)])])
    assert (answer.num_rows, answer.num_duplicates) == (2, 1)
    check(store, [entered(0), entered(1), done(0), done(1)])


def test_unread_batches_count_in_the_queue_until_they_are_answered(embedded):
    store = embedded(max_queued_rows=100)
    free, begun = threading.Event(), threading.Event()
    held = store._writer.do(lambda: (begun.set(), free.wait(20)))
    assert begun.wait(20)
    futures = [store.append(later(steps(0, 29, rank=rank))) for rank in range(3)]
    with pytest.raises(QueueFull):
        store.append(later(steps(0, 29, rank=3)))
    free.set()
    held.result(20)
    assert [future.result(20).num_rows for future in futures] == [30] * 3
    assert store._writer.num_queued_rows == 0
    assert store._writer._queued_bytes == 0


@pytest.mark.parametrize("first", ["record", "scan"])
def test_a_completion_that_two_batches_of_a_commit_bring_is_one(embedded, first):
    """Scanned batches list their completions only when another batch has to be looked into."""
    store = embedded()
    send(store, entered(0))
    scanned = later([done(0), entered(1), done(1), step(2)])
    looked_into = json_batch([done(0), done(1), step(3)])
    batches = [scanned, looked_into] if first == "scan" else [looked_into, scanned]
    answers = in_one_commit(store, batches)
    # Each row and each completion is counted once, whichever batch comes first.
    assert sum(answer.num_rows for answer in answers) == 5
    check(store, [entered(0), done(0), entered(1), done(1), step(2), step(3)])
