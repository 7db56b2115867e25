"""docs/rules.md, from the rules' own docstrings.

``python -m analyzer.rules_page docs/rules.md`` writes it; a test compares.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path

from analyzer.codes import NAMES
from analyzer.judge import rules
from analyzer.rules._base import Rule

HEADINGS = ("What it does", "Why it matters", "Example")
"""The headings that every rule's docstring has, in order."""

_WIDTH = 100

_INTRO = """\
# Rules

<!-- Made by `python -m analyzer.rules_page docs/rules.md` from analyzer/rules/; edit there. -->

What `cascade analyze` checks. Each check says `ok`, `violated`, `unknown` (evidence is missing, never
"fine") or `not_checked` (a table that it needs was not recorded). The verdict on a trace is violated
if any check is; else unknown if any is, or if nothing could be checked; else ok. The Q rules judge the
trace itself and never make it violated.
"""


def rules_page() -> str:
    """The page as Markdown."""
    known = rules()
    parts = [_INTRO]
    parts += [_section(rule) for rule in known.values()]
    later = [f"{code} {name}" for code, name in NAMES.items() if code not in known]
    if later:
        parts.append(f"## Not in this release\n\n{', '.join(later)}.\n")
    return "\n".join(parts)


def docs_of(rule: Rule) -> tuple[str, dict[str, str]]:
    """(first sentence, text by heading) of a rule's module docstring.

    Raises:
        ValueError: a heading is missing; the rule is named.
    """
    module = inspect.getmodule(rule.check)
    doc = inspect.cleandoc((module.__doc__ if module else None) or "")
    summary, _, rest = doc.partition("\n")
    found: dict[str, str] = {}
    for heading in HEADINGS:
        _, mark, after = rest.partition(f"{heading}:\n")
        if not mark:
            raise ValueError(f"rule {rule.code} has no heading {heading!r} in its docstring")
        ends = [after.find(f"{other}:\n") for other in HEADINGS if other != heading]
        end = min((e for e in ends if e >= 0), default=len(after))
        found[heading] = textwrap.dedent(after[:end]).strip()
    return summary, found


def _section(rule: Rule) -> str:
    summary, texts = docs_of(rule)
    lines = [f"## {rule.code} {rule.name}", "", summary, ""]
    for heading, text in texts.items():
        lines += [textwrap.fill(f"**{heading}.** {text}", _WIDTH), ""]
    needs = [n if isinstance(n, str) else " or ".join(n) for n in rule.needs]
    lines += [f"Severity: {rule.severity}. Needs: {', '.join(needs) or 'nothing'}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(rules_page(), encoding="utf-8")
