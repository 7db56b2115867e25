"""Rows that are there twice: exact copies are dropped, an entered collective gives way to its union.

Copies are normal: a segment may lie in the spool and, sealed, in a file. Rows of one key that say
different things are kept, for the analyzer to judge (Q2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_KEY = ("rank", "incarnation", "seq")
_DONE = ("done_seq", "start_ns", "complete_ns", "completed", "payload_digest")


def has_repeats(rows: pa.Table) -> bool:
    """True when two rows of one run have the same (rank, incarnation, seq)."""
    return len(_repeated_keys(rows)) > 0


def distinct(rows: pa.Table, *, collectives: bool = False) -> npt.NDArray[np.int64]:
    """Positions of the rows that stay when copies are dropped, in order; of equal rows the first.

    Args:
        rows: the rows of one event table and one run, with all columns.
        collectives: also drop entered collectives whose completed union is there too.
    """
    keep = np.ones(rows.num_rows, dtype=bool)
    repeated = _repeated_keys(rows)
    if len(repeated):
        suspects = rows.take(pa.array(repeated))
        _, first = np.unique(_content_ids(suspects, rows.column_names), return_index=True)
        drop = np.ones(len(repeated), dtype=bool)
        drop[first] = False
        if collectives:
            drop |= _superseded(suspects)
        keep[repeated[drop]] = False
    return np.flatnonzero(keep)


def _repeated_keys(rows: pa.Table) -> npt.NDArray[np.int64]:
    """Positions of the rows whose (rank, incarnation, seq) another row has too."""
    rank, incarnation, seq = (rows[name].to_numpy() for name in _KEY)
    if rows.num_rows < 2:
        return np.empty(0, dtype=np.int64)
    rank_bits, inc_bits = int(rank.max()).bit_length(), int(incarnation.max()).bit_length()
    if rank_bits + inc_bits + int(seq.max()).bit_length() <= 63:
        key = (rank.astype(np.int64) << inc_bits | incarnation) << (63 - rank_bits - inc_bits) | seq
    else:  # numbers too large to be packed into one: give each pair of actor and seq a number
        _, key = np.unique(np.stack([rank, incarnation, seq]), axis=1, return_inverse=True)
    if np.all(key[1:] > key[:-1]):
        return np.empty(0, dtype=np.int64)  # in order without a repeat, the usual case
    in_order = np.sort(key)
    twice = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    if len(twice) == 0:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.isin(key, twice))


def _content_ids(rows: pa.Table, columns: list[str]) -> npt.NDArray[np.int64]:
    """A number per row; equal numbers mean equal values in all of ``columns`` (null equals null)."""
    ids = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns:
        codes = _codes(rows[name])
        _, ids = np.unique(ids * (int(codes.max()) + 1) + codes, return_inverse=True)
    return ids


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    if pa.types.is_nested(column.type):
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(repr(v), len(seen)) for v in column.to_pylist()])
    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _superseded(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Entered collectives beside which a completed row with the same entry stands."""
    entry = _content_ids(rows, [name for name in rows.column_names if name not in _DONE])
    is_open: npt.NDArray[np.bool_] = rows["done_seq"].is_null().to_numpy()
    return is_open & np.isin(entry, entry[~is_open])
