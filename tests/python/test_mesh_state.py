"""Divided tensors that are loaded, copied and pickled stay divided."""

import copy
import pickle

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim


def model_of(specs=None):
    model = nn.Sequential(nn.Linear(4, 8), nn.relu, nn.Linear(8, 6))
    return model if specs is None else nn.shard(model, specs)


def mesh():
    return tn.Mesh(data=2, model=2)


def layouts(model):
    return {name: tn.layout(p) for name, p in model.named_parameters()}


SPECS = {"layers.0.weight": (None, "model"), "*": tn.stored("data")}
LAYOUTS = {
    "layers.0.weight": "f32[8,4] @[-,model]",
    "layers.0.bias": "f32[8] @[data] stored(data)",
    "layers.2.weight": "f32[6,8] @[data,-] stored(data)",
    "layers.2.bias": "f32[6] @[data] stored(data)",
}


def step(model, optimizer):
    state = [model.state, optimizer.state]

    @tn.compile(inputs=state, outputs=state)
    def run(x):
        loss, gradients = nn.value_and_grad(model, lambda m, x: (m(x) ** 2).mean())(model, x)
        optimizer.update(model, gradients)
        return loss

    run(tn.shard(tn.random.normal((4, 4), key=tn.random.key(1)), "data"))


@pytest.mark.parametrize("source", ["state_dict", "weights", "checkpoint"])
def test_loading_keeps_layouts(tmp_path, source):
    with mesh():
        tn.random.seed(1)
        saved, saved_optimizer = model_of(SPECS), optim.Adam(0.01)
        step(saved, saved_optimizer)
        tn.random.seed(2)
        model, optimizer = model_of(SPECS), optim.Adam(0.01)
        step(model, optimizer)
        before = {name: tn.layout(x) for name, x in nn.module.named_tensors(optimizer.state)}
        if source == "state_dict":
            host = {name: x.numpy() for name, x in saved.state_dict().items()}
            model.load_state_dict(host)
            optimizer.load_state_dict(saved_optimizer.state_dict())
        elif source == "weights":
            saved.save_weights(tmp_path / "w.safetensors")
            model.load_weights(tmp_path / "w.safetensors")
        else:
            tn.save_checkpoint(tmp_path / "c", model=saved, optimizer=saved_optimizer)
            tn.load_checkpoint(tmp_path / "c", model=model, optimizer=optimizer)
        assert layouts(model) == LAYOUTS
        for name, x in model.named_parameters():
            np.testing.assert_array_equal(x.numpy(), dict(saved.named_parameters())[name].numpy())
        after = {name: tn.layout(x) for name, x in nn.module.named_tensors(optimizer.state)}
        assert after == before
        assert before["moments.layers.2.weight.m"] == LAYOUTS["layers.2.weight"]
        if source != "weights":
            step(saved, saved_optimizer), step(model, optimizer)
            for (_, a), (_, b) in zip(saved.named_parameters(), model.named_parameters()):
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_an_optimizer_that_has_not_run_divides_what_it_loaded():
    with mesh():
        saved, saved_optimizer = model_of(SPECS), optim.Adam(0.01)
        step(saved, saved_optimizer)
        optimizer = optim.Adam(0.01)
        optimizer.load_state_dict(saved_optimizer.state_dict())
        step(saved, optimizer)
        named = dict(nn.module.named_tensors(optimizer.state))
        assert tn.layout(named["moments.layers.2.weight.m"]) == LAYOUTS["layers.2.weight"]


def test_pickles_keep_mesh_and_layout():
    with tn.Mesh(data=2, model=2, parts={"data": 4, "model": 2}) as kept:
        x = tn.shard(np.arange(48, dtype=np.float32).reshape(8, 6), ("data", "model"))
        stored = nn.shard(nn.Linear(4, 8), {"*": tn.stored("data")}).weight
    for value in (x, stored, x + 1, tn.shard(x, None)):
        for made in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert made.device == kept.device
            assert tn.layout(made) == tn.layout(value)
            np.testing.assert_array_equal(made.numpy(), value.numpy())
    text = pickle.dumps(x, protocol=0)
    assert b"mesh(data=2:4, model=2) @[data,model]" in text
    made = pickle.loads(text.replace(b"mesh(data=2:4, model=2)", b"mesh(data=4, model=2)"))
    assert tn.layout(made) == "f32[8,6] @[data,model]" and made.device != kept.device
    bad = [
        (b"mesh(data=2:4, model=2) @[data,model]", b"mesh(data=2:4, model=2"),
        (b"@[data,model]", b"@[data,other]"),
        (b"@[data,model]", b"@[data,-] partial(model)"),
        (b"data=2:4", b"data=7"),
        (b"data=2:4", b"data=999"),
    ]
    for old, new in bad:
        with pytest.raises(ValueError):
            pickle.loads(text.replace(old, new))


def test_divided_as_another():
    with mesh():
        x = tn.shard(np.ones((4, 6), np.float32), ("data", "model"))
        y = tn._core._shard_like(tn.array(np.arange(24.0).reshape(4, 6)), x)
        assert tn.layout(y) == "f64[4,6] @[data,model]"
        z = tn._core._shard_like(tn.shard(y, (None, "model")), x)
        assert tn.layout(z) == "f64[4,6] @[data,model]"
        np.testing.assert_array_equal(z.numpy(), y.numpy())
        assert tn._core._shard_like(x, tn.ones(3, device="cpu")).device.kind == "cpu"
        with pytest.raises(ValueError, match=r"shard_like: f32.*cannot be divided as f32"):
            tn._core._shard_like(tn.ones(6), x)


def test_a_model_that_cannot_be_divided_stays_as_it_was():
    with tn.Mesh(data=4):
        model = model_of()
        before = [x.numpy() for _, x in model.named_parameters()]
        with pytest.raises(ValueError, match="layers.2.weight: shard: axis 'data' cannot divide"):
            nn.shard(model, {"*": "data"})
        assert all("data" not in layout for layout in layouts(model).values())
        for (_, x), y in zip(model.named_parameters(), before):
            np.testing.assert_array_equal(x.numpy(), y)


def test_pickles_of_meshes_hold_their_axes():
    text = pickle.dumps(tn.Mesh(data=3, model=2, parts={"data": 6}))
    assert b"mesh:" not in text  # a name, which is another mesh elsewhere
    made = pickle.loads(text)
    assert (made.shape, made.parts) == ({"data": 3, "model": 2}, {"data": 6, "model": 2})
    assert repr(copy.deepcopy(made)) == repr(made)


def test_a_step_writes_new_state_over_the_old_one():
    """Also where a number of the host, such as the learning rate, makes parts of the plan."""
    with tn.Mesh(data=2):
        model = nn.Sequential(*[nn.Linear(128, 128, bias=False) for _ in range(4)])
        nn.shard(model, {"*": tn.stored("data")})
        optimizer = optim.AdamW(0.01)
        state = [model.state, optimizer.state]

        @tn.compile(inputs=state, outputs=state)
        def run(x):
            loss, gradients = nn.value_and_grad(model, lambda m, x: (m(x) ** 2).mean())(model, x)
            optimizer.update(model, gradients)
            return loss

        x = tn.shard(tn.ones((4, 128)), "data")
        for _ in range(3):
            run(x).item()
        held = tn.memory.active_memory()
        tn.memory.reset_peak_memory()
        run(x).item()
    layer = 128 * 128 * 4
    assert held > 3 * 4 * layer
    # Both workers have the gathered weights of all layers and some room, but no second state.
    assert tn.memory.peak_memory() - held < 2 * 6 * layer


def test_optimizer_state_is_divided_as_its_parameter():
    with tn.Mesh(data=4):
        model = nn.Linear(8, 16)
        nn.shard(model, {"weight": tn.stored("data")})
        optimizer = optim.AdamW(learning_rate=0.01)
        optimizer.init(model.parameters())
        tensors = [t for t in tn.tree.leaves(optimizer.state) if isinstance(t, tn.Tensor)]
        moments = [tn.layout(t) for t in tensors if t.shape == (16, 8)]
        assert moments == 2 * ["f32[16,8] @[data,-] stored(data)"]


@pytest.mark.parametrize("workers", [2, 8])
def test_initial_state_is_never_whole(workers):
    with tn.Mesh(data=workers):
        weight = tn.shard(tn.ones((64, 4096)), tn.stored("data"))
        tn.eval(weight)
        held, whole = tn.memory.active_memory(), weight.nbytes
        tn.memory.reset_peak_memory()
        optimizer = optim.Adagrad(learning_rate=0.1, initial_accumulator_value=0.25)
        optimizer.init({"weight": weight})
        assert tn.memory.peak_memory() - held < 1.1 * whole  # of all workers together
        (state,) = [t for t in tn.tree.leaves(optimizer.state) if t.shape == (64, 4096)]
        assert tn.layout(state) == tn.layout(weight)
        assert (state.numpy() == 0.25).all()


def test_pickles_name_axes_of_parameters():
    with tn.Mesh(model=2, mode=2):  # one name is in the other
        weight = nn.shard(nn.Linear(8, 8), {"weight": ("model", "mode")}).weight
    text = pickle.dumps(weight, protocol=0)
    assert b"parameters(model,mode)" in text
    assert pickle.dumps(pickle.loads(text), protocol=0) == text
    with pytest.raises(tn.InvalidValue, match="the mesh has no axis 'mood'"):
        pickle.loads(text.replace(b"(model,mode)", b"(model,mood)"))
    deep = b"mesh(" + 1000 * b"at model=0 of " + b"model=2, mode=2)"
    with pytest.raises(tn.InvalidValue, match="a part of a mesh is"):
        pickle.loads(text.replace(b"mesh(model=2, mode=2)", deep))
