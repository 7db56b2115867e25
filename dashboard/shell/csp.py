"""What a page of ours may load and run: nothing from elsewhere, and no text made into code."""

from __future__ import annotations

from collections.abc import Sequence

OWN_REFERRER = "same-origin"
"""Referrer-Policy of pages with forms: with ``no-referrer`` browsers call their Origin null."""


def page_policy(script_hashes: Sequence[str] = ()) -> bytes:
    """The Content-Security-Policy of a page.

    Styles may be inline: Dash, AG Grid and plotly write them; a style runs nothing, and with
    ``default-src 'none'`` it can fetch nothing from elsewhere either.

    Args:
        script_hashes: of the inline scripts that the page has, as Dash gives them.
    """
    scripts = " ".join(["'self'", *script_hashes])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
        "worker-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ).encode()
