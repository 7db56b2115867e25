"""``cascade recover``: the verb; what it mends is tested with the store."""

from __future__ import annotations

import json

from cascade_runtime.vocabulary.plug import discover
from collector import storage
from collector.wire.batch import MSGPACK
from collector.wire.decode import decode
from collector.wire.records import encode_msgpack
from dashboard.commands import main
from tests.collector.traces import step


def damaged(folder):
    """A data folder whose hot database is not one any more."""
    store = discover(storage)["duckdb"].open(folder, {})
    store.append(decode(MSGPACK, encode_msgpack([step(i) for i in range(10)]))).result(30)
    store.close()
    database = folder / "hot.duckdb"
    database.write_bytes(b"\0" * 4096 + database.read_bytes()[4096:])
    return folder


def test_a_damaged_folder_is_mended_and_what_was_damaged_is_kept(tmp_path, capsys):
    data = damaged(tmp_path / "data")
    assert main(["recover", str(data), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["num_rows"] == report["num_rows_restored"] == 10
    assert report["kept"]
    store = discover(storage)["duckdb"].open(data, {})
    assert [run.num_rows for run in store.runs()] == [10]
    store.close()


def test_for_people_it_is_sentences(tmp_path, capsys):
    data = damaged(tmp_path / "data")
    assert main(["recover", str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line[0].isalnum() or line[0] == "/" for line in lines)


def test_what_is_no_data_folder_is_refused(tmp_path, capsys):
    assert main(["recover", str(tmp_path / "none")]) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err
