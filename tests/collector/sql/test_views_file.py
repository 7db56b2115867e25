"""views.duckdb in plain DuckDB clients, older ones too, while a collector goes on writing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import duckdb
import pyarrow.parquet as pq
import pytest

from cascade_runtime.vocabulary.schema import TABLES
from collector.data_folder import VIEWS_FILE, run_folder
from collector.schema.views import named_views
from collector.sql import views_file
from collector.sql.views_file import write_views_file

NAMES = [*TABLES, *named_views()]


def ask_in_a_process(data, *questions, library=None):
    """Answers of a fresh client that opens views.duckdb read-only; from another DuckDB if asked."""
    code = (
        "import duckdb, json, sys\n"
        "db = duckdb.connect(sys.argv[1], read_only=True)\n"
        "found = [db.execute(q).fetchall() for q in json.load(sys.stdin)]\n"
        "print(json.dumps([duckdb.__version__, found]))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(data / VIEWS_FILE)],
        input=json.dumps(questions),
        env=os.environ | ({"PYTHONPATH": str(library)} if library else {}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_it_is_written_once_until_something_changes(data, run_ids):
    assert write_views_file(data)
    before = (data / VIEWS_FILE).stat()
    assert not write_views_file(data)
    views_file._known.clear()  # as another process would
    assert not write_views_file(data)
    assert (data / VIEWS_FILE).stat().st_ino == before.st_ino
    gpu = run_folder(data, run_ids["clean"]) / "events" / "gpu"
    gpu.mkdir()
    steps = pq.read_table(next((gpu.parent / "steps").glob("*.parquet")))
    pq.write_table(steps.slice(0, 3).select(steps.column_names[:10]), gpu / "tail.parquet")
    assert write_views_file(data)  # a table got its first file
    _, found = ask_in_a_process(data, "SELECT count(*), count(power_mw) FROM gpu")
    assert found == [[[3, 0]]]
    shutil.rmtree(gpu)
    assert write_views_file(data)  # and lost its last one
    assert not write_views_file(data)


@pytest.mark.parametrize("damage", [b"", b"not a database", None])
def test_a_damaged_or_missing_file_is_written_anew(data, damage):
    write_views_file(data)
    views_file._known.clear()
    if damage is None:
        (data / VIEWS_FILE).unlink()
    else:
        (data / VIEWS_FILE).write_bytes(damage)
    assert write_views_file(data)
    ask_in_a_process(data, "FROM incidents")


def test_leftovers_of_a_killed_collector_go_and_none_are_left(data):
    (data / f".{VIEWS_FILE}-dead").touch()
    write_views_file(data)
    assert sorted(p.name for p in data.iterdir()) == ["runs", VIEWS_FILE]


def test_another_writer_is_waited_for_and_its_half_written_file_stays(data, monkeypatch):
    half = data / f".{VIEWS_FILE}-half"
    half.touch()
    held = os.open(data / "runs", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    monkeypatch.setattr(views_file, "HELD_S", 0.0)
    with pytest.raises(TimeoutError, match="another process"):
        write_views_file(data)
    assert half.exists()
    assert not (data / VIEWS_FILE).exists()
    os.close(held)
    assert write_views_file(data)
    assert not half.exists()


def test_two_processes_write_it_and_the_newest_stays(data):
    """As the collector and its analysis do: each gives a table its first file and takes it away."""
    code = (
        "import pathlib, sys\n"
        "from collector.sql.views_file import write_views_file\n"
        "data, rows, file = map(pathlib.Path, sys.argv[1:])\n"
        "file.parent.mkdir(parents=True)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for turn in range(5):\n"
        "    file.unlink() if turn % 2 else file.hardlink_to(rows)\n"
        "    write_views_file(data)\n"
    )
    steps = pq.read_table(next((data / "runs").glob("*/events/steps/*.parquet")))
    rows = data / "rows"
    pq.write_table(steps.slice(0, 3).select(steps.column_names[:10]), rows)
    files = [run_folder(data, "x") / "events" / name / "tail.parquet" for name in ("gpu", "raw")]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(data), str(rows), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for file in files
    ]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, told = writer.communicate(timeout=60)
        assert writer.returncode == 0, told
    assert not write_views_file(data)  # what stayed is made of all that is there
    assert sorted(p.name for p in data.iterdir()) == ["rows", "runs", VIEWS_FILE]


def test_an_empty_data_folder_has_every_view(tmp_path):
    assert write_views_file(tmp_path)
    _, found = ask_in_a_process(tmp_path, *(f"SELECT count(*) FROM {name}" for name in NAMES))
    assert {answer[0][0] for answer in found} == {0}


def test_new_runs_new_segments_and_a_rewritten_tail_are_seen_by_an_open_client(data, run_ids):
    write_views_file(data)
    folder = run_folder(data, run_ids["clean"]) / "events" / "steps"
    steps = pq.read_table(next(folder.glob("*.parquet")))

    def tail(num_rows):
        pq.write_table(steps.slice(0, num_rows), folder / "fresh.tmp")
        (folder / "fresh.tmp").replace(folder / "tail.parquet")

    with duckdb.connect(data / VIEWS_FILE, read_only=True) as db:

        def count():
            return db.execute("SELECT count(*) FROM steps").fetchall()[0][0]

        assert count() == 1281
        for num_rows in (5, 6, 7):  # within one second: no cache of files may hide one
            tail(num_rows)
            assert count() == 1281 + num_rows
        pq.write_table(steps.slice(0, 1), folder / "another.parquet")
        assert count() == 1281 + 8
        shutil.copytree(folder, run_folder(data, "later") / "events" / "steps")
        assert count() == 2 * (1281 + 8) - 801
        assert not write_views_file(data)


def test_it_is_written_while_a_client_has_it_open(data, run_ids):
    write_views_file(data)
    with duckdb.connect(data / VIEWS_FILE, read_only=True) as db:
        shutil.rmtree(run_folder(data, run_ids["kill-one"]))
        assert write_views_file(data)  # debt is gone, for one
        assert db.execute("SELECT count(*) FROM steps").fetchall() == [(480,)]


@pytest.fixture(scope="session", params=["1.4.5", "1.5.6"])
def older(request):
    """The folder of an older DuckDB; the test is skipped, and says why, where none can be had."""
    folder = request.config.cache.mkdir(f"duckdb-{request.param}")
    library = folder / "lib"
    if not library.is_dir():
        # Built beside and moved: two test runs may want it at once.
        built = folder / f"lib-{os.getpid()}"
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(built),
        ]
        done = subprocess.run(
            [*pip, "--only-binary=:all:", f"duckdb=={request.param}"],
            capture_output=True,
            text=True,
            timeout=100,
        )
        if done.returncode != 0:
            shutil.rmtree(built, ignore_errors=True)
            why = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
            pytest.skip(f"no wheel of DuckDB {request.param} to be had here: {why}")
        with suppress(OSError):  # the other one was first
            built.rename(library)
        shutil.rmtree(built, ignore_errors=True)
    return request.param, library


def test_older_clients_open_it_and_every_view_in_it(data, older):
    version, library = older
    write_views_file(data)
    questions = [f"SELECT count(*) FROM (FROM {name})" for name in NAMES]
    mine, found = ask_in_a_process(data, *questions)
    theirs, same = ask_in_a_process(data, *questions, library=library)
    assert (mine, theirs) == (duckdb.__version__, version)
    assert same == found
    told = "SELECT kind, severity, sentence FROM incidents"
    assert ask_in_a_process(data, told, library=library)[1] == ask_in_a_process(data, told)[1]
    documented = "SELECT count(*) FROM duckdb_views() WHERE comment IS NOT NULL AND NOT internal"
    assert ask_in_a_process(data, documented, library=library)[1] == [[[len(NAMES)]]]
