"""A real PostgreSQL, tuned as a DBA would, that stores the same rows in the same tables.

Its clients cost as little as ours: one batch is one simple query of several COPY statements, which
PostgreSQL runs as one transaction, and query and data are encoded before the clock starts and written to
the socket in one go, without a wait between the COPYs. Structs and lists are ``jsonb``; collectives come
as whole rows, which spares it an UPDATE for every completion.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import msgspec
import psycopg

from benchmarks._collector import RUN_ID
from benchmarks._load import TIMEOUT_S, Failed, Queue
from benchmarks._rows import Host, Record, Taken, by_table, mix, sample
from cascade_runtime.vocabulary.schema import EVENT_TABLES

How = Literal["marks", "key"]
"""How it drops duplicates. ``marks``: COPY straight into tables without any index, and a mark of every
actor is moved on in the same transaction, which fails when the batch does not follow on it (what the
collector does, given to it). ``key``: COPY into temporary tables, from there ``INSERT ... ON CONFLICT DO
NOTHING`` into tables with a primary key."""

SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "wal_compression": "lz4",
    "wal_buffers": "64MB",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}
PORT = 5432  # of the socket's name only: nothing listens on the network
DATABASE = "postgres"
USER = "postgres"
_STOP_S = 60.0
_TYPES = {
    "string": "text",
    "int32": "integer",
    "int64": "bigint",
    "double": "double precision",
    "bool": "boolean",
}

_MARKS = """
CREATE TABLE marks (
    run_id text, rank integer, incarnation integer, seq bigint,
    PRIMARY KEY (run_id, rank, incarnation)) WITH (fillfactor = 50);
CREATE FUNCTION move_marks(
    the_run text, ranks integer[], incarnations integer[], firsts bigint[], lasts bigint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE moved integer;
BEGIN
    WITH batch AS (
        SELECT * FROM unnest(ranks, incarnations, firsts, lasts) AS b (rank, incarnation, f, l)
    ),
    old AS (
        UPDATE marks AS m SET seq = b.l FROM batch AS b
        WHERE m.run_id = the_run AND m.rank = b.rank AND m.incarnation = b.incarnation
            AND m.seq = b.f - 1
        RETURNING 1
    ),
    new AS (
        INSERT INTO marks SELECT the_run, rank, incarnation, l FROM batch WHERE f = 0 RETURNING 1
    )
    SELECT (SELECT count(*) FROM old) + (SELECT count(*) FROM new) INTO moved;
    IF moved <> cardinality(ranks) THEN
        RAISE EXCEPTION 'the batch does not follow on what is stored';
    END IF;
END $$;
"""


def _sql_type(storage: str) -> str:
    return _TYPES.get(storage, "jsonb")


def schema(how: How) -> str:
    """The statements that make the tables."""
    statements = []
    for table in EVENT_TABLES.values():
        columns = [
            f"{c.name} {_sql_type(c.type)}{'' if c.nullable else ' NOT NULL'}"
            for c in table.columns
        ]
        if how == "key":
            columns.append("PRIMARY KEY (run_id, rank, incarnation, seq)")
        statements.append(f"CREATE TABLE {table.name} ({', '.join(columns)});")
    return "\n".join([*statements, *([_MARKS] if how == "marks" else [])])


class Postgres:
    """One server with its own data in a temporary folder; nothing of it is left behind.

    Args:
        how: how it drops duplicates.
    """

    def __init__(self, how: How) -> None:
        self._how = how
        self._owner = _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        if self._owner is not None:
            os.chown(self._folder, self._owner.pw_uid, self._owner.pw_gid)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # "fast": ends the sessions
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def address(self) -> tuple[str, How]:
        """What ``Client`` takes."""
        return str(self._folder / f".s.PGSQL.{PORT}"), self._how

    def cpu_s(self) -> float:
        """CPU seconds of the server and all of its processes, those that ended too."""
        assert self._process is not None
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, fields = _stat(stat)
            except OSError:
                continue
            if name == self._process.pid:
                total += sum(int(f) for f in fields[11:15])
            elif int(fields[1]) == self._process.pid:
                total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def num_rows(self, run_id: str) -> int:
        """Rows stored of a run."""
        counts = " + ".join(
            f"(SELECT count(*) FROM {name} WHERE run_id = %(run)s)" for name in EVENT_TABLES
        )
        with self._connect() as connection:
            row = connection.execute(f"SELECT {counts}", {"run": run_id}).fetchone()
        assert row is not None
        return int(row[0])

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self._folder), port=PORT, user=USER, dbname=DATABASE, autocommit=True
        )

    def _start(self) -> None:
        data = self._folder / "data"
        command = [program("initdb"), "-D", str(data), "-U", USER, "--auth=trust", "-E", "UTF8"]
        made = subprocess.run(
            [*command, "--no-locale", "--no-sync"],
            capture_output=True,
            check=False,
            text=True,
            **self._as_owner(),
        )
        if made.returncode:
            raise Failed(f"initdb failed:\n{made.stderr[-2000:]}")
        words = [w for name, value in SETTINGS.items() for w in ("-c", f"{name}={value}")]
        log = self._folder / "log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [program("postgres"), "-D", str(data), "-k", str(self._folder), *words],
                stdout=out,
                stderr=out,
                **self._as_owner(),
            )
        until = time.monotonic() + _STOP_S
        while True:
            try:
                with self._connect() as connection:
                    connection.execute(schema(self._how).encode())
                break
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise Failed(f"PostgreSQL did not start:\n{log.read_text()[-2000:]}") from error
                time.sleep(0.05)

    def _as_owner(self) -> dict[str, Any]:
        """Root may not run it."""
        if self._owner is None:
            return {"cwd": self._folder}
        ids = {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}
        return {"cwd": self._folder, **ids}


def _stat(path: Path) -> tuple[int, list[str]]:
    return int(path.parent.name), path.read_text().rpartition(")")[2].split()


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs.

    Raises:
        Failed: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        if not beside:
            raise Failed(f"{name} is not installed: this benchmark needs PostgreSQL")
        found = str(beside[-1])
    return found


def version() -> str:
    """Of the installed PostgreSQL."""
    told = subprocess.run(
        [program("postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return told.stdout.split()[2]


def _unprivileged() -> pwd.struct_passwd | None:
    """Somebody else to run it as, where we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Failed("PostgreSQL does not run as root, and there is nobody else here")


# ---- clients ------------------------------------------------------------------------------------


class Client:
    """One session, which sends encoded batches and waits until each is committed.

    Args:
        address: of the server's socket, and how duplicates are dropped.
    """

    def __init__(self, address: tuple[str, How]) -> None:
        path, how = address
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_S)
        self._socket.connect(path)
        pairs = b"".join(w.encode() + b"\0" for w in ("user", USER, "database", DATABASE)) + b"\0"
        self._data = b""
        self.ask(struct.pack(">ii", len(pairs) + 8, 196608) + pairs)
        if how == "key":
            tables = [f"CREATE TEMP TABLE s_{t} (LIKE {t}) ON COMMIT DELETE ROWS" for t in mix()]
            self.ask(query(";".join(tables)))

    def ask(self, request: bytes) -> int:
        """See benchmarks._load.Client.

        Raises:
            Failed: the batch was refused, and nothing of it stored.
        """
        self._socket.sendall(request)
        problem = None
        while True:
            kind, body = self._message()
            if kind == b"E":
                problem = body.replace(b"\0", b" ").decode(errors="replace")
            elif kind == b"Z":
                if problem is not None:
                    raise Failed(f"PostgreSQL: {problem}")
                return 200

    def _message(self) -> tuple[bytes, bytes]:
        while True:
            if len(self._data) >= 5:
                end = 1 + int.from_bytes(self._data[1:5], "big")
                if len(self._data) >= end:
                    message, self._data = self._data[:end], self._data[end:]
                    return message[:1], message[5:]
            part = self._socket.recv(1 << 16)
            if not part:
                raise ConnectionError("PostgreSQL closed the connection")
            self._data += part

    def close(self) -> None:
        """See benchmarks._load.Client."""
        self._socket.close()


def query(sql: str) -> bytes:
    """A simple query as a message."""
    text = sql.encode() + b"\0"
    return b"Q" + struct.pack(">i", len(text) + 4) + text


def request_of(how: How, taken: Taken) -> bytes:
    """One batch: the query and the data of its COPYs, in the order in which they will be read."""
    tables = by_table(taken.records)
    statements, data = [], []
    if how == "marks":
        actors = {actor: found for actor, found in taken.actors.items() if found[0] >= 0}
        arrays = [
            [rank for rank, _ in actors],
            [incarnation for _, incarnation in actors],
            [first for first, _, _ in actors.values()],
            [last for _, last, _ in actors.values()],
        ]
        listed = ", ".join("'{" + ",".join(map(str, a)) + "}'" for a in arrays)
        statements.append(f"SELECT move_marks('{RUN_ID}', {listed})")
    for name, rows in tables.items():
        if how == "marks":
            statements.append(f"COPY {name} FROM STDIN")
        else:
            statements.append(f"COPY s_{name} FROM STDIN")
            statements.append(f"INSERT INTO {name} TABLE s_{name} ON CONFLICT DO NOTHING")
        lines = b"".join(_line(name, row) for row in rows)
        data.append(b"d" + struct.pack(">i", len(lines) + 4) + lines)
        data.append(b"c" + struct.pack(">i", 4))
    return query(";".join(statements)) + b"".join(data)


_IS_JSON = {
    name: [_sql_type(c.type) == "jsonb" for c in table.columns]
    for name, table in EVENT_TABLES.items()
}
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def _line(table: str, row: Record) -> bytes:
    """A row in COPY's text form."""
    fields = [_field(v, is_json) for v, is_json in zip(row[1:], _IS_JSON[table], strict=True)]
    return "\t".join(fields).encode() + b"\n"


def _field(value: Any, is_json: bool) -> str:
    if value is None:
        return r"\N"
    if is_json:
        return msgspec.json.encode(value).decode().translate(_ESCAPES)
    if type(value) is str:
        return value.translate(_ESCAPES)
    return str(value)


def queues(how: How, num_clients: int, num_batches: int, num_rows: int) -> list[Queue]:
    """The same rows as ``_collector.queues``, batch for batch."""
    stride = len(sample().items) // num_clients
    made = []
    for number in range(num_clients):
        host = Host(RUN_ID, number, start=number * stride, whole=True)
        taken = [host.take(num_rows) for _ in range(num_batches)]
        made.append(Queue([request_of(how, t) for t in taken], [t.num_rows for t in taken]))
    return made
