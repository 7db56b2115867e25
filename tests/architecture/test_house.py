"""The house keeps its shape: floors, doors, papers. What only a person could see is not here."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VOCABULARY = ROOT / "cascade_runtime" / "vocabulary"
RECORDS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
HEADINGS = ["Context", "Choice", "Rejected", "How we would know it was wrong"]
HEAVY = {"torch", "fastapi", "duckdb", "dash", "numpy", "pyarrow"}
TOP_LEVEL = {
    *("analyzer", "benchmarks", "cascade_runtime", "collector", "dashboard", "docs", "examples"),
    *("sample_traces", "tests", "tools", ".ci", ".gitignore", "Makefile", "LICENSE"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "constraints.txt", "pyproject.toml"),
}


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(code: str) -> str:
    return run(sys.executable, "-c", code)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


# --- floors ----------------------------------------------------------------------------------


def test_imports_run_one_way():
    said = run(str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache")
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", said), said


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_vocabulary_imports_itself_msgspec_and_the_standard_library():
    files = sorted(VOCABULARY.rglob("*.py"))
    assert files
    strangers = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported_by(path)
        if name.partition(".")[0] not in sys.stdlib_module_names | {"msgspec"}
        and not f"{name}.".startswith("cascade_runtime.vocabulary.")
    }
    assert not strangers


def modules(package):
    for path in sorted(ROOT.joinpath(*package.split(".")).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] != "__main__":
            yield ".".join(parts).removesuffix(".__init__")


@pytest.mark.parametrize(
    ("package", "heavy"),
    [("cascade_runtime.vocabulary", HEAVY), ("cascade_runtime.agent", {"torch"})],
)
def test_light_packages_load_nothing_heavy(package, heavy):
    names = ["cascade_runtime", *modules(package)]
    loaded = python(f"import sys, {', '.join(names)}\nprint(*sys.modules)").split()
    assert set(names) <= set(loaded)
    assert not heavy & set(loaded)


# --- doors -----------------------------------------------------------------------------------


def test_the_only_console_script_is_cascade(project):
    assert project["scripts"] == {"cascade": "dashboard.commands:main"}
    assert not {"gui-scripts", "entry-points"} & project.keys()


def test_make_help_lists_every_target():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    listed = re.findall(r"^make ([\w-]+) +\S", run("make", "help"), re.MULTILINE)
    assert {"help", "setup", "demo", "test", "check"} <= targets
    assert sorted(listed) == sorted(targets)


def test_the_test_command_that_the_judge_runs_is_the_readme_s():
    marker = re.search(r"^begin='(.+)'$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert marker
    after = (ROOT / "README.md").read_text().partition(f"{marker[1]}\n")[2]
    assert re.match(r"```sh\n(.*\n)*?make test\n(.*\n)*?```\n", after)


# --- papers ----------------------------------------------------------------------------------


def test_top_level_has_only_what_belongs_there():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: what is ours can't be told from what was made here")
    ours = run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    assert ours
    assert {path.partition("/")[0] for path in ours} <= TOP_LEVEL


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_decision_record_has_its_four_parts(record):
    text = record.read_text()
    assert re.match(rf"# {record.stem[:4]}: \S", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    parts = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]
    assert all(part.strip() for part in parts)


def test_decision_records_are_numbered_and_listed():
    assert [int(record.stem[:4]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert [r.name for r in RECORDS] == re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index)


def test_every_dependency_is_pinned(project):
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.+]+", pin) for pin in pins)
    pinned = {pin.partition("==")[0] for pin in pins}
    extras = project["optional-dependencies"].values()
    wanted = {re.match(r"[\w-]+", d)[0] for d in sum(extras, project["dependencies"])}
    assert wanted - pinned == {project["name"]}


def test_setup_asks_for_the_torch_that_is_pinned():
    asked = re.search(r'^pinned_torch="(.+)"$', (ROOT / "tools" / "setup.sh").read_text(), re.M)
    assert asked
    assert asked[1] in (ROOT / "constraints.txt").read_text().splitlines()
