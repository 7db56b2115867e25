"""The same training in one process, with the contributions that the trace says each step had."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from dashboard.demo import train
from tests.runtime.jobs import FinishedJob
from tests.runtime.rejoin_job import Recipe


def contributors(job: FinishedJob) -> dict[int, list[int]]:
    """Ranks whose gradients are in each decided step: the cohort of the epoch that first decided it."""
    cohorts: dict[int, list[list[int]]] = {}
    for row in job.rows("groups"):
        if (row["label"] or "").startswith("cohort/"):
            told = cohorts.setdefault(int(row["label"].split("/")[1]), [])
            told.append([m["rank"] for m in row["members"]])
    folds = _folds(job)
    applied = [
        row
        for row in job.rows("updates")
        if row["action"] == "applied" and row["object"] == "params/0" and _dot(row) not in folds
    ]
    finished = {
        (a["rank"], a["incarnation"])
        for row in job.rows("membership")
        if row["reason"] == "finished"
        for a in row["departed"]
    }
    # A rank that was lost may have decided a step alone: its update was void, the others made another.
    lasting = {
        (row["step"], *_dot(row))
        for row in applied
        if (row["rank"], row["incarnation"]) in finished
    }
    first: dict[int, tuple[int, int]] = {}
    for row in applied:
        step, decided = row["step"], (row["epoch"], row["origin_rank"])
        if (step, *_dot(row)) in lasting:
            first[step] = min(first.get(step, decided), decided)
    assert len({step for step, *_ in lasting}) == len(lasting), "a step was decided twice"
    # A newcomer on its way is a cohort of its own, and none of the author's.
    return {
        step: next(c for c in cohorts[epoch] if author in c)
        for step, (epoch, author) in first.items()
    }


Dotted = tuple[int, int, int]


def _dot(row: dict[str, Any]) -> Dotted:
    return row["origin_rank"], row["origin_incarnation"], row["counter"]


def _folds(job: FinishedJob) -> set[Dotted]:
    """A climb's fold is the first update that the author issues in the epoch it climbed to."""
    climbed = {
        r["new_epoch"]
        for r in job.rows("transitions")
        if r["phase"] == "committed" and (r["from_regime"], r["to_regime"]) == ("CAUSAL", "STRONG")
    }
    issued = [r for r in job.rows("updates") if r["action"] == "issued"]
    folds = set()
    for epoch in climbed:
        mine = [r for r in issued if r["epoch"] == epoch and r["object"] == "params/0"]
        first = min(mine, key=lambda r: r["seq"])
        folds.add(_dot(first))
    return folds


def train_reference(
    steps: dict[int, list[int]], seed: int, recipe: str = "sgd"
) -> dict[str, torch.Tensor]:
    """Final state (float64) after the given contributors trained each step."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    try:
        return _train(steps, seed, recipe)
    finally:
        torch.set_default_dtype(torch.float32)


def _train(steps: dict[int, list[int]], seed: int, recipe: str) -> dict[str, torch.Tensor]:
    model = train.build_model(seed)
    made = Recipe(recipe, model)
    for step in sorted(steps):
        _one_step(model, made, steps[step], seed, step)
    return model.state_dict()


def _one_step(
    model: nn.Module,
    recipe: Recipe,
    ranks: Sequence[int],
    seed: int,
    step: int,
) -> None:
    loss_of = nn.CrossEntropyLoss()
    sums = [torch.zeros_like(p) for p in model.parameters()]
    buffers = None
    for rank in sorted(ranks):
        replica = copy.deepcopy(model)
        inputs, labels = train.batch_of(seed, rank, step)
        replica.zero_grad()
        loss_of(replica(inputs), labels).backward()
        for total, parameter in zip(sums, replica.parameters(), strict=True):
            assert parameter.grad is not None
            total.add_(parameter.grad / len(ranks))
        if buffers is None:  # the cohort's author, its lowest member, gives the buffers
            buffers = [b.clone() for b in replica.buffers()]
    for parameter, total in zip(model.parameters(), sums, strict=True):
        parameter.grad = total
    recipe.step()
    with torch.no_grad():
        for mine, told in zip(model.buffers(), buffers or [], strict=True):
            mine.copy_(told)


def largest_difference(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    """Over all tensors, in absolute terms."""
    return max(float((a[k].double() - b[k].double()).abs().max()) for k in a)
