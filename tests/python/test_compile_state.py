"""State: what `inputs=` and `outputs=` capture, change, restore and donate."""

import dataclasses
import threading

import numpy as np
import pytest

import tenon as tn


def test_inputs_are_read_at_every_call():
    state = [tn.array(1.0)]
    traces = []

    @tn.compile(inputs=state)
    def f(x):
        traces.append(None)
        return x + state[0]

    assert f(tn.array(1.0)).item() == 2
    state[0] = tn.array(5.0)
    assert f(tn.array(1.0)).item() == 6
    assert len(traces) == 1


def test_outputs_are_put_where_the_function_puts_them():
    state = {"a": [tn.array(1.0), (tn.array(2.0), "text")], "n": None}
    inner = state["a"]

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        state["a"][0] = state["a"][0] * x
        state["a"][1] = (state["a"][1][0] + x, "text")
        return x

    for _ in range(3):
        f(tn.array(2.0))
    assert state["a"] is inner
    assert inner[0].item() == 8
    assert (inner[1][0].item(), inner[1][1]) == (8, "text")
    assert f.stats().traces == 1


def test_only_outputs():
    seen = []

    @tn.compile(outputs=seen)
    def f(x):
        y = tn.exp(x)
        seen.append(y)
        return y + 1

    f(tn.array(0.0))
    assert [s.item() for s in seen] == [1]
    seen.clear()
    f(tn.array(0.0))
    assert [s.item() for s in seen] == [1]
    assert f.stats().traces == 1


def test_leaves_may_be_added_and_removed():
    state = {"old": tn.array(1.0)}

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        if "old" in state:
            state["new"] = [state.pop("old") + x]
        else:
            state["new"][0] = state["new"][0] * x

    f(tn.array(2.0))
    assert list(state) == ["new"]
    f(tn.array(2.0)), f(tn.array(2.0))
    assert state["new"][0].item() == 12
    assert f.stats().traces == 2
    assert "inputs was {'old': *}, now {'new': [*]}" in f.why_recompiled()[1]
    state.clear()
    state["old"] = tn.array(0.0)
    f(tn.array(2.0))
    assert list(state) == ["new"]
    assert state["new"][0].item() == 2
    assert f.stats().traces == 2


def test_what_the_function_leaves_alone_stays_the_object_it_is():
    state = {"w": tn.ones(3), "frozen": tn.ones(3), "name": "a", "count": 7}

    @tn.compile(inputs=[state], outputs=[state])
    def f():
        state["w"] = state["w"] + 1

    frozen = state["frozen"]
    f(), f()
    assert state["frozen"] is frozen
    assert state["w"].tolist() == [3, 3, 3]


def test_outputs_that_are_no_inputs_keep_what_others_put_there():
    state = {"a": tn.array(1.0), "b": tn.array(1.0)}

    @tn.compile(outputs=state)
    def f(x):
        state["a"] = x * 2

    f(tn.array(1.0))
    state["b"] = tn.array(9.0)
    f(tn.array(2.0))
    assert (state["a"].item(), state["b"].item()) == (4, 9)


def test_keys_that_others_add_to_outputs_stay():
    state = {"old": tn.array(0.0), "inner": {}}

    @tn.compile(outputs=state)
    def f(x):
        state.pop("old", None)
        state["inner"]["a"] = x

    f(tn.array(1.0))
    state["new"], state["inner"]["b"], state["old"] = tn.array(5.0), tn.array(6.0), tn.array(7.0)
    f(tn.array(2.0))
    assert sorted(state) == ["inner", "new"]
    assert state["new"].item() == 5
    assert {k: v.item() for k, v in state["inner"].items()} == {"a": 2, "b": 6}


def test_numbers_in_the_state():
    state = {"n": 0, "rate": 0.5}

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        state["n"] += 1
        return x * state["rate"] + state["n"]

    assert [f(tn.array(1.0)).item() for _ in range(5)] == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert state["n"] == 5
    assert type(state["n"]) is int
    state["rate"] = 2.0
    assert f(tn.array(1.0)).item() == 8
    assert f.stats().traces <= 3


@dataclasses.dataclass
class Pair:
    a: object
    b: object


class Counter:
    """Has a `state`, and is no tree."""

    def __init__(self):
        self.state = {"n": tn.array(0), "pair": Pair(tn.array(1.0), [tn.array(2.0)])}


def test_objects_with_a_state_and_dataclasses():
    counter = Counter()
    pair = counter.state["pair"]

    @tn.compile(inputs=[counter], outputs=[counter])
    def f(x):
        counter.state["n"] = counter.state["n"] + 1
        counter.state["pair"].a = counter.state["pair"].a * x
        counter.state["pair"].b[0] = counter.state["pair"].b[0] - x
        return x

    f(tn.array(3.0)), f(tn.array(3.0))
    assert counter.state["n"].item() == 2
    assert counter.state["pair"] is pair
    assert (pair.a.item(), pair.b[0].item()) == (9, -4)


def test_a_failing_trace_leaves_everything_as_it_was():
    model, counter, state = tn.nn.Linear(2, 2), Counter(), {"x": tn.array(1.0), "list": [1]}
    weight, before = model.weight, dict(state)

    @tn.compile(inputs=[model, counter, state], outputs=[model, counter, state])
    def f(x):
        model.weight = model.weight * 2
        model.extra = x
        counter.state["pair"].a = x
        state["y"] = x
        state["list"].append(x)
        del state["x"]
        raise ValueError("mine")

    for _ in range(2):
        with pytest.raises(ValueError, match="mine"):
            f(tn.array(1.0))
        assert model.weight is weight
        assert not hasattr(model, "extra")
        assert state == before
        assert state["list"] == [1]
        assert counter.state["pair"].a.item() == 1


def test_a_failing_run_leaves_everything_as_it_was():
    state = {"w": tn.ones(3)}

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        tn.check(tn.all(x > 0), "not above 0")
        state["w"] = state["w"] * x

    f(tn.array([1.0, 2.0, 3.0]))
    with pytest.raises(tn.Error, match="not above 0"):
        f(tn.array([1.0, -2.0, 3.0]))
    assert state["w"].tolist() == [1, 2, 3]
    f(tn.array([2.0, 2.0, 2.0]))
    assert state["w"].tolist() == [2, 4, 6]


def test_random_state_is_captured():
    @tn.compile(inputs=tn.random.state, outputs=tn.random.state)
    def draw():
        return tn.random.uniform(shape=(3,))

    tn.random.seed(3)
    want = [tn.random.uniform(shape=(3,)).tolist() for _ in range(3)]
    tn.random.seed(3)
    assert [draw().tolist() for _ in range(3)] == want


def test_a_training_step():
    def trained(compiled):
        tn.random.seed(0)
        model = tn.nn.Sequential(tn.nn.Linear(3, 8), tn.nn.Dropout(0.25), tn.nn.Linear(8, 1))
        optimizer = tn.optim.Adam(learning_rate=0.05)
        state = [model.state, optimizer.state, tn.random.state]

        def loss(x, y):
            return tn.mean((model(x) - y) ** 2)

        def step(x, y):
            value, grads = tn.nn.value_and_grad(model, loss)(x, y)
            optimizer.update(model, grads)
            return value

        if compiled:
            step = tn.compile(step, inputs=state, outputs=state)
        x = tn.random.normal(shape=(16, 3), key=tn.random.key(1))
        y = tn.sum(x, axis=1, keepdims=True)
        losses = [step(x, y).item() for _ in range(12)]
        if compiled:
            assert step.stats().traces <= 2
        return losses, model.layers[0].weight.tolist()

    plain, fast = trained(False), trained(True)
    assert np.allclose(plain[0], fast[0], rtol=1e-5)
    assert np.allclose(plain[1], fast[1], rtol=1e-4, atol=1e-6)
    assert fast[0][-1] < fast[0][0]


def test_state_is_updated_in_place_when_nobody_else_holds_it():
    big = 1 << 20
    state = {"w": tn.zeros(big) + 1}
    tn.eval(state["w"])

    @tn.compile(inputs=state, outputs=state)
    def f():
        state["w"] = state["w"] * 2

    f()
    address = np.asarray(state["w"]).ctypes.data
    tn.memory.reset_peak_memory()
    before = tn.memory.active_memory()
    f()
    assert np.asarray(state["w"]).ctypes.data == address
    assert tn.memory.peak_memory() - before < big
    held = state["w"]
    f()
    assert held[0].item() == 4
    assert state["w"][0].item() == 8


class Box:
    """A tree that is made anew when its leaves are others."""

    def __init__(self, x):
        self.x = x

    def __tree_flatten__(self):
        return [self.x], None

    @staticmethod
    def __tree_unflatten__(_, leaves):
        return Box(*leaves)


def test_whoever_holds_what_is_replaced_keeps_its_values():
    state = {"pair": (tn.ones(8) + 0, 1), "box": Box(tn.ones(8) + 0), "list": [tn.ones(8) + 0]}
    pair, box, inner, copy = state["pair"], state["box"], state["list"], dict(state)

    @tn.compile(inputs=state, outputs=state)
    def f():
        state["pair"] = (state["pair"][0] * 2, 1)
        state["box"] = Box(state["box"].x * 2)
        state["list"][0] = state["list"][0] * 2

    f(), f()
    assert (state["pair"][0][0].item(), state["box"].x[0].item(), inner[0][0].item()) == (4, 4, 4)
    assert (pair[0].tolist(), box.x.tolist()) == ([1] * 8, [1] * 8)
    assert copy["pair"] is pair


def test_values_that_are_replaced_may_be_results_too():
    state = {"w": tn.ones(1000) + 0, "v": tn.ones(1000) * 2}

    @tn.compile(inputs=state, outputs=state)
    def f():
        old = state["w"]
        state["w"], state["v"] = state["v"] + 1, old * 10
        return old, state["w"]

    for _ in range(2):
        before = [state["w"].tolist(), state["v"].tolist()]
        old, new = f()
        assert old.tolist() == before[0]
        assert new.tolist() == state["w"].tolist() == [v + 1 for v in before[1]]
        assert state["v"].tolist() == [10 * w for w in before[0]]
        del old, new


def test_donated_arguments():
    f = tn.compile(lambda x, y: x * 2 + y, donate_argnums=0)
    x, y = tn.ones(1000) + 0, tn.ones(1000)
    tn.eval(x)
    assert f(x, y)[0].item() == 3
    with pytest.raises(tn.Error, match="donate_argnums"):
        x + 1
    x = tn.ones(1000) + 1
    alias = x[:]
    assert f(x, y)[0].item() == 5
    assert alias[0].item() == 2
    assert f(y, y)[0].item() == 3
    both = tn.compile(lambda x, y: x + y, donate_argnums=(0, 1))
    x = tn.ones(3)
    assert both(x, x).tolist() == [2, 2, 2]
    with pytest.raises(tn.Error, match="donate_argnums"):
        x.tolist()


def test_donated_arguments_come_back_when_a_call_fails():
    def of_matrices(x):
        return tn.linalg.cholesky(x) if x.ndim == 2 else undefined  # noqa: F821  it has to fail

    f = tn.compile(of_matrices, donate_argnums=0)
    x = tn.ones(3)
    with pytest.raises(NameError):
        f(x)
    assert x.tolist() == [1, 1, 1]


def test_grad_of_a_function_with_state():
    state = [tn.array(2.0)]

    @tn.compile(inputs=state)
    def f(x):
        return x * x * state[0]

    assert tn.grad(f)(tn.array(3.0)).item() == 12
    state[0] = tn.array(1.0)
    assert tn.grad(f)(tn.array(3.0)).item() == 6
    assert tn.compile(f, inputs=state)(tn.array(3.0)).item() == 9


def test_threads_share_a_state():
    state = {"n": tn.array(0)}

    @tn.compile(inputs=state, outputs=state)
    def f(x):
        state["n"] = state["n"] + x

    def work():
        for _ in range(100):
            f(tn.array(1))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert state["n"].item() == 600


@pytest.mark.parametrize("wrong", [3, "text", tn.ones(2), object()])
def test_what_can_be_captured(wrong):
    with pytest.raises(TypeError, match="inputs must be a container"):
        tn.compile(lambda: 0, inputs=wrong)
    with pytest.raises(TypeError, match="outputs must be a container"):
        tn.compile(lambda: 0, outputs=wrong)


def test_tensors_in_a_tuple_alone_cannot_be_changed():
    pair = (tn.ones(1), tn.ones(1))
    with pytest.raises(TypeError, match="inputs: a tuple cannot be changed"):
        tn.compile(lambda: pair[0], inputs=pair)()


def test_changes_that_are_lost_are_told():
    state = {"w": tn.ones(1), "v": tn.ones(1)}

    def f(x):
        state["w"] = x
        state["v"] = x

    with pytest.warns(UserWarning, match=r"changes inputs\['w'\], and the change is lost"):
        tn.compile(f, inputs=state)(tn.zeros(1))
    assert state["w"].item() == 1
    tn.compile(f, inputs=state, outputs=state)(tn.zeros(1))
    assert state["w"].item() == 0


def test_a_value_that_escapes_says_so():
    kept = []
    f = tn.compile(lambda x: kept.append(x * 2))
    with pytest.warns(UserWarning, match=r"<lambda> \(.*_state.py:\d+\) stores traced tensors"):
        f(tn.ones(2))
    with pytest.raises(tn.Error, match=r"trace ended, at .*, in <lambda>(.|\n)*outputs=state"):
        kept[0].tolist()


def test_a_training_step_that_names_no_state_is_told():
    model, rule = tn.nn.Linear(3, 2), tn.optim.SGD(learning_rate=0.1)

    @tn.compile
    def step(x):
        loss, grads = tn.nn.value_and_grad(model, lambda x: tn.sum(model(x) ** 2))(x)
        rule.update(model, grads)
        return loss

    with pytest.warns(UserWarning, match="step .* stores traced tensors in an object"):
        step(tn.ones((4, 3)))


@pytest.mark.parametrize(
    "inputs, outputs, text",
    [
        ("", "mo", "Linear is in outputs= and not in inputs="),
        ("m", "mo", "Adam is in outputs= and not in inputs="),
        ("mo", "m", "Adam is in inputs= and not in outputs="),
        ("mo", "mor", "tn.random.state is in outputs= and not in inputs="),
    ],
)
def test_state_that_is_named_on_one_side_only_is_told(inputs, outputs, text):
    held = {"m": tn.nn.Linear(3, 2), "o": tn.optim.Adam(0.1), "r": tn.random.state}
    read, changed = ([held[k] for k in names] for names in (inputs, outputs))
    with pytest.warns(UserWarning, match=text) as told:
        tn.compile(lambda x: x, inputs=read, outputs=changed)
    assert {warning.filename for warning in told} == {__file__}


def test_state_that_is_only_read_is_not_told(recwarn):
    model = tn.nn.Sequential(tn.nn.Linear(3, 2), tn.nn.BatchNorm1d(2))
    tn.compile(lambda x: model(x), inputs=model)
    tn.compile(lambda x: model(x), inputs=[model], outputs=[model.layers[1]])
    tn.compile(lambda x: x, inputs={"a": tn.ones(1)}, outputs={"b": tn.ones(1)})
    assert not recwarn.list


def test_cycles_are_no_leaks(recwarn):
    def f(x):
        held = [x * 2]
        held.append(held)
        return x

    tn.compile(f)(tn.ones(2))
    assert not recwarn.list
