"""The picture's benchmarks run at small sizes, and what they judge can fail."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks import first_paint, live_lag, zoom
from benchmarks._browser import has_browser
from benchmarks._paced import Paced
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


def one_round(*lags, rate=live_lag.RATE, errors=()):
    load = Paced(num_rows=int(rate), seconds=1.0, errors=list(errors))
    return live_lag.Round(list(lags), load)


@pytest.mark.parametrize(
    ("round_", "holds"),
    [
        (one_round(0.5, 0.9), True),
        (one_round(0.5, 1.1), False),
        (one_round(0.5, rate=0.9 * live_lag.RATE), False),
        (one_round(0.5, errors=["429"]), False),
        (one_round(), False),
    ],
)
def test_live_lag_holds_by_p95_and_under_its_whole_load_only(round_, holds):
    good = one_round(0.5)
    assert live_lag.judge([good]).holds
    assert live_lag.judge([good, round_]).holds == holds


def test_live_lag_without_a_marked_row_has_no_figure():
    result = live_lag.judge([one_round()])
    assert result.figure["p95"] is None and result.notes[-1].startswith("void")


def test_live_lag_offers_its_rate():
    plans = live_lag.plans(3)
    assert len(plans) == live_lag.NUM_CLIENTS
    assert {rows for plan in plans for rows in plan.num_rows} == {live_lag.BATCH_ROWS}
    phases = [plan.phase_s for plan in plans]
    assert phases == sorted(phases) and phases[-1] < live_lag.PERIOD_S
    assert live_lag.NUM_CLIENTS * live_lag.BATCH_ROWS / live_lag.PERIOD_S == live_lag.RATE
