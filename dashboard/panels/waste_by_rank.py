"""What each rank waited, and what it caused."""

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
                "rank %{x} caused %{y:.3f} s",
                shape="/",
            ),
        ],
        "layout": {
            "barmode": "group",
            "xaxis": {"title": {"text": "rank"}, "type": "category"},
            "yaxis": seconds_title("waited, caused"),
        },
    }


PLUGIN = Panel(
    name="waste-by-rank",
    title="Waited and caused, by rank",
    sql=_SQL,
    figure=_figure,
    empty="no rank waited for another one",
    order=1,
    note="Waited: a rank's own time in collectives until the last one came. Caused: waits of others "
    "of which this rank alone bears at least half of the blame. “Blamed”, on the timeline's page and "
    "in cascade analyze, shares waits out among ranks: another figure.",
)
