"""The picture's benchmarks run at small sizes, and what they judge can fail."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks import first_paint, live_lag, zoom
from benchmarks._browser import has_browser
from benchmarks._load import Sent
from cascade_runtime.vocabulary.events import EVENT_TYPES

ROOT = Path(__file__).parents[2]
LIMIT_S = 280

pytestmark = pytest.mark.skipif(not has_browser(), reason="no Chromium on this machine")


def quick(name, folder):
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert line["name"] == name
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Keeps the small trace for both that look at it."""
    return tmp_path_factory.mktemp("picture")


@pytest.mark.long
@pytest.mark.timeout(LIMIT_S + 20)
def test_first_paint(folder):
    line = quick("first_paint", folder)
    assert set(line["figure"]) == {"whole run", "as it opens"}
    assert all(seconds > 0 for seconds in line["figure"].values())


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 20)
def test_zoom(folder):
    figure = quick("zoom", folder)["figure"]
    assert 0 < figure["stretched, median"] <= figure["sharp, p95"]


@pytest.mark.long
@pytest.mark.timeout(LIMIT_S + 20)
def test_live_lag(folder):
    assert quick("live_lag", folder)["figure"]["p95"] > 0


def test_a_marked_row_is_a_committed_transition_and_each_has_an_epoch_of_its_own():
    marked = live_lag.Marked()
    epochs = [marked.next()[1] for _ in range(3)]
    assert epochs == sorted(set(epochs))
    (kind,) = (k for k in EVENT_TYPES if k.__struct_config__.tag == "transitions")
    row = msgspec.convert(marked.row(7, 123), kind)
    assert (row.phase, row.new_epoch, row.wall_ns, row.seq) == ("committed", 1_000_007, 123, 7)


def test_first_paint_holds_by_both_medians():
    good, late = [0.5, 0.6, 9.0], [0.5, 1.6, 1.7]
    assert first_paint.judge({"whole run": good, "as it opens": good}, []).holds
    assert not first_paint.judge({"whole run": good, "as it opens": late}, []).holds
    assert not first_paint.judge({"whole run": late, "as it opens": good}, []).holds


def test_zoom_holds_by_the_slow_steps():
    steps = [zoom.Step(5.0, 30.0, 1.0)] * 96
    assert zoom.judge([steps + [zoom.Step(5.0, 500.0, 1.0)] * 4], []).holds
    assert not zoom.judge([steps + [zoom.Step(5.0, 500.0, 1.0)] * 6], []).holds


def lag(*lags, load_was_on=True):
    return live_lag.judge([live_lag.Round(list(lags), Sent(num_rows=9, seconds=1.0), load_was_on)])


def test_live_lag_holds_by_p95_and_under_load_only():
    assert lag(0.5, 0.9).holds
    assert not lag(0.5, 1.1).holds
    assert not lag(0.5, load_was_on=False).holds
    assert not lag().holds
