"""Traces by name: the samples that every installation carries."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from cascade_runtime.vocabulary.errors import BadTrace

_ENDING = ".cascade.zip"


def resolve_trace(name_or_path: str | Path) -> Path:
    """The trace that a person means: a path that exists, else a packaged sample of that name.

    Raises:
        BadTrace: neither; the samples are listed.
    """
    path = Path(name_or_path)
    if path.exists():
        return path
    samples = sample_traces()
    found = samples.get(str(name_or_path))
    if found is not None:
        return found
    known = ", ".join(samples) or "none in this installation"
    raise BadTrace(
        "there is no such trace, and no sample of that name",
        where=str(name_or_path),
        hint=f"samples: {known}",
    )


def sample_traces() -> dict[str, Path]:
    """The packaged samples by name."""
    found: dict[str, Path] = {}
    for folder in _places():
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if (path / "trace.json").is_file() or path.name.endswith(_ENDING):
                found.setdefault(path.name.removesuffix(_ENDING), path)
    return found


def _places() -> list[Path]:
    """Where samples lie: in the wheel inside ``dashboard``, in a checkout beside it.

    The package is looked up, not imported: imports run one way.
    """
    spec = find_spec("dashboard")
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return [place for f in folders for place in (f / "sample_traces", f.parent / "sample_traces")]
