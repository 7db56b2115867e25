"""What was checked, and what came of it: what stands where nothing was found broken."""

from __future__ import annotations

from typing import Any

from dash import html

from cascade_runtime.vocabulary.report import Report
from dashboard.shell.pages._grid import column, grid

_ABOVE = 220
"""px: head, title and the notice."""

_ORDER = ("violated", "unknown", "ok", "not_checked")

_COLUMNS = [
    column("code", "Rule", width=90),
    column("name", "Promise", width=260, tooltipField="name"),
    column("verdict", width=150, cellRenderer="CascadeVerdict"),
    column("checked", "Checked", number=True, width=120, cellRenderer="CascadeNumber"),
    column("reason", "Why", flex=1, minWidth=320, tooltipField="reason"),
]


def checks_table(report: Report) -> html.Div:
    """A row a rule: what cannot be said first, then what holds, then what was not looked at."""
    checks = sorted(report.checks, key=lambda check: _ORDER.index(check.verdict))
    rows: list[dict[str, Any]] = [
        {
            "code": check.code,
            "name": check.name,
            "verdict": check.verdict.replace("_", " "),
            "checked": check.num_checked,
            "reason": check.reason or "",
        }
        for check in checks
    ]
    return grid(rows, _COLUMNS, label="what was checked", above=_ABOVE)
