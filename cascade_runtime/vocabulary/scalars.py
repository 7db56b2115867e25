"""Column scalars: Python types that carry the storage type and the unit of a column."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

_I32 = {"storage": "int32"}
_INT32_MAX = 2**31 - 1

Int32 = Annotated[int, Meta(ge=-(2**31), le=_INT32_MAX, extra=_I32)]
Rank = Annotated[int, Meta(ge=0, le=_INT32_MAX, extra=_I32)]
Incarnation = Annotated[int, Meta(ge=0, le=_INT32_MAX, extra=_I32)]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Counter = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Ns = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1, extra={"unit": "ns"})]

CollectiveOp = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "scatter",
    "reduce",
    "gather",
    "barrier",
]
"""torch.distributed's names."""
