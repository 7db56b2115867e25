"""What a stranger's statement may use."""

from __future__ import annotations

import msgspec

MIB = 1 << 20


class SqlLimits(msgspec.Struct, frozen=True):
    """The limits of one ``SqlService``.

    Attributes:
        time_s: wall time of a statement, from the moment that a child has it.
        memory_bytes: what DuckDB may use.
        overhead_bytes: address space of the child beyond that: libraries, threads, the answer.
        num_rows: rows of an answer when the request names no limit.
        max_rows: the most that a request may ask for.
        output_bytes: size of an answer.
        statement_bytes: size of a statement's text.
        num_threads: of one child.
        at_once: statements that run at the same time.
        num_waiting: statements that may wait for that; more are refused at once.
        wait_s: how long one may wait.
        start_s: how long a child may take to start.
    """

    time_s: float = 10.0
    memory_bytes: int = 1024 * MIB
    overhead_bytes: int = 1536 * MIB
    num_rows: int = 10_000
    max_rows: int = 1_000_000
    output_bytes: int = 64 * MIB
    statement_bytes: int = 256 * 1024
    num_threads: int = 2
    at_once: int = 2
    num_waiting: int = 8
    wait_s: float = 5.0
    start_s: float = 30.0
