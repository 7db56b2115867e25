"""Makes the pictures of the README again, from the sample ``kill-one`` in a real browser.

    python tools/screenshots.py [FOLDER]

FOLDER is docs/images when it is not given. It needs playwright (``pip install .[dev]``) and a Chromium
on the machine. The page stands in the middle of the story: rank 2 is dead, the others are in CAUSAL, the
debt is open.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1600, 884
MAX_BYTES = 300_000
PATIENCE_MS = 30_000
THEMES = {"light": "run-kill-one.png", "dark": "run-kill-one-dark.png"}
START = (
    "import sys; from dashboard.commands import main; "
    "raise SystemExit(main(['replay', 'kill-one', '--port', '0', '--no-open', '--json']))"
)
CAUGHT_UP = "() => !document.body.innerText.includes('reading what is new')"
SHARP = """() => {
  const [frame] = performance.getEntriesByName("cascade-frame");
  return frame && frame.detail.sharp;
}"""


def main(folder: Path) -> int:
    """Write both pictures; 1 when one is too large for a README."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-c", START], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        sizes = [path.stat().st_size for path in _shoot(browser, said["url"], folder)]
    finally:
        server.terminate()
        server.wait(timeout=10)
    return int(max(sizes) > MAX_BYTES)


def _shoot(browser: str, url: str, folder: Path) -> list[Path]:
    made = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for theme, name in THEMES.items():
            page = chromium.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce"
            )
            page.set_default_timeout(PATIENCE_MS)
            with page.expect_response("**/window?*"):  # the exact sums of the window
                page.goto(f"{url}?{_place(page, url)}&theme={theme}")
            page.wait_for_selector(".cr-edge", state="attached")  # the transition in the lattice
            page.wait_for_selector('tr[data-rank="0"]')
            page.wait_for_function(SHARP)
            page.wait_for_function(CAUGHT_UP)
            page.mouse.move(WIDTH - 2, HEIGHT - 2)
            made.append(folder / name)
            page.screenshot(path=str(made[-1]))
            print(f"{made[-1].name}: {made[-1].stat().st_size // 1000} kB")
            page.close()
        chromium.close()
    return made


def _place(page: Any, url: str) -> str:
    """The part of a permalink that shows the excursion while its debt is open."""
    base, _, run_id = url.partition("/dash/run/")
    story = page.request.get(f"{base}/v1/runs/{run_id}/story").json()
    incident = next(i for i in story["incidents"] if i["kind"] == "excursion")
    debt = min(story["debts"], key=lambda d: d["opened_ns"])
    t = (debt["opened_ns"] + debt["closed_ns"]) // 2
    sel = incident["sel"] or f"incident:{incident['id']}"
    return f"t={t}&a={incident['a_ns']}&b={incident['b_ns']}&sel={sel}"


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"))
