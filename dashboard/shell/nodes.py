"""Elements of a page that are needed both as a document's text and as Dash's components."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """One element.

    Attributes:
        tag: its name; ``link`` is a link to another page of ours.
        attrs: attributes by their names in HTML; None leaves one out.
        children: elements and texts; texts may be hostile.
    """

    tag: str
    attrs: dict[str, str | None]
    children: tuple[Node | str, ...]


def node(tag: str, *children: Node | str, **attrs: str | None) -> Node:
    """An element; ``class_`` and ``data_run`` are ``class`` and ``data-run``."""
    return Node(tag, {key.strip("_").replace("_", "-"): attrs[key] for key in attrs}, children)


def as_html(made: Node | str) -> str:
    """Its text in a document."""
    if isinstance(made, str):
        return html.escape(made)
    tag = "a" if made.tag == "link" else made.tag
    attrs = "".join(
        f' {name}="{html.escape(value)}"' for name, value in made.attrs.items() if value is not None
    )
    return f"<{tag}{attrs}>{''.join(map(as_html, made.children))}</{tag}>"


def as_dash(made: Node | str, component: Callable[..., Any]) -> Any:
    """It as a component of Dash.

    Args:
        made: the element.
        component: makes one of (tag, children, attributes).
    """
    if isinstance(made, str):
        return made
    children = [as_dash(child, component) for child in made.children]
    attrs = {name: value for name, value in made.attrs.items() if value is not None}
    return component(made.tag, children, attrs)
