"""What a page is, and the pieces that several have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dash import Dash, html

from cascade_runtime.vocabulary.errors import CascadeError
from dashboard.shell.context import Shell
from dashboard.shell.paths import Place

Content = list[Any]
"""Dash components. Names and sentences go in as children: they may be hostile, and React escapes them."""


@dataclass(frozen=True)
class Page:
    """The ``PLUGIN`` of a page's file.

    Attributes:
        name: the page's name in ``Place``.
        content: makes what it shows, for a place that exists and the query of its address; runs in
            a thread.
        callbacks: declares what the page's own parts do.
    """

    name: str
    content: Callable[[Shell, Place, dict[str, str]], Content]
    callbacks: Callable[[Dash, Shell], None] | None = None


def title(text: str, *beside: Any) -> html.Div:
    """The page's heading, and what stands beside it."""
    return html.Div([html.H1(text), *beside], className="cs-title")


def notice(what: str, *next_acts: Any, kind: str = "empty") -> html.Div:
    """A box that says that there is nothing, or what is wrong, and what to do next."""
    acts = html.Ul([html.Li(act) for act in next_acts]) if next_acts else None
    role: dict[str, Any] = {"role": "alert"} if kind == "bad" else {}
    return html.Div([html.P(what), acts], className=f"cs-notice cs-{kind}", **role)


def so_far() -> html.Div:
    """What stands over figures of an analysis that has not seen every row."""
    return notice(
        "So far: rows came after the last analysis, so these figures may still change.",
        "Load the page again for newer ones.",
    )


def failed(error: CascadeError) -> Content:
    """An error in the page's place: what happened, where, what to do."""
    parts: Content = [html.Span(error.message)]
    if error.where:
        parts.append(html.Code(error.where))
    told = [part for item in parts for part in (item, " ")]
    return [html.Div([html.P(told), html.P(error.hint) if error.hint else None],
                     className="cs-notice cs-bad", role="alert")]  # fmt: skip
