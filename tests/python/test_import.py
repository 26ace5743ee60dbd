"""What `import tenon` loads, what the package shows, and what type checkers see of it."""

import ast
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys
import types

import pytest
from processes import environment

import tenon as tn

PACKAGE = pathlib.Path(tn.__file__).parent


def run(code):
    env = environment(PYTHONPATH=str(PACKAGE.parent))
    done = subprocess.run([sys.executable, "-c", code], env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_few_modules_are_loaded():
    loaded = run(
        "import sys; before = set(sys.modules); import tenon; print(*sys.modules.keys() - before)"
    ).split()
    slow = {"ast", "dataclasses", "inspect", "json", "numpy", "pathlib", "re", "typing", "zipfile"}
    assert not slow & set(loaded)
    assert len(loaded) <= 15, sorted(loaded)  # bench/run.py import measures the time


def test_what_is_imported_later_is_there():
    run(
        "from tenon import nn, compile, Linear\n"
        "import tenon as tn\n"
        "import tenon.optim\n"
        "assert nn is tn.nn and tn.nn.Linear is Linear\n"
        "assert 'compile' in vars(tn)\n"  # the next use is one lookup
        "for name in dir(tn): getattr(tn, name)\n"
        "assert set(dir(tn)) == set(tn.__dir__())\n"
    )


ALONE = """
import importlib, os, sys
import tenon
for name in {names}:
    if not (child := os.fork()):  # which has imported nothing else
        importlib.import_module(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""


def test_every_module_can_be_imported_first():
    paths = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py")]
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths]
    assert run(ALONE.format(names=[n for n in names if "__main__" not in n])) == ""


def test_the_names_for_type_checkers_are_those_of_the_table():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    [block] = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    ]
    homes, parts = {}, set()
    for line in block.body:
        for alias in line.names:
            assert alias.name == alias.asname  # which makes it public
            if line.module is None:
                parts.add(alias.name)
            else:
                homes[alias.name] = line.module
    assert homes == tn._LATER
    assert parts == set(tn._PARTS)


def test_dir_has_what_users_may_use():
    names = dir(tn)
    assert {"Tensor", "array", "compile", "nn", "softmax", "set_printoptions"} <= set(names)
    modules = [n for n in names if isinstance(getattr(tn, n), types.ModuleType)]
    assert modules == sorted(tn._PARTS)
    assert not {"annotations", "TYPE_CHECKING", "compilation", "creation"} & set(names)
    assert names == sorted(set(names))


@pytest.mark.parametrize(
    "name, text",
    [
        ("sofmax", "did you mean 'softmax'?"),
        ("softmx", "did you mean 'softmax'?"),
        ("Sequental", "did you mean 'Sequential'?"),
        ("value_and_gradient", "did you mean 'value_and_grad'?"),
        ("compil", "did you mean 'compile'?"),
        ("jit", "here: tn.compile"),
    ],
)
def test_hints_where_the_spelling_is_close(name, text):
    with pytest.raises(AttributeError) as error:
        getattr(tn, name)
    assert str(error.value).endswith(text)


@pytest.mark.parametrize("name", ["frobnicate", "sharding", "Variable", "config", "xyz"])
def test_no_hint_where_nothing_is_close(name):
    with pytest.raises(AttributeError) as error:
        getattr(tn, name)
    assert str(error.value) == f"module 'tenon' has no attribute {name!r}"


CHECKED = '''
import tenon as tn
from tenon import nn, optim

@tn.compile
def scaled(x: tn.Tensor, by: float = 2.0) -> tn.Tensor:
    return x * by

@tn.compile(mode="reduce-overhead")
def shifted(x: tn.Tensor) -> tn.Tensor:
    return x + 1

class Scaler:
    @tn.compile
    def scaled(self, x: tn.Tensor) -> tn.Tensor:
        return x * 2

reveal_type(scaled(tn.ones(3), by=3.0))  # Tensor
reveal_type(shifted(tn.ones(3)))  # Tensor
reveal_type(Scaler().scaled(tn.ones(3)))  # Tensor
reveal_type(tn.vmap(scaled)(tn.ones((2, 3)), 3.0))  # Tensor
reveal_type(tn.checkpoint(scaled)(tn.ones(3)))  # Tensor
reveal_type(tn.compile(nn.Linear(2, 3)))  # Linear
reveal_type(tn.compile(scaled, args=[tn.InputInfo((3,), tn.float32)]))  # Executable
reveal_type(tn.ones((2, 3)).max(dim=1).indices)  # Tensor
reveal_type(tn.ones((2, 3)).max(axis=1))  # Tensor
reveal_type(tn.ones((2, 3)).sum(dim=1, keepdim=True))  # Tensor
reveal_type(tn.mean(tn.ones(3), dim=0))  # Tensor
reveal_type(tn.ones((2, 3)).gather(1, tn.zeros((2, 1), tn.int64)))  # Tensor
reveal_type(tn.ones((2, 3)).transpose(1, 0).cpu().contiguous())  # Tensor
reveal_type(tn.transpose(tn.ones((2, 3)), 1, 0))  # Tensor
reveal_type(tn.fft.fft2(tn.ones((2, 2))))  # Tensor
reveal_type(optim.Adam(nn.Linear(2, 3).parameters(), lr=0.1))  # Adam
reveal_type(optim.SGD(0.1))  # SGD
reveal_type(tn.ones(()).item())  # Any
loss: float = tn.ones(()).item()
reveal_type(tn.dot(tn.ones(2), tn.ones(2)))  # Tensor
reveal_type(tn.ones(2).dot(tn.ones(2)).to(dtype=tn.float64))  # Tensor
reveal_type(tn.zeros((2, 3), device="cpu", requires_grad=True).device)  # Device
reveal_type(tn.full((2,), 1.0, device=tn.Device("cpu")))  # Tensor
reveal_type(tn.randn(2, 3, device=tn.cpu).to("cpu", tn.float64))  # Tensor
reveal_type(tn.random.key(0, device="cpu"))  # Tensor
reveal_type(nn.Linear(2, 3).to("cpu", tn.float64))  # Linear
assert tn.ones(2).device == "cpu"
with tn.device("cpu") as place:
    reveal_type(place.type)  # str
scaled.show("graph")
scaled(tn.ones(3), by="three")  # error
scaled()  # error
tn.compile(scaled, mod="default")  # error
tn.grad(scaled)(tn.ones(3), too="many")  # error
tn.sofmax(tn.ones(3))  # error
nn.Linnear(2, 3)  # error
tn.linalg.qrr(tn.ones((2, 2)))  # error
'''


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_type_checkers_see_signatures_and_misspelt_names(tmp_path):
    (tmp_path / "program.py").write_text(CHECKED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "program.py"],
        cwd=tmp_path,
        env=environment(MYPYPATH=str(PACKAGE.parent)),
        text=True,
        capture_output=True,
    )
    wanted, got = {}, {}
    for number, line in enumerate(CHECKED.splitlines(), 1):
        if "  # " in line:
            wanted[number] = line.partition("  # ")[2]
    for line in done.stdout.splitlines():
        if place := re.match(r"program\.py:(\d+): (\w+): (.*)", line):
            revealed = re.search(r'Revealed type is "(?:\w+\.)*(\w+)"', place[3])
            got.setdefault(int(place[1]), revealed[1] if revealed else place[2])
    assert got == wanted, done.stdout + done.stderr


def test_decorated_functions_keep_their_signatures():
    def f(x: tn.Tensor, by: float = 2.0) -> tn.Tensor:
        """Scaled."""
        return x * by

    for made in (tn.compile(f), tn.compile(mode="default")(f), tn.vmap(f), tn.checkpoint(f)):
        assert inspect.signature(made) == inspect.signature(f)
        assert (made.__name__, made.__doc__, made.__wrapped__) == ("f", "Scaled.", f)
    for transform in (tn.grad, tn.value_and_grad, tn.jacrev, tn.jacfwd, tn.hessian):
        assert inspect.signature(transform(f)).parameters == inspect.signature(f).parameters


def test_the_options_that_type_checkers_know_are_all():
    tree = ast.parse((PACKAGE / "compilation.py").read_text())
    [options] = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "Options"]
    named = {line.target.id for line in options.body if isinstance(line, ast.AnnAssign)}
    parameters = inspect.signature(tn.compile).parameters.values()
    by_name = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert named == by_name - {"args", "kwargs", "model"}
