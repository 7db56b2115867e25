"""Attaches a model that has a communication hook of the user's."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import cascade_runtime as cascade

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(2, 2))
model.register_comm_hook(None, allreduce_hook)
cascade.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
