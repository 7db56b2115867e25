"""A policy that breaks a rule is refused, with the place named."""

from __future__ import annotations

import pytest

from cascade_runtime.vocabulary.errors import BadPolicy
from cascade_runtime.vocabulary.policy import load_policy, parse_policy


def row(regime: str, fault: str, to: str) -> str:
    return f'[[row]]\nfrom = "{regime}"\nfault = "{fault}"\nto = "{to}"\n'


def policy(*rows: str, extra: str = "") -> str:
    return 'name = "bad"\n' + (extra if rows else "row = []\n" + extra) + "".join(rows)


FALL = row("STRONG", "GPU_FAIL_STOP", "CAUSAL")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "this is not TOML"),
        ("a = " + "[" * 10_000, "this is not TOML"),
        ("row = []", "missing required field `name`"),
        ('name = ""\nrow = []', r"length >= 1 - at `\$\.name`"),
        ('name = "bad"', "missing required field `row`"),
        (policy("[[row]]\n"), r"missing required field `from` - at `\$\.row\[0\]`"),
        (policy(FALL, row("WEAK", "GPU_FAIL_STOP", "CAUSAL")), r"'WEAK' - at `\$\.row\[1\]\.from`"),
        (policy(row("STRONG", "GPU_FAIL_STOP", "WEAK")), r"'WEAK' - at `\$\.row\[0\]\.to`"),
        (
            policy(row("STRONG", "GPU_ON_FIRE", "CAUSAL")),
            r"'GPU_ON_FIRE' - at `\$\.row\[0\]\.fault`",
        ),
        (policy(extra="walks = 3\n"), "unknown field `walks`"),
        (
            policy(extra="[walk]\nmin_interval_s = 1\n"),
            r"unknown field `min_interval_s` - at `\$\.walk`",
        ),
        (policy(extra="[link_delay]\nmin_ms = 0\n"), r"> 0.0 - at `\$\.link_delay\.min_ms`"),
        (policy(extra="[rank_skew]\nof_steps = 0\n"), r">= 1 - at `\$\.rank_skew\.of_steps`"),
        (
            policy(extra="[node_churn]\nchanges = 1.5\n"),
            r"got `float` - at `\$\.node_churn\.changes`",
        ),
        (
            policy(extra="[walk]\nrecovery_quiet_s = nan\n"),
            r"> 0.0 - at `\$\.walk\.recovery_quiet_s`",
        ),
        (policy(FALL, FALL), "row STRONG on GPU_FAIL_STOP: this cell has two rows"),
        (
            policy(row("STRONG", "OPERATOR", "CAUSAL")),
            "row STRONG on OPERATOR: .* stands in no table",
        ),
        (
            policy(row("CAUSAL", "STABLE_SYNC", "CAUSAL")),
            "row CAUSAL on STABLE_SYNC: a row that stays",
        ),
        (
            policy(row("CAUSAL", "GPU_FAIL_STOP", "STRONG")),
            "only RECOVERY_DETECTED and STABLE_SYNC",
        ),
        (
            policy(row("EVENTUAL", "NO_MAJORITY", "CAUSAL")),
            "only RECOVERY_DETECTED and STABLE_SYNC",
        ),
        (policy(row("EVENTUAL", "STABLE_SYNC", "STRONG")), "a climb goes one level at a time"),
        (
            policy(row("STRONG", "GPU_FAIL_STOP", "EVENTUAL")),
            "only STATE_CORRUPTION and NO_MAJORITY",
        ),
        (policy(row("STRONG", "NO_MAJORITY", "CAUSAL")), "without a majority only EVENTUAL"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_named(text, message):
    with pytest.raises(BadPolicy, match=message) as caught:
        parse_policy(text, "mine.toml")
    assert caught.value.where == "mine.toml"


@pytest.mark.parametrize(
    "good",
    [
        policy(),
        policy(row("STRONG", "STATE_CORRUPTION", "EVENTUAL")),
        policy(row("STRONG", "NO_MAJORITY", "EVENTUAL")),
        policy(row("CAUSAL", "RECOVERY_DETECTED", "STRONG")),
        policy(row("STRONG", "STABLE_SYNC", "CAUSAL")),  # odd, but safe
    ],
)
def test_what_is_just_within_the_rules_passes(good):
    assert parse_policy(good).name == "bad"


@pytest.mark.parametrize("make", ["missing", "folder", "not_text"])
def test_a_file_that_cannot_be_read_is_refused_with_a_way_out(tmp_path, make):
    path = tmp_path / "policy.toml"
    if make == "folder":
        path.mkdir()
    elif make == "not_text":
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadPolicy, match="cannot be read") as caught:
        load_policy(path)
    assert caught.value.where == str(path)
    assert "default, seed" in caught.value.hint


def test_the_file_is_named_when_its_text_breaks_a_rule(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(policy(FALL, FALL))
    with pytest.raises(BadPolicy, match="two rows") as caught:
        load_policy(path)
    assert caught.value.where == str(path)
