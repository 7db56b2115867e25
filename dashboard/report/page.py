"""The HTML around a report's data: scripts and styles inside, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

_HERE = Path(__file__).parent
_ASSETS = _HERE.parent / "assets"
_STYLES = ("theme.css", "timeline.css", "panels.css")
_ENDS = re.compile(r"</(script|style)|<!--", re.IGNORECASE)


def scripts() -> list[tuple[str, str]]:
    """(name, text) of what runs in the file, in its order: the pages' own canvas and panels first."""
    shared = sorted(_ASSETS.glob("[1-8]*.js"))
    return [(path.name, _text(path)) for path in (*shared, *sorted(_HERE.glob("*.js")))]


def styles() -> str:
    """The style sheets in one."""
    paths = (*(_ASSETS / name for name in _STYLES), _HERE / "report.css")
    return "\n".join(_text(path) for path in paths)


def page(title: str, sentence: str, blocks: Mapping[str, bytes]) -> bytes:
    """The file.

    Args:
        title: of the window; may hold anything.
        sentence: what a browser without scripts shows; may hold anything.
        blocks: data by name.
    """
    run, style = scripts(), f"\n{styles()}"
    data = "\n".join(
        f'<script type="application/octet-stream" id="cascade-{name}">{packed(body)}</script>'
        for name, body in blocks.items()
    )
    code = "\n".join(f'<script data-file="{name}">\n{text}</script>' for name, text in run)
    policy = _policy([f"\n{text}" for _, text in run], style)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<header class="rp-head" id="report-head"></header>
<main id="cascade-run"></main>
<footer class="rp-foot" id="report-foot"></footer>
<noscript><p class="rp-said">{html.escape(sentence)} The picture needs JavaScript.</p></noscript>
{data}
{code}
</body>
</html>
""".encode()


def packed(body: bytes) -> str:
    """Deflated (zlib's form), in base64: letters that end no element."""
    return base64.b64encode(zlib.compress(body, 9)).decode()


def _policy(code: Iterable[str], style: str) -> str:
    hashes = " ".join(_hash(text) for text in code)
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _text(path: Path) -> str:
    """A text of ours; one that would end its element is a fault of ours."""
    text = path.read_text("utf-8").replace("\r\n", "\n")
    if found := _ENDS.search(text):
        raise AssertionError(f"{path.name} holds {found.group()!r} and cannot be put into a page")
    return text
