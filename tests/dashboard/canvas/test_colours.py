"""Regimes can be told from the page and from each other, whatever the reader's colour vision."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

ASSETS = Path(__file__).parents[3] / "dashboard" / "assets"
THEME = ASSETS / "theme.css"
REGIMES = ("regime-strong", "regime-causal", "regime-eventual")
# What a cone's loss does to linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
VISION = {
    "protan": (
        *((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216)),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        *((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413)),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        *((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602)),
        (0.004733, 0.691367, 0.303900),
    ),
}
RGB_TO_XYZ = (
    *((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750)),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def times(matrix, vector):
    return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def contrast(one: str, two: str) -> float:
    dark, light = sorted(times(RGB_TO_XYZ, linear(c))[1] for c in (one, two))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    x, y, z = (v / w for v, w in zip(times(RGB_TO_XYZ, rgb), WHITE, strict=True))
    fx, fy, fz = (c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one: str, two: str, vision: str) -> float:
    """CIE76 between two colours as a reader of that vision sees them."""
    seen = [
        lab([min(max(c, 0.0), 1.0) for c in times(VISION[vision], linear(colour))])
        for colour in (one, two)
    ]
    return sum((p - q) ** 2 for p, q in zip(*seen, strict=True)) ** 0.5


def tokens(theme: str) -> dict[str, str]:
    """The tokens as they hold in a theme: light is the base of dark."""
    found: dict[str, str] = {}
    wanted = [":root"] if theme == "light" else [":root", ':root[data-theme="dark"]']
    for selector in wanted:
        for chosen, body in rules(THEME):
            if chosen == selector:
                found |= dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})\b", body))
    return found


def rules(sheet: Path) -> list[tuple[str, str]]:
    """(selector, body) of each rule."""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [(s.strip(), body) for s, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text)]


def test_tokens_are_said_in_one_place():
    for sheet in ASSETS.glob("*.css"):
        if sheet != THEME:
            said = [
                s for s, body in rules(sheet) if ":root" in s and re.search(r"(^|;)\s*--", body)
            ]
            assert said == [], sheet.name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("lane", ["waited", "caused"])
def test_a_busy_lane_stands_out_from_the_page(theme, lane):
    known = tokens(theme)
    assert contrast(known[lane], known["bg-raised"]) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_regime_stands_out_from_the_page(theme, regime):
    known = tokens(theme)
    for ground in ("bg", "bg-raised"):
        assert contrast(known[regime], known[ground]) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("regime", REGIMES)
def test_a_letter_can_be_read_on_its_regime(theme, regime):
    known = tokens(theme)
    assert contrast(known[regime], known[regime.replace("regime", "on")]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("pair", list(itertools.combinations(REGIMES, 2)), ids="-".join)
def test_regimes_differ_for_every_colour_vision(theme, vision, pair):
    known = tokens(theme)
    assert distance(known[pair[0]], known[pair[1]], vision) >= 25
