"""Functions that are written for one worker of a mesh."""

import inspect

import numpy as np
import pytest

import tenon as tn
from failures import errors_test

dist = tn.distributed


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_worker_gets_its_part(workers):
    shapes = []

    def f(x, w):
        shapes.append((x.shape, w.shape))
        return tn.tanh(x @ w)

    x, w = numbers(8, 6), numbers(6, 3, seed=1)
    mesh = tn.Mesh(data=workers)
    y = tn.shard_map(f, mesh, in_specs=("data", None), out_specs="data")(tn.array(x), tn.array(w))
    assert shapes == [((8 // workers, 6), (6, 3))]
    assert y.shape == (8, 3) and y.device.kind == "mesh"
    assert tn.layout(y) == ("f32[8,3] @[data,-]" if workers > 1 else "f32[8,3] @[-,-]")
    np.testing.assert_array_equal(y.numpy(), tn.tanh(tn.array(x) @ tn.array(w)).numpy())


def test_collectives_along_the_axes_of_a_mesh():
    x = numbers(4, 6)

    def f(x):  # [2, 2] on each of 2 x 3 workers
        along = dist.all_sum(x, axis="model")
        return (along, dist.all_sum(along, axis="data"), dist.all_max(x, axis="data"),
                dist.all_gather(x, axis="data"), dist.broadcast(x, 1, axis="data"),
                dist.axis_index("data")[None] * 10 + dist.axis_index("model")[None])

    mesh = tn.Mesh(data=2, model=3)
    specs = (("data", None), None, (None, "model"), (None, "model"), (None, "model"),
             (("data", "model"),))
    along, total, most, rows, first, index = tn.shard_map(
        f, mesh, in_specs=(("data", "model"),), out_specs=specs)(x)
    blocks = x.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(along.numpy(), np.concatenate(blocks.sum(axis=1)), rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), blocks.sum(axis=(0, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(most.numpy(), np.concatenate(blocks.max(axis=0), axis=1))
    np.testing.assert_array_equal(rows.numpy(), x)
    np.testing.assert_array_equal(first.numpy(), np.concatenate(blocks[1], axis=1))
    assert index.tolist() == [0, 1, 2, 10, 11, 12]


def test_scatter_and_exchange():
    x = numbers(16, 3)
    mesh = tn.Mesh(data=4)
    scattered = tn.shard_map(lambda x: dist.sum_scatter(x, axis="data"), mesh, in_specs=(None,),
                             out_specs="data")(x)
    np.testing.assert_allclose(scattered.numpy(), 4 * x, rtol=1e-6)
    turned = tn.shard_map(lambda x: dist.all_to_all(x, axis="data"), mesh, in_specs=("data",),
                          out_specs="data")(x)
    expected = x.reshape(4, 4, 1, 3).transpose(1, 0, 2, 3).reshape(16, 3)
    np.testing.assert_array_equal(turned.numpy(), expected)


def loss_of_part(w, x, y):
    error = x @ w - y
    return dist.all_sum((error * error).sum(), axis="data") / 16


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_gradients_are_those_of_the_whole(workers):
    x, y, w = numbers(16, 5), numbers(16, 2, seed=1), numbers(5, 2, seed=2)
    mesh = tn.Mesh(data=workers)
    loss = tn.shard_map(loss_of_part, mesh, in_specs=(None, "data", "data"), out_specs=None)
    args = [tn.array(a) for a in (w, x, y)]
    value, slopes = tn.value_and_grad(loss, argnums=(0, 1))(*args)
    whole, expected = tn.value_and_grad(
        lambda w, x, y: ((x @ w - y) ** 2).sum() / 16, argnums=(0, 1))(*args)
    np.testing.assert_allclose(value.numpy(), whole.numpy(), rtol=1e-5)
    for one, other in zip(slopes, expected):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
    again = tn.compile(tn.grad(loss))(*args)
    np.testing.assert_allclose(again.numpy(), slopes[0].numpy(), rtol=1e-6)


def test_gradients_of_results_without_collectives():
    """Every worker computes the same, and counts once."""
    w = numbers(6)
    mesh = tn.Mesh(data=3)
    f = tn.shard_map(lambda w: (w * w * w).sum(), mesh, in_specs=(None,), out_specs=None)
    np.testing.assert_allclose(tn.grad(f)(tn.array(w)).numpy(), 3 * w * w, rtol=1e-5)
    second = tn.grad(lambda v: tn.grad(f)(v).sum())(tn.array(w))
    np.testing.assert_allclose(second.numpy(), 6 * w, rtol=1e-5)


def test_gradients_inside_are_those_of_all_losses():
    """MLX's rule: the cotangents of all workers are summed."""
    mesh = tn.Mesh(data=2)

    def f(x):
        def loss(x):
            factor = (dist.axis_index("data") + 1).astype(tn.float32)
            return (factor * dist.all_sum(x, axis="data")).sum()

        return tn.grad(loss)(x)

    made = tn.shard_map(f, mesh, in_specs=("data",), out_specs="data")(tn.ones(2))
    assert made.tolist() == [3.0, 3.0]


def test_batches():
    x, w = numbers(3, 8, 5), numbers(5, 2, seed=1)
    mesh = tn.Mesh(data=4)

    def f(x, w):
        return x @ w - dist.all_sum((x @ w).sum(axis=0), axis="data") / 8

    g = tn.shard_map(f, mesh, in_specs=("data", None), out_specs="data")
    y = tn.vmap(g, in_axes=(0, None))(tn.array(x), tn.array(w))
    product = x @ w
    np.testing.assert_allclose(y.numpy(), product - product.mean(axis=1, keepdims=True),
                               rtol=1e-4, atol=1e-5)
    inside = tn.shard_map(lambda x, w: tn.vmap(lambda row: tn.softmax(row @ w))(x), mesh,
                          in_specs=("data", None), out_specs="data")(x[0], w)
    np.testing.assert_allclose(inside.numpy(), tn.softmax(tn.array(x[0] @ w)).numpy(), rtol=1e-5)


def test_it_is_a_part_of_a_divided_program():
    """What comes before and after is divided by the compiler, and nothing is gathered."""
    x, w = numbers(16, 6), numbers(6, 4, seed=1)
    with tn.Mesh(data=4):
        norm = tn.shard_map(lambda x: x / dist.all_max(tn.abs(x).max(), axis="data"),
                            in_specs=("data",), out_specs="data")

        @tn.compile
        def f(x, w):
            return (norm(tn.exp(x)) @ w).sum(axis=1)

        y = f(tn.shard(x, "data"), tn.array(w))
        text = f.show("sharding")
        assert tn.layout(y) == "f32[16] @[data]"
    e = np.exp(x)
    np.testing.assert_allclose(y.numpy(), ((e / e.max()) @ w).sum(axis=1), rtol=1e-4)
    assert "all_gather" not in text and text.count("all_fold along data of f32[]: 4B") == 1


def test_layouts_that_differ_are_changed():
    x = numbers(8, 8)
    with tn.Mesh(data=2):
        columns = tn.shard_map(lambda x: x.sum(axis=0), in_specs=((None, "data"),),
                               out_specs="data")
        np.testing.assert_allclose(columns(tn.shard(x, "data")).numpy(), x.sum(axis=0), rtol=1e-5,
                                   atol=1e-6)


def test_tensors_that_the_function_closes_over_are_whole():
    x, w = numbers(8, 4), numbers(4, 4, seed=1)
    with tn.Mesh(data=4):
        outside = tn.shard(w, "data")
        y = tn.shard_map(lambda x: x @ outside, in_specs=("data",), out_specs="data")(x)
    np.testing.assert_allclose(y.numpy(), x @ w, rtol=1e-5, atol=1e-5)


def test_trees():
    x = numbers(4, 2)
    mesh = tn.Mesh(data=2)

    def f(batch):
        return {"sum": dist.all_sum(batch["x"] + batch["y"], axis="data")}

    made = tn.shard_map(f, mesh, in_specs=("data",), out_specs=None)({"x": x, "y": 2 * x})
    np.testing.assert_allclose(made["sum"].numpy(), 3 * (x[:2] + x[2:]), rtol=1e-6)


def test_loops_inside():
    mesh = tn.Mesh(data=2)

    def f(x):
        def step(carry, _):
            return dist.all_sum(carry, axis="data") / 2 + x, carry

        return tn.scan(step, x, None, length=3)[0]

    x = numbers(4)
    carry = parts = x.reshape(2, 2)
    for _ in range(3):
        carry = carry.sum(axis=0) / 2 + parts
    made = tn.shard_map(f, mesh, in_specs=("data",), out_specs="data")(x)
    np.testing.assert_allclose(made.numpy(), carry.reshape(4), rtol=1e-5)


WORLD = dist.init()
ERRORS = [
    (lambda: tn.shard_map(lambda x: x, in_specs=("data",), out_specs="data")(tn.ones(4)),
     "shard_map: there is no mesh"),
    (lambda: tn.shard_map(3, in_specs=(), out_specs=None), "shard_map: not a function: int"),
    (lambda: run(lambda x: x, in_specs=("data", None)),
     "shard_map: 2 layouts for 1 arguments"),
    (lambda: run(lambda x: (x, x), out_specs=("data",)), "shard_map: 1 layouts for 2 results"),
    (lambda: run(lambda x: x.sum(), out_specs=None),
     "shard_map: result 0 differs by worker along 'data', which its layout does not name"),
    (lambda: run(lambda x: (x, tn.scan(lambda c, _: (c * x, None), tn.ones(2), None, length=2)[0]),
                 out_specs=("data", None)),
     "shard_map: result 1 differs by worker along 'data', which its layout does not name"),
    (lambda: run(lambda x: x, in_specs=("rows",)), "shard: the mesh has no axis 'rows'"),
    (lambda: run(lambda x: x, in_specs=((None, "data"),)),
     "shard: the layout names 2 dimensions, but the tensor has 1: f32[4]"),
    (lambda: run(lambda x: x, in_specs=(tn.stored("data"),)),
     "shard_map: tn.stored describes storage, not the part that a worker computes with"),
    (lambda: run(lambda x: x, (), x=tn.ones(3)),
     "shard: axis 'data' cannot divide dimension 0 into 2 equal parts: f32[3]"),
    (lambda: run(lambda x: dist.all_sum(x, axis="model")), "workers: the mesh has no axis 'model'"),
    (lambda: dist.all_sum(tn.ones(3), axis="data"),
     "workers: no mesh with an axis 'data' is active here"),
    (lambda: dist.all_sum(tn.ones(3), dist.init(), axis="data"),
     "workers: a group or an axis of the mesh, not both"),
    (lambda: run(lambda x: x * x.sum().item()), "shard_map"),
    (lambda: run(lambda x: x.to("cpu") + 1),
     "shard_map: the part of a worker cannot leave the mesh inside the function"),
    (lambda: run(lambda x: dist.all_sum(x)),
     "workers: in the function of shard_map a collective is along an axis of the mesh"),
    (lambda: run(lambda x: dist.all_max(x, axis="data"), x=tn.array([1j, 2, 3, 4])),
     "all_max: complex numbers have no order: c64[2]"),
    (lambda: run(lambda x: dist.sum_replicated(x, WORLD)),
     "sum_replicated: not allowed inside shard_map"),
    (lambda: run(lambda x: dist.sum_gradients(x, WORLD)),
     "sum_gradients: not allowed inside shard_map"),
    (lambda: other_mesh_in_cond(), "shard_map: the function is for the mesh data=2, and the op "
     "around it runs on the mesh data=4"),
    (lambda: tn.compile(doubled_on(2), args=[tn.InputInfo((4,), tn.float32)]),
     "shard_map: an executable runs on one worker, and the function is for the mesh data=2"),
    (lambda: tn.compile(lambda x: tn.cond(x[0] > 0, doubled_on(2), lambda x: x.to(tn.Mesh(data=2)),
                                          x), args=[tn.InputInfo((4,), tn.float32)]),
     "shard_map: an executable runs on one worker, and the function is for the mesh data=2"),
    (lambda: tn.shard_map(lambda x: x, "mesh", in_specs=(None,), out_specs=None),
     "shard_map: not a mesh: 'mesh'"),
    (lambda: run(lambda x: (tn.print("x", x), x)[1]),
     "shard_map: print is not allowed inside: its order across workers is undefined"),
    (lambda: run(lambda x: (tn.check(x > 0, "x"), x)[1]),
     "shard_map: check is not allowed inside: its order across workers is undefined"),
    (lambda: run(lambda x: dist.all_sum(x, axis=0)),
     "all_sum: axis must be the name of an axis of the mesh, or a tuple of names: 0"),
    (lambda: run(lambda x: x + dist.axis_index(())), "axis_index: axis must be the name of an"),
    (lambda: run(lambda x: dist.all_max(x, axis=("data", "data"))),
     "all_max: an axis is named twice: ('data', 'data')"),
    (lambda: run(lambda x: dist.all_to_all(x, axis=("data", "model"))), "workers: the mesh has no"),
    (lambda: dist.barrier("data"), "barrier: not a group of workers: 'data'"),
    (lambda: dist.send(tn.ones(3), 0, 3), "send: not a group of workers: 3"),
    (lambda: dist.send(tn.ones(3), "a"), "send: dst must be the number of a worker, not 'a'"),
    (lambda: dist.recv_like(tn.ones(3), 2**40), "recv_like: there is no worker 1099511627776"),
    (lambda: run(lambda x: dist.broadcast(x, 1.5, axis="data")),
     "broadcast: root must be the number of a worker, not 1.5"),
    (lambda: run(lambda x: x, in_specs=({"x": "data"},)),
     "shard_map: layouts for the keys ['x'], and the value has no dict: Tensor"),
    (lambda: run(lambda b: b["x"], in_specs=({"y": "data"},), x={"x": tn.ones(4)}),
     "shard_map: layouts for the keys ['y'], and the value has the keys ['x']: dict"),
    (lambda: run(lambda x: x, in_specs=(({"x": "data"},),)),
     "shard_map: {'x': 'data'} is not the name of an axis, a tuple of names, or None"),
    (lambda: run(lambda x: tn.shard(x, "data")),
     "shard: not allowed inside shard_map, where a tensor is already one worker's part"),
    (lambda: run(lambda x: tn.shard_map(lambda y: y, in_specs=("data",), out_specs="data")(x)),
     "shard_map: the function of a worker cannot use shard_map itself"),
    (lambda: run(lambda x: (tn._core._mesh_axis("data").rank(), x)[1]),
     "workers: the rank along 'data' is not known at trace time"),
    (lambda: tn.shard_map(lambda x: x, tn.Mesh(data=2), in_specs=("data",), out_specs="data")(
        x=tn.ones(4)), "shard_map: arguments are positional, as each has a layout: x="),
]


def doubled_on(workers):
    return tn.shard_map(lambda x: x * 2, tn.Mesh(data=workers), in_specs=("data",),
                        out_specs="data")


def other_mesh_in_cond():
    with tn.Mesh(data=4) as mesh:
        x = tn.shard(tn.ones(4), "data")
        return tn.eval(tn.cond(x.sum() > 0, lambda x: doubled_on(2)(x).to(mesh), lambda x: x, x))


def run(f, in_specs=("data",), out_specs="data", x=None):
    with tn.Mesh(data=2):
        g = tn.shard_map(f, in_specs=in_specs or ("data",), out_specs=out_specs)
        return tn.eval(g(tn.ones(4) if x is None else x))


test_errors = errors_test(ERRORS)


def test_executables_say_where_they_need_several_workers():
    def doubled(x):
        return doubled_on(2)(x)  # the line of the error

    with pytest.raises(tn.Error, match=r"called at .*test_shard_map.py:\d+, in doubled") as error:
        tn.compile(doubled, args=[tn.InputInfo((4,), tn.float32)])
    line = inspect.getsourcelines(doubled)[1] + 1
    assert f"test_shard_map.py:{line}," in str(error.value)

    def on_mesh(x):
        return x.to(tn.Mesh(data=2)) * 2

    with pytest.raises(tn.Error, match=r"and f32\[4\]@mesh:\d+, called at .*, in on_mesh"):
        tn.compile(on_mesh, args=[tn.InputInfo((4,), tn.float32)])


def test_executables_of_modules_on_a_mesh_are_files_for_one_worker(tmp_path):
    with tn.Mesh(data=2):
        model = tn.nn.shard(tn.nn.Linear(4, 2), {"*": tn.stored("data")})
        x = tn.random.normal((4, 4), key=tn.random.key(0))
        tn.compile(model, args=[tn.InputInfo((4, 4), tn.float32)]).save(tmp_path / "linear.tnx")
        run = tn.Executable.load(tmp_path / "linear.tnx")
        made = run(tn.shard(x, "data"))
        assert made.device == x.device
    np.testing.assert_array_equal(made.numpy(), run(x.to("cpu")).numpy())
    np.testing.assert_allclose(made.numpy(), model(x).numpy(), rtol=1e-6)


def test_gradients_of_what_a_function_closes_over():
    x = tn.arange(8.0)
    w, z = tn.array(2.0), tn.array([1.0, 2.0, 3.0])

    def total(f):
        return tn.shard_map(f, tn.Mesh(data=4), in_specs=("data",), out_specs="data")(x).sum()

    def of_scalar(w):
        return total(lambda x: x * w)

    def of_vector(z):
        return total(lambda x: x * z.sum() + z[1])

    def of_sum(w):
        return total(lambda x: x * 0 + dist.all_sum((x * w).sum(), axis="data"))

    for change in (lambda f: f, tn.compile):
        assert change(tn.grad(of_scalar))(w).item() == 28
        assert change(tn.grad(of_vector))(z).tolist() == [28, 36, 28]
        assert change(tn.grad(of_sum))(w).item() == 8 * 28
    assert tn.vmap(tn.grad(of_scalar))(tn.array([1.0, 2.0])).tolist() == [28, 28]


def test_a_function_for_another_mesh():
    f = tn.shard_map(lambda x: x + 1, tn.Mesh(data=2), in_specs=("data",), out_specs="data")
    with tn.Mesh(data=4):
        y = tn.shard(tn.ones(8), "data")
    with pytest.raises(tn.Error):
        tn.eval(f(y) + y)


def test_processes(tmp_path):
    import subprocess
    import sys

    from processes import environment

    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np, tenon as tn
dist = tn.distributed
with tn.Mesh(data=-1) as mesh:
    x = np.arange(8.0, dtype=np.float32)
    f = tn.shard_map(lambda x: (x * 2, dist.all_sum(x.sum(), axis="data")), in_specs=("data",),
                     out_specs=("data", None))
    double, total = f(x)
    gradient = tn.grad(lambda v: f(v)[1] + f(v)[0].sum())(tn.array(x))
    with open(f"worker{dist.init().rank()}", "w") as out:
        print(total.item(), dist.gather(double).tolist(), gradient.local.tolist(), file=out)
""")
    done = subprocess.run([sys.executable, "-m", "tenon", "launch", "-n", "2", str(program)],
                          capture_output=True, text=True, timeout=120, cwd=tmp_path,
                          env=environment(TENON_COLLECTIVE_TIMEOUT="60"))
    assert done.returncode == 0, done.stderr
    whole = "28.0 [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0] [3.0, 3.0, 3.0, 3.0]\n"
    for rank in range(2):
        assert (tmp_path / f"worker{rank}").read_text() == whole


def test_all_to_all_goes_along_one_axis():
    mesh = tn.Mesh(a=2, b=2)
    f = tn.shard_map(
        lambda x: tn.distributed.all_to_all(x, axis=("a", "b")), mesh, in_specs="a", out_specs="a"
    )
    with pytest.raises(ValueError, match="along one axis of the mesh, not several"):
        f(tn.ones(8))
