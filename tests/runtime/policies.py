"""Policies with other limits than the default, for moments that a busy machine would miss."""

from __future__ import annotations

from pathlib import Path

from cascade_runtime.vocabulary import policy as policy_module
from cascade_runtime.vocabulary.policy import load_policy

DEFAULT = Path(policy_module.__file__).parent / "policies" / "default.toml"


def policy_with(limits: dict[tuple[str, str], float], path: Path) -> Path:
    """The default policy with other limits."""
    lines, section, left = [], "", dict(limits)
    for line in DEFAULT.read_text().splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        name = line.partition(" = ")[0]
        value = left.pop((section, name), None)
        lines.append(line if value is None else f"{name} = {value}")
    assert not left
    path.write_text("\n".join(lines))
    policy = load_policy(path)
    for (part, name), value in limits.items():
        assert getattr(getattr(policy, part), name) == value
    return path


IMPATIENT = (
    ("steps = 20 ", "steps = 8 "),
    ("dwell_s = 1.0 ", "dwell_s = 0.3 "),
    ("clears_after = 20 ", "clears_after = 5 "),
    # A machine that tests share delays reductions by itself.
    ("min_ms = 20.0                  # ... and above this\n", "min_ms = 100000.0\n"),
)
SPLIT = ("split = false", "split = true")


def splitting_policy(path: Path) -> Path:
    """A policy that has cohorts, and less patience than the default."""
    text = DEFAULT.read_text()
    for before, after in (SPLIT, *IMPATIENT):
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    assert load_policy(path).cohorts.split
    return path
