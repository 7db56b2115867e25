"""Attaches a model that is not wrapped."""

import torch
import torch.distributed as dist

import cascade_runtime as cascade

dist.init_process_group("gloo")
model = torch.nn.Linear(2, 2)
cascade.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
