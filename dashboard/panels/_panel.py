"""What a summary chart is, and the small words that charts share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Figure = dict[str, Any]
"""A plotly figure, ``{"data": [...], "layout": {...}}``, in plain Python values.

A colour is a token of theme.css, as ``token:regime-strong``: the browser puts in what it is in light
or dark.
"""


@dataclass(frozen=True)
class Panel:
    """The ``PLUGIN`` of a chart's file.

    Attributes:
        name: in addresses and ids.
        title: what it shows, for people; a unit is named where there is one.
        sql: one statement over the tables and named views of one run. It is what "show SQL" shows
            and what the table twin holds.
        figure: makes the chart of the statement's answer; None when there is nothing to draw.
        empty: what it means, for this chart, that there is nothing to draw.
        order: place on the page.
        note: a sentence under the title, where its words need one.
    """

    name: str
    title: str
    sql: str
    figure: Callable[[pa.Table], Figure | None]
    empty: str
    order: int
    note: str = ""


REGIMES = ("STRONG", "CAUSAL", "EVENTUAL")


def colour_of(regime: str) -> str:
    """The token of a regime."""
    return f"token:regime-{regime.lower()}"


def columns(table: pa.Table) -> Mapping[str, list[Any]]:
    """A table's columns as lists, by name."""
    return {name: table[name].to_pylist() for name in table.column_names}


def bars(
    name: str,
    x: Sequence[Any],
    y: Sequence[Any],
    colour: str,
    hover: str,
    *,
    shape: str = "",
    solidity: float = 0.25,
    **more: Any,
) -> dict[str, Any]:
    """A trace of bars.

    Args:
        name: in the legend.
        x, y: of the bars.
        colour: a token.
        hover: a plotly hovertemplate.
        shape: of a pattern over the colour, so that bars are told apart without it.
        solidity: of the pattern; less where words stand on it.
        more: of the trace.
    """
    marker = {"color": colour, "line": {"width": 0}, "pattern": pattern(shape, solidity)}
    return {
        "type": "bar",
        "name": name,
        "x": list(x),
        "y": list(y),
        "marker": marker,
        "hovertemplate": f"{hover}<extra></extra>",
        **more,
    }


def pattern(shape: str, solidity: float = 0.25) -> dict[str, Any]:
    """A pattern over a bar's own colour."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": "token:bg-raised", "solidity": solidity,
            "size": 7}  # fmt: skip


def seconds_title(what: str) -> dict[str, Any]:
    """A value axis in seconds."""
    return {"title": {"text": f"{what}, s"}, "rangemode": "tozero", "zeroline": False}
