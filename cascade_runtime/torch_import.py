"""Calls something as soon as the script has imported torch, which it may never do."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_torch_is_imported(call: Callable[[], None]) -> None:
    """Call it now where torch is loaded, else at the end of the script's ``import torch``."""
    if "torch" in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Watch(call))


class _Watch(MetaPathFinder):
    """Leaves the finding to the others, once."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self._call)
        return spec


class _Then(Loader):
    """Loads as the module's own loader does, which the module sees from its first line on."""

    def __init__(self, loader: Loader, call: Callable[[], None]) -> None:
        self._loader = loader
        self._call = call

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._call()
