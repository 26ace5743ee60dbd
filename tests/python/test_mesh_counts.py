"""Whole programs on 1, 2, 3, 4 and 8 workers: with 24 parts they compute equal bits."""

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

COUNTS = [1, 2, 3, 4, 8]
PARTS = 24


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def same_on_all(program, meshes):
    """Runs a program on each mesh; results must be equal to the bit."""
    first = None
    for sizes, parts in meshes:
        tn.random.seed(3)
        with tn.Mesh(**sizes, parts=parts):
            made = [np.asarray(x.numpy()) for x in tn.tree.leaves(program())]
        first = first or made
        for x, y in zip(first, made, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=str(sizes))
    return first


def train(specs=None, dtype=None):
    model = nn.Sequential(nn.Linear(8, 24), nn.relu, nn.LayerNorm(24), nn.Linear(24, 48))
    if dtype:
        model.apply(lambda w: w.astype(dtype))
    if specs:
        nn.shard(model, specs)
    optimizer = optim.AdamW(learning_rate=0.01)
    state = [model.state, optimizer.state]

    def loss_of(model, x, y):
        return ((tn.dropout(model(x), p=0.5) - y) ** 2).mean()

    @tn.compile(inputs=[*state, tn.random.state], outputs=[*state, tn.random.state])
    def step(x, y):
        loss, gradients = nn.value_and_grad(model, loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

    x, y = tn.array(numbers(48, 8)), tn.array(numbers(48, 48, seed=1))
    if dtype:
        x, y = x.astype(dtype), y.astype(dtype)
    losses = [step(*tn.shard((x, y), "data")).astype("float32") for _ in range(2)]
    return losses, [p.astype("float32") for _, p in model.named_parameters()]


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("specs", [None, {"*": tn.stored("data")}], ids=["data", "stored"])
def test_data_parallel(specs, dtype):
    meshes = [({"data": count}, PARTS) for count in COUNTS]
    same_on_all(lambda: train(specs, dtype), meshes)


def test_tensor_parallel():
    meshes = [
        ({"data": data, "model": model}, {"data": 6, "model": 12})
        for data, model in [(1, 1), (2, 1), (1, 3), (2, 4), (3, 2)]
    ]
    same_on_all(lambda: train({"layers.3.weight": (None, "model")}), meshes)


def test_sums_of_all_kinds():
    a = numbers(48, 24)

    def program():
        rows, columns = tn.shard(a, "data"), tn.shard(a, (None, "data"))
        both = tn.shard(rows.T @ rows, "data")
        return (
            rows.sum(), rows.mean(axis=0), columns.prod(axis=1), both, rows.max(axis=0),
            (rows > 0).all(axis=0), columns @ columns.T, tn.shard(rows.sum(axis=0), "data"),
        )  # fmt: skip

    first = same_on_all(program, [({"data": count}, PARTS) for count in [*COUNTS, 6, 12, 24]])
    np.testing.assert_allclose(first[0], a.sum(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(first[3], a.T @ a, rtol=1e-4, atol=1e-4)


def test_workers_without_a_mesh():
    before, results = tn.default_device(), []
    try:
        for count in COUNTS:
            tn.workers(count, parts=PARTS)
            tn.random.seed(1)
            x = tn.shard(tn.randn(48, 24), "workers")
            results.append((x.T @ x).numpy())
    finally:
        tn.set_default_device(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_processes_make_the_same_plan():
    """Each makes its own, with other addresses and hashes."""
    import subprocess
    import sys

    from processes import environment

    program = """
import tenon as tn
from tenon import nn, optim
with tn.Mesh(data=2, model=2):
    tn.random.seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.relu, nn.Linear(16, 8), nn.LayerNorm(8))
    nn.shard(model, {"layers.2.weight": (None, "model"), "*": tn.stored("data")})
    optimizer = optim.AdamW(learning_rate=0.01)
    state = [model.state, optimizer.state]
    def loss_of(m, x):
        return (m(x) ** 2).mean()
    def step(x):
        loss, slopes = nn.value_and_grad(model, loss_of)(model, x)
        optimizer.update(model, slopes)
        return loss
    step = tn.compile(step, inputs=state, outputs=state)
    step(tn.shard(tn.ones((8, 8)), "data"))
    print(step.show("sharding"))
"""
    texts = {subprocess.run([sys.executable, "-c", program], check=True, text=True,
                            stdout=subprocess.PIPE, env=environment(PYTHONHASHSEED=seed)).stdout
             for seed in ("1", "2", "3")}
    assert len(texts) == 1 and "reduce_scatter along data" in texts.pop()


def test_one_worker_is_a_mesh():
    with tn.Mesh(workers=1):
        x = tn.shard(tn.ones((4, 2)), "workers")
        assert tn.layout(x) == "f32[4,2] @[-,-]" and x.sum().item() == 8


@pytest.mark.parametrize("workers", [2, 4])
def test_stored_parameters_are_gathered_for_each_pass(workers):
    layers, width = 4, 16

    def run(specs):
        tn.random.seed(0)
        with tn.Mesh(data=workers):
            model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)])
            nn.shard(model, specs)
            optimizer = optim.AdamW(learning_rate=0.01)
            state = [model.state, optimizer.state]

            @tn.compile(inputs=state, outputs=state)
            def step(x):
                loss, slopes = nn.value_and_grad(model, lambda m, x: (m(x) ** 2).mean())(model, x)
                optimizer.update(model, slopes)
                return loss

            x = tn.shard(tn.array(numbers(8, width)), "data")
            losses = [step(x).item() for _ in range(3)]
            return losses, [p.numpy() for p in model.parameters()], step.show("sharding")

    stored, whole = run({"*": tn.stored("data")}), run({"*": None})
    assert stored[0] == whole[0]
    for a, b in zip(stored[1], whole[1], strict=True):
        np.testing.assert_array_equal(a, b)
    lines = stored[2].splitlines()
    gathers = [line for line in lines if line.startswith("all_gather along data of ")]
    # Backwards, the last weight is still there, and the first one has no reader.
    assert len(gathers) == 2 * layers - 2
    assert all(f" of f32[{width},{width}]: 1.0KB," in line for line in gathers)


@pytest.mark.parametrize("fold", [tn.max, tn.min])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0]])
def test_extremes_of_zeros_of_both_signs(fold, values):
    meshes = [({"data": workers}, {"data": 2}) for workers in (1, 2)]
    x = np.array(values, np.float32).reshape(2, 1)
    same_on_all(lambda: fold(tn.shard(tn.array(x), "data"), axis=0), meshes)
