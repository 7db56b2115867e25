"""Explanations: data first. A witness is a list of events; each tells how it follows from the last.

An event is ``{rank, incarnation, seq, table, what, wall_ns, edge}``; ``edge`` is null, or the words
for how the event before it in the list happens-before it (``message``, ``program order``, ...).
The sentence of a finding is written by its rule; ``what`` comes from here, one template a table.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from analyzer.history import History

Row = dict[str, Any]


def event(history: History, row: int, edge: str | None = None) -> dict[str, Any]:
    """One row as a witness event."""
    rank, incarnation, seq = history.rows.where(row)
    content = history.rows.content(row)
    return {
        "rank": rank,
        "incarnation": incarnation,
        "seq": seq,
        "table": history.rows.table_of(row),
        "what": f"{history.who_did(row)} {_what(history, row, content)}",
        "epoch": content["epoch"],
        "step": content["step"],
        "wall_ns": content["wall_ns"],
        "edge": edge,
    }


def witness(history: History, rows: tuple[int, ...], with_paths: bool = True) -> list[Row]:
    """Events in order, with the shortest happens-before path between neighbours that have one."""
    events = [event(history, rows[0])]
    for first, second in pairwise(rows):
        hops = history.hb.path(first, second) if with_paths else []
        if hops:
            events += [event(history, hop.row, hop.edge) for hop in hops[1:]]
        elif with_paths or not history.happens_before(first, second):
            events.append(event(history, second))
        else:
            events.append(event(history, second, "happens-before"))
    return events


def _what(history: History, row: int, content: Row) -> str:
    template = _TEMPLATES.get(history.rows.table_of(row))
    return template(history, content) if template else f"recorded {history.rows.table_of(row)}"


def _dot(content: Row) -> str:
    if content["counter"] is None:
        return "the initial value"
    again = f".{content['origin_incarnation']}" if content["origin_incarnation"] else ""
    return f"update {content['origin_rank']}{again}:{content['counter']}"


def _version(content: Row) -> str:
    return "" if content["version"] is None else f", version {content['version']}"


def _actors(items: list[dict[str, int]] | None) -> str:
    return "{" + ", ".join(str(a["rank"]) for a in items or ()) + "}"


def _collective(history: History, content: Row) -> str:
    comm = history.instances.comm_name(history.rows.code("comm", content["comm_id"] or "?"))
    end = "" if content["done_seq"] is not None else " and never completed it"
    label = f" {content['label']}" if content["label"] else ""
    return f"entered {content['op']}{label}, number {content['cseq']} of {comm}{end}"


def _message(history: History, content: Row) -> str:
    way = "sent to" if content["direction"] == "send" else "received from"
    peer = history.who(history.rows.actor_code(content["peer"] or 0, content["peer_incarnation"]))
    return f"{way} {peer} message {content['channel_seq']}"


def _update(_: History, content: Row) -> str:
    return f"{content['action']} {_dot(content)} of {content['object']}{_version(content)}"


def _read(_: History, content: Row) -> str:
    folded = content["frontier"]
    if folded is not None and content["counter"] is None:
        seen = ", ".join(f"{d['rank']}:{d['counter']}" for d in folded) or "nothing folded"
        return f"read {content['object']} at {seen}{_version(content)}"
    return f"read {content['object']} at {_dot(content)}{_version(content)}"


def _decision(_: History, content: Row) -> str:
    if not content["changed"]:
        return f"decided to stay in {content['from_regime']} on {content['fault']}"
    return f"decided {content['from_regime']} to {content['to_regime']} on {content['fault']}"


def _transition(_: History, content: Row) -> str:
    cause = f" on {content['fault']}" if content["fault"] else ""
    return (
        f"{content['phase']} epoch {content['new_epoch']}: {content['from_regime']} to "
        f"{content['to_regime']}{cause}, members {_actors(content['members'])}"
    )


def _debt(_: History, content: Row) -> str:
    verb = str(content["action"]).replace("written_off", "wrote off")
    relaxed = f" (relaxed {content['relaxed']})" if content["relaxed"] else ""
    return f"{verb} debt {content['debt_id']}{relaxed}"


def _membership(_: History, content: Row) -> str:
    out = f", {_actors(content['departed'])} {content['reason']}" if content["departed"] else ""
    return f"has members {_actors(content['members'])}{out}"


def _health(_: History, content: Row) -> str:
    fault = f": {content['fault']}" if content["fault"] else ""
    return f"saw {content['signal']} of rank {content['subject_rank']}{fault}"


def _checkpoint(_: History, content: Row) -> str:
    return f"{content['action']} checkpoint {content['checkpoint_id']}"


def _digest(_: History, content: Row) -> str:
    return f"has {content['object']} with digest {content['digest']}{_version(content)}"


def _step(_: History, content: Row) -> str:
    phase = {"begin": "began", "end": "ended"}.get(content["phase"], "was at")
    return f"{phase} step {content['step']}"


def _actor(_: History, content: Row) -> str:
    return f"started on {content['host'] or 'an unnamed host'}"


def _lease(_: History, content: Row) -> str:
    return f"{content['action']} lease {content['lease_id']} of {content['object']}"


def _group(_: History, content: Row) -> str:
    return f"joined {content['label'] or content['comm_id']} of {_actors(content['members'])}"


_TEMPLATES: dict[str, Callable[[History, Row], str]] = {
    "actors": _actor,
    "groups": _group,
    "steps": _step,
    "collectives": _collective,
    "messages": _message,
    "updates": _update,
    "reads": _read,
    "leases": _lease,
    "decisions": _decision,
    "transitions": _transition,
    "debt": _debt,
    "membership": _membership,
    "health": _health,
    "checkpoints": _checkpoint,
    "digests": _digest,
}
