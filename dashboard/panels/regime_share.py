"""How much of the ranks' time each regime took."""

from __future__ import annotations

import pyarrow as pa

from dashboard.panels._panel import REGIMES, Figure, Panel, bars, colour_of, columns

_SQL = """\
SELECT group_id, regime, round(rank_s, 6) AS rank_s, round(share_pct, 3) AS share_pct
FROM regime_share
ORDER BY group_id, rank_s DESC"""

_PATTERNS = {"STRONG": "", "CAUSAL": ".", "EVENTUAL": "/"}
"""Told apart without colour too."""


def _figure(table: pa.Table) -> Figure | None:
    if table.num_rows == 0:
        return None
    found = columns(table)
    rows = list(zip(*(found[name] for name in table.column_names), strict=True))
    data = []
    for regime in REGIMES:
        mine = [(group, seconds, share) for group, name, seconds, share in rows if name == regime]
        if not mine:
            continue
        data.append(
            bars(
                regime,
                [share for _, _, share in mine],
                [group for group, _, _ in mine],
                colour_of(regime),
                "%{y}: " + regime + " %{x:.1f}% (%{customdata:.2f} rank-seconds)",
                customdata=[seconds for _, seconds, _ in mine],
                orientation="h",
                text=[f"{regime[0]} {share:.1f}%" for _, _, share in mine],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                insidetextfont={"color": f"token:on-{regime.lower()}"},
                shape=_PATTERNS[regime],
                solidity=0.06,
            )
        )
    height = 120 + 34 * len({row[0] for row in rows})
    return {
        "data": data,
        "layout": {
            "barmode": "stack",
            "height": height,
            "xaxis": {"title": {"text": "share of the ranks' time, %"}, "range": [0, 100]},
            "yaxis": {"type": "category", "automargin": True},
        },
    }


PLUGIN = Panel(
    name="regime-share",
    title="Share of time in each regime",
    sql=_SQL,
    figure=_figure,
    empty="no time in any regime is known",
    order=3,
)
