"""Parts of a mesh, moves between them, and pipelines of stages on them."""

import pickle

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

MESH = tn.Mesh(stage=2, data=2)
X = tn.random.normal((32, 6), key=tn.random.key(1))
Y = tn.arange(32) % 4


def stages(first, last, hidden=8):
    tn.random.seed(0)
    return [
        tn.place(nn.Sequential(nn.Linear(6, hidden), nn.relu), first),
        tn.place(nn.Sequential(nn.Linear(hidden, hidden), nn.relu, nn.Linear(hidden, 4)), last),
    ]


def pipeline(mesh=MESH, microbatches=4):
    last = mesh.shape["stage"] - 1
    with mesh:
        made = stages(mesh.at(stage=0), mesh.at(stage=last))
    return tn.pipeline(made, microbatches=microbatches)


def cross_entropy(logits, y):
    return nn.losses.cross_entropy(logits, y).mean()


def training(pipe):
    optimizer = optim.AdamW(learning_rate=1e-2)
    state = [pipe.state, optimizer.state]

    def step(x, y):
        loss, g = nn.value_and_grad(pipe, lambda m, x, y: m.loss(cross_entropy, x, y))(pipe, x, y)
        optimizer.update(pipe, g)
        return loss

    return tn.compile(step, inputs=state, outputs=state)


def message(call, kind=tn.InvalidValue):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_a_part_of_a_mesh_is_a_mesh():
    part = MESH.at(stage=1)
    assert part == MESH.at(stage=1) and part != MESH.at(stage=0) and part != tn.Mesh(data=2)
    assert hash(part) == hash(MESH.at(stage=1))
    assert repr(part) == "Mesh(stage=2, data=2).at(stage=1)"
    assert part.shape == {"data": 2} and part.size == 2 and part.whole == MESH
    assert MESH.whole == MESH
    one = part.at(data=0)
    assert one == MESH.at(data=0, stage=1) and one.shape == {} and one.size == 1
    assert repr(one) == "Mesh(stage=2, data=2).at(stage=1, data=0)"
    assert pickle.loads(pickle.dumps(one)) == one
    with part:
        assert tn.layout(tn.shard(tn.ones((4, 3)), "data")) == "f32[4,3] @[data,-]"


def test_a_part_is_named_as_in_the_program():
    mesh = tn.Mesh(rows=2, columns=2)
    part, one = mesh.at(columns=1), mesh.at(rows=1, columns=0)
    whole = str(mesh.device)
    assert str(part.device) == f"{whole}.at(columns=1)"
    assert str(one.device) == f"{whole}.at(rows=1, columns=0)"
    for device in (part.device, one.device):
        assert tn.Device(str(device)) == device and str(device) in repr(device)
        assert tn.ones(2, device=str(device)).device == device
    a, b = tn.place(tn.ones(2), part), tn.place(tn.ones(2), one)
    text = message(lambda: a + b, tn.Error)
    assert f"operands are on {part.device} and {one.device}: f32[2]@{part.device} and" in text
    assert f"device='{part.device}'" in repr(a)
    with pytest.raises(tn.Error, match="no such device"):
        tn.Device(f"{whole}.at(columns=7)")
    f = tn.compile(lambda x: (tn.place(x, part) + 1).to(mesh))
    f(tn.ones(2, device=mesh))
    assert f"on {part.device}:" in f.show("plan")

    def some_sum(x):
        is_first = tn.distributed.axis_index("rows") == 0
        return tn.cond(is_first, lambda x: tn.distributed.all_sum(x, axis="rows"), lambda x: x, x)

    f = tn.shard_map(some_sum, part, in_specs=("rows",), out_specs="rows")
    text = message(lambda: tn.eval(f(tn.ones(4))), tn.WorkerFailed)
    assert f"has ended without it; they are workers of {part.device}\n" in text


def test_coordinates_in_one_call_make_one_device():
    mesh = tn.Mesh(a=2, b=2, c=2)
    one = mesh.at(a=0, b=1, c=1).device
    assert one.index == mesh.device.index + 1
    assert mesh.at(c=1).at(b=1).at(a=0).device == one


def test_errors_of_parts():
    assert "'rows'" in message(lambda: MESH.at(rows=0))
    assert "there is no stage=2: the axis has 2 workers" in message(lambda: MESH.at(stage=2))
    assert "there is no stage=-1" in message(lambda: MESH.at(stage=-1))
    assert "an integer" in message(lambda: MESH.at(stage="0"), tn.InvalidType)


def test_pickles_keep_the_part():
    with MESH.at(stage=1):
        x = tn.shard(tn.arange(8.0).reshape(4, 2), "data")
    back = pickle.loads(pickle.dumps(x))
    assert back.device == MESH.at(stage=1).device
    assert tn.layout(back) == "f32[4,2] @[data,-]" and back.tolist() == x.tolist()
    y = tn.place(tn.ones(3), MESH.at(stage=0, data=1))
    assert pickle.loads(pickle.dumps(y)).device == y.device


LAYOUTS = [None, "data", (None, "data"), "stage", ("stage", "data"), (("stage", "data"),)]


@pytest.mark.parametrize("spec", LAYOUTS)
def test_values_move_between_a_mesh_and_its_parts(spec):
    x = tn.arange(64.0).reshape(8, 8)
    parts = [MESH, MESH.at(stage=0), MESH.at(stage=1), MESH.at(data=1), MESH.at(stage=1, data=0)]
    with MESH:
        y = tn.shard(x, spec)
    for one in parts:
        a = y.to(one)
        assert a.device == one.device
        assert a.tolist() == x.tolist()
        for other in parts:
            b = (a + 1).to(other)
            assert b.tolist() == (x + 1).tolist(), (one, other)


def test_common_axes_stay_divided():
    with MESH:
        x = tn.shard(tn.ones((8, 4)), ("stage", "data"))
        w = tn.shard(tn.ones((8, 4)), tn.stored("data"), is_parameter=True)
    assert tn.layout(x.to(MESH.at(stage=1))) == "f32[8,4] @[-,data]"
    assert tn.layout(x.to(MESH.at(data=1))) == "f32[8,4] @[stage,-]"
    assert tn.layout((x.to(MESH.at(stage=0)) + 1).to(MESH)) == "f32[8,4] @[-,data]"
    assert tn.layout(w.to(MESH.at(stage=0))) == "f32[8,4] @[data,-] stored(data)"


def test_moves_have_derivatives_and_batches():
    part = MESH.at(stage=1)
    with MESH:
        x = tn.shard(tn.arange(8.0), "data")
        slope = tn.grad(lambda x: (x.to(part) ** 2).sum().to(MESH))(x)
        assert slope.device == MESH.device and slope.tolist() == (2 * np.arange(8)).tolist()
        y = tn.vmap(lambda row: (row.to(part) * 2).to(MESH))(x.reshape(4, 2))
    assert y.tolist() == (2 * np.arange(8.0)).reshape(4, 2).tolist()


def test_place_takes_trees_and_modules():
    part = MESH.at(stage=0)
    placed = tn.place({"a": tn.ones(2), "b": [tn.zeros(3)]}, part)
    assert placed["a"].device == placed["b"][0].device == part.device
    norm = tn.place(nn.BatchNorm(3), part)
    assert {x.device for x in norm.state_dict().values()} == {part.device}
    assert tn.place(tn.ones(2), "cpu").device == tn.Device("cpu")


def test_a_pipeline_computes_what_its_stages_do():
    pipe, plain = pipeline(), stages("cpu", "cpu")
    expected = plain[1](plain[0](X))
    with MESH:
        x = tn.shard(X, "data")
    out = pipe(x)
    assert tn.layout(out) == "f32[32,4] @[data,-]" and out.device == MESH.device
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(pipe(X).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("in_loss", [True, False])
def test_gradients_are_those_of_the_stages(in_loss):
    pipe, plain = pipeline(), tn.pipeline(stages("cpu", "cpu"), microbatches=4)
    with MESH:
        x, y = tn.shard((X, Y), "data")

    def loss(m, x, y):
        return m.loss(cross_entropy, x, y) if in_loss else cross_entropy(m(x), y)

    value, gradients = nn.value_and_grad(pipe, loss)(pipe, x, y)
    expected, wanted = nn.value_and_grad(plain, loss)(plain, X, Y)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    got, want = tn.tree.leaves(gradients), tn.tree.leaves(wanted)
    assert len(got) == len(want) == 6
    assert {str(g.device) for g in got} == {str(MESH.at(stage=k).device) for k in range(2)}
    for g, w in zip(got, want):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-6)


def test_a_compiled_step_trains_with_equal_bits_on_every_mesh():
    def losses(**sizes):
        mesh = tn.Mesh(parts={"stage": 2, "data": 2}, **sizes)
        step = training(pipeline(mesh))
        with mesh:
            x, y = tn.shard((X, Y), "data")
            return [step(x, y).item() for _ in range(5)]

    both = losses(stage=2, data=2)
    assert both[-1] < both[0]
    assert both == losses(stage=2, data=1) == losses(stage=1, data=2) == losses(stage=1, data=1)


def devices_in_order(step):
    """The devices of the parts with products."""
    order, at = [], None
    for line in step.show("plan").splitlines():
        if line.startswith("on "):
            at = line[3:-1]
        if "matmul" in line and at:
            order.append(at)
            at = None
    return order


def test_a_step_runs_one_forward_one_backward():
    step = training(pipeline())
    with MESH:
        step(*tn.shard((X, Y), "data"))
    first, last = (str(MESH.at(stage=k).device) for k in range(2))
    order = devices_in_order(step)
    # The last stage has one part for each microbatch, its forward and its backward pass. The first
    # goes forward (F) and back (B) in turn, with two microbatches under way. Only a part that goes
    # back starts a sum over `data`.
    assert order.count(last) == 4
    text = step.show("plan").split("on ")
    passes = [part for part in text if part.startswith(first) and "matmul" in part]
    assert "".join("B" if "start" in part else "F" for part in passes) == "FFBFBFBB"


def test_a_stage_holds_its_parameters_and_no_others():
    pipe = pipeline()
    for k, stage in enumerate(pipe.stages):
        for x in stage.state_dict().values():
            assert x.device == MESH.at(stage=k).device
            assert len(tn._core._blocks(x)) == 2


def test_errors_of_pipelines():
    pipe = pipeline(microbatches=3)
    assert "a batch of 32 rows cannot be split into 3 microbatches" in message(lambda: pipe(X))
    assert "a tensor without axes" in message(lambda: pipe(tn.array(1.0)))
    f = lambda p, y: p.mean()
    assert "arguments have 28 and 30 rows" in message(lambda: pipe.loss(f, X[:30], Y[:28]))
    assert "a loss is a scalar" in message(lambda: pipe.loss(lambda p, y: p, X[:30], Y[:30]))
    mixed = nn.Sequential(tn.place(nn.Linear(2, 2), MESH.at(stage=0)), nn.Linear(2, 2))
    make = tn.pipeline
    assert "stage 0 has tensors on cpu and mesh:" in message(lambda: make([mixed], microbatches=2))
    assert "there are no stages" in message(lambda: make([], microbatches=2))
    assert "'gpipe'" in message(lambda: make([nn.relu], microbatches=2, schedule="gpipe"))
    assert "positive integer: 0" in message(lambda: make([nn.relu], microbatches=0))
    assert "stage 0 is a int" in message(lambda: make([3], microbatches=2), tn.InvalidType)


def test_a_refused_part_leaves_donated_state():
    first, last = MESH.at(stage=0), MESH.at(stage=1)
    state = {"count": tn.place(tn.zeros(1000), first)}
    tn.eval(state["count"])

    def step(rows):
        state["count"] = state["count"] + 1  # which the first part overwrites
        total = tn.place(state["count"].sum(), last)
        return tn.sort(total + tn.place(rows, last))

    compiled = tn.compile(step, inputs=[state], outputs=[state], memory_limit="100KB")
    assert compiled(tn.arange(4.0)).shape == (4,)
    with pytest.raises(MemoryError) as caught:
        compiled(tn.arange(100000.0))
    assert f"the smallest peak of a worker of {last.device} is" in str(caught.value)
    assert state["count"].tolist() == [1.0] * 1000
    compiled(tn.arange(4.0))
    assert state["count"].tolist() == [2.0] * 1000


@pytest.mark.parametrize("compiled", [False, True])
def test_the_norm_of_gradients_is_that_of_all_stages(compiled):
    def loss_of(pipe, x, y):
        return pipe.loss(cross_entropy, x, y)

    def clipped(x, y):
        _, gradients = nn.value_and_grad(pipe, loss_of)(pipe, x, y)
        return optim.clip_grad_norm(gradients, 0.01)

    with MESH:
        pipe = pipeline()
        run = tn.compile(clipped, inputs=[pipe.state]) if compiled else clipped
        gradients, norm = run(X, Y)
        leaves = tn.tree.leaves(gradients)
        assert {g.device for g in leaves} == {p.device for p in tn.tree.leaves(pipe.parameters())}
        whole = np.sqrt(sum((g.numpy().astype(np.float64) ** 2).sum() for g in leaves))
        assert norm.item() > 0.01 and abs(whole - 0.01) < 1e-5
