"""``cascade sql`` on a trace, a zip, a data folder and a collector."""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.schema import TABLES
from collector import client as client_module
from collector.data_folder import run_folder
from collector.schema.views import named_views
from collector.trace.samples import sample_traces
from dashboard.commands import main
from tests.collector.traces import (
    everything_under,
    make_trace,
    segment,
    step,
    write_spool,
)
from tests.recorded import run_id_of


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def ask(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.delenv("CASCADE_TOKEN", raising=False)

    def run(*words: Any) -> Said:
        capsys.readouterr()
        code = main(["sql", *map(str, words)])
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture
def data(tmp_path):
    """A data folder of two runs."""
    for sample in ("clean", "kill-one"):
        source = sample_traces()[sample]
        run_id = json.loads((source / "trace.json").read_text())["run_id"]
        shutil.copytree(source, run_folder(tmp_path / "data", run_id))
    return tmp_path / "data"


COUNT = "SELECT count(*) AS n FROM steps"


def test_a_sample_by_its_name(ask):
    assert ask("kill-one", COUNT) == (0, "  n\n---\n801\n", "")


def test_nothing_is_written_into_the_trace(ask):
    before = everything_under(sample_traces()["kill-one"])
    assert ask("kill-one", "SELECT count(*) FROM waits").code == 0
    assert everything_under(sample_traces()["kill-one"]) == before


def test_results_are_made_where_there_are_none(ask):
    said = ask("kill-one", "SELECT count(*) AS n, any_value(run_id) AS r FROM waits", "--json")
    ((num_waits, run_id),) = json.loads(said.out)["rows"]
    assert num_waits > 1000 and run_id == run_id_of("kill-one")


def test_results_that_are_there_are_read_and_their_run_filled_in(ask, tmp_path):
    trace = make_trace(tmp_path / "t")
    (trace / "results" / "checks").mkdir(parents=True)
    old = {"code": "X1", "name": "n", "verdict": "ok", "num_checked": 1, "num_violations": 0}
    pq.write_table(pa.Table.from_pylist([old]), trace / "results" / "checks" / "rows.parquet")
    said = ask(trace, "SELECT code, run_id FROM checks", "--format", "csv")
    assert said == (0, "code,run_id\nX1,run-1\n", "")


def test_what_is_in_the_spool_is_there_too(ask, tmp_path):
    trace = make_trace(tmp_path / "t")
    write_spool(trace, "0-0", segment([step(0), step(1)]))
    assert ask(trace, COUNT, "--format", "csv").out == "n\n2\n"


def test_a_zip(ask, tmp_path):
    source = sample_traces()["clean"]
    zipped = tmp_path / "clean.cascade.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        for file in source.rglob("*"):
            archive.write(file, file.relative_to(source.parent))
    assert ask(zipped, COUNT, "--format", "csv").out == "n\n480\n"


def test_a_data_folder_and_one_run_of_it(ask, data):
    assert ask(data, COUNT, "--format", "csv").out == "n\n1281\n"
    assert ask(data, COUNT, "--format", "csv", "--run", run_id_of("kill-one")).out == "n\n801\n"
    said = ask(data, COUNT, "--run", "nobody")
    assert (said.code, said.out) == (2, "")
    assert said.err == "cascade sql: there is no run of that id\n  --run nobody\n"


def test_the_run_of_a_trace_is_its_own(ask):
    assert ask("kill-one", COUNT, "--run", run_id_of("kill-one")).code == 0
    said = ask("kill-one", COUNT, "--run", "other")
    assert said.code == 2 and f"this trace is of run {run_id_of('kill-one')}" in said.err


def test_the_statement_from_stdin(ask, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(COUNT))
    assert ask("kill-one", "-").out.endswith("801\n")


@pytest.mark.parametrize("target", ["kill-one", "data"])
def test_without_a_statement_tables_and_views_are_listed(ask, data, target):
    said = ask(data if target == "data" else target)
    listed = [line.split()[0] for line in said.out.splitlines()[2:]]
    assert listed == [*TABLES, *sorted(named_views())]
    told = json.loads(ask(data if target == "data" else target, "--json").out)
    assert [row[0] for row in told["rows"]] == listed


def test_a_long_answer_says_how_long_it_is(ask):
    said = ask("kill-one", "SELECT seq FROM steps")
    assert len(said.out.splitlines()) == 2 + 100 + 1
    assert said.out.endswith("(100 of 801 rows; --limit N shows more)\n")
    assert ask("kill-one", "SELECT seq FROM steps", "--limit", 3).out.endswith(
        "(3 of 801 rows; --limit N shows more)\n"
    )
    assert ask("kill-one", "SELECT seq FROM steps WHERE false").out.endswith("(no rows)\n")


def test_json_is_what_the_collector_answers(ask):
    told = json.loads(
        ask("kill-one", "SELECT rank FROM actors ORDER BY 1", "--json", "--limit", 2).out
    )
    assert told == {
        "columns": [{"name": "rank", "type": "INTEGER"}],
        "rows": [[0], [1]],
        "truncated": True,
    }


def test_parquet_into_a_file(ask, tmp_path):
    file = tmp_path / "answer.parquet"
    said = ask("kill-one", "SELECT * FROM steps", "--format", "parquet", "-o", file)
    assert said == (0, "", "")
    assert pq.read_table(file).num_rows == 801
    assert (
        ask("kill-one", f"SELECT count(*) AS n FROM '{file}'", "--format", "csv").out == "n\n801\n"
    )


def test_parquet_on_the_screen_is_refused(ask, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    said = ask("kill-one", COUNT, "--format", "parquet")
    assert said.code == 2 and "-o FILE" in said.err


def test_an_output_that_cannot_be_written(ask, tmp_path):
    said = ask("kill-one", COUNT, "-o", tmp_path / "nowhere" / "x")
    assert said.code == 2 and "cannot be written" in said.err


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("", "no statement"),
        ("-- nothing", "no statement"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("COPY (SELECT 1) TO 'evil.csv'", "COPY is not run here"),
        ("WITH x AS (COPY (SELECT 1) TO 'evil.csv') FROM x", "COPY inside a SELECT"),
        ("CREATE TABLE t AS SELECT 1", "CREATE is not run here"),
        ("SET threads = 1", "SET is not run here"),
        ("SELEC 1", "Parser Error"),
        ("SELECT nothing FROM steps", "nothing"),
        ("SELECT * FROM no_such_table", "no_such_table"),
        ("SELECT phase::INTEGER FROM steps", "Conversion Error"),
        ("SELECT error('half-way') FROM range(100000) WHERE range = 99999", "half-way"),
    ],
)
@pytest.mark.parametrize("target", ["kill-one", "data"])
def test_what_is_no_question_is_told(ask, data, tmp_path, monkeypatch, target, sql, says):
    monkeypatch.chdir(tmp_path)
    before = everything_under(tmp_path)
    said = ask(data if target == "data" else target, sql)
    assert (said.code, said.out) == (2, "")
    assert says in said.err and "Traceback" not in said.err
    assert everything_under(tmp_path) == before


@pytest.mark.parametrize(
    "words",
    [
        ("kill-one", COUNT, "--limit", "-1"),
        ("kill-one", COUNT, "--limit", "many"),
        ("kill-one", COUNT, "--format", "xml"),
        ("kill-one", COUNT, "--json", "--format", "csv"),
        ("no-such-sample", COUNT),
        (),
    ],
)
def test_usage(ask, words):
    said = ask(*words)
    assert (said.code, said.out) == (2, "") and said.err.startswith(("cascade", '{"error":'))


# --- a collector ---------------------------------------------------------------------------------


class Collector:
    """Answers POST /v1/sql as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.tokens: list[str | None] = []
        self.status, self.body = 200, b""
        self.first: list[tuple[int, bytes]] = []
        self.headers: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/sql"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append(json.loads(body))
                outer.tokens.append(self.headers.get("Authorization"))
                status, answer = outer.first.pop(0) if outer.first else (outer.status, outer.body)
                self.send_response(status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answers(self, rows, truncated=False, names=("n",)) -> None:
        columns = [{"name": name, "type": "BIGINT"} for name in names]
        told = {"columns": columns, "rows": rows, "truncated": truncated}
        self.body = json.dumps(told).encode()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


@pytest.fixture
def collector():
    running = Collector()
    yield running
    running.close()


def test_a_collector_is_asked_with_the_token(ask, collector, monkeypatch):
    monkeypatch.setenv("CASCADE_TOKEN", "s3cret")
    collector.answers([[801]])
    assert ask(collector.url + "/", COUNT, "--run", "r").out == "  n\n---\n801\n"
    assert collector.asked == [{"sql": COUNT, "format": "json", "limit": 100, "run_id": "r"}]
    assert collector.tokens == ["Bearer s3cret"]


def test_a_collectors_answer_in_every_form(ask, collector, tmp_path):
    big = 2**62 + 1
    collector.answers([[big, "a,b", None], [2, "c", [1]]], truncated=True, names=("n", "t", "l"))
    said = ask(collector.url, COUNT, "--format", "csv", "--limit", 2)
    assert said.out == f'n,t,l\n{big},"a,b",\n2,c,[1]\n'
    assert said.err == "cascade sql: only the first 2 rows; --limit N gives more\n"
    assert json.loads(ask(collector.url, COUNT, "--json").out)["rows"][0][0] == big
    assert ask(collector.url, COUNT).out.endswith("(2 of more rows; --limit N shows more)\n")
    out = io.BytesIO()
    table = pa.table({"n": [1, 2]})
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    collector.body, collector.headers = out.getvalue(), {"cascade-truncated": "true"}
    said = ask(collector.url, COUNT, "--format", "parquet", "-o", tmp_path / "x.parquet")
    assert said.code == 0 and "only the first" in said.err
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"n": 1}, {"n": 2}]
    assert collector.asked[-1]["format"] == "arrow"


def test_without_a_statement_a_collector_is_asked_for_nothing_much(ask, collector):
    collector.answers([[1]])
    listed = [line.split()[0] for line in ask(collector.url).out.splitlines()[2:]]
    assert listed == [*TABLES, *sorted(named_views())]
    assert collector.asked[0]["sql"] == "SELECT 1"


def test_a_collectors_refusal_is_told_in_its_words(ask, collector):
    error = {
        "code": "sql_refused",
        "message": "COPY is not run here",
        "hint": "ask",
        "where": "sql",
    }
    collector.status, collector.body = 400, json.dumps({"error": error}).encode()
    said = ask(collector.url, COUNT)
    url = f"POST {collector.url}/v1/sql"
    words = f"cascade sql: the collector says: COPY is not run here (sql)\n  {url}\n  ask\n"
    assert said == (2, "", words)
    assert len(collector.asked) == 1


def test_a_missing_token_says_where_it_is_taken_from(ask, collector):
    error = {"code": "no_token", "message": "a token is needed", "hint": "", "where": ""}
    collector.status, collector.body = 401, json.dumps({"error": error}).encode()
    said = ask(collector.url, COUNT)
    assert said.code == 2 and "CASCADE_TOKEN" in said.err and "read" in said.err


@pytest.mark.parametrize("token", ["s3cret\nX-Evil: 1", "s3cr\u00e9t", "s3cret two"])
def test_a_token_that_cannot_be_sent_is_said_and_not_shown(ask, collector, monkeypatch, token):
    monkeypatch.setenv("CASCADE_TOKEN", token)
    for words in ((), ("--json",)):
        said = ask(collector.url, COUNT, *words)
        assert said.code == 2 and "CASCADE_TOKEN" in said.err
        assert "s3c" not in said.err + said.out
    assert not collector.asked


def test_a_token_over_plain_http_to_another_host_is_warned_of(ask, monkeypatch):
    def unreachable(self, method, url, **_):
        raise httpx.ConnectError("refused", request=httpx.Request(method, url))

    monkeypatch.setattr(httpx.Client, "request", unreachable)
    assert "unencrypted" not in ask("http://collector.example", COUNT).err
    monkeypatch.setenv("CASCADE_TOKEN", "s3cret")
    assert ask("http://collector.example", COUNT).err.count("unencrypted") == 1
    assert "unencrypted" not in ask("https://collector.example", COUNT).err


@pytest.fixture
def clock(monkeypatch):
    """Time goes on by waiting alone; the list holds the waits."""
    waits: list[float] = []
    monkeypatch.setattr(client_module, "time", SimpleNamespace(monotonic=lambda: sum(waits)))
    monkeypatch.setattr(client_module.Client.__init__, "__kwdefaults__", _sleeping(waits.append))
    return waits


def _sleeping(sleep):
    return client_module.Client.__init__.__kwdefaults__ | {"sleep": sleep}


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_collector_is_asked_again_after_the_time_it_gives(ask, collector, clock, status):
    error = {"code": "sql_busy", "message": "2 statements run", "hint": "", "where": ""}
    collector.first = [(status, json.dumps({"error": error}).encode())] * 2
    collector.headers = {"Retry-After": "1"}
    collector.answers([[801]])
    assert ask(collector.url, COUNT, "--format", "csv") == (0, "n\n801\n", "")
    assert len(collector.asked) == 3
    assert len(clock) == 2 and all(1 <= wait < 1.3 for wait in clock)


def test_a_collector_that_stays_busy_is_given_up_on_soon(ask, collector, clock):
    error = {"code": "sql_busy", "message": "2 statements run", "hint": "", "where": ""}
    collector.status, collector.body = 429, json.dumps({"error": error}).encode()
    collector.headers = {"Retry-After": "1"}
    said = ask(collector.url, COUNT)
    assert said.code == 2 and "2 statements run" in said.err and "after trying for" in said.err
    assert 2 <= len(clock) <= 6 and sum(clock) <= 6


@pytest.mark.parametrize("status", [400, 401, 404, 408, 413])
def test_what_is_refused_for_good_is_asked_once(ask, collector, clock, status):
    error = {"code": "x", "message": "no", "hint": "", "where": ""}
    collector.status, collector.body = status, json.dumps({"error": error}).encode()
    assert ask(collector.url, COUNT).code == 2
    assert (len(collector.asked), clock) == (1, [])


@pytest.mark.parametrize(
    ("status", "body"), [(500, b"oops"), (404, b"<html>"), (200, b"<html>"), (200, b"[]")]
)
def test_something_else_answers(ask, collector, status, body):
    collector.status, collector.body = status, body
    said = ask(collector.url, COUNT)
    assert (said.code, said.out) == (2, "") and collector.url in said.err


def test_nobody_answers(ask, collector):
    collector.close()
    said = ask(collector.url, COUNT)
    assert said.code == 2 and "cannot be reached" in said.err


@pytest.mark.parametrize("url", ["http://", "http://[", "https://a b/"])
def test_an_address_that_is_none(ask, url):
    said = ask(url, COUNT)
    assert said.code == 2 and "Traceback" not in said.err


@pytest.mark.parametrize(
    ("name", "begins"),
    [("t.csv", b"run_id,"), ("t.json", b"{"), ("t.parquet", b"PAR1"), ("t.txt", b"run_id ")],
)
def test_a_file_gets_the_format_that_its_name_asks_for_and_all_rows(tmp_path, name, begins):
    file = tmp_path / name
    assert main(["sql", "kill-one", "FROM steps", "-o", str(file)]) == 0
    assert file.read_bytes().startswith(begins)
    if name.endswith((".csv", ".txt")):
        assert len(file.read_text().splitlines()) > 800


def test_into_a_pipe_nothing_is_cut(ask, monkeypatch):
    question = "SELECT kind, sentence, sentence AS again FROM incidents"
    assert "…" in ask("kill-one", question).out  # COLUMNS holds
    monkeypatch.delenv("COLUMNS")
    told = ask("kill-one", question).out
    assert "…" not in told
    (line,) = (line for line in told.splitlines() if "CAUSAL to STRONG" in line)
    assert line.count("clocks and digests equal") == 2
