"""The addresses of the pages, and back."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

ROOT = "/dash/"


class Place(NamedTuple):
    """Where a person is: a page by name, and the run that it is about, if it is about one."""

    page: str
    run_id: str | None = None


HOME = Place("home")
NOWHERE = Place("nowhere")

_ALL = ("runs", "sql", "health")
_OF_A_RUN = ("waits", "violations", "sql")


def address(page: str, run_id: str | None = None, **query: str) -> str:
    """The path of a page, with its query."""
    if run_id is None:
        path = ROOT + ("" if page == HOME.page else page)
    else:
        path = f"{ROOT}run/{quote(run_id, safe='')}" + ("" if page == "run" else f"/{page}")
    return f"{path}?{urlencode(query)}" if query else path


def place_of(path: str) -> Place:
    """The page at a path, percent-encoded as browsers give it; ``NOWHERE`` when there is none."""
    if not path.startswith(ROOT):
        return NOWHERE
    words = path.removeprefix(ROOT).rstrip("/").split("/")
    match words:
        case [""]:
            return HOME
        case [page] if page in _ALL:
            return Place(page)
        case ["run", run_id] if run_id:
            return Place("run", unquote(run_id))
        case ["run", run_id, page] if run_id and page in _OF_A_RUN:
            return Place(page, unquote(run_id))
    return NOWHERE


def query_of(search: str | None) -> dict[str, str]:
    """The query of an address, ``?a=1`` or empty; the last of a name that comes twice."""
    return dict(parse_qsl((search or "").removeprefix("?")))
