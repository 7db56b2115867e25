"""``python -m benchmarks`` lists the benchmarks; ``python -m benchmarks NAME [options]`` runs one."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """Every benchmark of this folder."""
    return sorted(m.name for m in pkgutil.iter_modules([str(FOLDER)]) if not m.name.startswith("_"))


def load(name: str) -> ModuleType:
    return importlib.import_module(f"benchmarks.{name}")


def show() -> None:
    """One line a benchmark: name, what it measures, target."""
    for name in names():
        module = load(name)
        first = (module.__doc__ or "").strip().splitlines()[0]
        print(f"{name:<20} {first}\n{'':<20} target: {module.TARGET}")


def main(argv: list[str]) -> int:
    if not argv:
        show()
        return 0
    name, *rest = argv
    if name not in names():
        known = ", ".join(names())
        print(f"benchmarks: there is none called {name!r}; there are: {known}", file=sys.stderr)
        return 2
    status: int = load(name).main(rest)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
