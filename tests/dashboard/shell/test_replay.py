"""``cascade replay``: a trace is shown as it is, never written, and takes nothing."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import threading
from pathlib import Path

import httpx
import pytest

from cascade_runtime.vocabulary.errors import CascadeError
from collector.trace.trace_folder import open_trace
from collector.web.app import create_app
from collector.web.settings import Settings
from collector.web.tokens import Tokens
from dashboard.commands import main
from dashboard.shell.app import add_dashboard
from dashboard.shell.context import Shell
from dashboard.shell.replay import ReplaySql, ReplayStore
from dashboard.shell.run_document import failed_document
from dashboard.shell.sql_answer import ask as ask_sql
from dashboard.story import sources_of_trace
from tests.collector.web.asgi import JSON, ask


def files_of(folder: Path):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.rglob("*")
    }


def test_it_takes_nothing(replay):
    answer = ask(replay, "POST", "/v1/events", b"[]", [JSON])
    assert answer.status >= 400
    meta = ask(replay, "GET", f"/v1/runs/{replay.state.run_id}").json["meta"]
    body = json.dumps(meta).encode()
    answer = ask(replay, "PUT", f"/v1/runs/{replay.state.run_id}", body, [JSON])
    assert answer.status == 400
    assert "replay" in answer.error["message"]
    assert ask(replay, "GET", "/v1/readyz").status == 503


def test_its_run_is_told_as_a_collector_would(replay):
    (run,) = ask(replay, "GET", "/v1/runs").json["runs"]
    assert run["run_id"] == replay.state.run_id
    assert (run["name"], run["state"], run["verdict"]) == ("kill-one", "ended", "ok")
    assert run["num_rows"] > 1000
    assert ask(replay, "GET", "/v1/runs/nope").error["code"] == "no_such_run"


def test_a_trace_is_never_written(sample, tmp_path):
    trace = tmp_path / "trace"
    shutil.copytree(sample, trace)
    before = files_of(trace)
    sources = sources_of_trace(trace)
    sql = ReplaySql(trace, sources.only)
    try:
        answer = ask_sql(sql, "SELECT count(*) FROM steps", sources.only.run_id)
        with open_trace(trace) as opened:
            assert answer.rows == [{"c0": opened.table("steps").num_rows}]
    finally:
        sql.close()
        sources.close()
    assert files_of(trace) == before


def test_what_leads_out_of_a_trace_is_left_out(sample, tmp_path):
    trace, outside = tmp_path / "trace", tmp_path / "outside.parquet"
    shutil.copytree(sample, trace)
    shutil.copyfile(next(trace.glob("events/steps/*.parquet")), outside)
    for file in trace.glob("events/steps/*.parquet"):
        file.unlink()
    (trace / "events" / "steps" / "link.parquet").symlink_to(outside)
    sources = sources_of_trace(trace)
    sql = ReplaySql(trace, sources.only)
    try:
        assert ask_sql(sql, "SELECT count(*) FROM steps", None).rows == [{"c0": 0}]
    finally:
        sql.close()
        sources.close()


@pytest.mark.parametrize("form", ["read-only folder", "zip"])
def test_the_verb_serves_pages_until_it_is_ended(start, sample, tmp_path, form):
    trace = tmp_path / "trace"
    shutil.copytree(sample, trace)
    if form == "zip":
        trace = Path(shutil.make_archive(str(tmp_path / "saved.cascade"), "zip", trace))
    else:
        for path in (trace, *trace.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
    running = start("replay", trace, "--port", 0, "--no-open", "--json")
    try:
        assert set(running.ready) == {"url", "run_id"}
        assert running.url.endswith(f"/dash/run/{running.ready['run_id']}")
        assert httpx.get(running.url, timeout=60).status_code == 200
        question = {"sql": "SELECT count(*) AS n FROM waits", "format": "csv"}
        answer = httpx.post(f"{running.base}/v1/sql", json=question, timeout=60)
        assert int(answer.text.split()[1]) > 100
        code, out, err = running.stop(signal.SIGINT)
        assert (code, out, err) == (0, "", "")
    finally:
        for path in tmp_path.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)


def test_no_such_trace(capsys):
    assert main(["replay", "kill-two", "--no-open"]) == 2
    assert "samples: " in capsys.readouterr().err


@pytest.fixture
def copied(sample, tmp_path):
    """A copy of the sample, to be damaged."""
    return Path(shutil.copytree(sample, tmp_path / "trace"))


def cut_off(trace):
    """Half of one file; how messages call it."""
    file = next(trace.glob("events/steps/*.parquet"))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return f"events/steps/{file.name}"


def test_a_damaged_file_is_told_before_anything_is_served(copied, capsys):
    name = cut_off(copied)
    assert main(["replay", str(copied), "--no-open", "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert "cannot be read as Parquet" in said and name in said and "move it out" in said


def test_rows_of_another_run_are_told_before_anything_is_served(copied, capsys):
    meta = json.loads((copied / "trace.json").read_text())
    (copied / "trace.json").write_text(json.dumps(meta | {"run_id": "another"}))
    assert main(["replay", str(copied), "--no-open", "--port", "0"]) == 2
    said = capsys.readouterr().err
    assert "no row of this trace is of its run 'another'" in said
    assert repr(meta["run_id"]) in said and "trace.json" in said


def test_what_is_damaged_meanwhile_is_told_on_a_page(copied, tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_CACHE", str(tmp_path / "cache"))  # nothing is known of it yet
    with contextlib.closing(sources_of_trace(copied)) as sources:
        name = cut_off(copied)
        store, sql = ReplayStore(sources.only), ReplaySql(copied, sources.only)
        app = create_app(store, sql, Tokens(tmp_path), Settings())
        add_dashboard(app, Shell(store, sources, sql, app.state.sessions))
        answer = ask(app, "GET", f"/dash/run/{sources.only.run_id}")
        sql.close()
    assert answer.status == 422
    assert answer.headers["content-type"].startswith("text/html")
    text = answer.body.decode()
    assert "cannot be read as Parquet" in text and name in text and "What to do" in text


def test_what_a_damage_page_says_is_text():
    said = CascadeError('<i>a</i> & "b" {x}', where="<u>{title}", hint="<script>{0}</script>")
    text = failed_document(said).decode()
    assert "&lt;i&gt;a&lt;/i&gt; &amp; &quot;b&quot; {x}" in text
    assert "&lt;u&gt;{title}" in text and "&lt;script&gt;{0}&lt;/script&gt;" in text
    assert not {"<i>", "<u>", "<script>"} & set(re.findall(r"<\w+>", text))


def test_other_statements_are_answered_while_one_waits_for_the_judging(sample, tmp_path):
    trace = tmp_path / "trace"
    shutil.copytree(sample, trace)
    shutil.rmtree(trace / "results", ignore_errors=True)
    sources = sources_of_trace(trace)
    run = sources.only
    asked, go_on, right = threading.Event(), threading.Event(), run.report

    def report():
        asked.set()
        return right() if go_on.is_set() else None

    run.report = report
    sql = ReplaySql(trace, run)
    found = []
    statement = "SELECT count(*) FROM waits"
    waiting = threading.Thread(
        target=lambda: found.append(ask_sql(sql, statement, run.run_id).rows)
    )
    waiting.start()
    try:
        assert asked.wait(60)
        assert ask_sql(sql, "SELECT 1 AS n", None).rows and not found
    finally:
        go_on.set()
        waiting.join(60)
        sql.close()
        sources.close()
    assert found and found[0][0]["c0"] > 0
