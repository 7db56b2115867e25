"""Column scalars: Python types that carry the storage type and the unit of a column."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

_I32 = {"storage": "int32"}
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_FARTHEST_NS = 2**62
"""A time lies within 146 years of 1970: the distance of any two is a number of 64 bits then."""

Int32 = Annotated[int, Meta(ge=-(2**31), le=_INT32_MAX, extra=_I32)]
Rank = Annotated[int, Meta(ge=0, le=_INT32_MAX, extra=_I32)]
Incarnation = Annotated[int, Meta(ge=0, le=_INT32_MAX, extra=_I32)]
Seq = Annotated[int, Meta(ge=0, le=_INT64_MAX)]
Counter = Annotated[int, Meta(ge=1, le=_INT64_MAX)]
Int64 = Annotated[int, Meta(ge=-_INT64_MAX, le=_INT64_MAX)]
"""The least number of 64 bits is none of them: columns of numbers use it for what is not there."""

Ns = Annotated[int, Meta(ge=-_FARTHEST_NS, le=_FARTHEST_NS, extra={"unit": "ns"})]

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
