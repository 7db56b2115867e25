"""What a resume brought back otherwise than it was saved: random state, data, parameters.

Of each load the saved row of the same checkpoint and rank is looked up (told again by the loader where
another run had saved it), and what is in force after the load is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analyzer.history import History

Row = dict[str, Any]


@dataclass(frozen=True)
class Wrong:
    """What one load brought back wrongly."""

    load: int
    """Its row."""
    why: list[str]
    saved: list[int]
    """The saved rows that say how it should be."""


def is_retold(row: Row) -> bool:
    """A saved row of another run, told again by who loads the checkpoint."""
    return row["source_run"] is not None


def received_first(history: History, load: int) -> bool:
    """True when the loader received a live snapshot before its first operation: that is what it goes on from."""
    actor = int(history.rows.actor[load])
    table = history.rows["checkpoints"]
    received = table.rows[table.mask("action", "received")]
    received = received[history.rows.actor[received] == actor]
    acts = history.operations.row[history.operations.of(actor)]
    return bool(len(received)) and (not len(acts) or int(received[0]) < int(acts[0]))


def wrong_resumes(history: History) -> list[Wrong]:
    """One entry a load that brought something back wrongly, in row order; none of ``received_first``."""
    table = history.rows["checkpoints"]
    saved: dict[str, list[tuple[int, Row]]] = {}
    loaded: dict[str, list[tuple[int, Row]]] = {}
    for at, row in zip(table.rows.tolist(), table.dicts(), strict=True):
        if row["checkpoint_id"] is None:
            continue
        if row["action"] == "saved" and row["durable"] is not False:
            saved.setdefault(row["checkpoint_id"], []).append((at, row))
        elif row["action"] == "loaded":
            loaded.setdefault(row["checkpoint_id"], []).append((at, row))
    found: dict[int, Wrong] = {}
    for name, loads in loaded.items():
        for at, row in loads:
            savers = _savers(history, saved.get(name, []), at)
            own = savers.get(_rank(history, at))
            if own is None:
                continue
            resized = _is_resized({_rank(history, other) for other, _ in loads}, own[1], savers)
            if why := list(_differences(row, own[1], savers, resized)):
                found[at] = Wrong(at, why, [own[0]])
        for at, lost, proof in _lost_shards(history, loads, saved.get(name, [])):
            before = found.get(at, Wrong(at, [], []))
            found[at] = Wrong(at, [*before.why, lost], sorted({*before.saved, *proof}))
    return [found[at] for at in sorted(found) if not received_first(history, at)]


def _savers(
    history: History, saved: list[tuple[int, Row]], load: int
) -> dict[int, tuple[int, Row]]:
    """By rank the last saved row of one checkpoint that the load can have taken."""
    return {
        _saver(history, at, row): (at, row)
        for at, row in saved
        if is_retold(row) or history.happens_before(at, load)
    }


def _is_resized(loaders: set[int], own: Row, savers: dict[int, tuple[int, Row]]) -> bool:
    """True when other ranks loaded than had saved: they share the data anew.

    By how many had saved where that is known, since a rank's record may be missing.
    """
    if own["world_size"] is not None:
        return len(loaders) != int(own["world_size"])
    return loaders != set(savers)


def _differences(
    row: Row, own: Row, savers: dict[int, tuple[int, Row]], resized: bool
) -> Iterable[str]:
    if own["params_digest"] and row["params_digest"] not in (None, own["params_digest"]):
        yield "with other parameters than were saved"
    if own["rng_digest"] and row["rng_digest"] not in (None, own["rng_digest"]):
        whose = [r for r, (_, s) in sorted(savers.items()) if s["rng_digest"] == row["rng_digest"]]
        yield (
            f"with the random state of rank {whose[0]}" if whose
            else "with a random state that was not saved"
        )  # fmt: skip
    position = own["data_position"]
    if position is not None and not resized and row["data_position"] != position:
        at = row["data_position"]
        yield (
            f"without the data position, which was {position:,}" if at is None
            else f"at data position {at:,}, not {position:,}"
        )  # fmt: skip


def _lost_shards(
    history: History, loads: list[tuple[int, Row]], saved: list[tuple[int, Row]]
) -> Iterable[tuple[int, str, list[int]]]:
    """(load to be blamed, why, saved rows) of shards that were read and are read by nobody any more.

    Judged where a whole job resumed from another run: all members of its first view have loaded it.
    """
    savers = {_saver(history, at, row): (at, row) for at, row in saved if is_retold(row)}
    members = history.walks.initial_members(int(history.rows.group[loads[0][0]]))
    if not {int(history.rows.actor[at]) for at, _ in loads}.issuperset(members):
        return
    kept = {shard for _, row in loads for shard in _shards(row)}
    by_rank = {_rank(history, at): at for at, _ in reversed(loads)}
    lost: dict[int, list[tuple[str, int]]] = {}
    for rank, (at, row) in sorted(savers.items()):
        for shard in sorted(_shards(row) - kept):
            lost.setdefault(by_rank.get(rank, by_rank[min(by_rank)]), []).append((shard, at))
    for load, shards in lost.items():
        names = ", ".join(shard for shard, _ in shards)
        yield (
            load,
            f"while nobody goes on with data shard{'s' if len(shards) > 1 else ''} {names}",
            [at for _, at in shards],
        )


def _shards(row: Row) -> set[str]:
    told = row["data_shard"]
    return {name.strip() for name in told.split(",") if name.strip()} if told else set()


def _rank(history: History, at: int) -> int:
    return history.rows.actors[int(history.rows.actor[at])].rank


def _saver(history: History, at: int, row: Row) -> int:
    return _rank(history, at) if row["source_rank"] is None else int(row["source_rank"])
