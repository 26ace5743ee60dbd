"""One model on every backend: the same results, from files that run without Tenon."""

from __future__ import annotations

import doctest
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn
from model_cases import MODELS, agree, mlp
from tenon.model import generated

PEERS = pathlib.Path(__file__).resolve().parents[2] / "build/peers/bin/python"


@pytest.mark.parametrize("kind", MODELS)
def test_the_interpreter_has_the_bits_of_the_cpu(kind: str) -> None:
    agree(kind, tn.InterpreterBackend(), rtol=0)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("inference", [False, True])
def test_c_agrees(kind: str, inference: bool) -> None:
    agree(kind, tn.CBackend(), inference=inference)


@pytest.mark.parametrize("inference", [False, True])
def test_c_has_the_bits_of_the_cpu_but_for_products(inference: bool) -> None:
    agree("pointwise", tn.CBackend(), rtol=0, inference=inference)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("inference", [False, True])
def test_numpy_agrees(kind: str, inference: bool) -> None:
    agree(kind, tn.NumpyBackend(), inference=inference)


@pytest.mark.skipif(not PEERS.exists(), reason="no Python with PyTorch and JAX in build/peers")
def test_torch_and_jax_agree() -> None:
    """In a Python that has them."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import model_cases as here, tenon as tn
for kind in here.MODELS:
    for backend in (tn.TorchBackend(), tn.JaxBackend()):
        here.agree(kind, backend, inference=kind == "pointwise")
here.agree("mlp", tn.JaxBackend(device="cpu"), jit=False)
here.agree("mlp", tn.JaxBackend(), jit_options={"donate_argnums": 0, "static_argnums": (0, 1)})
here.agree("mlp", tn.TorchBackend(), jit=True, jit_options={"backend": "eager"})
print("agreed")
"""
    here = str(pathlib.Path(__file__).parent)
    package = str(pathlib.Path(tn.__file__).parents[1])
    done = subprocess.run(
        [str(PEERS), "-c", code, here],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": package},
    )
    assert done.stdout.strip().endswith("agreed"), done.stderr[-3000:]


# Files --------------------------------------------------------------------------------------


def test_python_files_run_without_tenon(tmp_path: pathlib.Path) -> None:
    model, shapes = mlp()
    params = tn.compile(model, shapes=shapes).randomize_params()
    x = tn.random.normal(shapes["input"], key=tn.random.key(2))
    path = tmp_path / "model.py"
    made = tn.compile(model, tn.NumpyBackend(), shapes=shapes, file_path=path, params=params)
    np.save(tmp_path / "x.npy", np.asarray(x))
    tn.save_safetensors(tmp_path / "wanted.safetensors", made.evaluate(params, {"input": x}))
    static = tmp_path / "static.py"
    tn.compile(model, tn.NumpyBackend(), shapes=shapes, file_path=static, static_inference=True,
               params=params)
    assert (tmp_path / "model.safetensors").exists()
    code = f"""
import sys, numpy as np
sys.path.insert(0, {str(tmp_path)!r})
import static
made = static.forward(np.load({str(tmp_path / "x.npy")!r}))
assert not any("tenon" in name for name in sys.modules)
np.save({str(tmp_path / "y.npy")!r}, made)
"""
    subprocess.run([sys.executable, "-I", "-c", code], check=True, cwd=tmp_path, env={})
    wanted = made.evaluate(params, {"input": x})["output"]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-5, atol=1e-6)


def test_c_files_compile_alone(tmp_path: pathlib.Path) -> None:
    model, shapes = mlp()
    path = tmp_path / "model.c"
    made = tn.compile(model, tn.CBackend(), shapes=shapes, file_path=path)
    params = made.randomize_params()
    made.evaluate(params, {"input": tn.ones(shapes["input"])})
    assert "mlp_run" in path.read_text()
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-c", "model.c"]
    subprocess.run(command, check=True, cwd=tmp_path)


@pytest.mark.parametrize("name", ["model.tnx", "model.c", "model.py"])
def test_the_cpu_writes_what_the_ending_says(tmp_path: pathlib.Path, name: str) -> None:
    model, shapes = mlp()
    tn.compile(model, tn.CpuBackend(), shapes=shapes, file_path=tmp_path / name)
    assert (tmp_path / name).stat().st_size > 500


def test_endings_and_open_sizes_are_refused(tmp_path: pathlib.Path) -> None:
    model, shapes = mlp()
    for backend, name in ((tn.CpuBackend(), "a.txt"), (tn.CBackend(), "a.py"),
                          (tn.NumpyBackend(), "a.c")):
        with pytest.raises(tn.Error, match="file_path ends with"):
            tn.compile(model, backend, shapes=shapes, file_path=tmp_path / name)
    with pytest.raises(tn.Error, match="sizes are fixed in C"):
        tn.compile(model, tn.CBackend(), shapes={"input": [None, 6]})


def test_sizes_may_be_open_in_python(tmp_path: pathlib.Path) -> None:
    model, _ = mlp()
    open_model = tn.compile(model, tn.NumpyBackend(), shapes={"input": [None, 6]})
    here = tn.compile(model, shapes={"input": [None, 6]})
    params = here.randomize_params()
    for n in (3, 8):
        x = {"input": tn.random.normal((n, 6), key=tn.random.key(n))}
        made, wanted = open_model.evaluate(params, x), here.evaluate(params, x)
        np.testing.assert_allclose(made["output"], wanted["output"], rtol=1e-5, atol=1e-6)


def test_all_sizes_of_images_may_be_open() -> None:
    model, shapes = MODELS["cnn"]()
    made = tn.compile(model, tn.NumpyBackend(), shapes={"input": [None, 3, None, None]})
    fixed = tn.compile(model, shapes=shapes)
    params = fixed.randomize_params()
    x = {"input": tn.random.normal(shapes["input"], key=tn.random.key(1))}
    wanted = fixed.evaluate(params, x)["output"]
    np.testing.assert_allclose(made.evaluate(params, x)["output"], wanted, rtol=1e-4, atol=1e-5)


def test_c_files_follow_the_options_of_plans() -> None:
    model, shapes = mlp()
    sizes = {
        planning: re.search(
            r"MLP_ARENA_BYTES (\d+)",
            tn.compile(model, tn.CBackend(), shapes=shapes, memory_planning=planning).source(),
        )[1]
        for planning in ("best_fit", "none")
    }
    assert int(sizes["none"]) > int(sizes["best_fit"])
    with pytest.raises(tn.Error, match="did you mean 'haswell'"):
        tn.compile(model, tn.CBackend(), shapes=shapes, target_hardware="haswel")
    agree("mlp", tn.CBackend(), target_hardware="x86-64-v2")


def test_source_is_text_in_every_language() -> None:
    model, shapes = mlp()
    made = tn.compile(model, tn.CpuBackend(), shapes=shapes)
    assert "int mlp_run" in made.source()
    for language in ("numpy", "torch", "jax"):
        text = made.source(language)
        assert f"import {language}" in text and "def forward(" in text and "def gradients(" in text
    numpy = tn.compile(model, tn.NumpyBackend(), shapes=shapes)
    assert numpy.show("code") == numpy.source() == made.source("numpy")


def test_what_is_not_installed_is_named() -> None:
    model, shapes = mlp()
    for backend, module in ((tn.TorchBackend(), "torch"), (tn.JaxBackend(), "jax")):
        if generated.importlib.util.find_spec(module):
            continue
        physical = tn.compile(model, backend, shapes=shapes)
        with pytest.raises(tn.Error, match=f"pip install {module}"):
            physical.evaluate(physical.randomize_params(), {"input": tn.ones((8, 6))})


@pytest.mark.parametrize("backend", [tn.CBackend, tn.NumpyBackend])
def test_any_name_and_integer_results(backend: type) -> None:
    model = tn.Model(name="é")
    model |= tn.model.Linear(3)(input="class", output=tn.IOKey("def", expose=True))
    model |= tn.model.Argmax(axis=-1)(input="def", output="return")
    physical = tn.compile(model, backend(), shapes={"class": [2, 4]})
    params, data = physical.randomize_params(), {"class": tn.ones((2, 4))}
    outputs, gradients = physical.evaluate(params, data, {"def": tn.ones((2, 3))})
    assert outputs["return"].shape == (2,) and outputs["return"].dtype == tn.int64
    np.testing.assert_array_equal(gradients["linear.bias"].numpy(), [2, 2, 2])
    with pytest.raises(TypeError, match="'return' has no gradient: it is .*int64"):
        physical.evaluate(params, data, {"return": tn.ones((2,), tn.int64)})


def test_files_that_are_written_again_are_read_again(tmp_path: pathlib.Path) -> None:
    code = """
import sys, tenon as tn
for k in (2.0, 3.0):
    model = tn.Model(tn.model.Multiply(x2=k))
    physical = tn.compile(model, tn.NumpyBackend(), shapes={"input": [1]}, file_path=sys.argv[1])
    assert physical.evaluate({}, {"input": tn.ones((1,))})["output"].item() == k
"""
    path = [str(pathlib.Path(tn.__file__).parents[1])]
    env = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPATH"] = os.pathsep.join(path)
    subprocess.run([sys.executable, "-c", code, tmp_path / "m.py"], env=env, check=True)
    assert os.listdir(tmp_path) == ["m.py"]


def test_states_that_are_constants_are_given_back() -> None:
    model = tn.Model(tn.model.BatchNorm1d(3))
    for backend in (tn.CpuBackend(), tn.NumpyBackend()):
        physical = tn.compile(model, backend, shapes={"input": [2, 3]}, static_inference=True)
        state = physical.initial_state()
        given = physical.randomize_params(), {"input": tn.ones((2, 3))}
        assert sorted(physical.evaluate(*given, state=state)[1]) == sorted(state)


def test_derivatives_do_not_silently_end_at_files() -> None:
    physical = tn.compile(tn.Model(tn.model.Linear(3)), tn.NumpyBackend(), shapes={"input": [4, 6]})
    params, data = physical.randomize_params(), {"input": tn.ones((4, 6))}

    def loss(weight: tn.Tensor) -> tn.Tensor:
        given = {**params, "linear.weight": weight}
        return physical.evaluate(given, data)["output"].sum() + weight.sum()

    with pytest.raises(ValueError, match="cannot transform a model that was compiled to a file"):
        tn.grad(loss)(params["linear.weight"])
    weight = params["linear.weight"].detach().requires_grad_()
    with pytest.raises(ValueError, match="backward"):
        loss(weight).backward()


def test_doctests() -> None:
    assert doctest.testmod(generated, extraglobs={"tn": tn}).failed == 0
