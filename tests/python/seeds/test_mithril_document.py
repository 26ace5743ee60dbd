"""The programs of the document on compiling logical models, names apart."""

from __future__ import annotations

import numpy as np
import pytest

import tenon as tn
from tenon.model import BatchNorm2d, Conv2d, GlobalAvgPool2d, Linear, Relu

SHAPES = {"input": [4, 3, 12, 12]}


def document_model() -> tn.Model:
    model = tn.Model()
    model |= Conv2d(3, 64, kernel_size=3)
    model += BatchNorm2d(64)
    model += Relu()
    model += Conv2d(64, 128, kernel_size=3)
    model += GlobalAvgPool2d()
    model += Linear(128, 10)
    return model


@pytest.fixture(scope="module")
def model() -> tn.Model:
    return document_model()


@pytest.fixture(scope="module")
def image() -> dict[str, tn.Tensor]:
    return {"input": tn.random.normal((4, 3, 12, 12), key=tn.random.key(7))}


def by_hand(params: dict[str, tn.Tensor], x: tn.Tensor) -> tn.Tensor:
    x = tn.conv2d(x, params["conv2d.weight"], params["conv2d.bias"])
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    scale, shift = (params[f"batch_norm2d.{n}"].reshape(1, -1, 1, 1) for n in ("weight", "bias"))
    x = tn.relu((x - mean) / tn.sqrt(var + 1e-5) * scale + shift)
    x = tn.conv2d(x, params["conv2d_1.weight"], params["conv2d_1.bias"])
    return x.mean((2, 3)) @ params["linear.weight"].T + params["linear.bias"]


def close(a: object, b: object, within: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=within, atol=within)


def test_the_revolution(model, image):
    """One model, several environments; each gives the same."""
    results = []
    params = None
    for backend in (tn.CpuBackend(), tn.InterpreterBackend(), tn.NumpyBackend(), tn.CBackend()):
        compiled = tn.compile(model, backend, shapes=SHAPES)
        params = compiled.randomize_params(0) if params is None else params
        results.append(compiled.evaluate(params, image)["output"])
    close(results[0], by_hand(params, image["input"]), 1e-4)
    for other in results[1:]:
        close(other, results[0])


def test_basic_compilation(model, image):
    compiled = tn.compile(model=model, backend=tn.CpuBackend())
    params = compiled.randomize_params()
    assert compiled.evaluate(params, image)["output"].shape == (4, 10)


def test_the_pipeline_can_be_looked_at(model):
    compiled = tn.compile(model, tn.CpuBackend(), shapes=SHAPES)
    for stage, word in [
        ("flattening", "batch_norm2d = BatchNorm2d"),
        ("terminals", "linear.weight: parameter"),
        ("shapes", "conv2d_1.weight: [128,64,3,3]"),
        ("types", "output: float32"),
        ("graph", "func @"),
        ("optimized", "func @"),
        ("plan", "conv"),
    ]:
        assert word in compiled.show(stage), stage


def test_shapes_types_and_static_shapes(model):
    compiled = tn.compile(model=model, backend=tn.CpuBackend(), shapes={"input": [32, 3, 224, 224]})
    assert compiled.get_shapes()["output"] == (32, 10)
    half = tn.compile(
        model=model,
        backend=tn.CpuBackend(precision="float16"),
        types={"input": tn.float16},
        shapes=SHAPES,
    )
    assert half.get_types()["input"] == tn.float16
    fixed = tn.compile(model=model, backend=tn.CpuBackend(), shapes=SHAPES, static_shapes=True)
    with pytest.raises(tn.Error, match="input"):
        fixed.evaluate(fixed.randomize_params(), {"input": tn.zeros((2, 3, 12, 12))})
    with pytest.raises(tn.Error, match="static_shapes"):
        tn.compile(model=model, backend=tn.CpuBackend(), static_shapes=True)


def test_jit(model, image):
    jitted = tn.compile(model=model, backend=tn.CpuBackend(), jit=True, shapes=SHAPES)
    plain = tn.compile(model=model, backend=tn.CpuBackend(), jit=False, shapes=SHAPES)
    params = jitted.randomize_params()
    close(jitted.evaluate(params, image)["output"], plain.evaluate(params, image)["output"])


def test_options_of_jit(model, image):
    compiled = tn.compile(
        model=model,
        backend=tn.CpuBackend(),
        jit=True,
        jit_options={"donate_argnums": (0,), "mode": "max-autotune"},
        shapes=SHAPES,
    )
    assert compiled.evaluate(compiled.randomize_params(), image)["output"].shape == (4, 10)


def test_memory_optimization(model, image):
    saving = tn.compile(
        model=model,
        backend=tn.CpuBackend(),
        gradient_checkpointing=True,
        checkpoint_segments=4,
        memory_planning="greedy",
        shapes=SHAPES,
    )
    usual = tn.compile(model=model, backend=tn.CpuBackend(), shapes=SHAPES)
    params = usual.randomize_params()
    ct = {"output": tn.ones((4, 10))}
    _, expected = usual.evaluate(params, image, output_gradients=ct)
    _, found = saving.evaluate(params, image, output_gradients=ct)
    for name in expected:
        close(found[name], expected[name], 1e-4)


def test_mixed_precision(model, image):
    compiled = tn.compile(
        model=model,
        backend=tn.CpuBackend(),
        mixed_precision=True,
        shapes=SHAPES,
    )
    params = compiled.randomize_params()
    assert all(p.dtype == tn.float32 for p in params.values())
    assert "bf16" in compiled.show("graph")
    close(compiled.evaluate(params, image)["output"].astype(tn.float32),
          by_hand(params, image["input"]), 0.05)


def test_static_inference(model, image):
    training = tn.compile(model=model, backend=tn.CpuBackend(), shapes=SHAPES)
    params = training.randomize_params()
    deployed = tn.compile(
        model=model,
        backend=tn.CpuBackend(),
        inference=True,
        static_inference=True,
        params=params,
        shapes=SHAPES,
    )
    slow = tn.compile(model=model, backend=tn.CpuBackend(), inference=True, shapes=SHAPES)
    close(
        deployed.evaluate(params, image)["output"], slow.evaluate(params, image)["output"], 1e-4
    )
    with pytest.raises(tn.Error, match="gradient"):
        slow.evaluate(params, image, output_gradients={"output": tn.ones((4, 10))})


def test_code_in_a_file(model, tmp_path):
    path = tmp_path / "generated_model.py"
    tn.compile(model=model, backend=tn.NumpyBackend(), shapes=SHAPES, file_path=str(path))
    text = path.read_text()
    assert "import numpy" in text and "tenon" not in text.lower().split('"""')[2]


def test_the_interface(model, image):
    compiled_model = tn.compile(model, tn.CpuBackend(), shapes=SHAPES)
    params = compiled_model.randomize_params()
    outputs = compiled_model.evaluate(params, image)
    outputs, gradients = compiled_model.evaluate(
        params, image, output_gradients={"output": tn.ones((4, 10))}
    )
    assert outputs["output"].shape == (4, 10)
    assert set(gradients) == set(params)
    expected = tn.grad(lambda p: by_hand(p, image["input"]).sum())(params)
    for name in params:
        close(gradients[name], expected[name], 2e-4)
    shapes, types = compiled_model.get_shapes(), compiled_model.get_types()
    assert shapes["linear.weight"] == (10, 128) and types["linear.weight"] == tn.float32


def test_graph_optimization(model, image):
    chosen = {
        "constant_folding": True,
        "operator_fusion": False,
        "dead_code_elimination": True,
        "common_subexpression": True,
    }
    compiled = tn.compile(
        model=model, backend=tn.CpuBackend(), optimizations=chosen, shapes=SHAPES
    )
    usual = tn.compile(model=model, backend=tn.CpuBackend(), shapes=SHAPES)
    params = usual.randomize_params()
    close(compiled.evaluate(params, image)["output"], usual.evaluate(params, image)["output"])
    assert compiled.show("plan") != usual.show("plan")


def test_hardware_targeting(model, image):
    compiled = tn.compile(
        model=model,
        backend=tn.CpuBackend(),
        target_hardware="x86-64-v3",
        optimize_for="throughput",
        shapes=SHAPES,
    )
    assert compiled.evaluate(compiled.randomize_params(), image)["output"].shape == (4, 10)
    with pytest.raises(tn.Error, match="x86-64-v3"):
        tn.compile(model=model, backend=tn.CpuBackend(), target_hardware="abacus", shapes=SHAPES)


def test_errors_of_the_document():
    vague = tn.Model()
    vague |= Linear(16)(input="x", output="hidden_1")
    vague |= Linear(4)(input="hidden_1")
    with pytest.raises(tn.Error, match="cannot infer shape for 'x'"):
        tn.compile(vague)
    typed = tn.Model()
    typed |= Relu()(input=tn.IOKey("x", type=tn.float32), output=tn.IOKey("y", type=tn.float64))
    with pytest.raises(tn.Error, match="type mismatch .*float64"):
        tn.compile(typed, shapes={"x": [2]})
