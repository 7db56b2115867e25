"""The public calls in a process that has attached nothing, and the bootstrap's small decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import cascade_runtime as cascade
from cascade_runtime import bootstrap, job
from cascade_runtime.rank import constructed
from cascade_runtime.vocabulary.errors import BadUsage, NotSupported
from cascade_runtime.vocabulary.regime import Regime


@pytest.fixture(autouse=True)
def outside_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CASCADE_RUN_DIR", "CASCADE_INCARNATION", "RANK"):
        monkeypatch.delenv(name, raising=False)


# ---- before attach --------------------------------------------------------------------------------


def test_before_attach_nothing_is_relaxed():
    assert cascade.regime() is Regime.STRONG
    assert (cascade.debt(), cascade.members(), job.attached()) == ([], [], None)
    cascade.finish()


@pytest.mark.parametrize("call", [
    lambda: cascade.on_transition(print),
    lambda: cascade.checkpoint_saved("c"),
    lambda: cascade.checkpoint_loaded("c", {}),
], ids=["on_transition", "saved", "loaded"])  # fmt: skip
def test_what_needs_a_model_says_so(call):
    with pytest.raises(BadUsage, match="needs an attached model") as caught:
        call()
    assert caught.value.hint == "call attach first"


def attach(**options):
    model = nn.Linear(2, 2)
    return cascade.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({}, BadUsage, "was not started by cascade run"),
    ({"mode": "enforce"}, BadUsage, "was not started by cascade run"),
    ({"mode": "sometimes"}, BadUsage, "neither enforce nor observe"),
    ({"mode": "observe"}, BadUsage, "has no host agent"),
    ({"mode": "observe", "base_hook": print}, NotSupported, "a communication hook of your own"),
])  # fmt: skip
def test_attach_that_cannot_be_served(options, error, words):
    with pytest.raises(error, match=words):
        attach(**options)
    assert job.attached() is None


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'detach'"):
        cascade.detach  # noqa: B018


# ---- the bootstrap --------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "code", "told"), [
    (None, 0, ""), (0, 0, ""), (3, 3, ""), ("no data", 1, "no data\n"),
])  # fmt: skip
def test_exit_codes_are_python_s(capsys, value, code, told):
    assert bootstrap._exit_code(value) == code
    assert capsys.readouterr().err == told


def test_notes_go_to_the_agent_s_folder_when_there_is_an_agent(tmp_path, monkeypatch):
    assert not bootstrap._note("exit", "3")
    monkeypatch.setenv("CASCADE_RUN_DIR", str(tmp_path))
    assert not bootstrap._note("exit", "3")
    monkeypatch.setenv("RANK", "2")
    assert bootstrap._note("exit", "3")
    monkeypatch.setenv("CASCADE_INCARNATION", "1")
    assert bootstrap._note("refusal", "why")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {
        "exit-2-0": "3",
        "refusal-2-1": "why",
    }
    monkeypatch.setenv("CASCADE_RUN_DIR", str(tmp_path / "gone"))
    assert not bootstrap._note("exit", "3")


@pytest.fixture
def optimizers(monkeypatch: pytest.MonkeyPatch):
    """Make optimizers as a script does that runs under the bootstrap."""
    import weakref

    known: list[weakref.ref[torch.optim.Optimizer]] = []
    monkeypatch.setattr(constructed, "_optimizers", known)

    def make(model: nn.Module) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        known.append(weakref.ref(optimizer))
        return optimizer

    return make


def test_the_optimizer_is_the_one_that_holds_the_parameters(optimizers):
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizers(other)  # dropped at once
    kept, mine = optimizers(other), optimizers(model)
    assert constructed.optimizer_of(model) is mine
    assert constructed.optimizer_of(other) is kept


@pytest.mark.parametrize("number", [0, 2])
def test_no_optimizer_or_two_of_them_is_refused(optimizers, number):
    model = nn.Linear(2, 2)
    kept = [optimizers(model) for _ in range(number)]
    with pytest.raises(NotSupported, match=f"{number} optimizers hold") as caught:
        constructed.optimizer_of(model)
    assert "cascade_runtime.attach" in caught.value.hint
    del kept


SCRIPTS = {
    "ends": ("", 0),
    "exits": ("raise SystemExit(5)", 5),
    "says no": ("raise SystemExit('no data')", 1),
    "fails": ("1 / 0", 1),
    "is refused": (
        "from cascade_runtime.vocabulary.errors import BadUsage\nraise BadUsage('not like that')",
        2,
    ),
    "sees its arguments": (
        "import sys, pathlib\n"
        "assert sys.argv[1:] == ['--steps', '3'], sys.argv\n"
        "assert pathlib.Path(sys.path[0]).name == 'home', sys.path[0]\n"
        "assert __name__ == '__main__'",
        0,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_s_code_is_ours(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import sys

    code, expected = SCRIPTS[name]
    (tmp_path / "home").mkdir()
    script = tmp_path / "home" / "script.py"
    script.write_text(code)
    monkeypatch.setattr(bootstrap, "watch_constructors", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bootstrap", str(script), "--steps", "3"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert bootstrap.main() == expected
    told = capsys.readouterr().err
    assert ("ZeroDivisionError" in told) is (name == "fails")
    assert ("cascade: not like that" in told) is (name == "is refused")
    assert ("Traceback" in told) is (name == "fails")


def test_a_refusal_is_the_agent_s_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    script = tmp_path / "script.py"
    script.write_text(SCRIPTS["is refused"][0])
    monkeypatch.setattr(bootstrap, "watch_constructors", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bootstrap", str(script)])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("CASCADE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("RANK", "0")
    assert bootstrap.main() == 2
    assert (tmp_path / "refusal-0-0").read_text() == "not like that"
    assert capsys.readouterr().err == ""
