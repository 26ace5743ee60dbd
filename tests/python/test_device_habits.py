"""Devices in the Python package: modules, optimizers, random numbers, models, other habits."""

import doctest
import threading

import numpy as np
import pytest

import tenon as tn
from layer_cases import CASES, flat
from tenon import device_scope, nn, optim
from tenon.model import MSE, BatchNorm1d, Linear, Relu

pytestmark = pytest.mark.host  # the default device matters here

A, B = "emu:0", "emu:1"


def devices_of(tree):
    return {str(leaf.device) for leaf in tn.tree.leaves(tree)}


class TestModulesMove:
    @pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.Adafactor])
    @pytest.mark.parametrize("given", [lambda m: m.parameters(), lambda m: list(m.parameters())])
    def test_with_an_optimizer_that_holds_their_parameters(self, kind, given):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm(3))
        optimizer, weight = kind(given(model), lr=0.1), model.layers[0].weight
        for device in ("cpu", A, B, "cpu"):
            model.to(device)
            assert model.layers[0].weight is weight and weight.requires_grad
            assert devices_of(model) == {device}
            before = weight.tolist()
            tn.sum(model(tn.randn(4, 3, device=device)) ** 3).backward()
            assert weight.grad.device == device
            optimizer.step()
            optimizer.zero_grad()
            assert weight.device == device and weight.tolist() != before

    @pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
    def test_and_compiled_steps_run_where_they_are(self, kind):
        model, optimizer = nn.Linear(3, 2).to(A), kind(optim.schedules.cosine_decay(0.1, 10))
        x = tn.ones((4, 3), device=A)

        @tn.compile(inputs=[model, optimizer], outputs=[model, optimizer])
        def step(x):
            loss, grads = nn.value_and_grad(model, lambda x: tn.mean(model(x) ** 2))(x)
            optimizer.update(model, grads)
            return loss

        for _ in range(3):
            step(x)
        assert devices_of(optimizer.state) == {A}
        assert optimizer.state["step"].item() == 3
        both = nn.Sequential(nn.Linear(3, 3).to(A), nn.Linear(3, 3).to(B))
        optimizer.update(both, both.parameters())  # parameters of several devices
        assert optimizer.state["step"].device == "cpu"
        model.to("cpu")
        optimizer.update(model, model.parameters())
        assert devices_of(optimizer.state["learning_rate"]) == {"cpu"}

    def test_and_their_gradients_and_what_the_other_habit_remembers(self):
        model = nn.Linear(3, 1)
        list(model.parameters())  # which makes them require gradients
        tn.sum(model(tn.ones((2, 3)))).backward()
        model.to(A)
        assert model.weight.grad.device == A and model.weight.grad.tolist() == [[2, 2, 2]]
        optimizer = optim.Adam(0.1)
        for device in (A, "cpu"):
            x = tn.ones((2, 3), device=device)
            model.to(device)
            _, grads = nn.value_and_grad(model, lambda x: tn.sum(model(x)))(x)
            optimizer.update(model, grads)
            assert devices_of([model, optimizer.state["moments"]]) == {device}

    def test_where_only_some_require_gradients(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model.layers[0].freeze()
        list(model.parameters())
        model.layers[1].bias.requires_grad = False
        model.to(A)
        assert devices_of(model) == {A}
        assert model.layers[1].weight.requires_grad and not model.layers[1].bias.requires_grad

    def test_device_and_type_in_one_call(self):
        model = nn.Linear(2, 1).to(A, tn.float64)
        assert model.weight.device == A and model.weight.dtype == tn.float64
        model = nn.Linear(2, 1).to(tn.float16, B)
        assert model.weight.device == B and model.weight.dtype == tn.float16
        assert nn.Linear(2, 1).to(tn.ones(1, device=A, dtype=tn.float64)).bias.device == A

    def test_tensors_that_are_no_parameters(self):
        class Masked(nn.Module):
            def __init__(self):
                self._masks = [tn.ones(3)]

            def forward(self, x):
                return x * self._masks[0]

        assert Masked().to(A)(tn.ones(3, device=A)).tolist() == [1, 1, 1]

    def test_a_module_that_stays_keeps_its_tensors(self):
        model = nn.Linear(2, 1)
        weight = model.weight
        assert model.to("cpu").weight is weight


class TestModulesRun:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
    def test_every_layer_runs_where_its_input_is(self, case):
        layer = case.ours().to(A).train(case.training)
        made = flat(case.call_ours(layer, *[tn.array(x, device=A) for x in case.draw()]))
        assert devices_of(made) == {A}
        tn.eval(made)

    def test_layers_that_make_tensors(self):
        x = tn.ones((2, 4, 8), device=A)
        for layer in (nn.RNN(8, 8), nn.GRU(8, 8), nn.LSTM(8, 8), nn.Dropout(), nn.RoPE(8)):
            assert devices_of(layer.to(A)(x)) == {A}
            assert devices_of(tn.compile(layer)(x)) == {A}
        assert nn.ALiBi()(tn.ones((1, 2, 3, 3), device=A)).device == A
        places = tn.arange(4, device=A)
        assert nn.SinusoidalPositionalEncoding(8).to(A)(places).device == A

    def test_tensors_made_in_forward(self):
        class Made(nn.Module):
            def forward(self, x, *, scale=1):
                return x + tn.arange(3) * scale

        made = Made()
        assert made(tn.ones(3, device=A)).tolist() == [1, 2, 3]
        assert made(x=tn.ones(3, device=B)).device == B
        with tn.device(A):  # a number of the host goes to the others
            assert made(tn.array(1.0, device="cpu")).device == A
            assert made(tn.ones(3, device="cpu")).device == "cpu"
        assert tn.default_device() == "cpu"

    def test_losses(self):
        x, y = tn.zeros((2, 3, 4), device=A), tn.zeros((2, 4), dtype=tn.int64, device=A)
        assert nn.losses.nll_loss(x, y, axis=1).device == A

    def test_executables_of_modules_and_functions(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4)).to(A).eval()
        weight = model.layers[0].weight
        x = tn.ones((2, 3))
        want = model(x.to(A)).tolist()
        info = tn.InputInfo((2, 3), tn.float32)
        for f in (model, model.forward, lambda x: model(x)):
            made = tn.compile(f, args=[info])
            assert made(x).tolist() == want and made(x.to(B)).device == B
        assert tn.compile(lambda x: x @ weight.T, args=[info])(x).shape == (2, 4)


class TestRandomNumbers:
    def test_like_another_tensor(self):
        x = tn.ones((3, 3), device=A)
        for make in (tn.rand_like, tn.randn_like):
            assert make(x).device == A and make(x, device=B).device == B
        init = nn.init
        for make in (
            *(init.constant(1), init.uniform(), init.normal(), init.identity(), init.sparse(0.5)),
            *(init.glorot_uniform(), init.glorot_normal(), init.he_uniform(), init.he_normal()),
            init.orthogonal(),
        ):
            assert make(x).device == A

    @pytest.mark.parametrize(
        "draw",
        [
            lambda **d: tn.rand(3, **d),
            lambda **d: tn.randn(3, **d),
            lambda **d: tn.random.bits((3,), **d),
            lambda **d: tn.random.uniform(shape=(3,), **d),
            lambda **d: tn.random.normal((3,), **d),
            lambda **d: tn.random.truncated_normal(-1, 1, (3,), **d),
            lambda **d: tn.random.gumbel((3,), **d),
            lambda **d: tn.random.laplace((3,), **d),
            lambda **d: tn.random.exponential((3,), **d),
            lambda **d: tn.random.gamma(2.0, (3,), **d),
            lambda **d: tn.random.poisson(2.0, (3,), **d),
            lambda **d: tn.random.bernoulli(0.5, (3,), **d),
            lambda **d: tn.random.randint(0, 9, (3,), **d),
            lambda **d: tn.random.permutation(5, **d),
            lambda **d: tn.random.choice(5, (3,), **d),
        ],
    )
    def test_on_a_device(self, draw):
        key = tn.random.key(1)
        made = draw(key=key, device=B)
        assert made.device == B and made.tolist() == draw(key=key).tolist()
        assert draw(device=A).device == A and draw().device == "cpu"

    def test_keys(self):
        assert tn.random.key(3, device=B).device == B
        assert tn.random.key(3, device=B).tolist() == tn.random.key(3).tolist()

    def test_where_the_operands_are(self):
        p = tn.array([0.5, 0.5], device=A)
        random = tn.random
        for made in (
            *(random.bernoulli(p), random.categorical(p), random.multinomial(p, 1)),
            *(random.permutation(p), random.choice(p, (1,)), random.uniform(0, p, (2,))),
            *(random.normal((2,), loc=p), random.gamma(p), random.poisson(p)),
            random.multivariate_normal(p, tn.eye(2, device=A)),
        ):
            assert made.device == A
            made.tolist()


class TestNames:
    def test_cpu(self):
        x = tn.ones(2, device=A)
        assert x.cpu().device == "cpu" and x.cpu().tolist() == [1, 1]

    def test_a_device_is_found_by_its_name(self):
        assert {tn.Device(A): 1}[A] == 1 and {"cpu": 2}[tn.cpu] == 2
        assert tn.Device(B).type == "emu" and tn.cpu.type == "cpu"

    def test_decorated_functions(self):
        @tn.device(B)
        def make():
            return tn.ones(2)

        @tn.device(A)
        def countdown(n):
            return [tn.default_device(), *(countdown(n - 1) if n else [])]

        seen = {}
        thread = threading.Thread(target=lambda: seen.update(there=make().device))
        thread.start(), thread.join()
        assert make().device == B == seen["there"] and make.__name__ == "make"
        assert countdown(2) == [A] * 3 and tn.default_device() == "cpu"

    def test_numbers_are_no_devices(self):
        for to in (tn.ones(2).to, nn.Linear(2, 1).to, tn.device):
            with pytest.raises(TypeError, match="not a device: 0") as error:
                to(0)
            assert "tn.devices()" in str(error.value)

    def test_advice(self):
        x = tn.ones(2)
        for name in ("is_cuda", "data", "zero_"):
            assert not hasattr(x, name) and name not in dir(x)
        assert "cpu" in dir(x)
        with pytest.raises(ValueError, match="device: cuda: no NVIDIA driver"):
            x.cuda()
        with pytest.raises(ValueError, match="device: cuda:1: no NVIDIA driver"):
            x.cuda(1)

    def test_files(self, tmp_path):
        x = tn.ones(2)
        tn.save(tmp_path / "x.npy", x)
        tn.savez(tmp_path / "x.npz", x=x)
        tn.save_safetensors(tmp_path / "x.safetensors", {"x": x})
        assert tn.load(tmp_path / "x.npy", device=A).device == A
        for name in ("x.npz", "x.safetensors"):
            assert tn.load(tmp_path / name, device=B)["x"].device == B
        assert tn.load_safetensors(tmp_path / "x.safetensors", device=B)["x"].device == B
        assert tn.load(tmp_path / "x.npy").device == "cpu"


class TestLogicalModels:
    SHAPES = {"x": [8, 3]}

    def model(self):
        model = tn.Model()
        model |= Linear(4)(input="x")
        model += BatchNorm1d()
        model += Relu()
        return model

    @pytest.mark.parametrize("options", [{}, {"inference": True}, {"static_inference": True}])
    @pytest.mark.parametrize(
        "backend",
        [
            tn.CpuBackend,
            tn.InterpreterBackend,
            tn.NumpyBackend,
            pytest.param(tn.CBackend, marks=pytest.mark.compiles),
        ],
    )
    def test_they_run_where_their_arguments_are(self, backend, options):
        x = tn.random.normal((8, 3), key=tn.random.key(0))
        results = []
        for device in ("cpu", A):
            physical = tn.compile(self.model(), backend(), shapes=self.SHAPES, **options)
            params = {n: v.to(device) for n, v in physical.randomize_params().items()}
            out = physical.evaluate(params, {"x": x.to(device)})["output"]
            assert out.device == device
            results.append(out.tolist())
        assert results[0] == results[1]

    def test_derivatives_do_not_silently_end_at_files(self):
        physical = tn.compile(self.model(), tn.NumpyBackend(), shapes=self.SHAPES)
        with tn.device(A):
            params = physical.randomize_params()
        params["linear.weight"].requires_grad = True
        out = physical.evaluate(params, {"x": tn.ones((8, 3), device=A)})["output"]
        with pytest.raises(ValueError, match="backward"):
            tn.sum(out).backward()

    def test_training(self):
        training = tn.TrainModel(self.model(), optim.Adam(1e-2))
        training.add_loss(MSE(), input="output", target="y")
        physical = tn.compile(training, shapes=self.SHAPES)
        with tn.device(B):
            params, state = physical.randomize_params(), physical.initial_state()
        data = {"x": tn.ones((8, 3), device=B), "y": tn.zeros((8, 4), device=B)}
        with tn.device(A):  # which is another default than the place of everything
            for _ in range(2):
                loss, outputs, params, state = physical.step(params, data, state)
        assert devices_of([loss, outputs, params, state]) == {B}
        assert np.isfinite(loss.item())


def test_doctests():
    assert doctest.testmod(device_scope, extraglobs={"tn": tn}).failed == 0
