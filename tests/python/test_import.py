"""What `import tenon` loads, what the package shows, and what type checkers see of it."""

import ast
import pathlib
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
    assert {"Tensor", "array", "compile", "nn", "softmax"} <= set(names)
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
