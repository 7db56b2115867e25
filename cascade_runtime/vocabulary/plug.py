"""Plug-ins by folder: one file = one thing, found by looking, never by a second list."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from cascade_runtime.vocabulary.errors import CascadeError


def discover(package: ModuleType) -> dict[str, Any]:
    """Import every public module of ``package`` and collect its ``PLUGIN``.

    Modules whose name starts with an underscore are helpers and are skipped.

    Returns:
        ``PLUGIN`` objects by their ``name``, in the order of file names.

    Raises:
        CascadeError: a module has no ``PLUGIN``, or two share a name; the module is named.
    """
    found: dict[str, Any] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda i: i.name):
        if info.name.startswith("_"):
            continue
        where = f"{package.__name__}.{info.name}"
        plugin = getattr(importlib.import_module(where), "PLUGIN", None)
        name = getattr(plugin, "name", None)
        if not isinstance(name, str):
            raise CascadeError(
                "this plug-in file defines no PLUGIN with a name",
                where=where,
                hint="give the module a PLUGIN, or start its name with an underscore if it is a helper",
            )
        if name in found:
            raise CascadeError(f"two plug-ins are called {name!r}", where=where, hint="rename one")
        found[name] = plugin
    return found
