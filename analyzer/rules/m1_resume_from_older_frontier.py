"""A resume from something else than the newest safe checkpoint, or not whole.

What it does:
    When an actor loads a checkpoint, no durable one that lies ahead of it (of the group, or of the
    same rank) may have been saved before a membership row admitted the loader; before the load, where
    no row admits it, or where another run had saved the newer one. Saved rows of the loaded checkpoint
    itself are no newer one: ranks of several cohorts save one checkpoint at several frontiers. An actor
    that receives a live snapshot before it first acts is spared. And what is in force after the load must be what was
    saved for that rank: parameters, random state, data position; where a whole job resumes, its ranks
    together must go on with all shards of the data.

Why it matters:
    The work between the two is lost without anybody saying so, and a rank that resumes from another
    point than the others trains another model. Random state of another rank makes two ranks draw the
    same samples; a lost position or shard means data that is read twice, or never.

Example:
    The checkpoint of step 100 is saved and everybody knows; rank 2 comes back and loads that of
    step 80. Or all ranks load that of step 100, and with it rank 0's random state.
"""

from __future__ import annotations

from typing import Any

from analyzer.dots import flat_dots
from analyzer.history import History
from analyzer.resumes import Wrong, is_retold, received_first, wrong_resumes
from analyzer.rules._base import Finding, Outcome, Rule

_TABLES = ("checkpoints", "membership", "messages")

Clock = dict[int, int]
"""Author to counter."""


def check(history: History) -> Outcome:
    """Definition: design contract 4.4, M1."""
    outcome = Outcome()
    table = history.rows["checkpoints"]
    dicts = table.dicts()
    clocks = _clocks(history)
    saved = [
        (int(table.rows[i]), row, clocks.get(i))
        for i, row in enumerate(dicts)
        if row["action"] == "saved" and row["durable"]
    ]
    for i, row in enumerate(dicts):
        if row["action"] != "loaded":
            continue
        outcome.num_checked += 1
        at, mine = int(table.rows[i]), clocks.get(i)
        if mine is None:
            outcome.cannot_say(
                f"{history.who_did(at)} loaded a checkpoint whose content was not recorded"
            )
            continue
        if received_first(history, at):
            continue
        ahead = [
            (other, saved_row)
            for other, saved_row, clock in saved
            if not _is_same(saved_row, row)
            and _may_be_meant(history, other, saved_row, at)
            and _is_older(mine, clock or {})
            and _was_known(history, other, saved_row, at)
        ]
        if ahead:
            outcome.findings.append(_finding(history, at, row, *ahead[-1]))
    _judge_content(history, outcome)
    for finding in outcome.findings[:]:
        lost = history.evidence.lost(_TABLES, [int(history.rows.actor[finding.row])])
        if lost:
            outcome.findings.remove(finding)
            outcome.cannot_say(lost)
    return outcome


def _judge_content(history: History, outcome: Outcome) -> None:
    """What the loads brought back; one report a load."""
    told = {finding.row: finding for finding in outcome.findings}
    for wrong in wrong_resumes(history):
        finding = _content_finding(history, wrong)
        if (first := told.get(wrong.load)) is not None:
            outcome.findings.remove(first)
            finding = Finding(
                row=wrong.load,
                sentence=f"{first.sentence[:-1]}, and {finding.sentence}",
                witness=tuple(dict.fromkeys((*first.witness[:-1], *finding.witness))),
            )
        outcome.findings.append(finding)
    outcome.findings.sort(key=lambda finding: finding.row)


def _content_finding(history: History, wrong: Wrong) -> Finding:
    row = history.rows.content(wrong.load)
    return Finding(
        row=wrong.load,
        sentence=(
            f"{history.who_did(wrong.load)} resumed from checkpoint {row['checkpoint_id']} "
            f"{', '.join(wrong.why)}."
        ),
        witness=(*wrong.saved, wrong.load),
    )


def _clocks(history: History) -> dict[int, Clock]:
    """Frontier by index in checkpoints, where one is given."""
    table = history.rows["checkpoints"]
    flat = flat_dots(history.rows, table, "frontier")
    found: dict[int, Clock] = {i: {} for i, given in enumerate(flat.given.tolist()) if given}
    for owner, author, counter in zip(
        flat.owner.tolist(), flat.actor.tolist(), flat.counter.tolist(), strict=True
    ):
        found[owner][author] = max(found[owner].get(author, 0), counter)
    return found


def _is_older(one: Clock, other: Clock) -> bool:
    """True when ``other`` covers all of ``one``, and more."""
    covers = all(other.get(author, 0) >= counter for author, counter in one.items())
    return covers and any(counter > one.get(author, 0) for author, counter in other.items())


def _is_same(saved: dict[str, Any], loaded: dict[str, Any]) -> bool:
    """True when the row saved what was loaded, as far as the load names it: its run may be missing."""
    name, run = loaded["checkpoint_id"], loaded["source_run"]
    return (
        name is not None and saved["checkpoint_id"] == name and run in (None, saved["source_run"])
    )


def _may_be_meant(history: History, saved: int, row: dict[str, Any], load: int) -> bool:
    """A checkpoint of the loader's group, or of its own rank."""
    rows = history.rows
    ranks = [rows.actors[int(rows.actor[r])].rank for r in (saved, load)]
    own = ranks[0] == ranks[1]
    return own or (row["scope"] == "group" and rows.group[saved] == rows.group[load])


def _was_known(history: History, saved: int, row: dict[str, Any], load: int) -> bool:
    """True when it was saved before the loader was admitted (before the load where nobody did so)."""
    if is_retold(row):
        return history.happens_before(saved, load)
    loader = int(history.rows.actor[load])
    admitting = [r["row"] for r in history.walks.membership if loader in r["joined"]]
    return any(history.happens_before(saved, row) for row in admitting or [load])


def _finding(
    history: History, at: int, row: dict[str, Any], saved: int, better: dict[str, Any]
) -> Finding:
    by = f"run {better['source_run']}" if is_retold(better) else history.who_did(saved)
    return Finding(
        row=at,
        sentence=(
            f"{history.who_did(at)} loaded checkpoint {row['checkpoint_id']} although "
            f"{by} had saved the newer checkpoint {better['checkpoint_id']} before."
        ),
        witness=(saved, at),
    )


PLUGIN = Rule(code="M1", severity="error", needs=("checkpoints",), check=check, watches=_TABLES)
