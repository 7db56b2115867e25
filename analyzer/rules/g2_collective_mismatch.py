"""Members of one collective that do different things.

What it does:
    The entries of one (comm_id, cseq) must agree on op, dtype, root and label, and on the number of
    bytes where the operation has equal sizes. Reported at the members in the minority.

Why it matters:
    A mismatch hangs, or worse: it silently reduces one tensor with another.

Example:
    In collective 5, rank 0 does all_reduce and rank 1 all_gather.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from analyzer.columns import NULL, Ints
from analyzer.history import History
from analyzer.rules._base import Finding, Outcome, Rule
from analyzer.running import minority

_EQUAL_SIZE = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather")


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, G2."""
    instances = history.instances
    outcome = Outcome(num_checked=len(instances))
    if not len(instances):
        return outcome
    table = instances.table
    equal = table.mask("op", *_EQUAL_SIZE)
    facts: dict[str, Ints] = {
        "op": table.words("op")[0],
        "dtype": table.words("dtype")[0],
        "root": np.where(table.ints("root") == NULL, -1, table.ints("root")),
        "label": table.words("label")[0],
        "num_bytes": np.where(
            equal & (table.ints("num_bytes") != NULL), table.ints("num_bytes"), -1
        ),
    }
    odd = np.zeros(len(instances), dtype=np.bool_)
    for values in facts.values():
        odd |= _differ(values[instances.order], instances.begin)
    for at in np.flatnonzero(odd).tolist():
        index = instances.order[instances.begin[at] : instances.begin[at + 1]]
        _report(history, outcome, index, facts)
    return outcome


def _differ(values: Ints, begin: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Per instance: two members give different values; -1 (not given) differs from nothing."""
    low = np.minimum.reduceat(np.where(values < 0, np.iinfo(np.int64).max, values), begin[:-1])
    high = np.maximum.reduceat(values, begin[:-1])
    differ: np.ndarray[tuple[int], np.dtype[np.bool_]] = (high >= 0) & (low != high)
    return differ


def _report(history: History, outcome: Outcome, index: Ints, facts: dict[str, Ints]) -> None:
    filled = []
    for values in facts.values():
        given = [v for v in values[index].tolist() if v >= 0]
        usual = Counter(given).most_common(1)[0][0] if given else -1
        filled.append([usual if v < 0 else v for v in values[index].tolist()])
    whole = list(zip(*filled, strict=True))
    instances = history.instances
    for i in minority(whole):
        row = int(instances.table.rows[index[i]])
        j = next(k for k, other in enumerate(whole) if other != whole[i])
        other = int(instances.table.rows[index[j]])
        which = [name for name, a, b in zip(facts, whole[i], whole[j], strict=True) if a != b]
        mine, theirs = history.rows.content(row), history.rows.content(other)
        outcome.findings.append(
            Finding(
                row=row,
                sentence=(
                    f"in collective {mine['cseq']} of "
                    f"{instances.comm_name(int(instances.comm[index[i]]))}, "
                    f"{history.who_did(row)} had {', '.join(f'{w} {mine[w]}' for w in which)} and "
                    f"{history.who_did(other)} {', '.join(f'{w} {theirs[w]}' for w in which)}."
                ),
                witness=(other, row),
            )
        )


PLUGIN = Rule(code="G2", severity="error", needs=("collectives",), check=check)
