"""The schema as data, derived from the types in events.py and results.py.

Storage types are the strings ``string, int32, int64, double, bool, actor, dot, event_ref`` and
``list<T>`` of them; Arrow and DuckDB types derive from these.
"""

from __future__ import annotations

import types
import typing
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, Union

import msgspec

from cascade_runtime.vocabulary.events import EVENT_TYPES, Event
from cascade_runtime.vocabulary.identity import Actor, Dot, EventRef
from cascade_runtime.vocabulary.results import RESULT_TYPES

STRUCTS: dict[str, tuple[tuple[str, str], ...]] = {
    "actor": (("rank", "int32"), ("incarnation", "int32")),
    "dot": (("rank", "int32"), ("incarnation", "int32"), ("counter", "int64")),
    "event_ref": (("rank", "int32"), ("incarnation", "int32"), ("seq", "int64")),
}
"""The struct types of the public schema, field by field."""

_STRUCT_NAMES: dict[Any, str] = {Actor: "actor", Dot: "dot", EventRef: "event_ref"}
_SCALARS: dict[Any, str] = {str: "string", int: "int64", float: "double", bool: "bool"}


class Column(NamedTuple):
    """One column: name, storage type, documentation, allowed words, whether null is allowed."""

    name: str
    type: str
    doc: str
    words: tuple[str, ...]
    nullable: bool


class Table(NamedTuple):
    """One table: name, documentation, columns in order, the struct type, ``event`` or ``result``."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    struct: type[msgspec.Struct]
    kind: str

    def column(self, name: str) -> Column:
        """The column called ``name``; KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name}.{name}")


def _unwrap(hint: Any) -> tuple[str, str, tuple[str, ...], bool]:
    """(storage type, doc, words, nullable) of an annotation."""
    doc, storage, nullable = "", "", False
    words: tuple[str, ...] = ()
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            for meta in hint.__metadata__:
                doc = doc or meta.description or ""
                extra = meta.extra or {}
                storage = storage or extra.get("storage", "")
                words = words or extra.get("words", ())
            hint = typing.get_args(hint)[0]
        elif origin in (Union, types.UnionType):
            nullable = True
            (hint,) = [a for a in typing.get_args(hint) if a is not type(None)]
        else:
            break
    if origin is Literal:
        return "string", doc, typing.get_args(hint), nullable
    if origin is list:
        inner = _unwrap(typing.get_args(hint)[0])[0]
        return f"list<{inner}>", doc, words, nullable
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "string", doc, words or tuple(m.value for m in hint), nullable
    return storage or _STRUCT_NAMES.get(hint) or _SCALARS[hint], doc, words, nullable


def _table(struct: type[msgspec.Struct], kind: str) -> Table:
    hints = typing.get_type_hints(struct, include_extras=True)
    columns = tuple(Column(name, *_unwrap(hints[name])) for name in struct.__struct_fields__)
    return Table(str(struct.__struct_config__.tag), _first_line(struct), columns, struct, kind)


def _first_line(struct: type) -> str:
    return (struct.__doc__ or "").strip().splitlines()[0]


LEADING: tuple[str, ...] = Event.__struct_fields__
"""The columns that every event table starts with, in order."""

EVENT_TABLES: dict[str, Table] = {t.name: t for t in (_table(s, "event") for s in EVENT_TYPES)}
"""Event tables by name."""

RESULT_TABLES: dict[str, Table] = {t.name: t for t in (_table(s, "result") for s in RESULT_TYPES)}
"""Result tables by name."""

TABLES: dict[str, Table] = EVENT_TABLES | RESULT_TABLES
"""Every table of the public schema by name."""
