"""What only records may not raise into a training step."""

from __future__ import annotations

import pytest

from cascade_runtime.rank import guard
from cascade_runtime.rank.guard import guarded


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_told", set())
    monkeypatch.delenv("CASCADE_RERAISE", raising=False)


class Disk(Exception):
    pass


@guarded(default=-1)
def halve(number: int, *, fail: bool = False) -> int:
    """Half of it."""
    if fail:
        raise Disk("it is full")
    return number // 2


@guarded()
def other() -> None:
    raise ValueError("broken")


def test_without_a_failure_it_is_the_function() -> None:
    assert halve(8) == 4
    assert (halve.__name__, halve.__doc__) == ("halve", "Half of it.")


def test_a_failure_costs_the_result_and_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert [halve(8, fail=True) for _ in range(3)] == [-1, -1, -1]
    told = capsys.readouterr().err
    assert told == (
        "cascade: halve failed (Disk: it is full); training goes on with less telemetry\n"
    )
    assert other() is None
    assert "other failed (ValueError: broken)" in capsys.readouterr().err
    assert halve(8) == 4


def test_developers_see_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CASCADE_RERAISE", "1")
    with pytest.raises(Disk, match="full"):
        halve(8, fail=True)
    monkeypatch.setenv("CASCADE_RERAISE", "0")
    assert halve(8, fail=True) == -1
    assert capsys.readouterr().err.count("halve failed") == 1


def test_a_person_s_interrupt_is_no_failure() -> None:
    @guarded(default=0)
    def stopped() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
