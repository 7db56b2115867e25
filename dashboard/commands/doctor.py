"""``cascade doctor``: is this machine fit, and what to fix."""

from __future__ import annotations

import argparse
import json

from dashboard.commands._verb import Verb

_MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Print what was found; 0 when all will work, 2 when something will not."""
    from dashboard.commands._doctor_checks import CHECKS

    findings = [finding for check in CHECKS for finding in check()]
    fit = all(finding.status != "bad" for finding in findings)
    if args.json:
        print(json.dumps({"fit": fit, "findings": [f._asdict() for f in findings]}, indent=2))
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            print(f"{_MARKS[finding.status]}  {finding.check:<{width}}  {finding.found}")
            if finding.fix:
                print(f"      {'':<{width}}  -> {finding.fix}")
        print("fit" if fit else "not fit: see the lines marked BAD")
    return 0 if fit else 2


PLUGIN = Verb(
    "doctor", "rest", "say whether this machine is fit, and what to fix", add_arguments, run
)
