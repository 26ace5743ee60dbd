"""Devices of tensors, on two emulated ones: memory that the host cannot read, work done later."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenon as tn

pytestmark = pytest.mark.host  # the default device matters here

A, B = "emu:0", "emu:1"


def on(device, *values, dtype=tn.float32):
    return tn.array(list(values), dtype=dtype, device=device)


def program(text, **environment):
    """What a program prints, or its error."""
    env = os.environ | {"TENON_EMULATED_DEVICES": "2"} | environment
    command = [sys.executable, "-c", "import tenon as tn\n" + text]
    return subprocess.run(command, env=env, capture_output=True, text=True)


class TestNames:
    def test_devices_of_the_machine(self):
        with tn.Mesh(data=2):  # which is no device of the machine
            tn.shard(tn.ones(2), "data").eval()
        assert [str(d) for d in tn.devices()] == ["cpu", A, B]
        assert tn.Device(B).kind == "emu" and tn.Device(B).index == 1
        assert tn.Device("cpu") == tn.cpu == "cpu" and tn.Device(A) != tn.Device(B)
        assert tn.Device("emu") == A and tn.Device(A) == "emu" and tn.Device(B) != "emu"
        assert len({tn.Device(A), tn.Device(A), tn.Device(B)}) == 2
        assert repr(tn.Device(A)) == "tenon.Device('emu:0')"
        assert pickle.loads(pickle.dumps(tn.Device(B))) == B

    @pytest.mark.parametrize("name", ["gpu", "emu:2", "emu:", "emu:x", "", "cpu:1", "emu:-1"])
    def test_others_are_refused(self, name):
        with pytest.raises(tn.Error, match="no such device") as error:
            tn.ones(2, device=name)
        assert "cpu, emu:0, emu:1" in str(error.value)

    def test_things_that_are_no_devices(self):
        with pytest.raises(TypeError, match="not a device"):
            tn.ones(2, device=3)

    def test_the_environment_names_the_default(self):
        said = program("print(tn.default_device(), tn.ones(2).device)", TENON_DEVICE=B)
        assert said.stdout == "emu:1 emu:1\n"
        said = program("tn.ones(2)", TENON_DEVICE="tpu")
        assert "no such device: 'tpu'" in said.stderr


class TestPlaces:
    @pytest.mark.parametrize(
        "make",
        [
            lambda **d: tn.zeros((2, 3), **d),
            lambda **d: tn.ones(3, **d),
            lambda **d: tn.full((2,), 7, **d),
            lambda **d: tn.arange(5, **d),
            lambda **d: tn.linspace(0, 1, 4, **d),
            lambda **d: tn.eye(3, **d),
            lambda **d: tn.array([1, 2], **d),
            lambda **d: tn.asarray(np.ones(3), **d),
            lambda **d: tn.zeros_like(tn.ones(2), **d),
            lambda **d: tn.empty((2,), **d),
            lambda **d: tn.array(2.0, **d),
        ],
    )
    def test_every_creation_function_takes_one(self, make):
        want = make()
        made = make(device=B)
        assert made.device == B and want.device == "cpu"
        np.testing.assert_array_equal(np.asarray(made), np.asarray(want))
        with tn.device(A):
            inside = make()
        assert inside.device == A

    def test_memory_of_others_stays_unless_a_device_is_named(self):
        values = np.ones(3, np.float32)
        with tn.device(A):
            assert tn.from_dlpack(values).device == "cpu"
        assert tn.from_dlpack(values, device=B).device == B

    def test_scopes_nest_and_belong_to_threads(self):
        seen = {}
        with tn.device(A) as device:
            assert device == A and tn.default_device() == A
            with tn.device(B):
                assert tn.zeros(()).device == B
            thread = threading.Thread(target=lambda: seen.update(other=tn.ones(1).device))
            thread.start(), thread.join()
            assert tn.ones(1).device == A
        assert tn.ones(1).device == "cpu" and seen["other"] == "cpu"

    def test_the_default_of_the_process(self):
        tn.set_default_device(B)
        try:
            assert tn.ones(1).device == B and tn.random.normal((2,)).device == B
        finally:
            tn.set_default_device("cpu")
        assert tn.default_device() == "cpu"

    def test_results_are_where_operands_are(self):
        x = on(A, 1, 2, 3)
        assert (x * 2 + 1).device == A and tn.sum(x).device == A
        assert (x + tn.array(3.0)).device == A  # single values of the host travel
        assert (tn.array(3.0) - x).tolist() == [2, 1, 0]
        assert tn.zeros_like(x).device == A and tn.where(x > 1, x, 0).device == A
        assert tn.concat([x, x]).device == A and x[1:].device == A and x[0].device == A

    def test_devices_do_not_mix(self):
        x, y, z = on(A, 1, 2), on(B, 1, 2), on("cpu", 1, 2)
        with pytest.raises(tn.Error, match=r"add: operands are on emu:0 and emu:1: f32\[2\]@emu:0"):
            x + y
        with pytest.raises(tn.Error, match="operands are on cpu and emu:1") as error:
            tn.matmul(z, y)
        assert "test_devices.py" in str(error.value) and ".to(device)" in str(error.value)
        with pytest.raises(tn.Error, match="concat: operands are on"):
            tn.concat([x, z])

    def test_moving(self):
        x = on("cpu", 1, 2)
        y = x.to(A).to(B)
        assert y.device == B and y.tolist() == [1, 2]
        assert x.to("cpu") is x or (x.to("cpu") == x).all().item()
        assert x.to(A, tn.float64).dtype == tn.float64
        assert x.to(y).device == B and x.to_device(tn.Device(A)).device == A
        assert tn.zeros((0, 3)).to(A).to("cpu").shape == (0, 3)

    def test_values_come_to_the_host_by_themselves(self):
        x = on(A, 1.5, 2.5)
        assert x.tolist() == [1.5, 2.5] and x[0].item() == 1.5 and float(x[1]) == 2.5
        assert np.asarray(x).tolist() == [1.5, 2.5] and bool(x[0] > 1)
        assert str(x) == "tensor([1.5, 2.5], dtype=float32, device='emu:0')"
        assert memoryview(x).tolist() == [1.5, 2.5]
        assert [float(v) for v in x] == [1.5, 2.5]
        np.testing.assert_array_equal(np.from_dlpack(x), [1.5, 2.5])

    def test_copies_and_pickles_stay(self):
        x = on(B, 1, 2)
        for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert other.device == B and other.tolist() == [1, 2]

    def test_an_op_that_a_device_has_not_runs_on_the_host(self):
        x = on(A, 3, 1, 2)
        assert tn.sort(x).device == A and tn.sort(x).tolist() == [1, 2, 3]
        f = tn.compile(lambda x: tn.sort(x * 2)[::-1] + 1)
        assert f(x).device == A and f(x).tolist() == [7, 5, 3]


class TestTransforms:
    def test_to_is_an_op(self):
        x = on(A, 1, 2, 3)
        gradient = tn.grad(lambda v: tn.sum(v.to("cpu").to(B) ** 2))(x)
        assert gradient.device == A and gradient.tolist() == [2, 4, 6]
        tangent = tn.jvp(lambda v: v.to(B) * 3, (x,), (x,))[1]
        assert tangent.device == B and tangent.tolist() == [3, 6, 9]
        mapped = tn.vmap(lambda v: v.to(B) + 1)(tn.ones((2, 3), device=A))
        assert mapped.device == B and mapped.shape == (2, 3)
        assert "to_device" in tn.show(lambda v: v.to(B) + 1, x)

    def test_sizes_that_vary_on_several_devices(self):
        f = tn.compile(lambda x: x @ tn.moveaxis(x, 0, 1) + 1)
        for rows in (4, 3, 6, 5):
            x = tn.arange(rows * 7, dtype=tn.float32).reshape(rows, 7)
            known = f(x).tolist()
            for device in (A, B, "cpu"):
                y = f(x.to(device))
                assert y.device == device and y.tolist() == known

    def test_compiled_functions_have_devices_in_their_keys(self):
        runs = []

        @tn.compile
        def f(x):
            runs.append(x.device)
            return tn.softmax(x) * 2

        want = f(on("cpu", 1, 2, 3)).tolist()
        assert f(on(A, 1, 2, 3)).tolist() == want and f(on(B, 1, 2, 3)).tolist() == want
        assert f(on(A, 3, 2, 1)).device == A
        assert [str(d) for d in runs] == ["cpu", A, B]

    def test_a_function_over_two_devices(self):
        def f(x, y):
            z = tn.tanh(x).to(B) @ y
            return z, tn.sum(z).to("cpu"), x + 1

        x, y = tn.ones((2, 3), device=A), tn.ones((3, 2), device=B)
        for g in (f, tn.compile(f)):
            z, total, more = g(x, y)
            assert [str(t.device) for t in (z, total, more)] == [B, "cpu", A]
            np.testing.assert_allclose(total.item(), 4 * 3 * np.tanh(1), rtol=1e-6)

    def test_control_flow(self):
        x = on(A, 1, 2, 3)
        last, sums = tn.scan(lambda c, v: (c + v, c), 0.0, x)
        assert last.device == A and last.item() == 6 and sums.tolist() == [0, 1, 3]
        assert tn.cond(tn.sum(x) > 5, lambda v: v * 2, lambda v: v, x).tolist() == [2, 4, 6]
        assert tn.while_loop(lambda v: tn.sum(v) < 50, lambda v: v * 2, x).tolist() == [16, 32, 48]

    def test_backward(self):
        x = on(A, 1, 2).requires_grad_()
        tn.sum(x * x).backward()
        assert x.grad.device == A and x.grad.tolist() == [2, 4]


class TestModels:
    def model(self):
        return tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.ReLU(), tn.nn.Linear(8, 1))

    def losses(self, device, compiled, optimizer):
        tn.random.seed(3)
        model = self.model().to(device)
        x = tn.array(np.linspace(-1, 1, 64).reshape(16, 4).astype(np.float32), device=device)
        opt = optimizer(model)

        def step(x):
            value, grads = tn.nn.value_and_grad(model, lambda x: tn.mean((model(x) - 1) ** 2))(x)
            opt.update(model, grads)
            return value

        run = tn.compile(step, inputs=[model, opt], outputs=[model, opt]) if compiled else step
        values = [run(x) for _ in range(5)]
        assert model.layers[0].weight.device == device and values[0].device == device
        return [v.item() for v in values]

    @pytest.mark.parametrize("compiled", [False, True])
    @pytest.mark.parametrize("kind", ["SGD", "Adam"])
    def test_training_gives_the_bits_of_the_host(self, compiled, kind):
        make = lambda model: getattr(tn.optim, kind)(0.1)
        assert self.losses(B, compiled, make) == self.losses("cpu", compiled, make)

    def test_modules_move_and_keep_their_weights(self):
        model = self.model()
        weight = model.layers[0].weight.tolist()
        assert model.to(A) is model and model.layers[0].weight.device == A
        assert model(tn.ones((2, 4), device=A)).device == A
        with pytest.raises(tn.Error, match="operands are on"):
            model(tn.ones((2, 4)))
        assert model.cpu().layers[0].weight.tolist() == weight

    def test_weights_are_loaded_to_where_the_model_is(self, tmp_path):
        model = self.model()
        model.save_weights(str(tmp_path / "w.safetensors"))
        other = self.model().to(B)
        other.load_weights(str(tmp_path / "w.safetensors"))
        assert other.layers[0].weight.device == B
        assert other.layers[0].weight.tolist() == model.layers[0].weight.tolist()

    def test_files_are_read_to_the_default_device(self, tmp_path):
        file = str(tmp_path / "x.safetensors")
        tn.save_safetensors(file, {"x": on(A, 1, 2)})
        assert tn.load_safetensors(file)["x"].device == "cpu"
        with tn.device(B):
            x = tn.load_safetensors(file)["x"]
        assert x.device == B and x.tolist() == [1, 2]


class TestExecutables:
    def test_they_run_where_their_arguments_are(self, tmp_path):
        w = tn.array(np.arange(6, dtype=np.float32).reshape(3, 2))
        f = tn.compile(lambda x: tn.tanh(x @ w), args=[tn.InputInfo(((1, 4, 8), 3), tn.float32)])
        x = tn.array(np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3))
        want = f(x).tolist()
        file = str(tmp_path / "f.tnx")
        f.save(file)
        for g in (f, tn.load(file)):
            for device in (A, B, "cpu"):
                y = g(x.to(device))
                assert y.device == device and y.tolist() == want

    def test_constants_of_a_device(self):
        w = on(A, 1, 2, 3)
        with tn.device(A):
            f = tn.compile(lambda x: x * w, args=[tn.InputInfo((3,), tn.float32)])
        assert f(on(B, 1, 1, 1)).tolist() == [1, 2, 3]
        assert f(on("cpu", 2, 2, 2)).tolist() == [2, 4, 6]
        with pytest.raises(tn.Error, match="for one device, and this uses"):
            tn.compile(lambda x: x + 1 + tn.sum(w.to("cpu")), args=[tn.InputInfo((3,), tn.float32)])

    def test_arguments_do_not_mix(self):
        two = [tn.InputInfo((3,), tn.float32)] * 2
        f = tn.compile(lambda x, y: x + y, args=two)
        with pytest.raises(tn.Error, match="arguments are on emu:0 and cpu"):
            f(on(A, 1, 2, 3), on("cpu", 1, 2, 3))


class TestLateWork:
    def test_errors_reach_the_reader(self):
        x = on(A, 1, 2, 3)
        index = tn.array([5], device=A)
        late = tn.take(x, index + 2, axis=0) + 1
        tn.eval(x)
        with pytest.raises(IndexError, match="7 is out of bounds for axis 0 of extent 3") as error:
            late.tolist()
        assert "test_devices.py" in str(error.value)
        assert (x + 1).tolist() == [2, 3, 4]  # what does not depend on it goes on

    def test_threads(self):
        failures = []

        def work(device, k):
            x = tn.full((64,), k, dtype=tn.float32, device=device)
            for _ in range(20):
                x = x * 0.5 + tn.sum(x) / 64
            if not np.allclose(np.asarray(x), k * 1.5**20, rtol=1e-4):
                failures.append((device, k))

        jobs = [(device, k) for device in (A, B, "cpu") for k in (1, 2)]
        threads = [threading.Thread(target=work, args=job) for job in jobs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures

    @pytest.mark.forks
    def test_a_child_of_fork_has_the_host_alone(self):
        x = on(A, 1, 2, 3) * 2
        tn.async_eval(x)
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (x.tolist, lambda: tn.eval(x + 1), lambda: tn.zeros(3, device=B).tolist()):
                try:
                    use()
                except tn.Error as error:
                    refused += "a child of fork cannot use a device of its parent" in str(error)
            tn.synchronize()
            os._exit(0 if refused == 3 and tn.ones(2, device="cpu").tolist() == [1, 1] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert x.tolist() == [2, 4, 6]

    def test_memory_is_released(self):
        x = tn.ones((1000,), device=A)
        tn.eval(x)
        before = tn.memory.active_memory()
        for _ in range(20):
            x = x + 1
            tn.eval(x)
        assert x[0].item() == 21
        assert tn.memory.active_memory() <= before + 3 * 4000
