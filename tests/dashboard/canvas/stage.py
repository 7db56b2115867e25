"""A page with the canvas scripts and a stubbed server behind it; nothing leaves the browser."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from dashboard.story.model import Regimes, Walk
from dashboard.story.packed_story import framed

ASSETS = Path(__file__).parents[3] / "dashboard" / "assets"
HOST = "http://canvas.test"
SHEETS = ("theme.css", "timeline.css")
SECOND = 1_000_000_000

MOUNT = """(options) => {
  document.body.replaceChildren();
  const view = new Cascade.View();
  const source = new Cascade.ServerSource("", "r");
  window.view = view;
  window.mounted = Cascade.timeline(document.body, { source, view, ...options });
  window.tl = window.mounted.timeline;
  return window.tl.watcher.ready;
}"""


def canvas_scripts() -> list[Path]:
    """The canvas part's own scripts, in the order in which a page loads them."""
    return sorted(ASSETS.glob("[1-5]*.js"))


@cache
def page_html() -> str:
    """The page in one piece: forty answers through the test would take longer than the test."""
    style = "".join((ASSETS / name).read_text(encoding="utf-8") for name in SHEETS)
    texts = [path.read_text(encoding="utf-8") for path in canvas_scripts()]
    assert not any("</script" in text for text in texts)
    scripts = "".join(f"<script>{text}</script>" for text in texts)
    return f'<!doctype html><html lang="en"><title>t</title><style>{style}</style><body>{scripts}'


def intervals(rows: list[tuple[int, int, int, int]]) -> dict[str, list[Any]]:
    """(rank, regime, start, end) as the story's regime columns."""
    rows = sorted(rows, key=lambda row: (row[0], row[2]))
    return {
        "rank": [r[0] for r in rows],
        "incarnation": [0] * len(rows),
        "group": ["world"] * len(rows),
        "epoch": [0] * len(rows),
        "regime": [r[1] for r in rows],
        "start_ns": [r[2] for r in rows],
        "end_ns": [r[3] for r in rows],
    }


def story(num_ranks: int = 4, seconds: int = 100) -> dict[str, Any]:
    """A run that left STRONG from 40 % to 50 % of its time; the last rank died there."""
    end = seconds * SECOND
    fall, climb, last = end * 4 // 10, end // 2, num_ranks - 1
    rows, actors = [], []
    for rank in range(num_ranks):
        stop = fall if rank == last else end
        rows.append((rank, 0, 0, fall))
        if rank != last:
            rows += [(rank, 1, fall, climb), (rank, 0, climb, end)]
        actors.append(
            {
                **{"rank": rank, "incarnation": 0, "kind": "rank", "host": "h", "name": None},
                **{"first_ns": 0, "last_ns": stop, "end": "failed" if rank == last else None},
            }
        )
    walk = {"group": "world", "cohorts": [], "proposer": 0, "members": [], "reason": "r"}
    fell = {
        **{"epoch": 1, "at_ns": fall, "from": "STRONG", "to": "CAUSAL", "fault": "GPU_FAIL_STOP"},
        **{"missing": [last], "sentence": "Epoch 1: STRONG to CAUSAL."},
    }
    rose = {
        **{"epoch": 2, "at_ns": climb, "from": "CAUSAL", "to": "STRONG", "fault": "STABLE_SYNC"},
        **{"missing": [], "sentence": "Epoch 2: CAUSAL to STRONG."},
    }
    marks = [
        {
            **{"at_ns": one["at_ns"], "kind": "transition", "severity": "warning", "rank": 0},
            **{"incarnation": 0, "fault": one["fault"], "epoch": one["epoch"]},
            "sentence": one["sentence"],
        }
        for one in (fell, rose)
    ]
    return {
        **{"version": "1", "t0_ns": "1795977000000000000", "t1_ns": end, "plan": []},
        "run": {"run_id": "r", "name": "r", "state": "ended", "world_size": num_ranks},
        **{"actors": actors, "ranks": list(range(num_ranks)), "missing": [], "groups": ["world"]},
        **{"regimes": intervals(rows), "walks": [walk | fell, walk | rose]},
        **{"marks": marks, "num_marks": 2, "debts": [], "silent": [], "gaps": []},
        "verdict": {"state": "ok", "sentence": "", "detail": [], "checks": [], "num_violations": 0},
        **{"violations": [], "waits": None, "incidents": [], "sql": {}},
        "measured": {
            "gpu": {"state": "not_measured", "why": "no NVML on this host"},
            "cpu": {"state": "measured", "why": ""},
        },
    }


def tile(
    a: int,
    b: int,
    w: int,
    lanes: list[str],
    num_ranks: int,
    value: int = 90,
    more: dict[str, Any] | None = None,
) -> bytes:
    """A tile in which every byte is ``value``; ``more`` of its head."""
    layers, bodies, offset = [], [], 0
    for lane in lanes:
        ranked = lane in ("waited", "caused")
        rows: list[Any] = (
            list(range(num_ranks)) if ranked else ["median", "p10", "p90", "min", "max", "num"]
        )
        body = bytes([value]) * (len(rows) * w)
        body += bytes(-len(body) % 8)
        told = {"lane": lane, "dtype": "uint8", "rows": rows, "cols": w, "offset": offset}
        layers.append(told | {"code": "sqrt" if ranked else "percent"})
        bodies.append(body)
        offset += len(body)
    head = {"a": a, "b": b, "w": w, "version": "1", "upto_ns": b, "source": "judged"} | (more or {})
    text = json.dumps({"building": None} | head | {"layers": layers}).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + b"".join(bodies)


class Stub:
    """Answers the page's questions; tests change ``story``, ``pulse`` and ``status`` as they go."""

    def __init__(self) -> None:
        self.story = story()
        self.pulse: dict[str, Any] = {}
        self.status = 200
        self.asked: list[str] = []
        self.strangers: list[str] = []
        self.windows: list[dict[str, str]] = []
        self.tile_head: dict[str, Any] = {}
        self.tile_value = 90
        self.window_head: dict[str, Any] = {}
        self.waited_s = 1.5
        self.refused: set[str] = set()
        """Questions that fail with a sentence."""
        self.on_tile: Callable[[dict[str, str]], None] = lambda query: None

    def num_asked(self, what: str) -> int:
        return sum(path.endswith(f"/{what}") for path in self.asked)

    def answer(self, route: Any) -> None:
        url = urlsplit(route.request.url)
        if f"{url.scheme}://{url.netloc}" != HOST:
            self.strangers.append(route.request.url)
            route.abort()
        elif not url.path.startswith("/v1/"):
            self.asset(route, url.path)
        elif self.status != 200:
            self.asked.append(url.path)
            route.fulfill(status=self.status, json={})
        else:
            self.asked.append(url.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            self.data(route, url.path.rpartition("/")[2], query)

    def asset(self, route: Any, path: str) -> None:
        if path == "/":
            route.fulfill(body=page_html(), content_type="text/html; charset=utf-8")
        else:
            route.fulfill(status=204)

    def data(self, route: Any, what: str, query: dict[str, str]) -> None:
        told = self.story
        if what in self.refused:
            error = {"message": "the disk is full", "where": "data", "hint": "make room"}
            route.fulfill(status=422, json={"error": error})
        elif what == "story":
            if query.get("if_version") == told["version"]:
                route.fulfill(status=304)
            else:
                rest = {n: part for n, part in told.items() if n not in ("regimes", "walks")}
                walks = [
                    msgspec.convert({"id": f"{one['group']}:{one['epoch']}"} | one, Walk)
                    for one in told["walks"]
                ]
                body = framed(rest, Regimes(**told["regimes"]), walks)
                route.fulfill(body=body, content_type="application/octet-stream")
        elif what == "pulse":
            pulse = {
                **{"version": told["version"], "tiles_version": "1", "t1_ns": told["t1_ns"]},
                **{"state": told["run"]["state"], "num_rows": 1, "rows_per_s": 0},
                **{"last_row_age_s": None, "building": None},
            }
            route.fulfill(json=pulse | self.pulse)
        elif what == "tile":
            self.on_tile(query)
            a, b, w = (int(query[name]) for name in ("a", "b", "w"))
            lanes, num = query["lanes"].split(","), len(told["ranks"])
            body = tile(a, b, w, lanes, num, self.tile_value, self.tile_head)
            route.fulfill(body=body, content_type="application/octet-stream")
        elif what == "window":
            self.windows.append(query)
            rows = [
                {"rank": rank, "waited_s": self.waited_s, "caused_s": 0.5} for rank in told["ranks"]
            ]
            route.fulfill(json={"by_rank": rows, "regime_share": {}} | self.window_head)
        else:
            ranks = [{"rank": rank, "step": 7} for rank in told["ranks"]]
            route.fulfill(json={"t_ns": int(query["t"]), "ranks": ranks})
