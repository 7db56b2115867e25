"""What every detector holds, found in its folder."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from cascade_runtime import detectors
from cascade_runtime.agent.watch import SIGNALS
from cascade_runtime.detectors._base import Spec
from cascade_runtime.vocabulary.fault import RECOVERIES
from cascade_runtime.vocabulary.identity import Actor
from cascade_runtime.vocabulary.plug import discover
from cascade_runtime.vocabulary.policy import load_policy

FOUND: dict[str, Spec] = discover(detectors)
each = pytest.mark.parametrize("name", FOUND)


def source_of(spec):
    return inspect.getmodule(spec.make)


@each
def test_named_as_its_file_with_a_docstring(name):
    module = source_of(FOUND[name])
    assert module.__name__.rsplit(".", 1)[1] == name
    assert len(module.__doc__.split("\n\n")) >= 2, "what it measures; when it fires and clears"


@each
def test_it_never_asks_for_the_time_nor_reads_anything(name):
    """Same signals, same verdicts: replay and tests rest on it."""
    names = set(source_of(FOUND[name]).__dict__)
    assert names.isdisjoint({"time", "os", "pathlib", "Path", "socket", "asyncio", "random"})


@each
def test_it_answers_no_recovery(name):
    """A calm time is judged from what stands, not by a detector."""
    assert FOUND[name].faults.isdisjoint(RECOVERIES)


@each
def test_silent_without_signals_for_ever(name):
    detector = FOUND[name].under(load_policy())
    assert [detector.decide(now) for now in (0.0, 1.0, 1e6)] == [[], [], []]
    assert detector.standing == []
    detector.forget(Actor(3))


@each
def test_its_limits_stand_in_the_packaged_policy(name):
    limits = FOUND[name].limits
    assert limits is None or limits in vars(load_policy())


@each
def test_it_takes_some_signal_and_its_page_tells_of_it(name):
    spec = FOUND[name]
    detector = spec.under(load_policy())
    assert any(member.startswith("feed") for member in dir(detector))
    page = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text()
    assert f"| `{name}` |" in page
    assert f"**`{name}`.**" in page
    assert all(f"{fault}" in page for fault in spec.faults)


@each
def test_a_signal_that_no_job_feeds_is_named_as_such(name):
    """A detector that is never told of a thing must not be taken for one that watches it."""
    detector = FOUND[name].under(load_policy())
    taken = {member for member in dir(detector) if member.startswith("feed_")}
    page = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text()
    start = page.index("## What nothing feeds yet")
    unfed = page[start : page.index("\n## ", start + 1)]
    assert {signal for signal in taken if f"`{signal}`" in unfed} == taken - set(SIGNALS)
