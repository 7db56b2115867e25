"""Jobs that cannot be held: one clear sentence, the right exit code, nobody left hanging."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cascade_runtime.agent import refusals as refusals_file
from cascade_runtime.agent.launcher import make_config
from cascade_runtime.agent.refusals import Refusals
from cascade_runtime.vocabulary.errors import BadUsage
from cascade_runtime.vocabulary.identity import Actor
from tests.runtime.jobs import JobRunner

SCRIPTS = Path(__file__).parent / "scripts"

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize(
    ("script", "sentence", "hint"),
    [
        (
            "not_ddp",
            "attach needs a DistributedDataParallel model and got Linear",
            "wrap the model",
        ),
        ("sharded", "shards the model", "replicated models"),
        ("twice", "attach was called twice", "one model and optimizer"),
        ("own_hook", "has a communication hook already", "leave the hook out"),
    ],
)
def test_a_model_that_cannot_be_held_is_refused_in_a_sentence(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str], script: str, sentence: str, hint: str
) -> None:
    job = jobs.run(script=SCRIPTS / f"{script}.py", ranks=2)
    told = capfd.readouterr().err
    assert job.outcome.exit_code == 2
    assert job.outcome.finished == []
    assert sentence in told
    assert hint in told
    assert told.count(sentence) == 1, "each reason is told once, not once a rank"
    assert "Traceback" not in told


def test_a_script_that_fails_at_import_ends_the_job_and_says_so(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = jobs.run(script=SCRIPTS / "fails_at_import.py", ranks=2)
    told = capfd.readouterr().err
    assert job.outcome.exit_code == 1
    assert not job.outcome.formed
    assert "a_module_that_is_not_there" in told  # the script's own traceback is the user's to see
    assert "before all ranks had attached, so the job never formed" in told


def test_a_script_without_a_model_runs_as_it_is(
    jobs: JobRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    job = jobs.run(script=SCRIPTS / "no_model.py", ranks=2)
    assert job.outcome.exit_code == 0
    assert not job.outcome.formed
    assert capfd.readouterr().out.count("nothing to train") == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_ranks": 1}, "nobody to be consistent with"),
        ({"num_ranks": 2, "num_hosts": 3}, "hosts without a rank"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(
    tmp_path: Path, options: dict[str, int], words: str
) -> None:
    with pytest.raises(BadUsage, match=words):
        make_config([str(SCRIPTS / "no_model.py")], trace_dir=tmp_path / "trace", **options)
    assert not (tmp_path / "trace").exists()


def test_a_reason_is_told_while_the_others_go_on_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals_file, "TELL_AFTER_S", 0.0)
    script = str(SCRIPTS / "no_model.py")
    config = make_config([script], num_ranks=3, trace_dir=tmp_path / "trace")
    for rank in (1, 2):
        config.refusal_path(Actor(rank)).write_text("no such layer")
    refusals = Refusals(config)

    async def both_end() -> None:
        assert refusals.note_lost(Actor(2))
        assert refusals.note_lost(Actor(1))
        assert not refusals.note_lost(Actor(0))
        await asyncio.sleep(0.01)

    asyncio.run(both_end())
    refusals.tell()  # at the end of the job
    assert capsys.readouterr().err == "cascade: ranks 1, 2: no such layer\n"


def test_a_trace_is_never_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text("{}")
    with pytest.raises(BadUsage, match="never written over"):
        make_config([str(SCRIPTS / "no_model.py")], num_ranks=2, trace_dir=tmp_path)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=r"no such script") as caught:
        make_config([str(tmp_path / "gone.py")], num_ranks=2, trace_dir=tmp_path / "trace")
    assert "gone.py" in str(caught.value)
