"""Physical models: their state, what they are saved as, and what they show."""

from __future__ import annotations

from typing import Any

import numpy as np

import tenon as tn
from tenon.model import Relu
from test_physical_models import compiled, error_of, x_of

# State --------------------------------------------------------------------------------------


def normed() -> tn.Model:
    model = tn.Model("normed")
    model += tn.model.Conv2d(3, 4, kernel_size=3)(name="conv")
    model += tn.model.BatchNorm2d(4)(name="norm")
    model += Relu()
    return model


IMAGES = {"input": [2, 3, 8, 8]}


def images() -> dict[str, tn.Tensor]:
    return {"input": tn.random.normal(IMAGES["input"], key=tn.random.key(5))}


def test_running_statistics_are_explicit() -> None:
    model = tn.compile(normed(), shapes=IMAGES)
    params, state = model.randomize_params(), model.initial_state()
    assert sorted(state) == ["norm.running_mean", "norm.running_var"]
    outputs, new = model.evaluate(params, images(), state=state)
    assert sorted(new) == sorted(state)
    assert not np.array_equal(new["norm.running_mean"], state["norm.running_mean"])
    np.testing.assert_array_equal(state["norm.running_mean"], np.zeros(4))
    alone = model.evaluate(params, images())
    np.testing.assert_array_equal(alone["output"], outputs["output"])
    again, gradients, newer = model.evaluate(params, images(), {}, state=new)
    assert "norm.weight" in gradients and sorted(newer) == sorted(state)
    np.testing.assert_array_equal(again["output"], outputs["output"])


def test_inference_uses_running_statistics() -> None:
    training = tn.compile(normed(), shapes=IMAGES)
    inference = tn.compile(normed(), shapes=IMAGES, inference=True)
    params, state = training.randomize_params(), training.initial_state()
    for _ in range(3):
        _, state = training.evaluate(params, images(), state=state)
    made, same = inference.evaluate(params, images(), state=state)
    np.testing.assert_array_equal(same["norm.running_mean"], state["norm.running_mean"])
    first = inference.evaluate(params, images())
    assert not np.allclose(first["output"], made["output"])


def test_the_state_of_training_is_that_of_inference() -> None:
    model = normed()
    model += tn.model.Dropout(0.5)
    training = tn.compile(model, shapes=IMAGES)
    params, state = training.randomize_params(), training.initial_state()
    _, state = training.evaluate(params, images(), state=state)
    assert "random.key" in state
    inference = tn.compile(model, shapes=IMAGES, inference=True)
    made, _ = inference.evaluate(params, images(), state=state)
    for backend in (tn.CpuBackend(), tn.NumpyBackend()):
        baked = tn.compile(model, backend, IMAGES, static_inference=True, params=params | state)
        same = baked.evaluate(data=images())["output"]
        np.testing.assert_allclose(same, made["output"], rtol=1e-4, atol=1e-5)


def test_inference_folds_batch_norm_into_convolutions() -> None:
    folded = tn.compile(normed(), shapes=IMAGES, inference=True)
    plain = tn.compile(normed(), shapes=IMAGES, inference=True, optimizations={"absorb": False})
    static = tn.compile(normed(), shapes=IMAGES, static_inference=True)
    params = folded.randomize_params()
    made = [m.evaluate(params, images())["output"] for m in (folded, plain, static)]
    for other in made[1:]:
        np.testing.assert_allclose(made[0], other, rtol=1e-4, atol=1e-5)
    assert folded.show("optimized") != plain.show("optimized")
    left = static.show("optimized")  # nothing of the statistics: a convolution, a bias, relu
    assert "sqrt" not in left and "divide" not in left and "multiply" not in left


def test_random_blocks_need_a_key() -> None:
    model = tn.Model("dropping")
    model += tn.model.Dropout(0.5)
    physical = tn.compile(model, shapes={"input": [64]})
    x = {"input": tn.ones(64)}
    assert "hint: give the state" in error_of(lambda: physical.evaluate({}, x))
    state = physical.initial_state(seed=3)
    first, state_1 = physical.evaluate({}, x, state=state)
    again, _ = physical.evaluate({}, x, state=state)
    second, _ = physical.evaluate({}, x, state=state_1)
    np.testing.assert_array_equal(first["output"], again["output"])
    assert not np.array_equal(first["output"], second["output"])
    inference = tn.compile(model, shapes={"input": [64]}, inference=True)
    np.testing.assert_array_equal(inference.evaluate({}, x)["output"], np.ones(64))


def test_state_is_the_same_on_source_backends() -> None:
    model = tn.compile(normed(), shapes=IMAGES)
    params, state = model.randomize_params(), model.initial_state()
    wanted = model.evaluate(params, images(), {}, state=state)
    for backend in (tn.CBackend(), tn.NumpyBackend()):
        other = tn.compile(normed(), backend, shapes=IMAGES)
        made = other.evaluate(params, images(), {}, state=state)
        assert len(made) == 3
        for part, same in zip(made, wanted):
            assert sorted(part) == sorted(same)
            for name, value in same.items():
                np.testing.assert_allclose(part[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


# Saving -------------------------------------------------------------------------------------


def test_saved_models_are_executables(tmp_path: Any) -> None:
    for size in (8, None, (1, 8, 16)):
        model = compiled(shapes={"x": [size, 6]})
        params = model.randomize_params()
        model.save(tmp_path / "net.tnx")
        loaded = tn.load(tmp_path / "net.tnx")
        assert (loaded.__name__, list(loaded.input_infos)[0]) == ("net", "params['linear.weight']")
        made = loaded(params, {"x": x_of()})
        wanted = model.evaluate(params, {"x": x_of()})
        assert list(made) == ["output"]
        np.testing.assert_array_equal(made["output"], wanted["output"])


def test_saved_models_take_and_give_state(tmp_path: Any) -> None:
    model = tn.compile(normed(), shapes=IMAGES)
    params, state = model.randomize_params(), model.initial_state()
    model.save(tmp_path / "training.tnx")
    outputs, new = tn.load(tmp_path / "training.tnx")(params, images(), state)
    wanted, same = model.evaluate(params, images(), state=state)
    np.testing.assert_array_equal(outputs["output"], wanted["output"])
    for name, value in same.items():
        np.testing.assert_array_equal(new[name], value)
    said = {"static_inference": True, "params": {**params, **new}}
    static = tn.compile(normed(), shapes=IMAGES, **said)
    static.save(tmp_path / "static.tnx")
    made = tn.load(tmp_path / "static.tnx")(images())
    np.testing.assert_array_equal(made["output"], static.evaluate({}, images())["output"])


def test_saved_models_hold_static_values(tmp_path: Any) -> None:
    params = compiled().randomize_params()
    model = compiled(static_inference=True)
    assert "not known yet" in error_of(lambda: model.save(tmp_path / "net.tnx"))
    wanted = model.evaluate(params, {"x": x_of()})["output"]
    model.save(tmp_path / "net.tnx")
    loaded = tn.load(tmp_path / "net.tnx")
    np.testing.assert_array_equal(loaded({"x": x_of()})["output"], wanted)


# Looking ------------------------------------------------------------------------------------


def test_stages_can_be_shown() -> None:
    model = compiled()
    for stage in model.stages:
        assert model.show(stage), stage
    assert "linear.weight: [16,6]" in model.show("shapes")
    assert len(model.show("graph", gradients=True)) > len(model.show("graph"))
    assert "did you mean 'plan'?" in error_of(lambda: model.show("plans"))
    assert "net: " in str(model.explain())


def test_peak_memory_is_known_before_anything_runs() -> None:
    model = compiled()
    assert model.peak_memory == model.memory(gradients=True).peak > model.memory(False).peak
    assert compiled(inference=True).peak_memory < model.peak_memory
