"""How long each debt stood, and what became of it."""

from __future__ import annotations

import pyarrow as pa

from dashboard.panels._panel import Figure, Panel, bars, columns

_MOST = 60
_SQL = f"""\
WITH closed AS (
    SELECT debt_id, group_id, min(wall_ns) AS wall_ns, arg_min(action, wall_ns) AS fate
    FROM debt_timeline WHERE action <> 'opened' GROUP BY ALL
),
upto AS (SELECT max(wall_ns) AS wall_ns FROM debt_timeline)
SELECT o.debt_id, o.relaxed, o.object, coalesce(c.fate, 'open') AS fate,
       round((coalesce(c.wall_ns, upto.wall_ns) - o.wall_ns) / 1e6, 3) AS age_ms
FROM debt_timeline AS o
    LEFT JOIN closed AS c USING (debt_id, group_id)
    CROSS JOIN upto
WHERE o.action = 'opened'
ORDER BY fate = 'open' DESC, age_ms DESC
LIMIT {_MOST}"""  # noqa: S608  # a constant of ours

_FATES = {
    "open": ("token:bad", "x"),
    "written_off": ("token:faint", "/"),
    "settled": ("token:debt", ""),
}


def _figure(table: pa.Table) -> Figure | None:
    if table.num_rows == 0:
        return None
    found = columns(table)
    rows = list(zip(found["debt_id"], found["fate"], found["age_ms"], strict=True))
    data = []
    for fate, (colour, shape) in _FATES.items():
        mine = [(debt, age) for debt, name, age in rows if name == fate]
        if mine:
            words = fate.replace("_", " ")
            data.append(
                bars(
                    words,
                    [age for _, age in mine],
                    [debt for debt, _ in mine],
                    colour,
                    "%{y}: " + words + " after %{x:.1f} ms",
                    orientation="h",
                    shape=shape,
                )
            )
    return {
        "data": data,
        "layout": {
            "height": 120 + 22 * table.num_rows,
            "barmode": "stack",
            "xaxis": {"title": {"text": "open for, ms"}, "rangemode": "tozero", "zeroline": False},
            "yaxis": {"type": "category", "automargin": True, "autorange": "reversed"},
        },
    }


PLUGIN = Panel(
    name="debt-age",
    title="How long each debt stayed open",
    sql=_SQL,
    figure=_figure,
    empty="nothing was relaxed, so there was no debt",
    order=4,
)
