"""The public schema against what it was: tables, columns, types, words, nullability and order."""

from __future__ import annotations

import copy
import json

import pytest

from cascade_runtime.vocabulary import schema
from cascade_runtime.vocabulary.events import EVENT_TYPES, SCHEMA_VERSION
from cascade_runtime.vocabulary.results import RESULT_TYPES
from tests.golden import golden

GOLDEN = "schema.json"
BREAKS = """
A removed, renamed, moved or retyped column breaks saved traces, scripts and the wire form.
Put it back; or raise SCHEMA_VERSION in cascade_runtime/vocabulary/events.py, write a decision record in
docs/decisions/, and run the tests with UPDATE_GOLDEN=1."""
GROWS = "Only additions: run the tests with UPDATE_GOLDEN=1 and name them in the changelog."


def derived() -> dict:
    """The schema as plain data, without its documentation."""
    tables = {
        name: {
            "kind": table.kind,
            "columns": [
                {"name": c.name, "type": c.type, "nullable": c.nullable, "words": list(c.words)}
                for c in table.columns
            ],
        }
        for name, table in schema.TABLES.items()
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "leading": list(schema.LEADING),
        "structs": {name: [list(f) for f in fields] for name, fields in schema.STRUCTS.items()},
        "tables": tables,
    }


def as_text(data: dict) -> str:
    """JSON with one line a column, so that a diff names the column."""
    head = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items() if k != "tables"]
    tables = []
    for name, table in data["tables"].items():
        columns = ",\n    ".join(json.dumps(column) for column in table["columns"])
        kind = json.dumps(table["kind"])
        tables.append(f'  {json.dumps(name)}: {{"kind": {kind}, "columns": [\n    {columns}]}}')
    return "{\n" + ",\n".join(head) + ',\n"tables": {\n' + ",\n".join(tables) + "\n}}\n"


def breaking(old: dict, new: dict) -> list[str]:
    """What a reader or writer of the old schema would trip over in the new one."""
    if new["schema_version"] > old["schema_version"]:
        return []
    found = [f"{key} changed" for key in ("leading", "structs") if old[key] != new[key]]
    for table, was in old["tables"].items():
        now = new["tables"].get(table)
        if now is None:
            found.append(f"table {table} is gone")
            continue
        if now["kind"] != was["kind"]:
            found.append(f"table {table} is no {was['kind']} table")
        found += _breaking_columns(table, was["columns"], now["columns"])
    return found


def _breaking_columns(table: str, old: list[dict], new: list[dict]) -> list[str]:
    found = []
    by_name = {c["name"]: c for c in new}
    for position, was in enumerate(old):
        name = f"{table}.{was['name']}"
        now = by_name.get(was["name"])
        if now is None:
            found.append(f"{name} is gone")
            continue
        if new.index(now) != position:
            found.append(f"{name} moved")
        if now["type"] != was["type"]:
            found.append(f"{name} is {now['type']}, it was {was['type']}")
        if now["nullable"] != was["nullable"]:
            found.append(f"{name} {'may' if now['nullable'] else 'may not'} be null now")
        lost = [word for word in was["words"] if word not in now["words"]]
        if lost or (now["words"] and not was["words"]):
            found.append(f"{name} takes fewer words")
    known = {c["name"] for c in old}
    added = [c for c in new if c["name"] not in known]
    found += [f"{table}.{c['name']} is new and may not be null" for c in added if not c["nullable"]]
    return found


def test_the_schema_is_as_it_was_or_has_only_grown():
    kept = golden.read(GOLDEN)
    found = breaking(json.loads(kept), derived()) if kept else []
    assert not found, "\n".join(found) + BREAKS
    golden.check(GOLDEN, as_text(derived()), GROWS)


def test_the_golden_text_is_json():
    assert json.loads(as_text(derived())) == derived()


def _columns(data: dict, table: str) -> list[dict]:
    return data["tables"][table]["columns"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["tables"].pop("steps"), "table steps is gone"),
        (lambda d: d["tables"]["steps"].update(kind="result"), "table steps is no event table"),
        (lambda d: _columns(d, "steps").pop(), "steps.num_samples is gone"),
        (lambda d: _columns(d, "steps")[11].update(name="cost"), "steps.loss is gone"),
        (lambda d: _columns(d, "steps").reverse(), "steps.loss moved"),
        (lambda d: _columns(d, "steps")[-1].update(type="double"), "steps.num_samples is double"),
        (lambda d: _columns(d, "steps")[3].update(nullable=True), "steps.seq may be null now"),
        (lambda d: _columns(d, "steps")[5].update(nullable=False), "steps.epoch may not be null"),
        (lambda d: _columns(d, "steps")[10]["words"].pop(), "steps.phase takes fewer words"),
        (lambda d: _columns(d, "steps")[11]["words"].append("big"), "steps.loss takes fewer words"),
        (lambda d: d["leading"].append("weather"), "leading changed"),
        (lambda d: d["structs"]["dot"].pop(), "structs changed"),
        (
            lambda d: _columns(d, "steps").append(
                {"name": "new", "type": "int64", "nullable": False, "words": []}
            ),
            "steps.new is new and may not be null",
        ),
    ],
)
def test_what_breaks_readers_is_told_from_what_does_not(change, message):
    old, new = derived(), copy.deepcopy(derived())
    change(new)
    assert any(message in line for line in breaking(old, new)), breaking(old, new)
    new["schema_version"] += 1
    assert breaking(old, new) == []


def test_additions_are_no_break():
    old, new = derived(), copy.deepcopy(derived())
    new["tables"]["weather"] = {"kind": "event", "columns": []}
    _columns(new, "steps").append({"name": "new", "type": "x", "nullable": True, "words": []})
    _columns(new, "steps")[10]["words"].append("middle")
    assert breaking(old, new) == []


def test_every_type_is_a_table_and_every_table_and_column_is_documented():
    assert [t.struct for t in schema.EVENT_TABLES.values()] == list(EVENT_TYPES)
    assert [t.struct for t in schema.RESULT_TABLES.values()] == list(RESULT_TYPES)
    assert schema.TABLES == schema.EVENT_TABLES | schema.RESULT_TABLES
    for table in schema.TABLES.values():
        assert table.doc.endswith("."), table.name
        assert [c.name for c in table.columns] == list(table.struct.__struct_fields__)
        assert all(c.doc for c in table.columns), table.name


def test_only_portable_types_are_used():
    scalars = {"string", "int32", "int64", "double", "bool", *schema.STRUCTS}
    for table in schema.TABLES.values():
        for column in table.columns:
            assert column.type.replace("list<", "").rstrip(">") in scalars, column


def test_names_follow_the_house_rules():
    for table in schema.TABLES.values():
        for column in table.columns:
            if column.type == "int64" and "nanosecond" in column.doc:
                assert column.name.endswith("_ns")
            if column.name.endswith(("_ns", "_seq")) or column.name.startswith("num_"):
                assert column.type == "int64", f"{table.name}.{column.name}"
            if column.name.endswith("_id"):
                assert column.type == "string", f"{table.name}.{column.name}"


def test_a_column_is_found_by_its_name():
    assert schema.TABLES["steps"].column("phase").words == ("begin", "end")
    with pytest.raises(KeyError, match=r"steps\.weather"):
        schema.TABLES["steps"].column("weather")


def test_nested_columns():
    transitions = schema.TABLES["transitions"]
    assert transitions.column("cohorts").type == "list<list<actor>>"
    assert transitions.column("proposer").type == "actor"
    assert schema.TABLES["objects"].column("holders").type == "list<int32>"
