"""shard_map inside control flow, with state of modules and stored parameters; names of axes."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

dist = tn.distributed


def on_workers(mesh):
    """Twice the rows, and the sum of all of them."""
    return tn.shard_map(lambda x: tn.sin(x) * 2 + dist.all_sum(x.sum(), axis="data"), mesh,
                        in_specs=("data",), out_specs="data")


def alone(x):
    return tn.sin(x) * 2 + x.sum()


def in_cond(f, x):
    return tn.cond(x.sum() > 0, lambda x: f(x) * x.sum(), lambda x: f(x + 1) * 2, x)


def in_nested_cond(f, x):
    return tn.cond(x.sum() > -100, lambda x: tn.cond(x[0] > 5, lambda x: x * 1, f, x),
                   lambda x: x * 2, x)


def in_scan(f, x):
    carry, rows = tn.scan(lambda c, a: (f(c) / 8 + a, f(c + a).sum()), x, tn.stack([x, x + 1, -x]))
    return carry + rows.sum()


def in_while(f, x):
    return tn.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1]) / 8),
                         (tn.zeros((), dtype=tn.int32), x))[1]


def in_checkpoint(f, x):
    return tn.checkpoint(lambda x: tn.exp(f(x) / 16))(x)


def in_custom_chain(f, x):
    """Several in one body: nothing is gathered between them."""
    return tn.scan(lambda c, _: (f(f(c) / 8) / 8, None), x, None, length=2)[0]


ALL = [in_cond, in_nested_cond, in_scan, in_while, in_checkpoint, in_custom_chain]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("where", ["host", "mesh"])
@pytest.mark.parametrize("program", ALL)
def test_in_control_flow(program, where, compiled):
    mesh = tn.Mesh(data=2)
    x = tn.array([0.5, -1.0, 2.0, 0.25])
    if where == "mesh":
        with mesh:
            x = tn.shard(x, "data")
    f = on_workers(mesh)
    if where == "host":  # a body's results are where its operands are
        f = lambda x, f=f: f(x).to("cpu")
    change = tn.compile if compiled else lambda f: f
    expected = program(alone, x.to("cpu")).numpy()
    np.testing.assert_allclose(change(lambda x: program(f, x))(x).numpy(), expected, rtol=1e-5)
    if program is in_while:
        return  # has no reverse derivative
    slope = tn.grad(lambda x: (program(f, x) ** 2).sum())
    wanted = tn.grad(lambda x: (program(alone, x) ** 2).sum())(x.to("cpu")).numpy()
    np.testing.assert_allclose(change(slope)(x).numpy(), wanted, rtol=1e-4)


def test_values_between_two_of_them_stay_divided():
    with tn.Mesh(data=2):
        f = on_workers(None)
        g = tn.compile(lambda x: tn.scan(lambda c, _: (f(tn.exp(f(c) / 9)) / 9, None), x, None,
                                         length=3)[0])
        g(tn.ones(4))
        text = g.show("sharding")
    assert text.count("all_gather along data") == 1  # of the carry
    assert "3 times" in text  # it is inside of a loop
    assert "9 collectives" in text


class Mean(nn.Module):
    def __init__(self, axis=None):
        super().__init__()
        self.mean, self.axis, self.calls = tn.zeros(3), axis, 0

    def forward(self, x):
        mean = x.mean(axis=0)
        if self.axis:
            mean = dist.all_sum(mean, axis=self.axis) / 2
        self.mean = 0.5 * self.mean + 0.5 * mean
        self.calls += 1
        return x - mean


def on_rows(f):
    return tn.shard_map(f, in_specs=("data",), out_specs="data")


@pytest.mark.parametrize("compiled", [False, True])
def test_state_that_is_equal_on_all_workers_is_carried_out(compiled):
    x = tn.arange(12.0).reshape(4, 3)
    with tn.Mesh(data=2):
        module = Mean("data")
        f = on_rows(module)
        if compiled:
            f = tn.compile(f, inputs=[module.state], outputs=[module.state])
        y = f(x)
        np.testing.assert_allclose(module.mean.numpy(), 0.5 * x.numpy().mean(axis=0))
        f(x)
        np.testing.assert_allclose(module.mean.numpy(), 0.75 * x.numpy().mean(axis=0))
    np.testing.assert_allclose(y.numpy(), x.numpy() - x.numpy().mean(axis=0))


def test_state_that_differs_by_worker_is_refused():
    x = tn.arange(12.0).reshape(4, 3)
    with tn.Mesh(data=2):
        module = Mean()
        with pytest.raises(tn.Error) as error:
            on_rows(module)(x)
        text = "assigns to mean of a Mean, and the value differs by worker along 'data'"
        assert text in str(error.value)
        assert module.mean.tolist() == [0, 0, 0]
        norm = nn.BatchNorm(3)
        before = {name: value.tolist() for name, value in norm.state_dict().items()}
        with pytest.raises(tn.Error, match="of a BatchNorm, and the value differs by worker"):
            on_rows(norm)(x)
        assert {name: value.tolist() for name, value in norm.state_dict().items()} == before
        norm.eval()
        assert on_rows(norm)(x).shape == (4, 3)


def test_state_after_an_error_is_as_before():
    with tn.Mesh(data=2):
        module = Mean("data")

        def f(x):
            module(x)
            raise KeyError("no")

        with pytest.raises(KeyError):
            on_rows(f)(tn.ones((4, 3)))
        assert module.mean.tolist() == [0, 0, 0]


def test_stored_parameters_beside_tensor_parallelism():
    def train(specs):
        tn.random.seed(0)
        with tn.Mesh(data=2, model=2):
            model = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 8))
            nn.shard(model, specs)
            optimizer = optim.AdamW(learning_rate=0.01)
            state = [model.state, optimizer.state]

            @tn.compile(inputs=state, outputs=state)
            def step(x, y):
                loss, slopes = nn.value_and_grad(
                    model, lambda m, x, y: ((m(x) - y) ** 2).mean())(model, x, y)
                optimizer.update(model, slopes)
                return loss

            for _ in range(3):
                loss = step(*tn.shard((tn.ones((16, 8)), tn.zeros((16, 8))), "data"))
            layouts = [tn.layout(p) for _, p in model.named_parameters()]
            moments = [tn.layout(m) for m in tn.tree.leaves(optimizer.state) if m.ndim > 0]
        return loss.item(), layouts, moments

    plain, _, _ = train({"layers.2.weight": (None, "model")})
    loss, layouts, moments = train({"layers.2.weight": (None, "model"), "*": tn.stored("data")})
    assert loss == plain
    assert layouts == [
        "f32[16,8] @[model+data,-] stored(data)", "f32[16] @[model+data] stored(data)",
        "f32[8,16] @[-,model]", "f32[8] @[data] stored(data)"]
    assert sorted(set(moments)) == sorted(layouts)
    with pytest.raises(tn.Error, match="nn.shard: an earlier pattern fits all parameters that"):
        train({"*": tn.stored("data"), "layers.2.weight": (None, "model")})


def test_gradients_of_stored_parameters_in_functions_of_one_worker():
    with tn.Mesh(data=2):
        w = tn.shard(tn.ones((4, 3)), tn.stored("data"))
        x = tn.shard(tn.arange(32.0).reshape(8, 4), "data")

        def closed(w):
            return tn.shard_map(lambda x: dist.all_sum(((x @ w) ** 2).sum(), axis="data"),
                                in_specs=("data",), out_specs=None)(x)

        def given(w):
            return tn.shard_map(lambda x, w: dist.all_sum(((x @ w) ** 2).sum(), axis="data"),
                                in_specs=("data", None), out_specs=None)(x, w)

        for loss in (closed, given):
            step = tn.compile(lambda w, loss=loss: w - 0.125 * tn.grad(loss)(w))
            made = step(w)
            text = step.show("sharding")
            assert tn.layout(made) == "f32[4,3] @[data,-] stored(data)"
            assert "reduce_scatter along data of f32[2,3]" in text
            assert "all_sum along data of f32[4,3]" not in text
            host = tn.ones((4, 3))
            rows = tn.arange(32.0).reshape(8, 4)
            wanted = host - 0.125 * tn.grad(lambda w: ((rows @ w) ** 2).sum())(host)
            np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=1e-6)


def test_names_of_axes():
    mesh = tn.Mesh(a=2, b=3)
    x = tn.arange(12.0)
    both = (("a", "b"),)

    def f(x):
        pair = x[None]
        return (dist.all_sum(x, ("a", "b")), dist.all_sum(dist.all_sum(x, "a"), axis="b"),
                dist.all_gather(pair, axis=("a", "b")), dist.axis_index(("a", "b"))[None],
                dist.broadcast(x, 4, axis=("a", "b")),
                dist.sum_scatter(dist.all_gather(x, axis=("a", "b")), ["a", "b"]))

    total, again, rows, index, fifth, part = tn.shard_map(
        f, mesh, in_specs=(both,), out_specs=(None, None, None, both, None, both))(x)
    assert total.tolist() == again.tolist() == x.reshape(6, 2).sum(axis=0).tolist()
    assert rows.tolist() == x.reshape(6, 2).tolist()
    assert index.tolist() == [0, 1, 2, 3, 4, 5]
    assert fifth.tolist() == [8, 9]
    assert part.tolist() == (x * 6).tolist()


def test_derivatives_of_extremes_and_broadcasts():
    mesh = tn.Mesh(data=2)
    x = tn.array([1.0, 5.0, 3.0, 5.0])

    def gradient(f, spec=None):
        g = tn.shard_map(f, mesh, in_specs=("data",), out_specs=spec)
        return tn.grad(lambda x: (g(x) * tn.array([2.0, 8.0])).sum())(x).tolist()

    assert gradient(lambda x: dist.all_max(x, axis="data")) == [0, 4, 2, 4]
    assert gradient(lambda x: dist.all_min(x, axis="data")) == [2, 4, 0, 4]
    assert gradient(lambda x: dist.broadcast(x, 1, axis="data")) == [0, 0, 2, 8]
    # A part of each worker: the cotangents of all are summed.
    weights = tn.array([1.0, 10.0, 100.0, 1000.0])
    g = tn.shard_map(lambda x: dist.broadcast(x, 0, axis="data"), mesh, in_specs=("data",),
                     out_specs="data")
    assert tn.grad(lambda x: (g(x) * weights).sum())(x).tolist() == [101, 1010, 0, 0]


def test_meshes_are_devices_and_dicts_have_layouts():
    mesh = tn.Mesh(data=2)
    assert tn.ones(3).to(mesh).device == mesh.device == tn.ones(3, device=mesh).device
    with tn.device(mesh):
        assert tn.ones(3).device == mesh.device
    f = tn.shard_map(lambda batch: {"sum": batch["x"] + batch["w"], "w": batch["w"]}, mesh,
                     in_specs=({"w": None, "x": "data"},), out_specs={"w": None, "sum": "data"})
    made = f({"x": tn.arange(4.0), "w": tn.array([10.0, 20.0])})
    assert made["sum"].tolist() == [10, 21, 12, 23] and made["w"].tolist() == [10, 20]
    with mesh:
        made = tn.shard({"x": tn.ones(4), "w": [tn.ones(2)]}, {"x": "data", "w": None})
        assert tn.layout(made["x"]) == "f32[4] @[data]" and tn.layout(made["w"][0]) == "f32[2] @[-]"
        with pytest.raises(tn.Error, match="shard: layouts for the keys"):
            tn.shard({"x": tn.ones(4)}, {"y": "data"})
        with pytest.raises(tn.Error, match="is not the name of an axis"):
            tn.stored(3)


def test_tensors_without_elements():
    with tn.Mesh(data=2):
        x = tn.shard(tn.zeros((0, 3)), "data")
        assert tn.layout(x) == "f32[0,3] @[-,-]" and (x + 1).sum().item() == 0
        f = tn.shard_map(lambda x: x * 2, in_specs=("data",), out_specs="data")
        assert f(x).shape == (0, 3) and tn.grad(lambda x: f(x).sum())(x).shape == (0, 3)
        with pytest.raises(tn.Error, match="the mesh has no axis 'rows'"):
            tn.shard(tn.zeros((0, 3)), "rows")


def test_errors_have_the_line_of_the_op():
    mesh = tn.Mesh(data=2)
    with mesh:
        x, i = tn.arange(8.0), tn.array([9])
        y = tn.take(x * 2, i)  # this line
        with pytest.raises(tn.InvalidIndex) as error:
            y.tolist()
    import inspect

    lines, first = inspect.getsourcelines(test_errors_have_the_line_of_the_op)
    number = first + next(k for k, line in enumerate(lines) if "# this line" in line)
    assert f"test_shard_map_inside.py:{number}," in str(error.value)


def test_sizes_that_are_open_cannot_be_divided():
    f = tn.shard_map(lambda x: x, tn.Mesh(data=2), in_specs=("data",), out_specs="data")
    with pytest.raises(tn.Error, match="axis 'data' cannot divide dimension 0 into 2 equal parts"):
        tn.compile(f, args=[tn.InputInfo(((2, 4, 8),), tn.float32)])
