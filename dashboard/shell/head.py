"""The head of every page: which run, the tabs, theme, help, sign out."""

from __future__ import annotations

from collector.storage._interface import RunSummary
from dashboard.shell.context import Shell
from dashboard.shell.nodes import Node, node
from dashboard.shell.paths import Place, address
from dashboard.shell.words import ended

_OF_A_RUN = (("run", "Timeline"), ("waits", "Waits"), ("violations", "Violations"), ("sql", "SQL"))
_OF_ALL = (("runs", "Runs"), ("sql", "SQL"), ("health", "Health"))


def head(shell: Shell, place: Place, run: RunSummary | None) -> Node:
    """The head for a place.

    Args:
        shell: what is shown.
        place: where the person is.
        run: the run that it is about; None for pages about all runs.
    """
    named = [] if run is None else _run(run)
    tabs = _OF_ALL if run is None else _OF_A_RUN
    run_id = None if run is None else run.run_id
    return node(
        "header",
        node("link", "CASCADE", href=address("runs"), class_="cs-brand", title="All runs"),
        *named,
        node(
            "nav",
            *[_tab(name, text, run_id, place) for name, text in tabs],
            class_="cs-tabs",
            aria_label="Pages",
        ),
        node("div", *_tools(shell), class_="cs-tools"),
        class_="cs-head",
        data_run=run_id or "",
        data_title=title_of(place, run),
    )


def title_of(place: Place, run: RunSummary | None) -> str:
    """The title of a page's window."""
    words = {"run": "Timeline", "home": "Runs", "sql": "SQL", "nowhere": "No such page"}
    what = words.get(place.page, place.page.capitalize())
    return f"{what} - {run.name if run else 'CASCADE Timelines'}"


def _state_badge(run: RunSummary) -> Node:
    """Whether rows may still come."""
    if run.state == "live":
        return node("span", "live", class_="cs-badge cs-live", title="rows may still come")
    text = ended(run.clean_end, run.ended_ns)
    kind = "none" if run.clean_end is not None and run.ended_ns is not None else "warn"
    return node("span", text, class_=f"cs-badge cs-{kind}")


def _run(run: RunSummary) -> list[Node]:
    return [
        node("span", "/", class_="cs-slash", aria_hidden="true"),
        node("span", run.name, class_="cs-name", title=f"run {run.run_id}"),
        _state_badge(run),
    ]


def _tab(name: str, text: str, run_id: str | None, place: Place) -> Node:
    here = name == place.page or (place.page, name) == ("home", "runs")
    # Only classes: dcc.Link passes no aria-current on.
    return node(
        "link", text, href=address(name, run_id), class_="cs-tab cs-here" if here else "cs-tab"
    )


def _tools(shell: Shell) -> list[Node]:
    tools = []
    if shell.replayed is not None:
        said = "nothing is written to the trace that is shown"
        tools.append(node("span", "replay", class_="cs-badge cs-none", title=said))
    tools += [
        node("button", "Theme", id="cs-theme", class_="cs-tool", title="Theme: system, light, dark"),
        node("button", "?", id="cs-help", class_="cs-tool", title="Keys and words (?)",
             aria_label="Help"),
    ]  # fmt: skip
    if shell.sessions.needed:
        out = node("button", "Sign out", class_="cs-tool", type="submit")
        tools.append(node("form", out, action="/sign-out", method="POST"))
    return tools
