"""A newcomer's torch.distributed: it looks like the job's world and waits for nobody.

The others are in the middle of the job and will not come to ``init_process_group``. torch's own "fake"
backend gives this process a world of the right size in which every collective is done at once and
changes nothing; the real communicator is formed by the layer when the newcomer is level.
"""

from __future__ import annotations

import functools
import os
from typing import Any


def pretend_world() -> None:
    """Make ``init_process_group`` of this process join nobody, whatever backend it names."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    real: Any = dist.init_process_group

    @functools.wraps(real)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        del args
        rank = kwargs.get("rank", -1)
        size = kwargs.get("world_size", -1)
        real(
            "fake",
            rank=int(os.environ["RANK"]) if rank in (-1, None) else rank,
            world_size=int(os.environ["WORLD_SIZE"]) if size in (-1, None) else size,
            store=FakeStore(),
        )

    dist.init_process_group = init_process_group
    dist.distributed_c10d.init_process_group = init_process_group
