"""``trace.json``: what a trace says of itself."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from cascade_runtime.vocabulary.errors import BadTrace
from cascade_runtime.vocabulary.events import SCHEMA_VERSION
from cascade_runtime.vocabulary.fault import FaultEvent
from cascade_runtime.vocabulary.regime import Regime
from cascade_runtime.vocabulary.scalars import Ns

MAX_WORLD_SIZE = 100_000
"""Ranks and agents of the largest job that is read. Every one that left no row is told by name, so a
made-up number must not cost memory."""


class PolicyRow(msgspec.Struct, frozen=True, rename={"from_regime": "from", "to_regime": "to"}):
    """One move of a policy: in ``from``, on ``fault``, walk to ``to``."""

    from_regime: Regime
    fault: FaultEvent
    to_regime: Regime


class PolicyTable(msgspec.Struct, frozen=True):
    """The policy a run was under."""

    name: str
    rows: list[PolicyRow]


class TraceMeta(msgspec.Struct, kw_only=True, omit_defaults=False):
    """The fields of trace.json (design contract 4.2).

    Attributes:
        story: what is going to happen, a sentence each, where that is known before: demos play a
            story. Optional; readers that do not know it ignore it.
    """

    schema_version: int
    run_id: str
    name: str
    world_size: Annotated[int, msgspec.Meta(ge=0, le=MAX_WORLD_SIZE)]
    mode: Literal["enforce", "observe", "imported"]
    policy: PolicyTable | None
    created_ns: Ns
    ended_ns: Ns | None = None
    clean_end: bool | None = None
    recorded_tables: list[str]
    tool_versions: dict[str, str]
    sources: list[str] | None = None
    story: list[str] | None = None


def parse_trace_meta(data: bytes, where: str) -> TraceMeta:
    """trace.json's text as TraceMeta.

    Raises:
        BadTrace: not JSON, a missing or wrong field (named), or a newer schema version.
    """
    try:
        version = msgspec.json.decode(data, type=_VersionOnly).schema_version
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadTrace(f"this is not a trace.json: {error}", where=where) from error
    if version > SCHEMA_VERSION:
        raise BadTrace(
            f"schema_version {version} is newer than {SCHEMA_VERSION}, which this release reads",
            where=where,
            hint="install a newer cascade-timelines to read this trace",
        )
    try:
        return msgspec.json.decode(data, type=TraceMeta)
    except msgspec.MsgspecError as error:
        raise BadTrace(f"this trace.json breaks the contract: {error}", where=where) from error


def format_trace_meta(meta: TraceMeta) -> bytes:
    """TraceMeta as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(meta), indent=2) + b"\n"


class _VersionOnly(msgspec.Struct):
    schema_version: int
