"""Looks at a statement's parse tree and refuses what is more than a question to the views.

It is the first wall of several, and the one that answers in words. DuckDB itself parses: no text is
searched. What it lets through still runs in a read-only transaction of a locked database, in a
process that may write nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import duckdb

from collector.sql.errors import SqlFailed, SqlRefused

_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

_TABLE_FUNCTIONS = frozenset(
    {
        *("unnest", "range", "generate_series", "generate_subscripts", "repeat", "repeat_row"),
        *("json_each", "json_tree", "regexp_split_to_table"),
        *("summary", "duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_types"),
        *("duckdb_functions", "duckdb_keywords", "pragma_version"),
    }
)
"""Table functions that touch no file, run no text as SQL and tell nothing of this machine.

None is a macro: ``histogram`` and ``histogram_values`` hand a text of the caller's to query_table."""

_CATALOGS = frozenset(
    {
        *("duckdb_tables", "duckdb_views", "duckdb_columns", "duckdb_types", "sqlite_master"),
        *("information_schema.tables", "information_schema.columns", "information_schema.views"),
        *("information_schema.schemata", "pg_catalog.pg_tables", "pg_catalog.pg_views"),
        *("pg_catalog.pg_class", "pg_catalog.pg_attribute", "pg_catalog.pg_namespace"),
        *("pg_catalog.pg_type", "pg_catalog.pg_description"),
    }
)

_SHOWN = frozenset({"tables", "__show_tables_expanded"})
"""SHOW TABLES, SHOW ALL TABLES; DESCRIBE and SUMMARIZE hold the query that they describe."""

_REFUSED_FUNCTIONS = re.compile(
    r"read_.*|getenv|current_setting|getvariable|write_log|query|query_table|glob|which_secret"
    r"|nextval|currval|setval|pg_sleep|sleep_ms|json_execute_serialized_sql|json_serialize_plan|.*_scan"
)

_GAP = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)"
_PREFIX = re.compile(
    rf"{_GAP}*explain\b(?P<analyze>{_GAP}+analyze\b)?"
    rf"(?:{_GAP}*\({_GAP}*(?P<option>\w+)(?:{_GAP}+\w+)?{_GAP}*\))?{_GAP}*",
    re.IGNORECASE,
)
"""EXPLAIN and what may follow it. What comes after is checked as a statement of its own, so that a
text which this takes for something else can do no harm."""

_WHAT_IS_ALLOWED = "one SELECT (or EXPLAIN of one) over the tables and views of docs/schema.md"
_ALLOWED_HERE = f"allowed here: {_WHAT_IS_ALLOWED}"


class Checked(NamedTuple):
    """A statement that may run.

    Attributes:
        sql: the text to run.
        views: the table and named views that it names.
        catalog: whether it asks which views there are.
    """

    sql: str
    views: frozenset[str]
    catalog: bool


class Asked(NamedTuple):
    """A statement that only asks: its text as it is run, and its parse tree."""

    sql: str
    tree: Any


def check(db: duckdb.DuckDBPyConnection, sql: str, known: Collection[str]) -> Checked:
    """Check a stranger's statement.

    Args:
        db: a connection to parse with; nothing is run on it but the parser.
        sql: the statement.
        known: the names of the views.

    Raises:
        SqlRefused: no statement or several, another than SELECT or EXPLAIN, a table or a function
            that is not for strangers.
        SqlFailed: it cannot be parsed.
    """
    asked = only_asks(db, sql)
    views, catalog = _strangers(asked.tree, known)
    return Checked(asked.sql, views, catalog)


def only_asks(db: duckdb.DuckDBPyConnection, sql: str) -> Asked:
    """Check that a text is one statement, and one that writes nothing.

    The type that DuckDB gives a statement is not enough: a SELECT may hold a DELETE or a COPY.

    Args:
        db: a connection to parse with.
        sql: the statement.

    Raises:
        SqlRefused: no statement or several, or another than SELECT or EXPLAIN.
        SqlFailed: it cannot be parsed.
    """
    if "\0" in sql:
        raise SqlRefused("the statement holds a NUL character", hint=_ALLOWED_HERE)
    kind, text = _only_statement(db, sql)
    prefix = ""
    if kind == "EXPLAIN":
        prefix, text = _explained(text)
        kind, text = _only_statement(db, text)
    if kind != "SELECT":
        raise SqlRefused(f"{_worded(kind)} is not run here", hint=_ALLOWED_HERE)
    tree = _tree(db, text)
    for node in _dicts(tree):
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE") and kind not in _QUERY_NODES:
            what = _worded(kind.removesuffix("_NODE").removesuffix("_QUERY"))
            raise SqlRefused(f"{what} inside a SELECT is not run here", hint=_ALLOWED_HERE)
    return Asked(prefix + text, tree)


def _only_statement(db: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, str]:
    try:
        statements = db.extract_statements(sql)
    except duckdb.Error as error:
        raise SqlFailed(str(error)) from error
    if len(statements) != 1:
        found = "no statement" if not statements else f"{len(statements)} statements"
        raise SqlRefused(f"the text holds {found}", hint=_ALLOWED_HERE)
    statement = statements[0]
    return str(statement.type).rsplit(".", 1)[-1].upper(), str(statement.query)


def _explained(sql: str) -> tuple[str, str]:
    """EXPLAIN in our own words, and what it explains; that is checked as a statement of its own."""
    found = _PREFIX.match(sql)
    if found is None or (found["option"] or "analyze").lower() != "analyze":
        hint = "write EXPLAIN SELECT ..., or EXPLAIN ANALYZE SELECT ..."
        raise SqlRefused("this form of EXPLAIN is not run here", hint=hint)
    analyze = found["analyze"] is not None or found["option"] is not None
    return "EXPLAIN ANALYZE " if analyze else "EXPLAIN ", sql[found.end() :]


def _worded(kind: str) -> str:
    if kind == "MULTI":
        return "a statement that DuckDB makes several of, such as PIVOT,"
    return kind.replace("_", " ")


def _tree(db: duckdb.DuckDBPyConnection, sql: str) -> Any:
    # fetchall: a result that is not read to its end keeps the connection
    ((text,),) = db.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise SqlRefused("the statement is nested too deeply", hint=_ALLOWED_HERE) from error
    if tree.get("error"):
        raise SqlRefused(f"the statement cannot be checked: {tree.get('error_message')}")
    return tree


def _strangers(tree: Any, known: Collection[str]) -> tuple[frozenset[str], bool]:
    """The views that a tree names, and whether it asks which there are; SqlRefused on all else."""
    by_lower = {name.lower(): name for name in known}
    nodes = list(_dicts(tree))
    ctes = {
        str(entry["key"]).lower()
        for node in nodes
        for entry in (node.get("cte_map") or {}).get("map", [])
    }
    views: set[str] = set()
    catalog = False
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            name = _table_name(node)
            if name in by_lower:
                views.add(by_lower[name])
            elif name in _CATALOGS:
                catalog = True
            elif name not in ctes or not _may_be_a_cte(name):
                raise _no_such_table(name)
        elif kind == "SHOW_REF" and node.get("query") is None:
            if str(node.get("table_name")).strip('"').lower() not in _SHOWN:
                raise SqlRefused("this form of SHOW is not run here", hint="use SHOW TABLES")
            catalog = True
        elif kind == "TABLE_FUNCTION":
            name = _function_name(node.get("function") or {})
            if name not in _TABLE_FUNCTIONS:
                raise SqlRefused(
                    f"the table function {name} is not for use here", hint=_ALLOWED_HERE
                )
            catalog = catalog or name in _CATALOGS
        elif node.get("class") == "FUNCTION":
            name = _function_name(node)
            if _REFUSED_FUNCTIONS.fullmatch(name):
                raise SqlRefused(f"the function {name} is not for use here", hint=_ALLOWED_HERE)
    return frozenset(views), catalog


def _dicts(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree. Not recursive: strangers choose the depth."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left += node.values()
        elif isinstance(node, list):
            left += node


def _table_name(node: dict[str, Any]) -> str:
    name = str(node.get("table_name", "")).lower()
    schema = str(node.get("schema_name", "")).lower()
    catalog = str(node.get("catalog_name", "")).lower()
    if catalog not in ("", "memory", "system"):
        return f"{catalog}.{schema}.{name}"
    return name if schema in ("", "main") else f"{schema}.{name}"


def _function_name(node: dict[str, Any]) -> str:
    return str(node.get("function_name", "")).lower()


def _may_be_a_cte(name: str) -> bool:
    """A CTE called like a file could lend its name to a reference outside its reach."""
    return not re.search(r"[/\\.:*?\[\]]", name)


def _no_such_table(name: str) -> SqlRefused:
    return SqlRefused(
        f"there is no table or view {name[:100]!r}",
        hint="SHOW TABLES lists them; docs/schema.md says what each holds. Files are not read here",
    )
