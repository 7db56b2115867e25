"""Calls something as soon as the script has imported torch, which it may never do."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_torch_is_imported(call: Callable[[], None]) -> None:
    """Call it now where torch is loaded, else at the end of the script's ``import torch``."""
    if "torch" in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Watch(call))


class _Watch(MetaPathFinder):
    """Leaves the finding to the others, once, and has the module's loader call on."""

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
            load = spec.loader.exec_module

            def load_and_call(module: ModuleType) -> None:
                load(module)
                self._call()

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec
