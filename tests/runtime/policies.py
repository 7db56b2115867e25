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
