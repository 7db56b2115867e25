"""The policies that come with the package: every cell, and what debt does to it."""

from __future__ import annotations

from itertools import product

import pytest

from cascade_runtime.vocabulary.fault import RECOVERIES, SEED_FAULTS, FaultEvent
from cascade_runtime.vocabulary.policy import Policy, load_policy, parse_policy
from cascade_runtime.vocabulary.regime import Regime
from tests.golden import golden

S, C, E = Regime.STRONG, Regime.CAUSAL, Regime.EVENTUAL
FAULTS = [f for f in FaultEvent if f is not FaultEvent.OPERATOR]
CELLS = list(product((S, C, E), FAULTS))
each_policy = pytest.mark.parametrize("name", ["seed", "default"])

# The article's table ("CASCADE", Abi Aryan, January 2026, Finding 2): its eight lines are nine moves,
# because corruption is one line for two regimes.
ARTICLE = {
    (S, FaultEvent.GPU_FAIL_STOP): C,
    (C, FaultEvent.GPU_FAIL_STOP): E,
    (S, FaultEvent.LINK_DELAY_HIGH): C,
    (C, FaultEvent.LINK_DELAY_HIGH): E,
    (S, FaultEvent.NODE_CHURN_HIGH): C,
    (S, FaultEvent.STATE_CORRUPTION): E,
    (C, FaultEvent.STATE_CORRUPTION): E,
    (E, FaultEvent.RECOVERY_DETECTED): C,
    (C, FaultEvent.STABLE_SYNC): S,
}


def cells_as_text(policy: Policy) -> str:
    """Every cell of a policy as a table for people."""
    lines = [f"{'fault':<20}" + "".join(f"in {r!s:<15}" for r in (S, C, E)), "-" * 72]
    for fault in FAULTS:
        answers = [policy.decide(regime, fault) for regime in (S, C, E)]
        cells = [f"walk to {a.to}" if a.changed else "stay" for a in answers]
        lines.append(f"{fault!s:<20}" + "".join(f"{cell:<18}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines) + "\n"


@each_policy
def test_every_cell_is_as_it_was(name):
    text = cells_as_text(load_policy(name))
    advice = "A policy moved: if it should, UPDATE_GOLDEN=1 writes the file anew; say why in docs/decisions."
    golden.check(f"policy_{name}.txt", text, advice)


def test_the_table_for_people_shows_all_24_cells():
    text = cells_as_text(load_policy("seed"))
    assert text.count("walk to") + text.count("stay") == len(CELLS) == 24


def test_the_seed_policy_is_the_article():
    seed = load_policy("seed")
    assert {(r.from_regime, r.fault): r.to_regime for r in seed.rows} == ARTICLE
    for regime, fault in product(Regime, SEED_FAULTS):
        assert seed.target(regime, fault) is ARTICLE.get((regime, fault), regime)


def test_the_default_policy_adds_our_two_events_and_nothing_else():
    default = load_policy()
    for regime, fault in CELLS:
        if fault in SEED_FAULTS:
            assert default.target(regime, fault) is ARTICLE.get((regime, fault), regime)
    assert [default.target(r, FaultEvent.RANK_SKEW_HIGH) for r in (S, C, E)] == [C, C, E]
    assert default.name == "default"


@pytest.mark.parametrize("regime", Regime)
def test_without_a_majority_every_policy_falls_to_eventual(regime):
    empty = parse_policy('name = "empty"\nrow = []')
    for policy in (empty, load_policy("seed"), load_policy("default")):
        assert policy.target(regime, FaultEvent.NO_MAJORITY) is E


@each_policy
def test_a_climb_is_one_level_and_a_deep_fall_has_its_reason(name):
    policy = load_policy(name)
    for regime, fault in CELLS:
        levels = policy.target(regime, fault).level - regime.level
        assert levels <= (1 if fault in RECOVERIES else 0)
        assert levels >= -1 or fault in {FaultEvent.STATE_CORRUPTION, FaultEvent.NO_MAJORITY}


@each_policy
def test_an_operator_moves_nothing_by_the_table(name):
    for regime in Regime:
        assert not load_policy(name).decide(regime, FaultEvent.OPERATOR).changed


# Debt that relaxed STRONG blocks the climb to STRONG, debt that relaxed CAUSAL the climb to CAUSAL;
# and nobody climbs to STRONG over a CAUSAL guarantee that is still owed.
@pytest.mark.parametrize(
    ("regime", "fault", "debts", "to", "reason"),
    [
        (C, FaultEvent.STABLE_SYNC, [], S, "default policy: CAUSAL on STABLE_SYNC walks to STRONG"),
        (C, FaultEvent.STABLE_SYNC, [S], C, "1 debt is open, so no climb to STRONG"),
        (C, FaultEvent.STABLE_SYNC, [C], C, "1 debt is open, so no climb to STRONG"),
        (C, FaultEvent.STABLE_SYNC, [S, C, S], C, "3 debts are open, so no climb to STRONG"),
        (E, FaultEvent.RECOVERY_DETECTED, [], C, "walks to CAUSAL"),
        (E, FaultEvent.RECOVERY_DETECTED, [S], C, "walks to CAUSAL"),
        (E, FaultEvent.RECOVERY_DETECTED, [C], E, "1 debt is open, so no climb to CAUSAL"),
        (E, FaultEvent.RECOVERY_DETECTED, [S, C], E, "1 debt is open, so no climb to CAUSAL"),
        (S, FaultEvent.GPU_FAIL_STOP, [S, C], C, "walks to CAUSAL"),
        (C, FaultEvent.GPU_FAIL_STOP, [S, C], E, "walks to EVENTUAL"),
        (E, FaultEvent.STABLE_SYNC, [C], E, "default policy has no move from EVENTUAL on STABLE"),
    ],
)
def test_debt_blocks_climbs_and_nothing_else(regime, fault, debts, to, reason):
    decision = load_policy().decide(regime, fault, iter(debts))
    assert (decision.to, decision.changed) == (to, to is not regime)
    assert reason in decision.reason


@each_policy
def test_the_table_of_a_trace_parses_back_to_the_same_policy(name):
    policy = load_policy(name)
    table = policy.table()
    assert table.name == name
    rows = "".join(
        f'[[row]]\nfrom = "{r.from_regime}"\nfault = "{r.fault}"\nto = "{r.to_regime}"\n'
        for r in table.rows
    )
    again = parse_policy(f'name = "{name}"\n{rows}')
    assert all(again.target(*cell) is policy.target(*cell) for cell in CELLS)


def test_the_default_file_states_the_thresholds_that_hold_without_a_file():
    default, bare = load_policy("default"), parse_policy('name = "bare"\nrow = []')
    sections = set(vars(default)) - {"name", "rows", "_moves"}
    assert len(sections) == 8
    for section in sections:
        assert getattr(default, section) == getattr(bare, section), section


def test_a_policy_of_ones_own_is_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\nrow = []\n[walk]\nstable_rounds = 9\n')
    assert load_policy(file).walk.stable_rounds == load_policy(str(file)).walk.stable_rounds == 9
