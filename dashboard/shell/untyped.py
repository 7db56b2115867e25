"""Dash's calls that have no types, or types narrower than what they take."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash


def attributes(**named: str | None) -> dict[str, Any]:
    """HTML attributes with dashes: ``data_run`` is ``data-run``. None leaves one out."""
    return {name.replace("_", "-"): value for name, value in named.items() if value is not None}


def in_browser(dash: Dash, name: str, *parts: Any, **how: Any) -> None:
    """A callback that a function of ``dash_clientside.cascade`` (assets/90_*.js) does.

    By its name: a function as text would be an inline script.
    """
    untyped: Any = dash
    untyped.clientside_callback(ClientsideFunction("cascade", name), *parts, **how)
