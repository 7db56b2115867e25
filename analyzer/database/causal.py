"""Whether a history of a database is causally consistent, and which reads say that it is not.

Definition (Biswas and Enea, OOPSLA 2019): there is an order of all transactions, session order and
write-to-read inside it, in which a transaction that is causally before a reader, and writes what it
reads, comes before the one that it reads from. Inside a transaction a read sees the transaction's own
last write; of others it sees what they wrote last. The initial value comes before everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from analyzer.columns import Flags, Ints
from analyzer.database.causal_pass import MAX_CLOCK_BYTES, Passed, causal_pass, in_order
from analyzer.database.history import DatabaseHistory, Sources, sources_of
from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.results import Verdict

MAX_FINDINGS = 1000


class Anomaly(NamedTuple):
    """One read, or one circle, that no causal order allows."""

    name: str
    operation: int
    sentence: str


class Causality(NamedTuple):
    """The answer on a history."""

    verdict: Verdict
    num_sessions: int
    num_transactions: int
    num_operations: int
    num_anomalies: int
    anomalies: list[Anomaly]
    """The first MAX_FINDINGS of each kind."""
    reason: str | None
    """Why it is unknown."""


def judge_history(history: DatabaseHistory) -> Causality:
    """Judge one history.

    Where a read may have seen one of several writes, only what is wrong whichever it was is found: a value
    that nobody wrote, an own write not seen, what nobody left behind, and what the other reads say without it.
    Unknown where nothing is found and there is such a read.

    Raises:
        BadTrace: the clocks of its sessions would need more than MAX_CLOCK_BYTES.
    """
    sources = sources_of(history)
    found, num = _inside(history, sources)
    told = {one.operation for one in found}
    more, num_more = _between(history, sources, told)
    num += num_more
    doubtful = np.flatnonzero(sources.many & ~sources.broken)
    reason = None
    if not num and len(doubtful):
        i = int(doubtful[0])
        what = (
            "an earlier write or the initial value" if not history.value[i] else "an earlier write"
        )
        reason = (
            f"{history.where(int(sources.again[i]))} repeats {what}, so nobody can tell which of them "
            f"a read saw (line {history.line[i]})"
        )
    return Causality(
        "violated" if num else "unknown" if reason else "ok",
        len(history.names),
        history.num_transactions,
        len(history.key),
        num,
        [*found, *more],
        reason,
    )


def _inside(history: DatabaseHistory, sources: Sources) -> tuple[list[Anomaly], int]:
    """What is wrong with a read and its own transaction, or with what it read, order aside."""
    write, own, txn = sources.write, sources.own, history.transaction
    read = ~history.is_write
    at = np.maximum(write, 0)
    mine = (write >= 0) & (txn[at] == txn)
    kinds: tuple[tuple[str, Flags, str], ...] = (
        ("thin air", read & (write == -2), "saw a value that nobody wrote"),
        (
            "own write not seen",
            read & (own >= 0) & (write != own) & (write != -2),
            "did not see what its own transaction had written before",
        ),
        (
            "future read",
            sources.broken & mine,
            "saw what its own transaction wrote only later",
        ),
        (
            "intermediate read",
            sources.broken & ~mine,
            "saw a value that its transaction overwrote",
        ),
    )
    found: list[Anomaly] = []
    num = 0
    for name, broken, words in kinds:
        places = np.flatnonzero(broken)
        num += len(places)
        found += [
            Anomaly(name, i, f"{history.where(i)} {words}.") for i in places[:MAX_FINDINGS].tolist()
        ]
    return found, num


def _between(
    history: DatabaseHistory, sources: Sources, told: set[int]
) -> tuple[list[Anomaly], int]:
    """What is wrong between transactions."""
    txn, num = history.transaction, history.num_transactions
    at = np.maximum(sources.write, 0)
    foreign = ~history.is_write & (sources.write >= -1) & (sources.own < 0)
    foreign &= ~sources.many & ((sources.write < 0) | (txn[at] != txn))
    reads = np.flatnonzero(foreign)
    origin = np.where(sources.write[reads] >= 0, txn[np.maximum(sources.write[reads], 0)], -1)
    # Once for each reader, source and key.
    order = np.lexsort((reads, sources.key[reads], origin, txn[reads]))
    reads, origin = reads[order], origin[order]
    facts = (txn[reads], origin, sources.key[reads])
    new = np.ones(len(reads), dtype=np.bool_)
    if len(reads):
        new[1:] = np.any([f[1:] != f[:-1] for f in facts], axis=0)
    reads, origin = reads[new], origin[new]
    start = np.append(np.flatnonzero(np.diff(history.session, prepend=-1)), num).astype(np.int64)
    known = np.flatnonzero(origin >= 0)
    by_source = known[np.argsort(origin[known], kind="stable")]
    counts = np.bincount(origin[known], minlength=num).astype(np.int64)
    passed = causal_pass(
        start,
        history.session,
        np.searchsorted(txn[reads], np.arange(num + 1)).astype(np.int64),
        origin,
        sources.key[reads],
        reads,
        counts,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        txn[reads[by_source]],
        *_spans(history, sources),
        MAX_CLOCK_BYTES,
    )
    if passed.too_large:
        raise BadTrace(
            f"what its {len(history.names):,} sessions know of each other needs more than "
            f"{MAX_CLOCK_BYTES >> 30} GiB of memory at once",
            where="the history",
            hint="judge fewer sessions, or a shorter stretch of them",
        )
    found, total = _stale(history, passed, told)
    circles, num_circles = _circles(history, passed, reads, origin, start)
    return found + circles, total + num_circles


def _spans(history: DatabaseHistory, sources: Sources) -> tuple[Ints, Ints, Ints, Ints]:
    """Which transactions of which session write each key: as ``causal_pass`` takes it."""
    writes = np.flatnonzero(history.is_write)
    txn, key = history.transaction[writes], sources.key[writes]
    order = np.lexsort((txn, key))
    txn, key = txn[order], key[order]
    new = np.ones(len(txn), dtype=np.bool_)
    new[1:] = (txn[1:] != txn[:-1]) | (key[1:] != key[:-1])
    txn, key = txn[new], key[new]
    session = history.session[txn]
    begins = np.ones(len(txn), dtype=np.bool_)
    begins[1:] = (session[1:] != session[:-1]) | (key[1:] != key[:-1])
    first = np.flatnonzero(begins)
    num_keys = int(sources.key.max()) + 1
    return (
        np.searchsorted(key[first], np.arange(num_keys + 1)).astype(np.int64),
        session[first],
        np.append(first, len(txn)).astype(np.int64),
        txn,
    )


def _stale(history: DatabaseHistory, passed: Passed, told: set[int]) -> tuple[list[Anomaly], int]:
    reads, first = np.unique(passed.stale, return_index=True)
    fresh = [(i, n) for i, n in zip(reads.tolist(), passed.newer[first].tolist(), strict=True)
             if i not in told]  # fmt: skip
    found = [
        Anomaly(
            "stale read",
            i,
            f"{history.where(i)} saw a value that session "
            f"{int(history.names[history.session[newer]])} had overwritten causally before.",
        )
        for i, newer in fresh[:MAX_FINDINGS]
    ]
    return found, len(fresh)


def _circles(
    history: DatabaseHistory, passed: Passed, reads: Ints, origin: Ints, start: Ints
) -> tuple[list[Anomaly], int]:
    """Reads whose forced orders lie on, or behind, a circle of transactions."""
    num = history.num_transactions
    inner = np.ones(num, dtype=np.bool_)
    inner[start[:-1]] = False
    following = np.flatnonzero(inner)
    known = origin >= 0
    source = np.concatenate([following - 1, origin[known], passed.before])
    target = np.concatenate([following, history.transaction[reads[known]], passed.after])
    left = np.arange(len(source))
    # From both sides, so that what lies only behind a circle, or only before one, is left out.
    reached = np.zeros(num, dtype=np.bool_)
    for _ in range(2):
        ends = (source[left], target[left])
        for one, other in (ends, ends[::-1]):
            order = np.argsort(one, kind="stable")
            begin = np.searchsorted(one[order], np.arange(num + 1)).astype(np.int64)
            reached |= in_order(begin, other[order], num) != 0
        left = left[~reached[source[left]] & ~reached[target[left]]]
    if reached.all():
        return [], 0
    if passed.num_done < num:
        on = np.flatnonzero(~reached[history.transaction] & ~history.is_write)
        operation = int(on[0]) if len(on) else int(np.flatnonzero(~reached[history.transaction])[0])
        words = "is one of a circle in which each transaction saw the one before it"
        return [Anomaly("cyclic causes", operation, f"{history.where(operation)} {words}.")], 1
    forced = ~reached[passed.before] & ~reached[passed.after]
    operations = np.unique(passed.by[forced])
    words = "contradicts, with others, every order of the writes"
    found = [
        Anomaly("conflicting orders", i, f"{history.where(i)} {words}.")
        for i in operations[:MAX_FINDINGS].tolist()
    ]
    return found, len(operations)
