"""The files for continuous integration parse, and every command in them names what exists."""

import itertools
import pathlib
import re

import pytest

yaml = pytest.importorskip("yaml")

ROOT = pathlib.Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PHONY = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
SCRIPT = re.compile(r"(?<![\w/.])(?:tools|tests|bench|examples|\.ci)/[\w/]+\.\w+")


def load(path):
    """The document; `on` stays a text, which YAML 1.1 would make True."""
    document = yaml.safe_load(path.read_text())
    if True in document:
        document["on"] = document.pop(True)
    return document


def combinations(job):
    """The values of the matrix in every combination, as the service makes them."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    extra = matrix.pop("include", [])
    for values in itertools.product(*matrix.values()):
        made = dict(zip(matrix, values, strict=True))
        for entry in extra:
            if all(made.get(name, value) == value for name, value in entry.items()
                   if name in matrix):
                made |= entry
        yield made


def filled(text, values):
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda name: str(values[name[1]]), text)


def jobs():
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield pytest.param(job, id=f"{path.stem}-{name}")


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["ci", "nightly", "wheels"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_what_they_need(path):
    document = load(path)
    assert document["name"] == path.stem
    assert document["on"] and document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 360  # the service's own limit
        assert any(step.get("uses", "").startswith("actions/checkout@") for step in job["steps"])
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


@pytest.mark.parametrize("job", list(jobs()))
def test_commands_name_targets_and_scripts_that_exist(job):
    ran = 0
    for values in combinations(job):
        for step in job["steps"]:
            command = filled(step.get("run", ""), values)
            for target in re.findall(r"(?:^|&& )make (\w+)", command, re.M):
                assert target in PHONY, command
                ran += 1
            for script in SCRIPT.findall(command):
                assert (ROOT / script).is_file(), command
                ran += 1
    assert ran, "the job runs nothing of this tree"


def test_the_matrix_has_every_compiler_and_python():
    test = load(GITHUB / "workflows/ci.yml")["jobs"]["test"]
    made = list(combinations(test))
    pythons, compilers = {"3.11", "3.12", "3.13"}, {"gcc 12", "gcc 14", "clang 19"}
    pairs = {(values["compiler"], values["python"]) for values in made}
    assert pairs == set(itertools.product(compilers, pythons)) and len(made) == len(pairs)
    debian = {"gcc 12": "bookworm", "gcc 14": "trixie"}  # of which these are the compilers
    for values in made:
        assert values["debian"] == debian.get(values["compiler"], "trixie")
        assert values["cxx"] == ("clang++-19" if "clang" in values["compiler"] else "g++")
    wheels = load(GITHUB / "workflows/wheels.yml")["jobs"]["wheel"]
    assert {values["python"] for values in combinations(wheels)} == pythons


def test_hooks_are_local_and_name_checks_that_exist():
    lint = (ROOT / "tools/lint.py").read_text()
    checks = set(re.findall(r'^    \("([\w ]+)", \[', lint, re.M))
    for source in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]:
        assert source["repo"] == "local"
        for hook in source["hooks"]:
            assert hook["language"] == "system" and hook["entry"].startswith(".venv/bin/")
            for script in SCRIPT.findall(hook["entry"]):
                assert (ROOT / script).is_file()
            if "tools/lint.py" in hook["entry"]:
                named = re.findall(r'"([^"]+)"|(\S+)', hook["entry"].split("lint.py")[1])
                assert {quoted or plain for quoted, plain in named} <= checks


@pytest.mark.parametrize(
    "path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_templates_of_issues_parse(path):
    document = yaml.safe_load(path.read_text())
    if path.stem != "config":
        assert document["name"] and document["description"]
        ids = [part["id"] for part in document["body"]]
        assert len(ids) == len(set(ids)) and all(part["attributes"]["label"]
                                                 for part in document["body"])


def test_owners_are_named_for_folders_that_exist():
    for line in (GITHUB / "CODEOWNERS").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, *owners = line.split()
            assert owners and all(owner.startswith("@") for owner in owners)
            assert pattern == "*" or (ROOT / pattern.strip("/")).exists(), pattern


def test_pythons_of_the_package_are_those_of_the_matrix():
    text = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'"Programming Language :: Python :: ([\d.]+)"', text)
    assert named == ["3.11", "3.12", "3.13"]
