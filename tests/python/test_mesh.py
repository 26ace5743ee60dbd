"""Tensors that are divided among the workers of a mesh."""

import contextlib

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

COUNTS = [1, 2, 4, 8]
SEED = 7


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def mesh_of(workers, name="data"):
    return tn.Mesh(parts=8, **{name: workers})


def on_meshes(program, counts=COUNTS, name="data"):
    """What a program returns on meshes of as many workers; all must be equal, to the bit."""
    results = []
    for count in counts:
        tn.random.seed(SEED)
        with mesh_of(count, name):
            results.append([np.asarray(x.numpy()) for x in tn.tree.leaves(program())])
    for count, result in zip(counts[1:], results[1:]):
        assert len(result) == len(results[0])
        for first, other in zip(results[0], result):
            np.testing.assert_array_equal(first, other, err_msg=f"{count} workers")
    return results[0]


@pytest.fixture
def default_device():
    before = tn.default_device()
    yield
    tn.set_default_device(before)


def test_products_of_divided_rows(default_device):
    tn.workers(4)
    assert tn.workers() == 4
    a, b = numbers(64, 32), numbers(32, 16, seed=1)
    x = tn.shard(tn.array(a), "workers")
    y = x @ tn.array(b)
    assert tn.layout(x) == "f32[64,32] @[workers,-]"
    assert tn.layout(y) == "f32[64,16] @[workers,-]"
    tn.set_default_device("cpu")
    np.testing.assert_array_equal(y.numpy(), (tn.array(a) @ tn.array(b)).numpy())
    host = str((tn.array(a) @ tn.array(b))[:2, :2])
    assert str(y[:2, :2]) == host[:-1] + ", device='mesh:" + str(y.device).split(":")[1] + "')"
    assert y[3, 4].item() == y.numpy()[3, 4]


@pytest.mark.parametrize("workers", COUNTS)
def test_what_is_not_folded_has_the_bits_of_the_host(workers):
    a, b = numbers(16, 24), numbers(24, 8, seed=1)

    def program(x, y):
        z = tn.tanh(x @ y) * 2 + x[:, :8]
        return z, z.transpose(1, 0), tn.sort(z, axis=1), tn.softmax(z, axis=-1), z[::2]

    expected = program(tn.array(a), tn.array(b))
    for spec in ("data", (None, "data"), None):
        with tn.Mesh(data=workers):
            made = program(tn.shard(a, spec), tn.array(b))
        for x, y in zip(expected, made):
            assert y.device.kind == "mesh"
            if spec != (None, "data"):
                np.testing.assert_array_equal(x.numpy(), y.numpy())
            else:
                np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-5, atol=1e-6)


def test_sums_have_equal_bits_with_equal_parts():
    x = numbers(64, 24)

    def program():
        rows = tn.shard(x, "data")
        columns = tn.shard(x, (None, "data"))
        return rows.sum(), rows.mean(axis=0), columns.sum(axis=1), rows.T @ rows, rows.max(axis=0)

    first = on_meshes(program)
    np.testing.assert_allclose(first[0], x.sum(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(first[3], x.T @ x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_sums_of_other_types(dtype):
    x = tn.array(numbers(64, 6) * 4).astype(dtype)
    on_meshes(lambda: tn.shard(x, "data").sum(axis=0).astype(tn.float64))


@pytest.mark.parametrize("dtype, small", [("bfloat16", 1.25), ("float16", 0.15625)])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_narrow_sums_are_rounded_once(dtype, small, workers):
    large = 256.0
    row = tn.array([large, small, -large, 0, large, small, -large, 0]).astype(dtype)
    with tn.Mesh(data=workers, parts=4):
        x = tn.shard(row, "data")
        matrix = tn.shard(tn.stack([row, row], axis=1), "data")
        sums = [x.sum(), tn.shard(x * 2, "data").sum() / 2, (x * 1).reshape(2, 4).sum()]
        sums += [(tn.ones((1, 8), dtype=dtype) @ matrix)[0, 1], matrix.sum(axis=0)[1]]
        sums += [(x.sum() + x.sum()) / 2, matrix.sum() / 2]
        for total in sums:
            assert str(total.dtype) == dtype
            assert total.item() == 2 * small
    both = tn.Mesh(data=workers, model=2, parts={"data": 4, "model": 2})
    with both:
        x = tn.shard(tn.stack([row, row], axis=1), ("data", "model"))
        assert x.sum().item() == 4 * small


def test_random_numbers_do_not_depend_on_the_workers():
    on_meshes(lambda: tn.shard(tn.randn(64, 8), "data"))
    with tn.Mesh(data=4):
        assert tn.layout(tn.shard(tn.randn(64, 8), "data")) == "f32[64,8] @[data,-]"


def test_two_axes():
    a = numbers(16, 12)
    with tn.Mesh(data=2, model=3) as mesh:
        assert repr(mesh) == "Mesh(data=2, model=3)" and mesh.size == 6
        x = tn.shard(a, ("data", "model"))
        assert tn.layout(x) == "f32[16,12] @[data,model]"
        np.testing.assert_array_equal(x.numpy(), a)
        y = tn.shard(a, (None, ("data", "model")))
        assert tn.layout(y) == "f32[16,12] @[-,data+model]"
        np.testing.assert_array_equal(y.numpy(), a)
        np.testing.assert_array_equal((x + y).numpy(), a + a)
        assert tn.layout(tn.shard(x, None)) == "f32[16,12] @[-,-]"
        assert tn.layout(tn.shard(x, "data")) == "f32[16,12] @[data,-]"
        blocks = tn._core._blocks(x)
        assert len(blocks) == 6 and blocks[4].tolist() == a[8:, 4:8].tolist()


def test_host_tensors_meet_those_of_a_mesh():
    a, b = tn.array(numbers(8, 4)), tn.array(numbers(8, 4, seed=1))
    with tn.Mesh(data=2):
        x = tn.shard(a, "data")
    y = x * b - numbers(4)
    assert y.device.kind == "mesh" and tn.layout(y) == "f32[8,4] @[data,-]"
    np.testing.assert_array_equal(y.numpy(), (a * b - numbers(4)).numpy())
    assert tn.layout(b) == "f32[8,4] on cpu"
    np.testing.assert_array_equal(tn.distributed.gather(x).numpy(), a.numpy())


def test_gradients_and_batches():
    x, w = numbers(16, 6), numbers(6, 3, seed=1)

    def program():
        data, weight = tn.shard(x, "data"), tn.array(w)

        def loss(weight, data):
            return (tn.tanh(tn.shard(data @ weight, "data")) ** 2).sum()

        gradient, of_data = tn.grad(loss, argnums=(0, 1))(weight, data)
        rows = tn.vmap(lambda row: tn.shard(tn.sin(row) @ weight, None))(data)
        return gradient, of_data, rows, tn.jvp(loss, (weight, data), (weight, data))[1]

    first = on_meshes(program)
    host = tn.grad(lambda v: (tn.tanh(tn.array(x) @ v) ** 2).sum())(tn.array(w))
    np.testing.assert_allclose(first[0], host.numpy(), rtol=1e-5, atol=1e-5)


class Block(nn.Module):
    def __init__(self):
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return x + self.down(nn.gelu(self.up(self.norm(x))))


def training(model, optimizer):
    state = [model.state, optimizer.state]

    def loss_of(m, x, y):
        return ((m(x) - y) ** 2).mean()

    def step(x, y):
        loss, gradients = nn.value_and_grad(model, loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

    return tn.compile(step, inputs=state, outputs=state)


def train(specs=None, compiled=True, steps=4):
    x, y = numbers(16, 8), numbers(16, 8, seed=1)
    model, optimizer = nn.Sequential(Block(), Block()), optim.AdamW(learning_rate=0.01)
    if specs:
        nn.shard(model, specs)
    step = training(model, optimizer)
    with contextlib.nullcontext() if compiled else tn.disable_compile():
        losses = [step(*tn.shard((x, y), "data")) for _ in range(steps)]
    return losses, dict(model.named_parameters())


@pytest.mark.parametrize("compiled", [True, False])
def test_training_on_parts_of_a_batch(compiled):
    first = on_meshes(lambda: train(compiled=compiled))
    tn.random.seed(SEED)
    losses, _ = train_on_host()
    np.testing.assert_allclose([float(x) for x in first[: len(losses)]], losses, rtol=1e-4)


def train_on_host():
    x, y = numbers(16, 8), numbers(16, 8, seed=1)
    model, optimizer = nn.Sequential(Block(), Block()), optim.AdamW(learning_rate=0.01)
    step = training(model, optimizer)
    return [step(tn.array(x), tn.array(y)).item() for _ in range(4)], model


def test_stored_parameters():
    with tn.Mesh(data=4):
        model = nn.shard(nn.Sequential(Block(), Block()), {"*": tn.stored("data")})
        optimizer = optim.AdamW(learning_rate=0.01)
        step = training(model, optimizer)
        for _ in range(2):
            step(*tn.shard((numbers(16, 8), numbers(16, 8, seed=1)), "data"))
        assert tn.layout(model[0].up.weight) == "f32[16,8] @[data,-] stored(data)"
        layouts = {tn.layout(x) for x in tn.tree.leaves(optimizer.state) if x.shape == (16, 8)}
        assert layouts == {"f32[16,8] @[data,-] stored(data)"}
    stored = on_meshes(lambda: train({"*": tn.stored("data")}))
    whole = on_meshes(lambda: train(), [8])
    for a, b in zip(stored, whole):
        np.testing.assert_array_equal(a, b)


def test_tensor_parallel():
    def program(data, model):
        tn.random.seed(SEED)
        with tn.Mesh(data=data, model=model, parts={"data": 4, "model": 4}):
            losses, parameters = train({"*.down.weight": (None, "model")})
            layouts = {name: tn.layout(p) for name, p in parameters.items()}
        return [float(x) for x in losses], layouts, {n: p.numpy() for n, p in parameters.items()}

    first = program(1, 1)
    for data, model in [(2, 2), (1, 4), (4, 1), (2, 4)]:
        losses, layouts, parameters = program(data, model)
        assert losses == first[0]
        for name, value in parameters.items():
            np.testing.assert_array_equal(value, first[2][name])
    assert layouts["layers.0.down.weight"] == "f32[8,16] @[-,model]"


def test_compiled_functions_follow_the_layouts_of_their_arguments():
    calls = []

    @tn.compile
    def f(x, y):
        calls.append(1)
        return x @ y + 1

    a, b = numbers(8, 4), numbers(4, 8, seed=1)
    with tn.Mesh(data=2):
        y = tn.array(b)
        assert tn.layout(f(tn.shard(a, "data"), y)) == "f32[8,8] @[data,-]"
        assert tn.layout(f(tn.array(a), tn.shard(b, (None, "data")))) == "f32[8,8] @[-,data]"
        assert tn.layout(f(tn.array(a), y)) == "f32[8,8] @[-,-]"
        for x in (tn.shard(a, "data"), tn.array(a), tn.shard(a, (None, "data"))):
            np.testing.assert_allclose(f(x, y).numpy(), a @ b + 1, rtol=1e-5)
    assert len(calls) == 1


def test_layouts_inside_of_compiled_functions():
    @tn.compile
    def f(x):
        return tn.shard(x * 2, (None, "data"))

    with tn.Mesh(data=2):
        x = f(tn.array(numbers(4, 8)))
        assert tn.layout(x) == "f32[4,8] @[-,data]"
        np.testing.assert_array_equal(x.numpy(), numbers(4, 8) * 2)


def test_control_flow():
    x = numbers(8, 4)

    def program():
        data = tn.shard(x, "data")
        total, all_rows = tn.scan(lambda c, row: (c + row, c * row), tn.zeros(4), data)
        looped = tn.while_loop(lambda v: (v < 100).all(), lambda v: v * 2 + 1, tn.abs(data))
        return total, all_rows, looped

    on_meshes(program, [1, 2, 4])


def test_errors():
    x = tn.ones((6, 4))
    with pytest.raises(ValueError, match="shard: there is no mesh"):
        tn.shard(x, "data")
    with tn.Mesh(data=4):
        with pytest.raises(ValueError, match="the mesh has no axis 'model'"):
            tn.shard(x, "model")
        text = "axis 'data' cannot divide dimension 0 into 4 equal parts: f32"
        with pytest.raises(ValueError, match=text) as caught:
            tn.shard(x, "data")
        assert "hint: pad it from 6 to 8, drop the last 2 (tn.data.batches(" in str(caught.value)
        text = r"the layout names 3 dimensions, but the tensor has 2: f32\[6,4\]"
        with pytest.raises(ValueError, match=text):
            tn.shard(x, (None, None, "data"))
        with pytest.raises(ValueError, match="names 1 dimension, but the tensor has 0: f32"):
            tn.shard(tn.ones(()), "data")
        with pytest.raises(TypeError, match="nn.shard: specs must be a dict, not a str") as caught:
            nn.shard(nn.Linear(4, 4), "data")
        assert 'nn.shard(model, {"*": \'data\'})' in str(caught.value)
        with pytest.raises(TypeError, match="nn.shard: a module is needed, not a dict"):
            nn.shard({}, {})
        assert tn.layout(tn.shard(tn.ones((8, 4)), ["data", None])) == "f32[8,4] @[data,-]"
        with pytest.raises(ValueError, match="'data' divides two dimensions"):
            tn.shard(tn.ones((4, 4)), ("data", "data"))
        with pytest.raises(TypeError, match="is not the name of an axis"):
            tn.shard(x, (3, "data"))
        with pytest.raises(ValueError, match="no parameter is called 'wait'"):
            nn.shard(nn.Linear(2, 2), {"wait": "data"})
        with pytest.raises(ValueError, match="weight: shard: axis 'data' cannot divide"):
            nn.shard(nn.Linear(2, 2), {"weight": "data"})
    for wrong, text in [
        ({"data": 0}, "must have 1 to 256 workers, or -1: 0"),
        ({"data": -1, "model": -1}, "at most one axis may have the size -1; 'model' is the second"),
        ({"data": 3, "parts": 8}, "axis 'data' has 3 workers and 8 parts"),
        ({}, "1 to 8 axes"),
        ({"data": 2, "parts": {"model": 2}},
         "parts= names an axis that the mesh does not have: 'model'"),
        ({"data": 64, "model": 64}, "too many workers: at least 4096, the maximum is 256"),
        ({"a": 256, "b": 256, "c": 256}, "too many workers: at least 65536, the maximum is 256"),
    ]:
        with pytest.raises(ValueError, match=text):
            tn.Mesh(**wrong)
    with pytest.raises(ValueError, match="the number of workers must be between 1 and 256: 0"):
        tn.workers(0)
    for call, text in [
        (lambda: tn.Mesh(data=1.5), "mesh: data must be an integer, not 1.5"),
        (lambda: tn.Mesh(data=True), "mesh: data must be an integer, not True"),
        (lambda: tn.Mesh(data=2, parts="4"), "mesh: parts must be an integer, not '4'"),
        (lambda: tn.Mesh("data"), "mesh: axes are given by name, not by position: 'data'"),
        (lambda: tn.workers("4"), "workers: count must be an integer, not '4'"),
        (lambda: tn.workers(4, parts=1.5), "workers: parts must be an integer, not 1.5"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError, match="mesh: data is too large: 1"):
        tn.Mesh(data=2**70)


def test_an_index_out_of_bounds_stops_all_workers():
    with tn.Mesh(data=4):
        x = tn.shard(numbers(8, 3), "data")
        indices = tn.shard(np.array([0, 1, 2, 9, 0, 1, 2, 0]), "data")
        with pytest.raises(IndexError):
            (tn.take(tn.array(numbers(3)), indices) + x.sum(axis=1) + x.sum()).numpy()
        np.testing.assert_array_equal((x + 1).numpy(), numbers(8, 3) + 1)


def test_decisions_are_shown_with_their_lines():
    def loss(w, x):
        return ((x @ w) ** 2).mean()

    f = tn.compile(tn.grad(loss))
    with tn.Mesh(data=2):
        f(tn.array(numbers(4, 3)), tn.shard(numbers(8, 4), "data"))
        text = f.show("sharding")
    assert text.startswith("mesh data=2\n")
    assert "f32[8,4] @[data,-]" in text and "'data' is given" in text
    assert "all_sum of f32[4,3] along 'data': for the result" in text and "test_mesh.py:" in text
    assert "func @" in text
    assert "all_sum" in f.show("plan") and "all_sum" in f.show("optimized")
    assert "'data' through" in f.show("decisions")
    assert tn.show(lambda x: x + 1, tn.ones(3), what="sharding") == "nothing lies on a mesh"


def test_prints_and_empty_tensors(capfd):
    with tn.Mesh(data=2):
        x = tn.shard(tn.arange(4.0), "data")
        y = tn.compile(lambda x: (tn.print("v {}", x), tn.check(x.sum() > 0, "bad"), x * 2)[2])(x)
        assert y.numpy().tolist() == [0, 2, 4, 6]
        assert (tn.zeros((0, 3)) + 1).numpy().shape == (0, 3)
    assert capfd.readouterr().out == "v [0., 1., 2., 3.]\n"


RESHARDS = [None, "data", "model", (("data", "model"),), (("model", "data"),)]


@pytest.mark.parametrize("sizes", [(2, 2), (2, 1), (1, 2), (4, 2)])
@pytest.mark.parametrize("first", RESHARDS, ids=str)
@pytest.mark.parametrize("then", RESHARDS, ids=str)
def test_layouts_of_one_dimension(sizes, first, then):
    with tn.Mesh(data=sizes[0], model=sizes[1]):
        values = np.random.default_rng(7).normal(size=16).astype(np.float32)
        x = tn.shard(tn.array(values), first)
        assert tn.shard(x, then).numpy().tolist() == values.tolist()
        both = (x + tn.shard(tn.array(values), then)).numpy()
        assert both.tolist() == (values + values).tolist()
