"""A history of a database as columns, and which write each read saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.columns import Flags, Ints


@dataclass(frozen=True)
class DatabaseHistory:
    """Operations in order: session by session, transaction by transaction.

    Attributes:
        is_write: per operation.
        key, value: per operation, as given.
        transaction: per operation the number of its transaction; those of a session lie together.
        session: per transaction the number of its session.
        names: per session what it is called.
        line: per operation the line where it stands, from 1.
        zero_is_initial: a read of 0 may have seen the initial value also where somebody writes 0 to that key;
            False where histories write their initial values out, so that it saw that write.
    """

    is_write: Flags
    key: Ints
    value: Ints
    transaction: Ints
    session: Ints
    names: Ints
    line: Ints
    zero_is_initial: bool

    @property
    def num_transactions(self) -> int:
        """How many there are."""
        return len(self.session)

    def where(self, operation: int) -> str:
        """An operation for people."""
        verb = "write" if self.is_write[operation] else "read"
        name = int(self.names[self.session[self.transaction[operation]]])
        return (
            f"the {verb} of key {self.key[operation]}, value {self.value[operation]}, by session {name} "
            f"(line {self.line[operation]})"
        )


@dataclass(frozen=True)
class Sources:
    """Where each operation's value came from.

    Attributes:
        write: per operation the write that a read saw, the first of several that it may have seen; -1 for
            the initial value (0, or null) and for writes; -2 where nobody wrote it.
        own: per operation its transaction's last write of the key before it; -1 for none.
        final: True for writes that their transaction did not overwrite.
        many: True for reads that may have seen one of several writes, or a write of 0 as well as the initial
            0. Not those after an own write of the key: they must see that one.
        broken: True for reads of what only their own transaction writes, later, or transactions that
            overwrote it: wrong whichever write was seen.
        again: per operation of ``many`` a write that repeats what another wrote, or the initial value.
        key: per operation its key as a code from 0.
    """

    write: Ints
    own: Ints
    final: Flags
    many: Flags
    broken: Flags
    again: Ints
    key: Ints


def sources_of(history: DatabaseHistory) -> Sources:
    """Match reads with the writes of their key and value."""
    num, read = len(history.key), ~history.is_write
    key = np.unique(history.key, return_inverse=True)[1].astype(np.int64)
    values, value = np.unique(history.value, return_inverse=True)
    pair = np.unique(key * max(len(values), 1) + value, return_inverse=True)[1].astype(np.int64)
    own, final = _own_writes(history, key)
    writes = np.flatnonzero(history.is_write)
    # One more, so that what nobody wrote has a place too.
    order = np.append(writes[np.argsort(pair[writes], kind="stable")], -2)
    first = np.searchsorted(pair[order[:-1]], pair)
    count = np.searchsorted(pair[order[:-1]], pair, side="right") - first
    initial = (history.value == 0) & (history.zero_is_initial | (count == 0))
    write = np.where(count > 0, order[first], np.where(initial, -1, -2))
    write = np.where((own >= 0) & (history.value[own] == history.value), own, write)
    write[~read] = -1
    open_ = read & (own < 0)
    # How many of what it may have seen others have left behind.
    left = np.bincount(pair[final], minlength=num + 1)[pair] + initial
    mine = pair * max(history.num_transactions, 1) + history.transaction
    left -= np.isin(mine, mine[final])
    many = open_ & (count + initial > 1)
    again = order[np.minimum(first + (count > 1), len(order) - 1)]
    return Sources(write, own, final, many, open_ & (count > 0) & (left == 0), again, key)


def _own_writes(history: DatabaseHistory, key: Ints) -> tuple[Ints, Flags]:
    """(last write of the key before it in its transaction or -1, is the transaction's last write)."""
    num = len(key)
    order = np.lexsort((np.arange(num), key, history.transaction))
    new = np.ones(num, dtype=np.bool_)
    new[1:] = (key[order][1:] != key[order][:-1]) | (
        history.transaction[order][1:] != history.transaction[order][:-1]
    )
    group = np.cumsum(new) - 1
    is_write = history.is_write[order]
    place = np.where(is_write, np.arange(num), -1) + group * (num + 1)
    running = np.maximum.accumulate(place) - group * (num + 1) if num else place
    before = np.full(num, -1, dtype=np.int64)
    before[1:] = np.where(new[1:], -1, running[:-1])
    own = np.full(num, -1, dtype=np.int64)
    own[order] = np.where(before >= 0, order[np.maximum(before, 0)], -1)
    final = np.zeros(num, dtype=np.bool_)
    if num:
        last = running[np.append(np.flatnonzero(new)[1:] - 1, num - 1)]
        final[order[last[last >= 0]]] = True
    return own, final
