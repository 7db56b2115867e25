"""Broken promises of a run, each with a way to its moment."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from dashboard.shell.context import Shell
from dashboard.shell.pages._checks import checks_table
from dashboard.shell.pages._grid import column, grid, link
from dashboard.shell.pages._page import Content, Page, notice, so_far, title
from dashboard.shell.paths import Place, address
from dashboard.shell.words import count
from dashboard.tiles.rows import run_t0

MOST = 5000
_SQL = f"""\
SELECT code, name, severity, rank, incarnation, seq, group_id, epoch, regime, wall_ns, sentence,
       inferred
FROM violation_list
LIMIT {MOST + 1}"""  # noqa: S608  # a constant of ours

_COLUMNS = [
    link("code", "Rule", width=80),
    column(
        "after_s",
        "At, s",
        number=True,
        width=105,
        headerTooltip="seconds since the job started",
        cellRenderer="CascadeNumber",
        cellRendererParams={"decimals": 3},
    ),
    column("name", "Promise", width=190, tooltipField="name"),
    column("severity", width=105),
    column("sentence", "What happened", flex=1, minWidth=360, tooltipField="sentence"),
    column("rank", number=True, width=95),
    column("seq", number=True, width=95),
    column("regime", width=115),
    column("epoch", number=True, width=100),
    column("group_id", "Group", width=100),
    column("inferred", width=105),
]
# Columns that say nothing where every violation has the same in them.
_ONLY_IF_VARIED = ("group_id", "inferred", "epoch")


def _content(shell: Shell, place: Place, query: dict[str, str]) -> Content:
    run_id = str(place.run_id)
    source = shell.source(run_id)
    report = source.report()
    ask = dcc.Link("open as SQL", href=address("sql", run_id, q=_SQL), className="cs-dim")
    if report is None:
        said = notice(
            "This run is not judged yet.", "Wait some seconds: the page looks again by itself."
        )
        return [title("Violations"), said]
    table = source.query(_SQL)
    found = table.slice(0, MOST).to_pylist()
    t0 = run_t0(source)
    more = [] if source.is_judged_whole() else [so_far()]
    rows = [_row(run_id, row, n, t0) for row, n in zip(found, _again(found), strict=True)]
    if not rows:
        what = "No promise was found broken so far." if more else "No promise was found broken."
        if report.verdict == "unknown":
            what = "No promise was found broken, but not all that is needed to say so was recorded."
        num = sum(check.verdict in ("ok", "violated") for check in report.checks)
        checked = f"{count(num)} of {count(len(report.checks))} checks could be made."
        said = notice(f"{what} {checked}", kind="good" if report.verdict == "ok" else "empty")
        return [title("Violations", ask), *more, said, checks_table(report)]
    cut = f"the first {count(MOST)}" if table.num_rows > MOST else count(len(rows))
    return [
        title("Violations", html.Span(f"{cut}, certain ones first", className="cs-dim"), ask),
        *more,
        grid(rows, _columns(rows), label="violations", options={"tooltipShowDelay": 300}),
    ]


def _columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    varied = {name for name in _ONLY_IF_VARIED if len({row[name] for row in rows}) > 1}
    said = {name for name in ("inferred",) if any(row[name] for row in rows)}
    return [c for c in _COLUMNS if c["field"] not in _ONLY_IF_VARIED or c["field"] in varied | said]


def _key(row: dict[str, Any]) -> str:
    return ":".join(str(row[name]) for name in ("code", "rank", "incarnation", "seq"))


def _again(rows: list[dict[str, Any]]) -> list[int]:
    """Which of its rule's findings at one row each is, from 1 on, as the story counts them."""
    numbers, seen = [0] * len(rows), dict[str, int]()
    for at in sorted(range(len(rows)), key=lambda i: (rows[i]["inferred"], rows[i]["sentence"])):
        key = _key(rows[at])
        numbers[at] = seen[key] = seen.get(key, 0) + 1
    return numbers


def _row(run_id: str, row: dict[str, Any], number: int, t0: int) -> dict[str, Any]:
    ident = _key(row) + (f":{number}" if number > 1 else "")
    after_s = (row["wall_ns"] - t0) / 1e9 if row["wall_ns"] is not None else None
    return {
        **row,
        "code_href": address("run", run_id, sel=f"violation:{ident}"),
        "after_s": None if after_s is None else round(after_s, 3),
        "wall_ns": str(row["wall_ns"]),
        "inferred": "inferred" if row["inferred"] else "",
    }


PLUGIN = Page("violations", _content)
