"""The derived schema against the contract's own checker, where that lies beside the repository."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

from cascade_runtime.vocabulary import schema
from cascade_runtime.vocabulary.report import Report, Violation
from cascade_runtime.vocabulary.trace_meta import TraceMeta

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def contract():
    """check_trace.py as a module."""
    pytest.importorskip("pyarrow")
    places = (folder / "shared" / "tools" / "check_trace.py" for folder in (ROOT, *ROOT.parents))
    path = next((p for p in places if p.is_file()), None)
    if path is None:
        pytest.skip("shared/tools/check_trace.py is not beside this checkout")
    spec = importlib.util.spec_from_file_location("contract_check_trace", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spelled(arrow_type) -> str:
    """An Arrow type in the words of the schema."""
    import pyarrow as pa

    if pa.types.is_list(arrow_type):
        return f"list<{spelled(arrow_type.value_type)}>"
    if pa.types.is_struct(arrow_type):
        fields = tuple((field.name, spelled(field.type)) for field in arrow_type)
        return {columns: name for name, columns in schema.STRUCTS.items()}[fields]
    return str(arrow_type)


def test_the_leading_columns_are_the_contract_s(contract):
    assert list(schema.LEADING) == list(contract.LEADING)
    for table in schema.EVENT_TABLES.values():
        for name, arrow_type in contract.LEADING.items():
            column = table.column(name)
            assert column.type == spelled(arrow_type), f"{table.name}.{name}"
            assert column.nullable == (name not in contract.NEVER_NULL), f"{table.name}.{name}"


def test_every_table_and_column_of_the_contract_is_there_in_its_type(contract):
    for name, columns in contract.TABLES.items():
        table = schema.EVENT_TABLES[name]
        for column, arrow_type in columns.items():
            assert table.column(column).type == spelled(arrow_type), f"{name}.{column}"


def test_no_table_is_ours_alone(contract):
    assert set(schema.EVENT_TABLES) == set(contract.TABLES)


def test_a_column_takes_the_contract_s_words_and_no_others(contract):
    for (table_name, column_name), words in contract.WORDS.items():
        for table in schema.EVENT_TABLES.values():
            names = [column.name for column in table.columns]
            if table_name in ("*", table.name) and column_name in names:
                have = set(table.column(column_name).words)
                assert have == words, f"{table.name}.{column_name}"


def test_trace_json_and_the_report_have_the_contract_s_fields(contract):
    assert set(contract.META) <= set(TraceMeta.__struct_fields__)
    assert list(Report.__struct_fields__) == list(contract.REPORT)


def test_a_violation_has_the_fields_that_the_checker_asks_for(contract, tmp_path):
    bare = tmp_path / "report.json"
    bare.write_text('{"violations": [{}]}')
    (line,) = (line for line in contract.check_report(bare) if "lacks" in line)
    asked = ast.literal_eval(line.partition("lacks ")[2])
    assert "sentence" in asked
    assert set(asked) <= set(Violation.__struct_fields__)
