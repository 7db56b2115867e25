"""Say how much pip is about to download, before it does.

Usage: pip install --dry-run --report - REQUIREMENT | python tools/download_size.py

Reads pip's installation report, asks the server of each file for its size without fetching it,
and prints one sentence. A size that can't be learned is said to be unknown, never left out.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

TIMEOUT_S = 10


def size_of(url: str) -> int | None:
    """Return the size in bytes of the file behind a URL, or None when nobody tells."""
    parts = urlsplit(url)
    try:
        if parts.scheme == "file":
            return Path(url2pathname(parts.path)).stat().st_size
        if parts.scheme not in {"http", "https"}:
            return None
        request = Request(url, method="HEAD")  # noqa: S310 (the scheme was checked)
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def human(num_bytes: int) -> str:
    """Return a size as people write it: 12 MB, 2.7 GB."""
    if num_bytes < 1_000_000_000:
        return f"{max(1, round(num_bytes / 1_000_000))} MB"
    return f"{num_bytes / 1_000_000_000:.1f} GB"


def sentence(report: dict[str, Any]) -> str:
    """Return what a pip report would download: count, sum, the largest file, what is unknown."""
    urls = [item["download_info"]["url"] for item in report["install"]]
    if not urls:
        return "is here already: nothing to fetch"
    with ThreadPoolExecutor(max_workers=8) as pool:
        sizes = dict(zip(urls, pool.map(size_of, urls), strict=True))
    known = {url: size for url, size in sizes.items() if size is not None}
    if not known:
        return f"will fetch {len(urls)} files of unknown size"
    largest = max(known, key=known.__getitem__)
    name = Path(url2pathname(urlsplit(largest).path)).name
    total, unknown = human(sum(known.values())), len(urls) - len(known)
    text = f"will fetch {total} in {len(urls)} files ({human(known[largest])}: {name})"
    return f"{text}, and {unknown} of them are of unknown size" if unknown else text


if __name__ == "__main__":
    try:
        print(sentence(json.load(sys.stdin)))
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"download_size: no pip report on standard input ({error})")
