"""DuckDB's messages as strangers may read them."""

from __future__ import annotations

import re

_LONGEST = 600
_PATH = re.compile(r"(?<![\w.*?\]-])/(?:[\w.@%+~-]+/)+[\w.@%+~*-]*")


def told(message: str, *, lines: int = 3) -> str:
    """The first lines of a message, without paths of this machine."""
    said = [line.rstrip() for line in message.strip().splitlines() if line.strip()]
    text = _PATH.sub("(a path)", "\n".join(said[:lines]))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
