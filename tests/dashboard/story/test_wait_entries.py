"""Who made whom wait, of entries in any order; what is kept of them is bounded."""

from __future__ import annotations

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from dashboard.story import wait_entries
from dashboard.story.wait_entries import WaitEntries


def table(rows):
    names = ("comm_id", "cseq", "rank", "came", "wall_ns")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def the_slow_way(rows):
    whole, found = defaultdict(list), defaultdict(lambda: [0, 0])
    for comm, cseq, rank, came, _ in rows:
        whole[comm, cseq].append((came, rank))
    for entries in whole.values():
        last_at = max(came for came, _ in entries)
        last = min(rank for came, rank in entries if came == last_at)
        for came, rank in entries:
            if came < last_at:
                found[last, rank][0] += 1
                found[last, rank][1] += last_at - came
    made = [(by, waited, num, ns) for (by, waited), (num, ns) in found.items()]
    return sorted(made, key=lambda pair: (-pair[3], pair[0], pair[1]))


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_entries_in_any_order_are_those_counted_one_by_one(seed):
    chance = random.Random(seed)
    rows = [
        (comm, cseq, rank, chance.randrange(20), 100 + cseq)
        for comm in ("a", "b", "c")
        for cseq in range(30)
        for rank in range(chance.randrange(1, 6))
    ]
    chance.shuffle(rows)
    entries, seen = WaitEntries(100), []
    assert not len(entries.pairs().num)
    while rows_now := rows[: chance.randrange(1, 40)]:
        entries.add(table(rows_now))
        rows = rows[len(rows_now) :]
        seen += rows_now
        assert list(zip(*(c.tolist() for c in entries.pairs()), strict=True)) == the_slow_way(seen)
    entries.forget(115)
    kept = [row for row in seen if row[4] >= 115]
    assert list(zip(*(c.tolist() for c in entries.pairs()), strict=True)) == the_slow_way(kept)


def test_no_more_than_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(wait_entries, "MAX_ENTRIES", 100)
    entries = WaitEntries(0)
    for cseq in range(1000):
        entries.add(table([("c", cseq, rank, cseq + rank, 1000 + cseq) for rank in range(2)]))
        assert entries.num_bytes <= 4 * 8 * 102
    assert entries.is_full and entries.since_ns >= 1000 + 949
    assert entries.pairs().wait_ns.tolist() == [50]


def test_of_many_of_one_moment_no_more_than_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(wait_entries, "MAX_ENTRIES", 100)
    entries = WaitEntries(0)
    for at in (7, 7, 9, 9):
        entries.add(
            table([("c", cseq, rank, rank, at) for cseq in range(125) for rank in range(4)])
        )
        assert len(entries._wall) == 100 and set(entries._wall.tolist()) == {at}
    assert entries.since_ns == 9 and entries.is_full


def test_names_of_communicators_are_forgotten_with_their_entries(monkeypatch):
    monkeypatch.setattr(wait_entries, "MAX_ENTRIES", 100)
    monkeypatch.setattr(wait_entries, "MIN_CODES", 50)
    entries, seen = WaitEntries(0), []
    for number in range(1000):
        comm = "often" if number % 3 == 0 else f"c{number}"
        rows = [(comm, number, rank, number + rank * number, 1000 + number) for rank in range(2)]
        entries.add(table(rows))
        seen = [*seen, *rows][-100:]
        assert len(entries._codes) <= 102
        expected = list(zip(*the_slow_way(seen), strict=True))
        assert [tuple(column.tolist()) for column in entries.pairs()] == (expected or [()] * 4)
