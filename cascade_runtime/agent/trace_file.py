"""``trace.json`` as the agents write it: at the start, and again at a clean end."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata
from pathlib import Path

from cascade_runtime.agent.config import JobConfig
from cascade_runtime.vocabulary.events import SCHEMA_VERSION
from cascade_runtime.vocabulary.policy import Policy
from cascade_runtime.vocabulary.trace_meta import TraceMeta, format_trace_meta, parse_trace_meta

RECORDED_TABLES = [
    "actors",
    "groups",
    "objects",
    "steps",
    "collectives",
    "messages",
    "updates",
    "reads",
    "decisions",
    "transitions",
    "debt",
    "membership",
    "health",
    "checkpoints",
    "digests",
    "gaps",
]


def trace_start(config: JobConfig, policy: Policy, with_gpus: bool = False) -> TraceMeta:
    """The trace.json of a run that begins now."""
    return TraceMeta(
        schema_version=SCHEMA_VERSION,
        run_id=config.run_id,
        name=config.name,
        world_size=config.num_ranks + config.num_hosts,
        mode="observe" if config.mode == "observe" else "enforce",
        policy=policy.table(),
        created_ns=time.time_ns(),
        recorded_tables=[*RECORDED_TABLES, *(["gpu"] if with_gpus else [])],
        tool_versions=tool_versions(),
        story=config.story or None,
    )


def write_trace_start(config: JobConfig, policy: Policy, with_gpus: bool = False) -> None:
    """Write trace.json for a run that begins now."""
    _write(Path(config.trace_dir), trace_start(config, policy, with_gpus))


def write_trace_end(config: JobConfig, ended_ns: int, *, clean: bool = True) -> None:
    """Mark the end: a clean one, or that somebody ended the job early."""
    path = Path(config.trace_dir) / "trace.json"
    meta = parse_trace_meta(path.read_bytes(), str(path))
    meta.ended_ns = ended_ns
    meta.clean_end = clean
    _write(Path(config.trace_dir), meta)


def tool_versions() -> dict[str, str]:
    """Versions of what made the trace; only what is installed."""
    versions = {"python": platform.python_version()}
    for name in ("cascade-timelines", "torch", "msgspec"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _write(folder: Path, meta: TraceMeta) -> None:
    temporary = folder / f".trace.json.{os.getpid()}"
    temporary.write_bytes(format_trace_meta(meta))
    temporary.replace(folder / "trace.json")
