"""The ``cascade`` command: finds its verbs in this folder, and is the one place that catches errors."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cascade_runtime.vocabulary.errors import BadUsage, CascadeError
from cascade_runtime.vocabulary.plug import discover
from dashboard.commands._failure import tell, unexpected
from dashboard.commands._parser import build_parser

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None, verbs: Mapping[str, Any] | None = None) -> int:
    """Run ``cascade``.

    Args:
        argv: the words after ``cascade``; the process's own when not given.
        verbs: the verbs by name; those of this folder when not given.

    Returns:
        The exit code: the verb's; 2 on a CascadeError (usage included), 70 on a fault of ours, 130
        when interrupted, 141 when the reader of the output went away.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = argparse.Namespace(verb=None, json="--json" in words)
    try:
        found = discover(sys.modules[__name__]) if verbs is None else verbs
        parser = build_parser(found)
        args.verb = _verb_of(words, found)
        parsed = parser.parse_args(words)
        if parsed.verb is None:
            parser.print_help()
            return 0
        args = parsed
        code = int(found[args.verb].run(args))
        sys.stdout.flush()
    except CascadeError as error:
        return tell(error, args.verb, as_json=getattr(args, "json", False))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except SystemExit as ended:  # argparse, after --help or --version
        return ended.code if isinstance(ended.code, int) else 0
    except Exception as error:  # the one catch site
        return unexpected(error, args.verb, as_json=getattr(args, "json", False))
    return code


def _verb_of(words: Sequence[str], verbs: Mapping[str, Any]) -> str | None:
    """The verb that is asked for; None for ``cascade`` alone or with a switch of its own."""
    if not words or words[0].startswith("-"):
        return None
    if words[0] in verbs:
        return words[0]
    near = difflib.get_close_matches(words[0], verbs, n=1)
    hint = f"did you mean {near[0]}?" if near else "cascade --help lists them"
    raise BadUsage(f"there is no verb {words[0]!r}", hint=hint)
