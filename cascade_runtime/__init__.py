"""CASCADE's runtime: the consistency regime of a training job as an object you can print.

Importing this package loads the vocabulary's dependencies only; torch comes in with ``attach``.
"""

from __future__ import annotations

from typing import Any

__dist__ = "cascade-timelines"
__version__ = "0.1.0"

_LAZY = {
    "attach": "cascade_runtime.job",
    "finish": "cascade_runtime.job",
    "start_step": "cascade_runtime.job",
    "decided_steps": "cascade_runtime.job",
    "regime": "cascade_runtime.job",
    "debt": "cascade_runtime.job",
    "on_transition": "cascade_runtime.job",
    "members": "cascade_runtime.job",
    "checkpoint_saved": "cascade_runtime.job",
    "checkpoint_loaded": "cascade_runtime.job",
    "State": "cascade_runtime.state.api",
    "NotYet": "cascade_runtime.state.api",
    "Regime": "cascade_runtime.vocabulary.regime",
    "FaultEvent": "cascade_runtime.vocabulary.fault",
    "CascadeError": "cascade_runtime.vocabulary.errors",
}

__all__ = [*_LAZY]  # noqa: PLE0604  # names resolved by __getattr__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
