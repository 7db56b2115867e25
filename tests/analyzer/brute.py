"""Happens-before by its definition: all edges written out, then the transitive closure."""

from __future__ import annotations

from typing import Any

N_TO_N = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"}
ONE_TO_N = {"broadcast", "scatter"}
N_TO_ONE = {"reduce", "gather"}


Keys = list[tuple[int, int, int]]


def edges_of(rows: list[tuple[str, dict[str, Any]]]) -> tuple[Keys, set[tuple[int, int]]]:
    """(keys in global order, every edge between rows)."""
    ordered = sorted(rows, key=lambda tr: (tr[1]["rank"], tr[1]["incarnation"], tr[1]["seq"]))
    keys = [(r["rank"], r["incarnation"], r["seq"]) for _, r in ordered]
    place = {key: i for i, key in enumerate(keys)}
    actor = [key[:2] for key in keys]
    edges: set[tuple[int, int]] = set()
    for i in range(len(keys) - 1):
        if actor[i] == actor[i + 1]:
            edges.add((i, i + 1))
    _messages(ordered, edges)
    _collectives(ordered, keys, place, edges)
    _dots(ordered, edges)
    _checkpoints(ordered, edges)
    return keys, edges


def sightings(rows: list[tuple[str, dict[str, Any]]]) -> set[tuple[int, int]]:
    """The edges from an update's issue to who applies or reads it."""
    edges: set[tuple[int, int]] = set()
    _dots(sorted(rows, key=lambda tr: (tr[1]["rank"], tr[1]["incarnation"], tr[1]["seq"])), edges)
    return edges


def closure(rows: list[tuple[str, dict[str, Any]]]) -> tuple[Keys, list[int]]:
    """(keys in global order, per row the bit set of rows that it happens-before)."""
    keys, edges = edges_of(rows)
    reach = [0] * len(keys)
    out: list[list[int]] = [[] for _ in keys]
    for a, b in edges:
        out[a].append(b)
    changed = True
    while changed:
        changed = False
        for a in range(len(keys) - 1, -1, -1):
            new = reach[a]
            for b in out[a]:
                new |= reach[b] | (1 << b)
            if new != reach[a]:
                reach[a] = new
                changed = True
    return keys, reach


def _messages(ordered: Any, edges: set[tuple[int, int]]) -> None:
    sends: dict[Any, int] = {}
    for i, (table, r) in enumerate(ordered):
        if table == "messages" and r["direction"] == "send":
            key = (
                r["comm_id"],
                r["rank"],
                r["incarnation"],
                r["peer"],
                r["peer_incarnation"],
                r["channel_seq"],
            )
            sends.setdefault(key, i)
    for i, (table, r) in enumerate(ordered):
        if table == "messages" and r["direction"] == "recv":
            key = (
                r["comm_id"],
                r["peer"],
                r["peer_incarnation"],
                r["rank"],
                r["incarnation"],
                r["channel_seq"],
            )
            if key in sends:
                edges.add((sends[key], i))


def _collectives(ordered: Any, keys: Any, place: Any, edges: set[tuple[int, int]]) -> None:
    instances: dict[Any, list[int]] = {}
    for i, (table, r) in enumerate(ordered):
        if table == "collectives":
            instances.setdefault((r["comm_id"], r["cseq"]), []).append(i)

    def completion(i: int) -> int | None:
        r = ordered[i][1]
        if r.get("done_seq") is None or not r["completed"]:
            return None
        later = [
            place[k]
            for k in keys
            if k[:2] == keys[i][:2] and k[2] >= max(r["done_seq"], r["seq"] + 1)
        ]
        return min(later, default=None)

    for members in instances.values():
        ops = {ordered[i][1]["op"] for i in members}
        for kind in (N_TO_N, ONE_TO_N, N_TO_ONE):
            if ops <= kind:
                for i in members:
                    for j in members:
                        done = completion(j)
                        if done is None:
                            continue
                        i_root = ordered[i][1].get("root") == keys[i][0]
                        j_root = ordered[j][1].get("root") == keys[j][0]
                        if (
                            kind is N_TO_N
                            or (kind is ONE_TO_N and i_root and not j_root)
                            or (kind is N_TO_ONE and j_root and not i_root)
                        ):
                            edges.add((i, done))


def _dots(ordered: Any, edges: set[tuple[int, int]]) -> None:
    issued: dict[Any, int] = {}
    owned: dict[Any, bool] = {}
    for i, (table, r) in enumerate(ordered):
        if table == "updates" and r["action"] == "issued":
            dot = (r["origin_rank"], r["origin_incarnation"], r["counter"])
            own = dot[:2] == (r["rank"], r["incarnation"])
            # The author's own issued row counts before a foreign one.
            if dot not in issued or (own and not owned.get(dot)):
                issued[dot], owned[dot] = i, own
    for i, (table, r) in enumerate(ordered):
        if table == "reads" or (table == "updates" and r["action"] == "applied"):
            dot = (r["origin_rank"], r["origin_incarnation"], r["counter"])
            if dot in issued:
                edges.add((issued[dot], i))
        if table == "reads" and r.get("frontier"):
            for d in r["frontier"]:
                known = [
                    (dot[2], j)
                    for dot, j in issued.items()
                    if dot[:2] == (d["rank"], d["incarnation"])
                    and dot[2] <= d["counter"]
                    and ordered[j][1]["object"] == r["object"]
                ]
                if known:
                    edges.add((max(known)[1], i))


def _checkpoints(ordered: Any, edges: set[tuple[int, int]]) -> None:
    rows = [(i, r) for i, (table, r) in enumerate(ordered) if table == "checkpoints"]
    for i, r in rows:
        for j, other in rows:
            if (
                other["action"] != "saved"
                and r["action"] == "saved"
                and r["checkpoint_id"] == other["checkpoint_id"]
            ):
                reloaded = any(
                    x["action"] != "saved" and x["checkpoint_id"] == r["checkpoint_id"]
                    and (x["rank"], x["incarnation"]) == (r["rank"], r["incarnation"]) and x["seq"] < r["seq"]
                    for _, x in rows
                )  # fmt: skip
                if not reloaded:
                    edges.add((i, j))
