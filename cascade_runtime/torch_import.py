"""Calls something as soon as the script has imported torch, which it may never do."""

from __future__ import annotations

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
    """Leaves the finding to the others, until the module is really loaded: a look at it is no import."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        for finder in [f for f in sys.meta_path if f is not self and hasattr(f, "find_spec")]:
            if (spec := finder.find_spec(fullname, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _Then(spec.loader, self._loaded)
                return spec
        return None

    def _loaded(self) -> None:
        """Specs may have been handed out before; the first that is executed is the one that counts."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._call()


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
