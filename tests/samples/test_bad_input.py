"""Bad input on the command line: exit 2, one sentence, what to do; never a traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.events import Steps
from collector.schema.rows import table_to_events
from collector.trace.samples import sample_traces
from collector.trace.trace_folder import open_trace
from tests.collector.traces import segment, write_spool
from tests.runtime.jobs import cascade


def _told(answer, *parts, verb="analyze"):
    """Exit 2, nothing on stdout, one error of a sentence and at most where and a hint."""
    assert (answer.code, answer.out) == (2, "")
    lines = answer.err.splitlines()
    assert lines[0].startswith(f"cascade {verb}: " if verb else "cascade: ")
    assert all(line.startswith("  ") for line in lines[1:])
    assert "Traceback" not in answer.err
    for part in parts:
        assert part in answer.err


def _file(d, table: str) -> Path:
    return next((d.path / "events" / table).glob("*.parquet"))


# --- analyze: not a trace --------------------------------------------------------------------


def test_an_empty_folder(ask, tmp_path):
    _told(ask("analyze", tmp_path), "there is no trace.json", str(tmp_path))


def test_a_folder_inside_a_trace(ask, doctored):
    _told(ask("analyze", doctored().path / "events"), "there is no trace.json")


@pytest.mark.parametrize("content", [b"", b"rank,seq\n0,1\n"])
def test_a_file(ask, tmp_path, content):
    (tmp_path / "trace.csv").write_bytes(content)
    _told(ask("analyze", tmp_path / "trace.csv"), "trace.csv", "a trace is a folder or one")


@pytest.mark.parametrize("name", ["kill-two", "no/such/folder", ""])
def test_no_such_name_lists_the_samples(ask, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    answer = ask("analyze", name)
    assert answer.code == 2
    if name:
        _told(answer, "there is no such trace", f"samples: {', '.join(sorted(sample_traces()))}")


def test_no_trace_at_all(ask):
    _told(ask("analyze"), "TRACE", "cascade analyze --help")


def test_an_unknown_switch(ask):
    _told(ask("analyze", "clean", "--jsn"), "--jsn", verb="analyze")


# --- analyze: damaged files ------------------------------------------------------------------


def test_a_truncated_file(ask, doctored):
    d = doctored()
    file = _file(d, "updates")
    file.write_bytes(file.read_bytes()[:-2000])
    _told(ask("analyze", d.path), "cannot be read as Parquet", f"events/updates/{file.name}")


def test_a_text_file_called_parquet(ask, doctored):
    d = doctored()
    (d.path / "events" / "reads" / "notes.parquet").write_text("to do\n")
    _told(ask("analyze", d.path), "cannot be read as Parquet", "events/reads/notes.parquet")


def test_a_flipped_bit(ask, doctored):
    d = doctored()
    file = _file(d, "updates")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)
    _told(ask("analyze", d.path), f"events/updates/{file.name}")


# --- analyze: trace.json ---------------------------------------------------------------------


def _with_meta(d, **changes):
    meta = {k: v for k, v in (d.meta | changes).items() if v is not ...}
    (d.path / "trace.json").write_text(json.dumps(meta))
    return d.path


def test_a_newer_schema(ask, doctored):
    answer = ask("analyze", _with_meta(doctored(), schema_version=2, shape="new"))
    _told(answer, "schema_version 2 is newer than 1", "install a newer cascade-timelines")


@pytest.mark.parametrize("text", ["", "{", "no", "[]", '{"schema_version": "1"}', "\0\0\0"])
def test_a_trace_json_that_is_none(ask, doctored, text):
    d = doctored()
    (d.path / "trace.json").write_text(text)
    _told(ask("analyze", d.path), "this is not a trace.json", "trace.json")


@pytest.mark.parametrize("field", ["run_id", "world_size", "recorded_tables", "mode"])
def test_a_missing_field_is_named(ask, doctored, field):
    answer = ask("analyze", _with_meta(doctored(), **{field: ...}))
    _told(answer, "breaks the contract", f"`{field}`")


def test_a_word_that_is_none_is_named(ask, doctored):
    _told(ask("analyze", _with_meta(doctored(), mode="enforced")), "enforced", "$.mode")


def test_another_run_in_the_folder_is_left_out_and_said(ask, doctored):
    answer = ask("analyze", _with_meta(doctored("clean"), run_id="another"))
    assert answer.code == 3
    assert "rows of other runs than another were left out" in answer.words


# --- analyze: a spool ------------------------------------------------------------------------


@pytest.fixture
def unsealed(doctored):
    """``clean`` with the steps rows of rank 1 in a spool segment instead of a file."""

    def make(cut: int):
        d = doctored("clean")
        with open_trace(d.path) as source:
            steps: list[Steps] = [
                row for row in table_to_events("steps", source.table("steps")) if row.rank == 1
            ]
        steps.sort(key=lambda row: row.seq)
        d.remove(*d.rows("steps", rank=1))
        d.save(renumber=False)
        data = segment(steps)
        write_spool(d.path, "1-0", data[: len(data) - cut])
        return d.path, steps[-1].seq

    return make


def test_a_whole_spool_reads_like_files(ask, unsealed):
    path, _ = unsealed(0)
    assert ask("analyze", path).code == 0


def test_a_torn_record_becomes_a_gap(ask, unsealed):
    path, last = unsealed(3)
    answer = ask("analyze", path, "--json")
    assert (answer.code, answer.broken) == (3, [])
    lost = {(gap["rank"], gap["first_seq"], gap["reason"]) for gap in answer.json["gaps"]}
    assert (1, last, "corrupt") in lost
    assert "spool/1-0/0.seg: at byte" in " ".join(answer.json["not_supplied"])
    assert "rank 1 lacks event" in answer.check("L5")["reason"]
    told = ask("analyze", path)
    assert f"gap at rank 1: event {last} (any table)" in told.words
    assert "None" not in told.out


# --- --write, --json -------------------------------------------------------------------------


def test_write_into_a_zip(ask, doctored, tmp_path):
    import shutil

    path = shutil.make_archive(str(tmp_path / "t.cascade"), "zip", doctored().path)
    assert ask("analyze", path).code == 0
    _told(ask("analyze", path, "--write"), "only be written into a trace folder", "unpack the zip")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("analyze", "kill-two", "--json"), "bad_trace"),
        (("analyze", "--json"), "bad_usage"),
        (("demo", "--scenario", "meteor", "--json"), "bad_usage"),
        (("analyse", "clean", "--json"), "bad_usage"),
    ],
)
def test_with_json_the_error_is_json(ask, words, code):
    answer = ask(*words)
    assert (answer.code, answer.out) == (2, "")
    error = json.loads(answer.err)["error"]
    assert error["code"] == code
    assert error["message"]
    assert set(error) == {"code", "message", "where", "hint"}


# --- verbs, demo, run ------------------------------------------------------------------------


def test_an_unknown_verb(ask):
    _told(ask("analyse", "clean"), "there is no verb 'analyse'", "did you mean analyze?", verb="")
    _told(ask("frobnicate"), "cascade --help lists them", verb="")


def test_an_unknown_scenario(ask):
    answer = ask("demo", "--headless", "--scenario", "meteor")
    _told(answer, "there is no scenario 'meteor'", "kill-one:", "clean:", verb="demo")


@pytest.mark.parametrize("ranks", ["1", "0", "-3", "two"])
def test_too_few_ranks_for_the_demo(ask, tmp_path, ranks):
    out = tmp_path / "trace"
    answer = ask("demo", "--headless", "--scenario", "clean", "--ranks", ranks, "--out", out)
    assert answer.code == 2
    assert "--ranks" in answer.err
    assert not out.exists()


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("raise SystemExit('the job was started')\n")
    return path


def test_run_without_a_script(ask):
    _told(ask("run"), "which script?", "cascade run -n 4 train.py", verb="run")
    _told(ask("run", "-n", "4", "--"), "which script?", verb="run")


@pytest.mark.parametrize("ranks", ["1", "0", "many"])
def test_run_with_too_few_ranks(ask, script, tmp_path, ranks):
    answer = ask("run", "-n", ranks, "--out", tmp_path / "trace", script)
    _told(answer, "-n", verb="run")
    assert not (tmp_path / "trace").exists()


def test_run_a_script_that_is_not_there(ask, tmp_path):
    answer = ask("run", "--out", tmp_path / "trace", tmp_path / "train.py")
    _told(answer, "no such script", "train.py", verb="run")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (None, "policy.toml"),
        ("name = ", "policy.toml"),
        ("name = 'x'\n[[row]]\nfrom = 'STRONG'\nfault = 'METEOR'\nto = 'CAUSAL'\n", "METEOR"),
    ],
)
def test_run_with_a_policy_that_is_none(ask, script, tmp_path, text, part):
    policy = tmp_path / "policy.toml"
    if text is not None:
        policy.write_text(text)
    answer = ask("run", "--policy", policy, "--out", tmp_path / "trace", script)
    _told(answer, part, verb="run")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("verb", ["run", "demo"])
def test_a_folder_in_use_is_left_alone(ask, script, tmp_path, verb):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("two years of work")
    words = ["run", "--out", out, script] if verb == "run" else ["demo", "--headless", "--out", out]
    answer = ask(*words)
    assert answer.code == 2
    assert re.search(rf"^cascade {verb}: ", answer.err, re.M)
    assert str(out) in answer.err
    assert [p.name for p in out.iterdir()] == ["thesis.txt"]


# --- as people start it ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [(("analyze", "kill-one"), 0), (("analyze", "kill-two"), 2), (("demo", "--ranks", "1"), 2)],
)
def test_in_a_process_of_its_own(tmp_path, words, code):
    done = cascade(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert (done.stderr == "") == (code == 0)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
