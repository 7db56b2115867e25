"""Waits step by step: what the rank that caused most of each caused, and the rest."""

from __future__ import annotations

import pyarrow as pa

from dashboard.panels._panel import Figure, Panel, bars, columns, seconds_title

_MOST = 600
"""Bars; beyond that, steps are put together, which the title says."""

_SQL = f"""\
WITH spans AS (
    SELECT greatest(1, ceil((max(step) - min(step) + 1) / {_MOST}.0))::BIGINT AS num_steps,
           min(step) AS first
    FROM wasted_by_step
),
-- of each bar and rank: the steps in which that rank was the worst
parts AS (
    SELECT first + (step - first) // num_steps * num_steps AS bar, any_value(num_steps) AS num_steps,
           worst_rank, sum(waited_s) AS waited_s, sum(coalesce(worst_s, 0)) AS worst_s
    FROM wasted_by_step, spans
    GROUP BY bar, worst_rank
)
SELECT bar AS step, any_value(num_steps) AS num_steps, round(sum(waited_s), 6) AS waited_s,
       arg_max(worst_rank, worst_s) AS worst_rank, round(max(worst_s), 6) AS worst_s
FROM parts
GROUP BY bar ORDER BY bar"""  # noqa: S608  # a constant of ours


def _figure(table: pa.Table) -> Figure | None:
    if table.num_rows == 0:
        return None
    found = columns(table)
    rest = [max(0.0, w - x) for w, x in zip(found["waited_s"], found["worst_s"], strict=True)]
    worst = ["nobody" if rank is None else f"rank {rank}" for rank in found["worst_rank"]]
    num_steps = found["num_steps"][0]
    each, where = (
        ("step", "") if num_steps == 1 else ("bar", " in the steps of which it caused most")
    )
    return {
        "data": [
            bars(
                f"caused by the rank that caused most of the {each}",
                found["step"],
                found["worst_s"],
                "token:caused",
                f"step %{{x}}: %{{customdata}} caused %{{y:.3f}} s{where}",
                customdata=worst,
            ),
            bars(
                "caused by others, or by nobody alone" if num_steps == 1 else "all other waits",
                found["step"],
                rest,
                "token:faint",
                "step %{x}: %{y:.3f} s caused by others, or by nobody alone"
                if num_steps == 1
                else "step %{x}: %{y:.3f} s besides",
            ),
        ],
        "layout": {
            "barmode": "stack",
            "bargap": 0.05,
            "xaxis": {"title": {"text": "step" if num_steps == 1 else f"step ({num_steps} a bar)"}},
            "yaxis": seconds_title("waited, all ranks"),
        },
    }


PLUGIN = Panel(
    name="waste-by-step",
    title="Waits by step, and the rank that caused most of each",
    sql=_SQL,
    figure=_figure,
    empty="no step has a wait",
    order=2,
)
