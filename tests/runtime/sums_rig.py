"""Parameters of all types, and cohorts that step them."""

from __future__ import annotations

import torch
from torch import nn

from cascade_runtime.rank.objects import raw_bytes
from cascade_runtime.rank.sums import Own, Sums, Told
from cascade_runtime.vocabulary.identity import Actor

ORIGINS = [Actor(0), Actor(1), Actor(1, 1), Actor(2)]
F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
SHAPES = {
    "fp32": [(3, F32), (130, F32), (7, F32)],
    "bf16": [(130, BF16), (5, BF16)],
    "fp16": [(33, F16)],
    "fp64": [(33, F64), (9, F64)],
    "mixed": [(3, F32), (5, BF16), (70, F32), (0, F32), (9, F64), (64, BF16), (1, F32)],
}


def make(kind, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        nn.Parameter(torch.randn(n, generator=generator, dtype=F32).to(t)) for n, t in SHAPES[kind]
    ]


def all_bytes(tensors):
    return b"".join(bytes(raw_bytes(t)) for t in tensors)


def stir(parameters, seed, size=1e-3):
    """What an optimizer would do."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in parameters:
            p.add_((torch.randn(p.shape, generator=generator) * size).to(p.dtype))


def told(sums, origin):
    return Told(origin, sums.upto[origin], bytes(sums.payload(origin)))


class Side:
    """One cohort: its parameters and its sums."""

    def __init__(self, kind, origin, chunk=16):
        self.parameters = make(kind)
        self.origin = origin
        self.sums = Sums(self.parameters, chunk)

    def step(self, seed, weight=0.25, others=()):
        stir(self.parameters, seed)
        own = Own(self.origin, self.sums.upto.get(self.origin, 0) + 1, weight)
        self.sums.advance(own, others)

    @property
    def bytes(self):
        return all_bytes(self.parameters)
