"""Attaches the same model twice."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
cascade.attach(model, optimizer)
cascade.attach(model, optimizer)
