"""Dash's calls that have no types, or types narrower than what they take."""

from __future__ import annotations

from typing import Any

from dash import ClientsideFunction, Dash, dcc, html


def attributes(**named: str | None) -> dict[str, Any]:
    """HTML attributes with dashes: ``data_run`` is ``data-run``. None leaves one out."""
    return {name.replace("_", "-"): value for name, value in named.items() if value is not None}


def component(tag: str, children: list[Any], attrs: dict[str, str]) -> Any:
    """An element of nodes.Node as a component."""
    named: dict[str, Any] = dict(attrs)
    if "class" in named:
        named["className"] = named.pop("class")
    if tag == "link":
        return dcc.Link(children[0], **named)
    return getattr(html, tag.capitalize())(children, **named)


def in_browser(dash: Dash, name: str, *parts: Any, **how: Any) -> None:
    """A callback that a function of ``dash_clientside.cascade`` (assets/90_*.js) does.

    By its name: a function as text would be an inline script.
    """
    untyped: Any = dash
    untyped.clientside_callback(ClientsideFunction("cascade", name), *parts, **how)
