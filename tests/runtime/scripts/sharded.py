"""Attaches a model whose parameters are sharded over the ranks."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import cascade_runtime as cascade

dist.init_process_group("gloo")
model = torch.nn.Linear(8, 8)
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
cascade.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
