"""The command line: one parser a verb, and a first help screen in three groups."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from cascade_runtime.vocabulary.errors import BadUsage

DIST = "cascade-timelines"

_GROUPS = {
    "look": ("Look", ("demo", "run", "replay")),
    "ask": ("Ask", ("analyze", "sql", "report")),
    "rest": ("The rest", ()),
}
"""Title of each group, and the order of its verbs where it is not the alphabet's."""


class UsageParser(argparse.ArgumentParser):
    """An argument parser whose errors have the shape of all others."""

    def error(self, message: str) -> NoReturn:
        """Raise BadUsage instead of ending the process."""
        raise BadUsage(message, hint=f"{self.prog} --help says what it takes")


def build_parser(verbs: Mapping[str, Any]) -> argparse.ArgumentParser:
    """The parser of ``cascade``; the parsed arguments carry the verb's name in ``verb``.

    Args:
        verbs: the verbs' ``PLUGIN`` objects by name.
    """
    parser = UsageParser(prog="cascade", add_help=False, allow_abbrev=False)
    parser.format_help = lambda: first_screen(verbs)  # type: ignore[method-assign]  # its own form
    parser.add_argument("-h", "--help", action="help")
    parser.add_argument("--version", action="version", version=f"{DIST} {dist_version()}")
    words = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=UsageParser)
    for verb in verbs.values():
        mine = words.add_parser(
            verb.name, help=verb.help, description=verb.help, allow_abbrev=False
        )
        verb.add_arguments(mine)
    return parser


def first_screen(verbs: Mapping[str, Any]) -> str:
    """What ``cascade --help`` prints."""
    width = max((len(name) for name in verbs), default=0)
    lines = ["usage: cascade VERB ...", ""]
    for group, (title, order) in _GROUPS.items():
        mine = [verb for verb in verbs.values() if verb.group == group]
        if not mine:
            continue
        place = {name: i for i, name in enumerate(order)}
        mine.sort(key=lambda verb: (place.get(verb.name, len(place)), verb.name))
        lines.append(f"{title}:")
        lines += [f"  {verb.name:<{width}}  {verb.help}" for verb in mine]
        lines.append("")
    lines += ["cascade VERB --help explains one of them. cascade --version says which this is.", ""]
    return "\n".join(lines)


def dist_version() -> str:
    """The installed version of the distribution."""
    try:
        return version(DIST)
    except PackageNotFoundError:
        return "(not installed: running from a checkout)"
