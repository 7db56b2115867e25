"""The first collective whose members disagree on what it is, or to which someone never came.

The operation that times out is usually the victim: what counts is where the members first did
different things, and only then who is absent.
"""

from __future__ import annotations

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.history import History
from analyzer.rows import LEVELS
from analyzer.running import minority
from cascade_runtime.vocabulary.report import FirstDivergence

_SAME_RESULT = ("all_reduce", "all_gather", "broadcast")


def first_divergence(history: History) -> FirstDivergence | None:
    """The first (comm_id, cseq) where op, label, call site, step or digest differ; then absence."""
    instances, rows = history.instances, history.rows
    if not len(instances):
        return None
    facts = _facts(history)
    odd: dict[int, str] = {}
    for name, values in facts.items():
        ordered = values[instances.order]
        high = np.maximum.reduceat(ordered, instances.begin[:-1])
        low = np.minimum.reduceat(
            np.where(ordered < 0, np.iinfo(np.int64).max, ordered), instances.begin[:-1]
        )
        for at in np.flatnonzero((high >= 0) & (low != high)).tolist():
            odd.setdefault(at, name)
    if odd:
        at = min(odd, key=lambda i: (_time(history, i), i))
        index = instances.order[instances.begin[at] : instances.begin[at + 1]]
        values = facts[odd[at]][index]
        given = index[values >= 0]
        who = [int(given[i]) for i in minority(values[values >= 0].tolist())]
        ranks = sorted({rows.actors[int(instances.actor[i])].rank for i in who})
        return _divergence(history, at, ranks, f"{odd[at]} differs between members")
    for unfinished in sorted(
        instances.open(), key=lambda u: min(int(instances.arrival()[i]) for i in u.entries)
    ):
        if unfinished.absent:
            ranks = sorted({rows.actors[a].rank for a in unfinished.absent})
            at = int(instances.of[np.flatnonzero(instances.order == unfinished.entries[0])[0]])
            return _divergence(history, at, ranks, "never entered by all of its members")
    return None


def _facts(history: History) -> dict[str, Ints]:
    table, rows = history.instances.table, history.rows
    at = table.rows
    digest = np.where(table.mask("op", *_SAME_RESULT), table.words("payload_digest")[0], -1)
    # Only under STRONG do members share one step counter.
    counted = (rows.regime[at] == LEVELS["STRONG"]) & (rows.step[at] != NULL)
    return {
        "op": table.words("op")[0],
        "label": table.words("label")[0],
        "call site": table.words("call_site")[0],
        "step": np.where(counted, rows.step[at], -1),
        "payload digest": digest,
    }


def _time(history: History, instance: int) -> int:
    instances = history.instances
    index = instances.order[instances.begin[instance] : instances.begin[instance + 1]]
    return int(instances.arrival()[index].min())


def _divergence(history: History, at: int, ranks: list[int], why: str) -> FirstDivergence:
    instances = history.instances
    index = int(instances.order[instances.begin[at]])
    comm = history.rows.word("comm", int(instances.comm[index]))
    return FirstDivergence(comm_id=comm, cseq=int(instances.cseq[index]), ranks=ranks, why=why)
