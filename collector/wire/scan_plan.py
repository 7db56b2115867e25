"""The schema of records as arrays: what the native scan (scan.py) checks each field against."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import inspect

from cascade_runtime.vocabulary.events import CollectiveDone
from cascade_runtime.vocabulary.identity import Dot
from cascade_runtime.vocabulary.schema import EVENT_TABLES

Ints = npt.NDArray[np.int64]

OTHER, TEXT, INT, FLOAT, BOOL, WORD, DOTS = range(7)
"""What a field is. OTHER is left to the codec."""

DONE = "collective_done"
TABLES: tuple[str, ...] = (*EVENT_TABLES, DONE)
"""Kinds of records; a kind's number is its place here."""

NUMBER = {name: i for i, name in enumerate(TABLES)}


class Plan(NamedTuple):
    """By kind, or by kind and field.

    Attributes:
        names, name_ends: the kinds' names end to end, and where each ends.
        least: fields that a record must have.
        num_fields: fields that it may have.
        code: what a field is.
        nullable: whether it may be nil.
        low, high: bounds of an INT.
        words_from, words_to: a WORD's words, as places in ``word_ends``.
        words, word_ends: all words end to end, and where each ends.
        dot_low, dot_high: bounds of a dot's three numbers.
    """

    names: npt.NDArray[np.uint8]
    name_ends: Ints
    least: Ints
    num_fields: Ints
    code: Ints
    nullable: npt.NDArray[np.bool_]
    low: Ints
    high: Ints
    words_from: Ints
    words_to: Ints
    words: npt.NDArray[np.uint8]
    word_ends: Ints
    dot_low: Ints
    dot_high: Ints


def _plan() -> Plan:
    structs: list[type[msgspec.Struct]] = [t.struct for t in EVENT_TABLES.values()]
    structs.append(CollectiveDone)
    fields = [inspect.type_info(struct).fields for struct in structs]  # type: ignore[attr-defined]
    widest = max(map(len, fields))
    shape = (len(structs), widest)
    code, low, high, words_from, words_to = (np.zeros(shape, np.int64) for _ in range(5))
    nullable = np.zeros(shape, np.bool_)
    words: list[bytes] = []
    for k, kind in enumerate(fields):
        allowed = _words_of(TABLES[k])
        for f, field in enumerate(kind):
            plain, nullable[k, f] = _plain(field.type)
            code[k, f], low[k, f], high[k, f] = _code_of(plain)
            if code[k, f] == WORD:
                words_from[k, f] = len(words)
                words += [word.encode() for word in allowed[field.name]]
                words_to[k, f] = len(words)
    dots = [_code_of(_plain(field.type)[0]) for field in inspect.type_info(Dot).fields]  # type: ignore[attr-defined]
    names = [name.encode() for name in TABLES]
    return Plan(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([len(name) for name in names]),
        np.array([sum(f.required for f in kind) for kind in fields]),
        np.array([len(kind) for kind in fields]),
        code,
        nullable,
        low,
        high,
        words_from,
        words_to,
        np.frombuffer(b"".join(words), np.uint8),
        np.cumsum([len(word) for word in words]),
        np.array([low for _, low, _ in dots]),
        np.array([high for _, _, high in dots]),
    )


def _words_of(kind: str) -> dict[str, tuple[str, ...]]:
    if kind == DONE:
        return {}
    return {column.name: column.words for column in EVENT_TABLES[kind].columns}


def _plain(hint: Any) -> tuple[Any, bool]:
    """A field's type without its notes, and whether it may be nil."""
    nullable = False
    while True:
        if isinstance(hint, inspect.Metadata):
            hint = hint.type
        elif isinstance(hint, inspect.UnionType):
            nullable = True
            (hint,) = [t for t in hint.types if not isinstance(t, inspect.NoneType)]
        else:
            return hint, nullable


def _code_of(plain: Any) -> tuple[int, int, int]:
    """(code, low, high) of a type."""
    match plain:
        case inspect.StrType():
            return TEXT, 0, 0
        case inspect.IntType(ge=low, le=high):
            edges = np.iinfo(np.int64)
            return INT, int(edges.min if low is None else low), int(high or edges.max)
        case inspect.FloatType():
            return FLOAT, 0, 0
        case inspect.BoolType():
            return BOOL, 0, 0
        case inspect.LiteralType() | inspect.EnumType():
            return WORD, 0, 0
        case inspect.ListType(item_type=inspect.StructType(cls=cls)) if cls is Dot:
            return DOTS, 0, 0
        case _:
            return OTHER, 0, 0


PLAN = _plan()
FLAT = frozenset(
    name for k, name in enumerate(TABLES) if (PLAN.code[k, : PLAN.num_fields[k]] != OTHER).all()
)
"""Kinds of which no field is left to the codec."""
