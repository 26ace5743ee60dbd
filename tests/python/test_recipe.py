"""The recipes of CONTRIBUTING.md, carried out.

Adding an op takes one new file, and every surface has it. The tree is copied, the recipe's file is
added, and only it and the op table are compiled; the rest comes from the build that is being
tested. The files of a layer and of an optimizer are compiled only.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import tenon as tn

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = ROOT / "CONTRIBUTING.md"
BUILD = pathlib.Path(tn.__file__).absolute().parent.parent.parent

CHECK = """
import inspect, sys
import tenon as tn
name = sys.argv[1]
f = getattr(tn, name)
assert f.__doc__ and inspect.signature(f).parameters
assert any(s.op == name for s in tn.testing.samples())
x = tn.asarray([0.5, 1.0, 2.0])
operands = [x] * len([p for p in inspect.signature(f).parameters.values() if p.default is p.empty])
result = f(*operands)
assert name in result.graph(), result.graph()
assert result.shape == (3,) and len(result.tolist()) == 3
assert getattr(x, name)(*operands[1:]).tolist() == result.tolist()
print("works")
"""


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def copy_tree(target):
    for name in run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    ).splitlines():
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def commands(target):
    return run(["ninja", "-t", "commands", target], cwd=BUILD).splitlines()


def compile_like(known, tree, source, out):
    """Compiles `source` of the copy with the command that the build has for `known`."""
    words = shlex.split(next(c for c in commands("libtenon.a") if c.rstrip().endswith(known)))
    for folder in ("src", "include"):
        words = [w.replace(f"{ROOT}/{folder}", f"{tree}/{folder}") for w in words]
    words[words.index("-o") + 1] = str(out)
    words[words.index("-c") + 1] = str(tree / source)
    for flag in ("-MT", "-MF"):
        at = words.index(flag)
        del words[at : at + 2]
    words.remove("-MD")
    run(words, cwd=BUILD)
    return str(out)


def link_with(target, objects, out):
    """Links the build's `target` again with `objects` before the library's own."""
    words = shlex.split(commands(target)[-1].removeprefix(": && ").removesuffix(" && :"))
    words[words.index("-o") + 1] = str(out)
    at = next(i for i, w in enumerate(words) if w.endswith("libtenon.a"))
    run(words[:at] + objects + words[at:], cwd=BUILD)


def recipe(folder):
    """The block that begins with the path of a new file in `folder`, and that path."""
    if not GUIDE.exists() or not (BUILD / "build.ninja").exists():
        pytest.skip("no guide, or not a build tree")
    block = rf"^```cpp\n(// ({folder}/\w+\.cpp)\n.*?)^```\s*$"
    found = re.search(block, GUIDE.read_text(), re.M | re.S)
    assert found, f"CONTRIBUTING.md shows no block that begins with // {folder}/<file>.cpp"
    assert not (ROOT / found[2]).exists(), f"{found[2]} exists already"
    return found


@pytest.mark.compiles
@pytest.mark.parametrize("folder", ["src/nn/layers", "src/nn/optimizers"])
def test_records_compile(folder, tmp_path):
    source = tmp_path / "record.cpp"
    source.write_text(recipe(folder)[1])
    compile_like(f"{ROOT}/src/ops/graph_ops.cpp", ROOT, source, tmp_path / "record.o")


@pytest.mark.compiles
def test_adding_an_op_takes_one_file(tmp_path):
    found = recipe("src/ops")
    tree = tmp_path / "tree"
    copy_tree(tree)
    text = found[1]
    (tree / found[2]).write_text(text)
    name = re.search(r"^TN_OP\((\w+)\);", text, re.M)[1]
    run([sys.executable, "tools/collect_ops.py"], cwd=tree)

    known = f"{ROOT}/src/ops/graph_ops.cpp"
    objects = [
        compile_like(known, tree, found[2], tmp_path / "op.o"),
        compile_like(known, tree, "src/ops/graph_ops.cpp", tmp_path / "graph_ops.o"),
        compile_like(known, tree, "src/ops/named_ops.cpp", tmp_path / "named_ops.o"),
        compile_like(known, tree, "src/ops/op_rules.cpp", tmp_path / "op_rules.o"),
    ]
    package = tmp_path / "python" / "tenon"
    shutil.copytree(
        ROOT / "python" / "tenon", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    module = next((BUILD / "python" / "tenon").glob("_core*.so")).name
    link_with(f"python/tenon/{module}", objects, package / module)
    check = [sys.executable, "-c", CHECK, name]
    env = os.environ | {"PYTHONPATH": str(package.parent)}
    assert run(check, cwd=tmp_path, env=env).strip() == "works"

    session = re.search(r"```pycon\n(.*?)```", GUIDE.read_text(), re.S)[1]
    for line, shown in re.findall(r"^>>> (tn\..*)\n([^>]+)", session, re.M):
        code = f"import tenon as tn\nprint(repr({line}))"
        assert run([sys.executable, "-c", code], cwd=tmp_path, env=env).strip() == shown.strip()

    reference = re.search(rf'^    ("{name}": .*)$', GUIDE.read_text(), re.M)
    if reference:
        table = tree / "tests/python/references.py"
        inserted = re.sub(
            r'^( +)("relu": )',
            rf"\1{reference[1]}\n\1\2",
            table.read_text(),
            count=1,
            flags=re.M,
        )
        table.write_text(inserted)
        harness = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python/test_ops.py"]
        run([sys.executable, *harness, "-k", name], cwd=tree, env=env)

    link_with("tenon", objects, tmp_path / "tenon")
    run([str(tmp_path / "tenon"), "gen"], cwd=tree)
    assert re.search(rf"^Tensor {name}\(", (tree / "include/tenon/ops.h").read_text(), re.M)
    assert f"def {name}(" in (tree / "python/tenon/_core.pyi").read_text()
    assert any(f"## {name}\n" in p.read_text() for p in (tree / "docs/ops").glob("*.md"))
