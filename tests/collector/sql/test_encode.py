"""Rows as JSON, CSV and Arrow: every type of DuckDB, cut and bounded."""

from __future__ import annotations

import csv
import io
import json

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.sql.encode import TooLarge, encode
from collector.sql.plain import plain_values

TYPES = {
    "1::BIGINT": 1,
    "9223372036854775807": 9223372036854775807,
    "sum(3::BIGINT)": 3,
    "170141183460469231731687303715884105727::HUGEINT": 170141183460469231731687303715884105727,
    "1::UHUGEINT": 1,
    "1.50::DECIMAL(9, 2)": 1.5,
    "0.5::DOUBLE": 0.5,
    "'nan'::DOUBLE": "NaN",
    "'inf'::FLOAT": "Infinity",
    "'-inf'::DOUBLE": "-Infinity",
    "true": True,
    "NULL": None,
    "NULL::DOUBLE": None,
    "'ä\u2028\"\\'": 'ä\u2028"\\',
    "''": "",
    "'{\"x\": 1}'::JSON": '{"x": 1}',
    "DATE '2026-01-02'": "2026-01-02",
    "TIME '01:02:03.5'": "01:02:03.500000",
    "TIMESTAMP '2026-01-02 03:04:05'": "2026-01-02T03:04:05.000000",
    "TIMESTAMP_NS '2026-01-02 03:04:05.123456789'": "2026-01-02T03:04:05.123456789",
    "TIMESTAMPTZ '2026-01-02 03:04:05+01'": "2026-01-02T02:04:05.000000Z",
    "NULL::TIMESTAMPTZ": None,
    "INTERVAL '1 month 2 days 3 seconds'": "1 months 2 days 3 seconds",
    "'\\x00\\xFF'::BLOB": "AP8=",
    "'6f2b1c3e-0000-4000-8000-000000000000'::UUID": "6f2b1c3e-0000-4000-8000-000000000000",
    "'a'::ENUM('a', 'b')": "a",
    "[1, NULL, 3]": [1, None, 3],
    "[]::INTEGER[]": [],
    "NULL::INTEGER[]": None,
    "[1, 2]::INTEGER[2]": [1, 2],
    "[['inf'::DOUBLE], NULL, []]": [["Infinity"], None, []],
    "{'a': 'nan'::DOUBLE, 'b': [DATE '2026-01-02']}": {"a": "NaN", "b": ["2026-01-02"]},
    "NULL::STRUCT(a INTEGER)": None,
    "MAP {'k': 1}": [{"key": "k", "value": 1}],
}


def answer(sql, form="json", limit=100, max_bytes=1 << 20, batch=2):
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        found = db.sql(sql)
        return encode(
            found.to_arrow_reader(batch),
            list(found.columns),
            [str(t) for t in found.types],
            form,
            limit=limit,
            max_bytes=max_bytes,
        )


@pytest.mark.parametrize("value", TYPES)
def test_every_type_has_a_form_in_json(value):
    told = json.loads(answer(f"SELECT {value} AS v").data)
    assert told["rows"] == [[TYPES[value]]]
    assert set(told) == {"columns", "rows", "truncated"}
    assert set(told["columns"][0]) == {"name", "type"}


@pytest.mark.parametrize(
    "value", ["'infinity'::TIMESTAMP", "'290000-01-01'::TIMESTAMP", "'1'::BIT"]
)
def test_what_has_no_good_form_has_some(value):
    assert len(json.loads(answer(f"SELECT {value} AS v").data)["rows"]) == 1


def test_columns_of_one_name_and_odd_names_stay():
    told = json.loads(answer('SELECT 1 AS a, 2 AS a, 3 AS "x,""y"').data)
    assert [c["name"] for c in told["columns"]] == ["a", "a", 'x,"y']
    assert told["columns"][0]["type"] == "INTEGER"
    assert told["rows"] == [[1, 2, 3]]


def test_a_slice_of_nested_values_is_its_own():
    nested = pa.array([[{"a": 1}], None, [{"a": 2}, {"a": 3}], []])
    assert plain_values(nested.slice(1)) == [None, [{"a": 2}, {"a": 3}], []]
    assert plain_values(nested.slice(2, 1)) == [[{"a": 2}, {"a": 3}]]
    structs = pa.array([{"a": [1]}, None, {"a": None}])
    assert plain_values(structs.slice(1)) == [None, {"a": None}]
    maps = pa.array([[("k", 1)], [("l", 2), ("m", 3)]], pa.map_(pa.string(), pa.int64()))
    assert plain_values(maps.slice(1)) == [[{"key": "l", "value": 2}, {"key": "m", "value": 3}]]


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=9))
def test_floats_come_back(values):
    told = json.loads(json.dumps(plain_values(pa.array(values, pa.float64()))))
    back = [v if v is None else float(v) for v in told]
    assert [repr(v) for v in back] == [repr(v) for v in values]


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
@pytest.mark.parametrize(
    ("limit", "truncated"), [(0, True), (1, True), (6, True), (7, False), (8, False)]
)
def test_the_limit_cuts_and_says_so(form, limit, truncated):
    body = answer("FROM range(7)", form, limit)
    assert (body.num_rows, body.truncated) == (min(limit, 7), truncated)
    if form == "json":
        told = json.loads(body.data)
        assert told["rows"] == [[i] for i in range(min(limit, 7))]
        assert told["truncated"] is truncated
    elif form == "csv":
        assert body.data.decode().splitlines() == ["range", *map(str, range(min(limit, 7)))]
    else:
        assert pa.ipc.open_stream(body.data).read_all()["range"].to_pylist() == list(
            range(min(limit, 7))
        )


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_an_answer_without_rows_has_its_columns(form):
    body = answer("SELECT 1 AS a, 'x' AS b WHERE false", form)
    if form == "json":
        assert json.loads(body.data)["columns"][1] == {"name": "b", "type": "VARCHAR"}
        assert json.loads(body.data)["rows"] == []
    elif form == "csv":
        assert body.data == b"a,b\n"
    else:
        assert pa.ipc.open_stream(body.data).schema.names == ["a", "b"]


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_too_large_an_answer_is_an_error_and_not_a_part(form):
    with pytest.raises(TooLarge):
        answer("SELECT repeat('x', 100) FROM range(1000)", form, 10_000, max_bytes=10_000)


def test_csv_tells_apart_commas_quotes_lines_and_nested_values():
    body = answer(
        "SELECT 'a,\"b\"\nc' AS t, [1, 2] AS l, {'x': true} AS s, NULL AS n, false AS f", "csv"
    )
    rows = list(csv.reader(io.StringIO(body.data.decode(), newline="")))
    assert rows == [["t", "l", "s", "n", "f"], ['a,"b"\nc', "[1,2]", '{"x":true}', "", "false"]]


def test_arrow_keeps_types_and_names():
    body = answer("SELECT 1::BIGINT AS a, 2::INTEGER AS a, [1.5::DOUBLE] AS l", "arrow")
    table = pa.ipc.open_stream(body.data).read_all()
    assert table.schema.names == ["a", "a", "l"]
    assert table.schema.types == [pa.int64(), pa.int32(), pa.list_(pa.float64())]
