"""Physical models: every option of tn.compile(model, …), and evaluations."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tenon as tn
from tenon.model import Linear, Relu, backends, evaluation, options, physical, saving, stages


def mlp(name: str = "net") -> tn.Model:
    model = tn.Model(name)
    model |= Linear(16)(input="x", output="h")
    model += Relu()
    model += Linear(4)
    return model


SHAPES = {"x": [8, 6]}


def compiled(**said: Any) -> Any:
    return tn.compile(mlp(), tn.CpuBackend(), **({"shapes": SHAPES} | said))


def x_of(size: int = 8) -> tn.Tensor:
    return tn.random.normal((size, 6), key=tn.random.key(7))


def reference(params: dict[str, tn.Tensor], x: tn.Tensor) -> tn.Tensor:
    h = tn.relu(x @ params["linear.weight"].T + params["linear.bias"])
    return h @ params["linear_1.weight"].T + params["linear_1.bias"]


def error_of(call: Any) -> str:
    with pytest.raises(tn.Error) as error:
        call()
    return str(error.value)


# Evaluating ---------------------------------------------------------------------------------


def test_outputs_are_those_of_the_function() -> None:
    model = compiled()
    params = model.randomize_params(seed=3)
    made = model.evaluate(params, {"x": x_of()})
    assert list(made) == ["output"]
    np.testing.assert_array_equal(made["output"], tn.compile(reference)(params, x_of()))


def test_seeds_decide_parameters() -> None:
    model = compiled()
    first, again, other = (model.randomize_params(seed)["linear.weight"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_gradients_are_those_of_the_function() -> None:
    model = compiled()
    params, x = model.randomize_params(), x_of()
    outputs, gradients = model.evaluate(params, {"x": x}, {"output": tn.ones((8, 4))})
    wanted = tn.grad(lambda p: tn.sum(reference(p, x)))(params)
    assert list(gradients) == list(params)
    for name, value in wanted.items():
        np.testing.assert_allclose(gradients[name], value, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outputs["output"], model.evaluate(params, {"x": x})["output"])


def test_an_output_gradient_left_out_is_zero() -> None:
    _, gradients = compiled().evaluate(compiled().randomize_params(), {"x": x_of()}, {})
    assert all(not np.any(np.asarray(g)) for g in gradients.values())


def test_numpy_arrays_are_data() -> None:
    model = compiled()
    params = model.randomize_params()
    arrays = {name: np.asarray(value) for name, value in params.items()}
    made = model.evaluate(arrays, {"x": np.asarray(x_of())})["output"]
    assert isinstance(made, tn.Tensor)
    np.testing.assert_array_equal(made, model.evaluate(params, {"x": x_of()})["output"])


def test_evaluation_is_the_compiled_function_itself() -> None:
    model = compiled()
    params = model.randomize_params()
    for _ in range(3):
        model.evaluate(params, {"x": x_of()})
    assert (model.evaluate.stats().traces, model.evaluate.stats().hits) == (1, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda m, p: m.evaluate(p, {}), "data has no 'x'"),
        (lambda m, p: m.evaluate(p), "data has no 'x'"),
        (lambda m, p: m.evaluate({"x": x_of()}), "it belongs to data"),
        (lambda m, p: m.evaluate({}, {"x": x_of()}), "params has no 'linear.weight'"),
        (lambda m, p: m.evaluate(p, {"x": x_of(), "linear.bias": 1}), "it belongs to params"),
        (lambda m, p: m.evaluate(p, {"xx": x_of()}), "did you mean 'x'?"),
        (lambda m, p: m.evaluate(p, {"x": x_of(7)}), "the shape of 'x' is [7,6], not [8,6]"),
        (lambda m, p: m.evaluate(p, {"x": np.ones((8, 6))}), "'x' is float64, not float32"),
        (lambda m, p: m.evaluate(p, x_of()), "data is a dict by name, not a Tensor"),
        (lambda m, p: m.evaluate(p, {"x": x_of()}, {"out": 1}), "there are output"),
        (lambda m, p: m.evaluate(p, {"x": x_of()}, x_of()), "output_gradients is a dict by name"),
        (lambda m, p: m.evaluate(p, {"x": x_of()}, {"output": x_of()}), "'output' is f32[8,6]"),
    ],
)
def test_wrong_arguments_are_named(given: Any, said: str) -> None:
    model = compiled()
    assert said in error_of(lambda: given(model, model.randomize_params()))


# Shapes and types ---------------------------------------------------------------------------


def test_shapes_and_types_of_all_connections() -> None:
    model = compiled()
    assert model.get_shapes()["linear_1.weight"] == (4, 16)
    assert model.get_types()["h"] == tn.float32


def test_sizes_may_be_open_named_or_in_a_range() -> None:
    params = compiled().randomize_params()
    for size in (None, "batch", (1, 8, 9), tn.NamedDimension("batch", 1, 8, 9)):
        model = compiled(shapes={"x": [size, 6]})
        for n in (8, 3, 9):
            made = model.evaluate(params, {"x": x_of(n)})["output"]
            np.testing.assert_array_equal(made, tn.compile(reference)(params, x_of(n)))
    assert "'batch' is 1 to 9, but 10" in error_of(lambda: model.evaluate(params, {"x": x_of(10)}))


def test_one_name_is_one_size() -> None:
    model = tn.Model()
    model |= tn.model.Add()(x1="a", x2="b", output="c")
    both = tn.compile(model, shapes={"a": ["n", 2], "b": ["n", 2]})
    assert both.evaluate({}, {"a": tn.ones((3, 2)), "b": tn.ones((3, 2))})["c"].shape == (3, 2)
    call = {"a": tn.ones((3, 2)), "b": tn.ones((4, 2))}
    assert "'n' is 3 in the shape of 'a', but 4" in error_of(lambda: both.evaluate({}, call))


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"shapes": {"y": [8, 6]}}, "did you mean 'x'?"),
        ({"shapes": {"x": 8}}, "the shape of 'x' is a list, not 8"),
        ({"shapes": {"x": ["a b", 6]}}, "invalid name: 'a b'"),
        ({"shapes": {"x": [(3, 2, 1), 6]}}, "needs min <= opt <= max"),
        ({"shapes": [8, 6]}, "shapes is a dict by name"),
        ({"types": {"y": tn.float16}}, "did you mean 'x'?"),
        ({"types": {"x": "flaot16"}}, "did you mean float16?"),
        ({"shapes": {"x": [None, 6]}, "static_shapes": True}, "is not fully known: [_, 6]"),
        ({"static_shape": True}, "did you mean 'static_shapes'?"),
        ({"shapeless": True}, "hint: there are "),
        ({"jit": "yes"}, "jit is True or False"),
        ({"jit_options": {"modes": 1}}, "did you mean 'mode'?"),
        ({"jit_options": {"mode": "fast"}}, "mode is one of"),
        ({"jit_options": {"static_argnums": 5}}, "no argument 5 for static_argnums"),
        ({"jit": False, "jit_options": {"mode": "default"}}, "jit_options need jit=True"),
        ({"checkpoint_segments": 0}, "checkpoint_segments is 1 or more"),
        ({"gradient_checkpointing": False, "checkpoint_segments": 2}, "leave out one of them"),
        ({"gradient_checkpointing": True, "inference": True}, "inference has no gradients"),
        ({"mixed_precision": "float64"}, "mixed_precision is bfloat16 or float16"),
        ({"optimizations": {"operator_fusio": True}}, "did you mean 'operator_fusion'?"),
        ({"optimizations": {"fuse": 1}}, "is a bool, not 1"),
        ({"optimizations": ["fuse"]}, "optimizations is a dict by name"),
        ({"constant_keys": {"linear.weigh": 1}}, "did you mean 'linear.weight'?"),
        ({"constant_keys": ["linear.weigh"]}, "did you mean 'linear.weight'?"),
        ({"data_keys": ["linear.weigh"]}, "did you mean 'linear.weight'?"),
        ({"trainable_keys": ["linear.weigh"]}, "did you mean 'linear.weight'?"),
        ({"discard_keys": ["outputs"]}, "did you mean 'output'?"),
        ({"discard_keys": ["output"]}, "discard_keys leaves no output"),
        ({"params": {"linear.weigh": 1}}, "did you mean 'linear.weight'?"),
        ({"memory_limit": "much"}, "memory_limit is bytes or text"),
        ({"timeout": -1}, "timeout is a number of seconds above 0"),
    ],
)
def test_wrong_options_are_refused(said: dict[str, Any], error: str) -> None:
    assert error in error_of(lambda: compiled(**said))


@pytest.mark.parametrize("option", ["memory_planning", "optimize_for"])
def test_backends_with_files_refuse_wrong_options_too(option: str) -> None:
    said = {option: "gredy"}
    made = lambda: tn.compile(mlp(), tn.NumpyBackend(), SHAPES, **said)
    assert f"{option} is one of" in error_of(made)


def test_wrong_backends_are_refused() -> None:
    assert 'device is "cuda" or "cuda:1"' in error_of(lambda: tn.CudaBackend(device="gpu"))
    assert "threads is 1 or more" in error_of(lambda: tn.CpuBackend(threads=0))
    assert "did you mean float32?" in error_of(lambda: tn.CpuBackend(precision="float31"))
    assert "a floating type, not 'int32'" in error_of(lambda: tn.CpuBackend(precision="int32"))
    assert "a backend for models is expected" in error_of(lambda: tn.compile(mlp(), "cpu"))
    with pytest.raises(AttributeError, match="here: tn.CBackend"):
        tn.GGMLBackend


# Options, one by one ------------------------------------------------------------------------


def agrees(model: Any, rtol: float = 0) -> None:
    params = compiled().randomize_params()
    made = model.evaluate(params, {"x": x_of()})["output"]
    wanted = tn.compile(reference)(params, x_of())
    np.testing.assert_allclose(made.astype(tn.float32), wanted, rtol=rtol, atol=rtol)


def test_the_model_may_be_given_by_name() -> None:
    agrees(tn.compile(model=mlp(), backend=tn.CpuBackend(), shapes=SHAPES))
    agrees(tn.compile(mlp(), backend=tn.CpuBackend, shapes=SHAPES))
    agrees(tn.compile(mlp(), tn.CpuBackend(), SHAPES))


def test_precision_is_that_of_parameters_and_data() -> None:
    model = tn.compile(mlp(), tn.CpuBackend(precision="float64"), shapes=SHAPES)
    assert set(model.get_types().values()) == {tn.float64}
    assert model.randomize_params()["linear.bias"].dtype == tn.float64


def test_jit_false_interprets() -> None:
    model = compiled(jit=False)
    agrees(model)
    assert model.evaluate.stats().kernel_compiles == 0
    interpreted = tn.compile(mlp(), tn.InterpreterBackend(), shapes=SHAPES)
    agrees(interpreted)
    assert interpreted.evaluate.stats().kernel_compiles == 0


def test_donated_parameters_are_given_away() -> None:
    model = compiled(jit_options={"donate_argnums": 0})
    params = model.randomize_params()
    model.evaluate(params, {"x": x_of()}, {"output": tn.ones((8, 4))})
    assert "donate_argnums" in error_of(lambda: params["linear.weight"].tolist())


def test_static_arguments_are_constants_of_the_code() -> None:
    for said in ({"jit_options": {"static_argnums": 0, "donate_argnums": 0}},
                 {"static_inference": True},
                 {"constant_keys": ["linear.weight", "linear_1.weight"]}):
        model = compiled(**said)
        agrees(model)
        assert "const0" in model.show("plan")


def test_other_static_values_are_compiled_anew() -> None:
    model = compiled(static_inference=True)
    first, second = model.randomize_params(1), model.randomize_params(2)
    for params in (first, first, second, first):
        made = model.evaluate(params, {"x": x_of()})["output"]
        np.testing.assert_array_equal(made, tn.compile(reference)(params, x_of()))
    first["linear.bias"][0] = 5.0  # the same object, another value
    made = model.evaluate(first, {"x": x_of()})["output"]
    np.testing.assert_array_equal(made, tn.compile(reference)(first, x_of()))


def test_static_values_of_several_threads() -> None:
    model = compiled(static_inference=True)
    drawn = [model.randomize_params(seed) for seed in range(2)]
    tn.eval(drawn)
    wanted = [np.asarray(tn.compile(reference)(p, x_of())) for p in drawn]
    wrong = []

    def work(i: int) -> None:
        for _ in range(20):
            made = model.evaluate(drawn[i], {"x": x_of()})["output"]
            if not np.array_equal(made, wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_evaluations_run_where_compiling_is_off() -> None:
    model = compiled()
    params = {name: np.asarray(value) for name, value in model.randomize_params().items()}
    with tn.disable_compile():
        made = model.evaluate(params, {"x": np.asarray(x_of())})["output"]
    np.testing.assert_allclose(made, model.evaluate(params, {"x": x_of()})["output"], rtol=1e-5)


def test_static_values_may_be_left_out_once_they_are_known() -> None:
    params = compiled().randomize_params()
    model = compiled(static_inference=True, params=params)
    made = model.evaluate({}, {"x": x_of()})["output"]
    np.testing.assert_array_equal(made, compiled().evaluate(params, {"x": x_of()})["output"])


def test_mixed_precision_changes_compute_types() -> None:
    for backend in (tn.CpuBackend(), tn.CpuBackend(precision="bfloat16")):
        model = tn.compile(mlp(), backend, shapes=SHAPES, mixed_precision=True)
        types = model.get_types()
        assert (types["linear.weight"], types["h"]) == (tn.float32, tn.bfloat16)
        assert "bf16" in model.show("graph")
        agrees(model, rtol=0.05)
        gradients = model.evaluate(model.randomize_params(), {"x": x_of()}, {})[1]
        assert {g.dtype for g in gradients.values()} == {tn.float32}
    types = compiled(mixed_precision="float16").get_types()
    assert types["output"] == tn.float16


def test_gradients_of_narrow_outputs_may_be_wide() -> None:
    params = compiled().randomize_params()
    for backend in (tn.CpuBackend(), tn.NumpyBackend()):
        model = tn.compile(mlp(), backend, SHAPES, mixed_precision="float16")
        model.evaluate(params, {"x": x_of()}, {"output": tn.ones((8, 4))})


def test_inference_has_no_gradients() -> None:
    model = compiled(inference=True)
    agrees(model)
    call = lambda: model.evaluate(model.randomize_params(), {"x": x_of()}, {})
    assert "has no gradients" in error_of(call)


def test_optimizations_switch_passes() -> None:
    def steps(**wanted: bool) -> int:
        model = compiled(optimizations=wanted)
        agrees(model)
        return len(model.show("plan").splitlines())

    assert steps(operator_fusion=False) > steps(operator_fusion=True)
    assert steps(fuse=True) == steps()


def test_passes_by_the_names_of_the_document() -> None:
    model = tn.Model()
    model |= tn.model.Exp()(input="x", output="a")
    model |= tn.model.Exp()(input="x", output="b")
    model |= tn.model.Add()(x1="a", x2="b", output="c")

    def optimized(**wanted: bool) -> str:
        return tn.compile(model, shapes={"x": [4]}, optimizations=wanted).show("optimized")

    assert optimized().count("= exp") == 1
    assert optimized(common_subexpression=False).count("= exp") == 2
    for name in options.OPTIMIZATIONS:
        optimized(**{name: False})


def test_timeouts_fail_and_say_the_stage() -> None:
    model = compiled(timeout=1e-9, shapes={"x": [11, 6]})
    call = lambda: model.evaluate(model.randomize_params(), {"x": x_of(11)})
    stages_of_compiling = "tracing|passes|fusion|lowering|code generation|memory planning"
    assert re.search(f"timed out after 1e-09 s in ({stages_of_compiling})", error_of(call))


def test_memory_limits_hold() -> None:
    model = compiled(memory_limit=64)
    call = lambda: model.evaluate(model.randomize_params(), {"x": x_of()})
    assert "memory_limit is 64" in error_of(call)
    agrees(compiled(memory_limit="1MB"))


def deep(layers: int = 12) -> tn.Model:
    model = tn.Model("deep")
    for _ in range(layers):
        model += Linear(32)
        model += tn.model.Tanh()
    return model


def test_checkpoints_lower_the_peak() -> None:
    def trained(**said: Any) -> Any:
        return tn.compile(deep(), shapes={"input": [256, 32]}, **said)

    usual, segments = trained(), trained(gradient_checkpointing=True, checkpoint_segments=4)
    assert segments.peak_memory < 0.7 * usual.peak_memory
    assert trained(checkpoint_segments=4).peak_memory == segments.peak_memory
    params = usual.randomize_params()
    x = {"input": tn.random.normal((256, 32), key=tn.random.key(1))}
    seed = {"output": tn.ones((256, 32))}
    made, wanted = (model.evaluate(params, x, seed)[1] for model in (segments, usual))
    for name, value in wanted.items():
        np.testing.assert_allclose(made[name], value, rtol=1e-4, atol=1e-4)


def test_memory_planning_changes_the_plan() -> None:
    def planned(planning: str | None) -> Any:
        model = tn.compile(deep(), shapes={"input": [64, 32]}, memory_planning=planning)
        return model.memory(gradients=True)

    peaks = {name: planned(name).peak for name in ("greedy", "best_fit", "optimal", "none")}
    assert peaks["none"] > peaks["greedy"] >= peaks["best_fit"] >= peaks["optimal"]
    assert planned("optimal").planning == "optimal"
    error = error_of(lambda: compiled(memory_planning="greedyy"))
    assert "memory_planning is one of" in error


def test_throughput_keeps_calls_on_their_thread() -> None:
    plans = {}
    for purpose in ("latency", "throughput"):
        model = compiled(optimize_for=purpose)
        agrees(model)
        plans[purpose] = model.show("plan")
    assert plans["latency"] != plans["throughput"]
    one = tn.compile(mlp(), tn.CpuBackend(threads=1), shapes=SHAPES)
    assert one.show("plan") == plans["throughput"]
    assert "optimize_for is one of" in error_of(lambda: compiled(optimize_for="speed"))


def test_targets_are_named(tmp_path: Any) -> None:
    model = compiled(target_hardware="x86-64-v2")
    agrees(model)
    model.save(tmp_path / "net.tnx")
    assert tn.load(tmp_path / "net.tnx").stats().target == "x86-64-v2"
    assert "did you mean 'haswell'?" in error_of(lambda: compiled(target_hardware="haswel"))
    error = error_of(lambda: compiled(target_hardware="nvidia_t4"))
    assert "cannot generate code for nvidia_t4 ahead of time" in error


def test_models_are_compiled_for_other_machines(tmp_path: Any) -> None:
    code = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_physical_models import compiled, error_of, x_of
model = compiled(target_hardware="x86-64-v4")
assert "save it, and load it there" in error_of(lambda: model.evaluate({{}}, {{}}))
model.save({str(tmp_path / "net.tnx")!r})
"""
    paths = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    env = os.environ | {"TENON_CPU_LEVEL": "v2", "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    loaded = tn.load(tmp_path / "net.tnx")
    params = compiled().randomize_params()
    wanted = compiled().evaluate(params, {"x": x_of()})["output"]
    made = loaded(params, {"x": x_of()})["output"]
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)


def test_constants_are_not_given() -> None:
    params = compiled().randomize_params()
    weight = params["linear.weight"]
    model = compiled(constant_keys={"linear.weight": weight})
    rest = {name: value for name, value in params.items() if name != "linear.weight"}
    assert list(model.randomize_params()) == list(rest)
    made = model.evaluate(rest, {"x": x_of()})["output"]
    np.testing.assert_array_equal(made, tn.compile(reference)(params, x_of()))
    assert "has no 'linear.weight'" in error_of(lambda: model.evaluate(params, {"x": x_of()}))


def test_data_keys_are_given_with_the_data() -> None:
    params = compiled().randomize_params()
    model = compiled(data_keys=["linear.bias"])
    bias = params.pop("linear.bias")
    assert list(model.randomize_params()) == list(params)
    _, gradients = model.evaluate(params, {"x": x_of(), "linear.bias": bias}, {})
    assert "linear.bias" not in gradients


def test_trainable_keys_have_the_gradients() -> None:
    model = compiled(trainable_keys=["x", "linear.weight"])
    _, gradients = model.evaluate(model.randomize_params(), {"x": x_of()}, {})
    assert sorted(gradients) == ["linear.weight", "x"]


def test_discarded_outputs_are_not_computed() -> None:
    model = tn.Model()
    model |= tn.model.Exp()(input="x", output="a")
    model |= tn.model.Sin()(input="x", output="b")
    made = tn.compile(model, shapes={"x": [4]}, discard_keys=["a"])
    assert list(made.evaluate({}, {"x": tn.ones(4)})) == ["b"]
    assert "exp" not in made.show("optimized")


@pytest.mark.parametrize("module", [backends, evaluation, options, physical, saving, stages])
def test_doctests(module: Any) -> None:
    failed, _ = doctest.testmod(module, extraglobs={"tn": tn})
    assert failed == 0
