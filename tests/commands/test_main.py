"""The one catch site, and the first screen."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from cascade_runtime.vocabulary.errors import BadTrace, CascadeError
from cascade_runtime.vocabulary.plug import discover
from dashboard import commands
from dashboard.commands import main
from dashboard.commands._verb import Verb

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "pyarrow", "duckdb", "numpy", "numba", "fastapi", "dash"}


def verb(does, name="try", group="rest", add=lambda parser: None) -> Verb:
    def run(args):
        if isinstance(does, BaseException):
            raise does
        return does(args)

    return Verb(name, group, f"what {name} does", add, run)


def with_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true")


def ask(*words, does=lambda args: 0, **fields) -> int:
    return main(words, {"try": verb(does, **fields)})


BAD = BadTrace("it is broken", where="a/trace.json", hint="mend it")


def test_the_verbs_exit_code_is_the_commands():
    assert ask("try", does=lambda args: 3) == 3


def test_an_error_says_what_where_and_what_to_do(capsys):
    assert ask("try", does=BAD) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "cascade try: it is broken\n  a/trace.json\n  mend it\n")


def test_an_error_without_where_and_hint_is_one_line(capsys):
    assert ask("try", does=CascadeError("it is broken")) == 2
    assert capsys.readouterr().err == "cascade try: it is broken\n"


def test_with_json_errors_are_json_too(capsys):
    assert ask("try", "--json", does=BAD, add=with_json) == 2
    assert json.loads(capsys.readouterr().err) == {
        "error": {
            "code": "bad_trace",
            "message": "it is broken",
            "where": "a/trace.json",
            "hint": "mend it",
        }
    }


def test_an_errors_own_exit_code_is_kept():
    error = CascadeError("x")
    error.exit_code = 5
    assert ask("try", does=error) == 5


def test_a_fault_of_ours_is_one_sentence_and_says_how_to_get_the_traceback(capsys, monkeypatch):
    assert ask("try", does=ZeroDivisionError("division\nby zero")) == 70
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "ZeroDivisionError: division\n  CASCADE_DEBUG=1" in err
    monkeypatch.setenv("CASCADE_DEBUG", "1")
    assert ask("try", does=ZeroDivisionError("division")) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_missing_extra_says_what_to_install(capsys):
    missing = ModuleNotFoundError("No module named 'duckdb'", name="duckdb.sub")
    assert ask("try", does=missing) == 2
    assert "pip install 'cascade-timelines[server]'" in capsys.readouterr().err
    assert ask("try", does=ModuleNotFoundError("x", name="of_ours")) == 70


def test_interrupted(capsys):
    assert ask("try", does=KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [("try", "--nope"), ("try", "more"), ("--nope",), ("tri",)])
def test_usage_errors_exit_2_in_the_same_shape(capsys, words):
    assert ask(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cascade")
    assert err.count("\n") == 2


def test_a_mistyped_verb_is_guessed(capsys):
    assert ask("tyr") == 2
    assert capsys.readouterr().err == "cascade: there is no verb 'tyr'\n  did you mean try?\n"


def test_usage_errors_are_json_when_asked(capsys):
    assert ask("try", "--nope", "--json") == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "bad_usage"


def test_options_are_not_guessed_from_their_beginning():
    assert ask("try", "--js", add=with_json) == 2


def test_what_follows_a_script_is_the_scripts():
    seen = {}

    def add(parser):
        parser.add_argument("-n", type=int)
        parser.add_argument("script")
        parser.add_argument("rest", nargs=argparse.REMAINDER)

    def run(args):
        seen.update(vars(args))
        return 0

    assert ask("try", "-n", "2", "train.py", "--json", "-n", "5", "x", does=run, add=add) == 0
    assert (seen["n"], seen["script"], seen["rest"]) == (2, "train.py", ["--json", "-n", "5", "x"])


def test_the_first_screen_has_three_groups_in_the_contracts_order(capsys):
    names = {"look": ["replay", "run", "demo"], "ask": ["sql", "report", "analyze"]}
    names["rest"] = ["serve", "doctor"]
    verbs = {n: verb(lambda args: 0, n, group) for group, mine in names.items() for n in mine}
    assert main([], verbs) == main(["--help"], verbs) == main(["-h"], verbs) == 0
    words = [line.split()[0] for line in capsys.readouterr().out.split("\n\n")[1].splitlines()]
    assert words == ["Look:", "demo", "run", "replay"]
    main([], verbs)
    blocks = capsys.readouterr().out.split("\n\n")
    assert [line.split()[0] for line in blocks[2].splitlines()] == [
        "Ask:",
        "analyze",
        "sql",
        "report",
    ]
    assert [line.split()[0] for line in blocks[3].splitlines()][1:] == ["doctor", "serve"]


def test_the_version_is_told(capsys):
    assert ask("--version") == 0
    assert capsys.readouterr().out.startswith("cascade-timelines ")


# --- the verbs that there are --------------------------------------------------------------------


def test_every_file_is_a_verb_of_its_own_name():
    verbs = discover(commands)
    files = {p.stem for p in Path(commands.__file__).parent.glob("[!_]*.py")}
    assert {name.replace("import", "import_") for name in verbs} == files
    for found in verbs.values():
        assert found.group in ("look", "ask", "rest")
        assert found.help
        assert len(found.help) < 80
        assert "\n" not in found.help


def test_every_verb_explains_itself(capsys):
    for name in discover(commands):
        assert main([name, "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"usage: cascade {name}")


def python(code: str, **changes) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT)} | changes
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )


def test_help_loads_nothing_heavy():
    code = "import sys; from dashboard.commands import main; main(['--help']); print(*sys.modules)"
    loaded = set(python(code).stdout.split("\n")[-2].split())
    assert "dashboard.commands.doctor" in loaded
    assert not loaded & HEAVY


def test_a_reader_that_goes_away_is_no_error():
    code = (
        "import sys; from dashboard.commands import main; from dashboard.commands._verb import Verb\n"
        "verb = Verb('try', 'rest', 'x', lambda p: None, lambda a: print('x' * 10**6) or 0)\n"
        "sys.exit(main(['try'], {'try': verb}))\n"
    )
    shell = f'"{sys.executable}" -c "$CODE" | head -c 10; echo " ${{PIPESTATUS[0]}}"'
    env = os.environ | {"PYTHONPATH": str(ROOT), "CODE": code}
    done = subprocess.run(
        ["bash", "-c", shell], env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("x" * 10 + " 141\n", "")


def test_a_plugin_without_a_name_is_refused_in_words(capsys, monkeypatch):
    monkeypatch.setattr(commands, "discover", lambda package: discover(types.ModuleType("none")))
    assert main(["x"]) == 70
    assert "Traceback" not in capsys.readouterr().err
