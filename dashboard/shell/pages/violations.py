"""Broken promises of a run, each with a way to its moment."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from dashboard.shell.context import Shell
from dashboard.shell.pages._grid import column, grid, link
from dashboard.shell.pages._page import Content, Page, notice, title
from dashboard.shell.paths import Place, address
from dashboard.shell.words import count

MOST = 5000
_SQL = f"""\
SELECT code, name, severity, rank, incarnation, seq, group_id, epoch, regime, wall_ns, sentence,
       inferred
FROM violation_list
LIMIT {MOST + 1}"""  # noqa: S608  # a constant of ours

_COLUMNS = [
    link("code", "rule", width=90),
    column("severity", width=100),
    column("sentence", flex=1, minWidth=360, tooltipField="sentence"),
    column("rank", number=True, width=80),
    column("seq", number=True, width=100),
    column("regime", width=110),
    column("epoch", number=True, width=90),
    column("after_s", "after, s", number=True, width=110),
    column("group_id", "group", width=100),
    column("inferred", width=100),
]


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    run_id = str(place.run_id)
    source = shell.source(run_id)
    report = source.report()
    ask = dcc.Link("ask in the box", href=address("sql", run_id, q=_SQL), className="cs-dim")
    if report is None:
        said = notice(
            "This run is not judged yet.", "wait some seconds: the page looks again by itself"
        )
        return [title("Violations"), said]
    table = source.query(_SQL)
    created_ns = source.meta().created_ns
    rows = [_row(run_id, row, created_ns) for row in table.slice(0, MOST).to_pylist()]
    if not rows:
        what = "No promise was found broken."
        if report.verdict == "unknown":
            what = "No promise was found broken, but not all that is needed to say so was recorded."
        return [title("Violations", ask), notice(what, "the verdict line says what was checked")]
    cut = f"the first {count(MOST)}" if table.num_rows > MOST else count(len(rows))
    return [
        title("Violations", html.Span(f"{cut}, certain ones first", className="cs-dim"), ask),
        grid(rows, _COLUMNS, label="violations", options={"tooltipShowDelay": 300}),
    ]


def _row(run_id: str, row: dict[str, Any], created_ns: int) -> dict[str, Any]:
    ident = ":".join(str(row[name]) for name in ("code", "rank", "incarnation", "seq"))
    after_s = (row["wall_ns"] - created_ns) / 1e9 if row["wall_ns"] is not None else None
    return {
        **row,
        "code": {"text": row["code"], "href": address("run", run_id, sel=f"violation:{ident}")},
        "after_s": None if after_s is None else round(after_s, 3),
        "wall_ns": str(row["wall_ns"]),
        "inferred": "inferred" if row["inferred"] else "",
    }


PLUGIN = Page("violations", _content)
