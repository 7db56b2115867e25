"""The few rows that a story is told from, made one where many tell the same: row by row, as they come.

Each part takes rows as its statement answers them, or as they are stored, and gives the same in the end.
Which of several rows is kept follows from the rows alone, never from the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dashboard.story.firsts import Firsts, Rank, Row

MAX_FAULTS = 20_000
MAX_GAPS = 2_000
MAX_DEBTS = 20_000
MAX_IN_FLIGHT = 3

NUMBER = ("rank", "incarnation", "seq")
_IN_TIME = ("wall_ns", "rank", "seq")


class Actors:
    """Who took part: of each, the first that is told of its kind, host and name."""

    columns = (*NUMBER, "kind", "host", "name", "device_uuid")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], dict[str, Any]] = {}

    def add(self, rows: pa.Table) -> None:
        """Rows of ``actors``."""
        for row in rows.to_pylist():
            key = (row["rank"], row["incarnation"])
            known = self._known.setdefault(key, {"has_device": False, "num": 0})
            known["has_device"] |= row["device_uuid"] is not None
            known["num"] += 1
            for name in ("kind", "host", "name"):
                told = known.get(name)
                if row[name] is not None and (told is None or row["seq"] < told[0]):
                    known[name] = (row["seq"], row[name])

    def rows(self) -> list[Row]:
        """By (rank, incarnation)."""
        return [
            {
                "rank": rank,
                "incarnation": incarnation,
                **{name: known.get(name, (0, None))[1] for name in ("kind", "host", "name")},
                "has_device": known["has_device"],
                "num": known["num"],
            }
            for (rank, incarnation), known in sorted(self._known.items())
        ]


class Walks:
    """Committed walks: what the proposer says, else the lowest rank."""

    columns = (
        *NUMBER, "phase", "group_id", "epoch", "new_epoch", "wall_ns", "from_regime", "to_regime",
        "fault", "reason", "members", "cohorts", "proposer",
    )  # fmt: skip

    def __init__(self) -> None:
        self._firsts = Firsts(
            lambda row: (row["group_id"], row["epoch"], *_members(row)),
            lambda row: (not _is_proposer(row), *_number(row)),
        )

    def add(self, rows: pa.Table) -> None:
        """Rows of ``transitions``."""
        rows = rows.filter(pc.equal(rows["phase"], "committed"))
        epoch = pc.coalesce(rows["new_epoch"], rows["epoch"])
        rows = rows.set_column(rows.schema.get_field_index("epoch"), "epoch", epoch)
        for row in rows.filter(pc.is_valid(epoch)).to_pylist():
            row["members"] = [dict(zip(NUMBER, m, strict=False)) for m in _members(row)]
            del row["phase"], row["new_epoch"]
            self._firsts.put(row)

    def rows(self) -> list[Row]:
        """By (group, epoch)."""
        return self._firsts.sorted_by("group_id", "epoch", *NUMBER)


class Views:
    """The first view of each group."""

    columns = (*NUMBER, "group_id", "epoch", "members")

    def __init__(self) -> None:
        self._firsts = Firsts(
            lambda row: (row["group_id"],), lambda row: (row["epoch"] or 0, *_number(row))
        )

    def add(self, rows: pa.Table) -> None:
        """Rows of ``membership``."""
        for row in rows.filter(pc.greater(pc.list_value_length(rows["members"]), 0)).to_pylist():
            self._firsts.put(row)

    def rows(self) -> list[Row]:
        """By group."""
        return [
            {"group_id": row["group_id"], "members": row["members"]}
            for row in self._firsts.sorted_by("group_id")
        ]


class Changes:
    """Who left and who joined: as the first says it who tells."""

    columns = (*NUMBER, "group_id", "epoch", "wall_ns", "reason", "departed", "joined")

    def __init__(self) -> None:
        self._firsts = Firsts(
            lambda row: tuple(row[name] for name in ("what", *NUMBER[:2], "group_id", "epoch")),
            lambda row: (row["wall_ns"], *row["told"]),
        )

    def add(self, rows: pa.Table) -> None:
        """Rows of ``membership``."""
        for row in rows.to_pylist():
            for what in ("departed", "joined"):
                for actor in row[what] or ():
                    if actor is not None:
                        self._firsts.put(
                            {
                                "what": what,
                                "rank": actor["rank"],
                                "incarnation": actor["incarnation"],
                                "group_id": row["group_id"],
                                "epoch": row["epoch"],
                                "wall_ns": row["wall_ns"],
                                "reason": row["reason"],
                                "told": _number(row),
                            }
                        )

    def rows(self) -> list[Row]:
        """In time."""
        names = ("wall_ns", "rank", "incarnation", "what", "group_id", "epoch")
        return [
            {name: value for name, value in row.items() if name != "told"}
            for row in self._firsts.sorted_by(*names)
        ]


class Debts:
    """Debts, each with what became of it."""

    columns = (
        *NUMBER, "debt_id", "action", "group_id", "relaxed", "object", "epoch", "new_epoch", "wall_ns",
        "resolution", "in_flight", "drift_l2", "drift_max",
    )  # fmt: skip

    def __init__(self) -> None:
        self._opened = Firsts(lambda row: (row["id"],), _number)
        self._closed = Firsts(lambda row: (row["id"],), _number)
        self._is_cut = False

    def add(self, rows: pa.Table) -> None:
        """Rows of ``debt``; ``num_in_flight`` and the first of ``in_flight``, or all of it."""
        if "num_in_flight" not in rows.column_names:
            updates = rows["in_flight"]
            rows = rows.append_column("num_in_flight", pc.list_value_length(updates))
            at = rows.schema.get_field_index("in_flight")
            rows = rows.set_column(at, "in_flight", pc.list_slice(updates, 0, MAX_IN_FLIGHT))
        for row in rows.to_pylist():
            rank, incarnation, seq = _number(row)
            row["id"] = row["debt_id"]
            if row["id"] is None:
                row["id"] = f"unnamed {rank}:{incarnation}:{seq}"
            if row["action"] == "opened":
                self._opened.put(row)
            elif row["action"] in ("settled", "written_off") and self._may_be_shown(row["id"]):
                self._closed.put(row)
        gone = self._opened.cut(MAX_DEBTS, *_IN_TIME)
        self._closed.drop(gone)
        self._is_cut |= bool(gone)

    def rows(self) -> list[Row]:
        """The first MAX_DEBTS that were opened, in time."""
        opened = self._opened.sorted_by(*_IN_TIME)[:MAX_DEBTS]
        return [self._row(row, self._closed.get((row["id"],)) or {}) for row in opened]

    def _may_be_shown(self, debt_id: str) -> bool:
        """The end of a debt that is not known any more says nothing that will be shown."""
        return not self._is_cut or self._opened.get((debt_id,)) is not None

    def _row(self, opened: Row, closed: Row) -> Row:
        epoch = opened["new_epoch"]
        return {
            **{name: opened[name] for name in ("id", "group_id", "relaxed", "object")},
            "epoch": opened["epoch"] if epoch is None else epoch,
            "opened_ns": opened["wall_ns"],
            "closed_ns": closed.get("wall_ns"),
            "fate": closed.get("action"),
            "num_in_flight": opened["num_in_flight"] or 0,
            "in_flight": opened["in_flight"],
            **{name: closed.get(name) for name in ("resolution", "drift_l2", "drift_max")},
            "rank": opened["rank"],
        }


class Faults:
    """What detectors saw."""

    columns = (
        *NUMBER, "subject_rank", "subject_incarnation", "wall_ns", "epoch", "group_id", "fault",
        "signal", "value", "unit",
    )  # fmt: skip

    def __init__(self) -> None:
        self._rows: list[tuple[Rank, Row]] = []

    def add(self, rows: pa.Table) -> None:
        """Rows of ``health``."""
        for row in rows.filter(pc.is_valid(rows["fault"])).to_pylist():
            order = (row["wall_ns"], *_number(row))
            del row["seq"]
            rank, incarnation = row.pop("subject_rank"), row.pop("subject_incarnation")
            if rank is not None:
                row |= {"rank": rank, "incarnation": incarnation or 0}
            self._rows.append((order, row))
        self._rows.sort(key=_first)
        del self._rows[MAX_FAULTS:]

    def rows(self) -> list[Row]:
        """The first MAX_FAULTS, in time."""
        return [row for _, row in self._rows]


class Gaps:
    """Rows that are known to be missing."""

    columns = (*NUMBER, "wall_ns", "num_events", "reason")

    def __init__(self) -> None:
        self._rows: list[tuple[Rank, Row]] = []

    def add(self, rows: pa.Table) -> None:
        """Rows of ``gaps``."""
        for row in rows.to_pylist():
            order = (row["wall_ns"], *_number(row))
            del row["seq"]
            self._rows.append((order, row))
        self._rows.sort(key=_first)
        del self._rows[MAX_GAPS:]

    def rows(self) -> list[Row]:
        """The first MAX_GAPS, in time."""
        return [row for _, row in self._rows]


def _first(pair: tuple[Rank, Row]) -> Rank:
    return pair[0]


def _number(row: Row) -> Rank:
    return row["rank"], row["incarnation"], row["seq"]


def _members(row: Row) -> Iterable[Rank]:
    """Each once, in order."""
    told = (m for m in row["members"] or () if m is not None)
    return sorted({(m["rank"], m["incarnation"] or 0) for m in told})


def _is_proposer(row: Row) -> bool:
    told = row["proposer"]
    return told is not None and (told["rank"], told["incarnation"]) == _number(row)[:2]
