"""What `import tenon` loads, what the package shows, and what type checkers see of it."""

import ast
import inspect
import pathlib
import subprocess
import sys
import threading
import types

import pytest

import tenon as tn
from processes import environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def test_the_program_that_type_checkers_check_runs():
    """tools/lint.py checks its types."""
    program = ROOT / "tests/typing/user_program.py"
    run(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")


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
    assert named == by_name - {"args", "kwargs", "mesh", "model"}


def test_names_are_listed_while_another_thread_imports_parts():
    interval = sys.getswitchinterval()
    over = threading.Event()

    def change():
        for i in range(20_000):
            setattr(tn, f"part{i % 50}", i)
            delattr(tn, f"part{i % 50}")
        over.set()

    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        while not over.is_set():
            assert "ones" in dir(tn)
    finally:
        thread.join()
        sys.setswitchinterval(interval)
