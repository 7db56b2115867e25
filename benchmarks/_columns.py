"""Columns of a made table from pieces: numbers, words and dots that numpy broadcasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from collector.schema.arrow import arrow_schema


class Pieces:
    """Pieces of one table, columns by name; what is left out is null."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[dict[str, Any]] = []

    def add(self, **columns: Any) -> None:
        self.pieces.append(columns)

    def table(self) -> pa.Table:
        """Sorted by rank and seq, as writers do."""
        schema = arrow_schema(self.name)
        sizes = [p["rank"].size for p in self.pieces]
        whole = {
            c: np.concatenate([np.broadcast_to(p[c], p["rank"].shape).ravel() for p in self.pieces])
            for c in ("rank", "seq")
        }
        order = np.lexsort((whole["seq"], whole["rank"]))
        arrays = []
        for f in schema:
            given = [p.get(f.name) for p in self.pieces]
            arrays.append(_column(f, given, sizes, order, self.pieces))
        return pa.Table.from_arrays(arrays, schema=schema)


def _column(field: Any, given: list[Any], sizes: list[int], order: Any, pieces: Any) -> Any:
    total = sum(sizes)
    if all(g is None for g in given):
        return pa.nulls(total, field.type)
    if pa.types.is_string(field.type):
        codes, words = [], {}
        for g, size, p in zip(given, sizes, pieces, strict=True):
            if isinstance(g, tuple):  # (codes, words)
                own = np.array([words.setdefault(w, len(words)) for w in g[1]], np.int64)
                codes.append(own[np.broadcast_to(g[0], p["rank"].shape).ravel()])
            else:
                code = -1 if g is None else words.setdefault(g, len(words))
                codes.append(np.full(size, code, np.int64))
        flat = np.concatenate(codes)[order]
        array = pa.DictionaryArray.from_arrays(
            pa.array(flat.astype(np.int32), mask=flat < 0), pa.array(list(words), pa.string())
        )
        return array.cast(pa.string())
    if pa.types.is_list(field.type):
        return _dots(field, given, sizes, order, pieces)
    values, missing = [], []
    for g, size, p in zip(given, sizes, pieces, strict=True):
        missing.append(np.full(size, g is None))
        values.append(np.broadcast_to(0 if g is None else g, p["rank"].shape).ravel())
    mask = np.concatenate(missing)[order]
    flat = np.concatenate(values)[order]
    return pa.array(flat, mask=mask if mask.any() else None).cast(field.type)


def _dots(field: Any, given: list[Any], sizes: list[int], order: Any, pieces: Any) -> Any:
    """Lists of up to two dots: a tuple of (rank, counter), counter 0 left out; or actors, as they are."""
    if any(isinstance(g, list) for g in given):
        flat = [one for g, size in zip(given, sizes, strict=True) for one in (g or [None] * size)]
        return pa.array([flat[i] for i in order.tolist()], type=field.type)
    ranks, counters, null = [], [], []
    for g, size, p in zip(given, sizes, pieces, strict=True):
        null.append(np.full(size, g is None))
        pairs = g or ()
        wide = [np.broadcast_to(c, p["rank"].shape).ravel() for pair in pairs for c in pair]
        wide += [np.zeros(size, np.int64)] * (4 - len(wide))
        ranks.append(np.stack([wide[0], wide[2]], axis=1))
        counters.append(np.stack([wide[1], wide[3]], axis=1))
    rank, counter = np.concatenate(ranks)[order], np.concatenate(counters)[order]
    keep = counter > 0
    lengths = keep.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    struct = field.type.value_type
    parts = {
        "rank": rank[keep],
        "incarnation": np.zeros(int(lengths.sum()), np.int64),
        "counter": counter[keep],
    }
    flat = pa.StructArray.from_arrays(
        [pa.array(parts[f.name]).cast(f.type) for f in struct], fields=list(struct)
    )
    return pa.ListArray.from_arrays(
        pa.array(offsets), flat, type=field.type, mask=pa.array(np.concatenate(null)[order])
    )
