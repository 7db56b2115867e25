"""Benchmarks can be listed and run; what they measure is judged where they are run in full."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import _harness, _overhead
from benchmarks.__main__ import load, names

ROOT = Path(__file__).parents[2]
KEYS = ["name", "figure", "unit", "target", "holds", "against", "spread", "command", "versions"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)


def quick(name: str) -> dict:
    done = bench(name, "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    line = json.loads(done.stdout.splitlines()[-1])
    assert list(line) == KEYS
    assert (line["name"], line["command"]) == (name, f"python -m benchmarks {name} --quick")
    return line


def test_the_list_names_every_benchmark_and_its_target():
    done = bench()
    assert done.returncode == 0, done.stderr
    for name in names():
        assert f"{name:<20} " in done.stdout
        assert f"target: {load(name).TARGET}\n" in done.stdout


def test_every_file_of_the_folder_is_a_benchmark_or_a_helper():
    files = {p.stem for p in (ROOT / "benchmarks").glob("*.py")}
    assert {f for f in files if not f.startswith("_")} == set(names())
    assert all(callable(load(name).main) and load(name).__doc__ for name in names())


def test_an_unknown_name_is_refused_with_the_names_there_are():
    done = bench("overhed")
    assert done.returncode == 2
    assert "'overhed'" in done.stderr and "overhead_enforce" in done.stderr


def test_a_quick_result_is_not_kept():
    done = bench("emit", "--quick", "--save")
    assert done.returncode == 2
    assert "--quick" in done.stderr


def test_emit():
    line = quick("emit")
    assert set(line["figure"]) == {"p50", "p99", "average"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_overhead(mode):
    line = quick(f"overhead_{mode}")
    assert set(line["target"]) == {"step", "step, slowest rank", "cpu"}
    assert line["against"]["step ms"] > 0 and line["against"]["cpu ms a step"] > 0


# --- how the overhead is judged, on made-up figures --------------------------------------------

MS = 1_000_000


def told(plain, ours, again=None, *, alone=50.0, agent=0.0, resident=0.0, rounds=5):
    """Four ranks' answers; times in ms, CPU time half of the wall time."""

    def block(ms, agent_ms=0.0):
        steps = [int(ms * MS)] * 4
        return {
            "step_ns": steps,
            "rank_cpu_ns": sum(steps) // 2,
            "agent_cpu_ns": int(agent_ms * MS * len(steps)),
        }

    blocks = {
        "plain": [block(plain)] * rounds,
        "ours": [block(ours, agent)] * rounds,
        "plain again": [block(again or plain)] * rounds,
        "alone": [block(alone)] * rounds,
    }
    still = {
        "before attach": {"rank": 0.001, "agent": 0.01},
        "attached": {"rank": 0.001 + resident / 4, "agent": 0.01},
    }
    rows = dict.fromkeys(_overhead.EVERY_STEP, 20)
    facts = {"num_parameters": 1000, "num_attached_steps": 20, "rows": rows}
    return [facts | {"still": still, "blocks": blocks}] * 4


def judge(*args, limit=3.0, **options):
    return _overhead.judge("overhead_enforce", limit, told(*args, **options), "0.0, 4.0")


def test_ours_is_compared_with_both_plain_neighbours():
    result = judge(100.0, 103.0, 121.0)
    assert result.figure["step"] == pytest.approx((103 / 110 - 1) * 100, abs=0.01)
    assert result.spread["a/a step"] == pytest.approx(21.0)


def test_the_target_holds_up_to_its_limit():
    assert judge(100.0, 102.9).holds
    assert not judge(100.0, 103.1).holds


def test_the_agents_time_is_ours():
    result = judge(100.0, 100.0, agent=10.0)  # four ranks use 200 ms a step
    assert result.figure["cpu"] == pytest.approx(5.0)
    assert result.figure["step"] == 0.0
    assert not result.holds


def test_plain_does_not_pay_for_threads_of_ours():
    result = judge(100.0, 100.0, resident=0.1)  # 10 of 200 ms
    assert result.figure["cpu"] == pytest.approx((200 / 190 - 1) * 100, abs=0.01)
    assert result.figure["step"] > 0
    assert judge(100.0, 100.0, resident=-0.1).figure["cpu"] == 0.0


def test_too_little_communication_voids_the_run():
    result = judge(100.0, 100.0, alone=71.0)
    assert not result.holds
    assert result.notes[-1].startswith("void")
    assert judge(100.0, 100.0, alone=69.0).holds


def test_alternating_reverses_the_order_each_round():
    order = []
    arms = {name: lambda name=name: order.append(name) for name in "abc"}
    found = _harness.alternate(arms, 2, say=False)
    assert "".join(order) == "abccba"
    assert found == {name: [None, None] for name in "abc"}
