"""The answer on a history of a database, for a terminal and as plain data."""

from __future__ import annotations

from typing import Any

from analyzer.database.causal import Causality

MAX_SHOWN = 10

SCHEMA_VERSION = 1
"""Of what ``--json`` prints on a history (docs/decisions/0036)."""


def render_causality(name: str, answer: Causality) -> str:
    """As text, ending in a newline."""
    size = (
        f"{answer.num_operations:,} operations in {answer.num_transactions:,} transactions of "
        f"{answer.num_sessions:,} sessions"
    )
    said = {
        "ok": "OK: the history is causally consistent",
        "violated": f"VIOLATED: {answer.num_anomalies:,} reads that no causal order allows",
        "unknown": f"UNKNOWN: {answer.reason}",
    }[answer.verdict]
    lines = [said, f"{name}: {size}"]
    for number, one in enumerate(answer.anomalies[:MAX_SHOWN], 1):
        lines.append(f"{number:>3}. {one.name}: {one.sentence}")
    left = answer.num_anomalies - min(len(answer.anomalies), MAX_SHOWN)
    if left > 0:
        lines.append(f"     and {left:,} more")
    return "\n".join(lines) + "\n"


def causality_data(name: str, answer: Causality) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "history",
        "inputs": [name],
        "verdict": answer.verdict,
        "reason": answer.reason,
        "num_sessions": answer.num_sessions,
        "num_transactions": answer.num_transactions,
        "num_operations": answer.num_operations,
        "num_anomalies": answer.num_anomalies,
        "anomalies": [{"name": a.name, "sentence": a.sentence} for a in answer.anomalies],
    }
