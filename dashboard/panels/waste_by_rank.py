"""Who waited, and who made others wait."""

from __future__ import annotations

import pyarrow as pa

from dashboard.panels._panel import Figure, Panel, bars, columns, seconds_title

_SQL = """\
SELECT rank, round(waited_s, 6) AS waited_s, round(caused_s, 6) AS caused_s,
       round(last_s, 6) AS last_s, num_steps_worst, round(share_of_steps, 4) AS share_of_steps
FROM slowest_ranks
ORDER BY rank"""


def _figure(table: pa.Table) -> Figure | None:
    if table.num_rows == 0:
        return None
    found = columns(table)
    ranks = [str(rank) for rank in found["rank"]]
    return {
        "data": [
            bars("waited", ranks, found["waited_s"], "token:waited", "rank %{x} waited %{y:.3f} s"),
            bars(
                "caused",
                ranks,
                found["caused_s"],
                "token:caused",
                "rank %{x} made others wait %{y:.3f} s",
                shape="/",
            ),
        ],
        "layout": {
            "barmode": "group",
            "xaxis": {"title": {"text": "rank"}, "type": "category"},
            "yaxis": seconds_title("waiting in collectives"),
        },
    }


PLUGIN = Panel(
    name="waste-by-rank",
    title="Who waited, and who made others wait",
    sql=_SQL,
    figure=_figure,
    empty="no rank waited for another one",
    order=1,
    note="Caused: waits of which one rank alone bears at least half; of others nobody is the cause. "
    "What ranks share when they come last together is in “Blamed” on the timeline's page and in "
    "cascade analyze, so those figures differ.",
)
