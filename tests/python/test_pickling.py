"""Tensors, modules, optimizers, compiled functions: pickled, copied, given to other processes."""

import concurrent.futures
import copy
import gc
import io
import multiprocessing
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tenon as tn
import tenon.copying
from layer_cases import CASES as LAYERS
from tenon import optim

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def through(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


def equal(a, b):
    same = a.dtype == b.dtype and a.shape == b.shape
    return same and pickle.dumps(a) == pickle.dumps(b)


# Tensors --------------------------------------------------------------------------------------

DTYPES = [getattr(tn, name) for name in dir(tn) if isinstance(getattr(tn, name), tn.DType)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_type(dtype, protocol):
    x = tn.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    got = through(x, protocol)
    assert type(got) is tn.Tensor and got.dtype is dtype and got.shape == (2, 3)
    assert got.astype(tn.complex128).tolist() == x.astype(tn.complex128).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tn.array(3.5),
        lambda: tn.zeros((0, 4)),
        lambda: tn.arange(24).reshape(2, 3, 4)[1:, ::2, ::-1],
        lambda: tn.arange(24).reshape(4, 6).T,
        lambda: tn.exp(tn.ones(5)) + 1,
        lambda: tn.array([1 + 2j, np.nan]),
        lambda: tn.from_dlpack(np.arange(12.0).reshape(3, 4)[::2]),
        lambda: tn.array([np.inf, -0.0, np.nan]).astype(tn.bfloat16),
    ],
)
@pytest.mark.parametrize("protocol", [2, 5])
def test_values(make, protocol):
    x = make()
    got = through(x, protocol)
    np.testing.assert_array_equal(got.numpy(), x.numpy())
    assert got.dtype == x.dtype and got.shape == x.shape
    assert (got + 1).shape == x.shape


@pytest.mark.host
def test_buffers_are_left_outside_of_the_stream_and_shared():
    x = tn.arange(100_000, dtype=tn.float32)
    buffers = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 200 and [memoryview(b).nbytes for b in buffers] == [400_000]
    got = pickle.loads(data, buffers=buffers)
    assert np.shares_memory(np.asarray(got), np.asarray(x))


def seen_read_only(memory):
    """NumPy's view of what stays writable."""
    array = np.frombuffer(memory, np.uint8)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    "view",
    [
        lambda memory: memory,
        memoryview,
        lambda memory: memoryview(memory).toreadonly(),
        seen_read_only,
        lambda memory: memoryview(seen_read_only(memory)),
        lambda memory: pickle.PickleBuffer(seen_read_only(memory)),
    ],
)
def test_buffers_that_may_change_are_copied(view):
    x = tn.arange(100, dtype=tn.float32)
    buffers = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    writable = bytearray(buffers[0])
    got = pickle.loads(data, buffers=[view(writable)])
    writable[:4] = b"\xff" * 4
    assert equal(got, x)


def test_a_pickle_in_one_piece_is_not_copied_twice():
    data = pickle.dumps(tn.zeros(1_000_000), protocol=5)
    gc.collect()  # of what other tests left
    before = tn.memory.active_memory()
    got = pickle.loads(data)
    assert tn.memory.active_memory() == before and got.shape == (1_000_000,)


def test_gradients_are_wanted_as_before():
    plain, wanted, refused = tn.ones(3), tn.ones(3).requires_grad_(), tn.ones(3)
    refused.requires_grad = False
    for x in (plain, wanted, refused):
        got = through(x)
        assert got.requires_grad == x.requires_grad and got.is_leaf
        assert tn._core._refuses_grad(got) == tn._core._refuses_grad(x)
    got = through(wanted)
    (got * got).sum().backward()
    assert got.grad.tolist() == [2, 2, 2] and wanted.grad is None
    assert through(wanted * 2).requires_grad  # a leaf now: what it came from stays behind


def test_one_tensor_stays_one():
    x = tn.ones(3)
    a, b = through([x, x])
    assert a is b


class Named(tn.Tensor):
    def __init__(self, data, name):
        super().__init__(data)
        self.name = name


def test_subclasses_keep_their_class_and_attributes():
    got = through(Named([1.0, 2.0], "pair"))
    assert type(got) is Named and got.name == "pair" and got.tolist() == [1, 2]


def test_a_traced_tensor_has_no_value():
    with pytest.raises(tn.Error, match="value"):
        tn.compile(pickle.dumps)(tn.ones(3))
    with pytest.raises(tn.Error, match="value"):
        tn.vmap(pickle.dumps)(tn.ones(3))


def test_a_tensor_that_is_being_differentiated_stays():
    with pytest.raises(TypeError, match="cannot export a tensor that is being differentiated"):
        tn.grad(lambda x: x * through(x))(1.0)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("float33", (1,), b"1234"), "not an element type: 'float33'"),
        (("float32", (2,), b"1234"), r"4 bytes for f32\[2\], which has 8"),
        (("float32", (-1,), b""), r"invalid shape: \(-1,\)"),
        (("float32", (2**62, 2**62), b""), "invalid shape"),
        (("float32", (2**62, 2**62, 0), b""), "invalid shape"),
        (("float32", (2**200,), b""), "invalid shape"),
        (("float32", (1,) * 1000, b"1234"), "invalid shape"),
        (("float32", (1.0,), b"1234"), "invalid shape"),
        (("float32", ("a",), b"1234"), "invalid shape"),
        (("bool", (2,), b"\x01\x02"), "2 is not a bool, at byte 1"),
        (("float32", (1,), "1234"), "bytes-like"),
        (("float32", (1,), b"1234", True, int), "not a class of tensors"),
        (("int32", (1,), b"1234", True), "gradient"),
        ((tn.float32, (1,), b"1234"), "incompatible function arguments"),
    ],
)
def test_nothing_in_a_pickle_is_trusted(arguments, text):
    arguments = (*arguments, None, None)[:5] if len(arguments) < 5 else arguments
    with pytest.raises((ValueError, TypeError), match=text):
        tenon.copying.tensor(*arguments)


def test_reading_calls_one_function_of_ours():
    """A reader that knows no other global reads it."""

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            assert (module, name) == ("tenon.copying", "tensor")
            return super().find_class(module, name)

    for protocol in PROTOCOLS[3:]:  # older ones have no bytes
        data = pickle.dumps([tn.ones(3, dtype=tn.bfloat16), tn.array(1j)], protocol)
        assert Reader(io.BytesIO(data)).load()[1].item() == 1j


def test_element_types_and_devices_are_single():
    for value in (tn.float32, tn.bfloat16, tn.bool, tn.cpu):
        assert through(value) is value is copy.deepcopy(value)


def test_weak_references():
    x, gone = tn.ones(3), []
    model = tn.nn.Linear(2, 1)
    values = [x, model, optim.SGD(lr=0.1), tn.compile(lambda x: x), Named([1], "")]
    refs = [weakref.ref(v, gone.append) for v in values]
    assert all(ref() is v for ref, v in zip(refs, values))
    assert weakref.WeakValueDictionary(x=x)["x"] is x
    del x, model, values
    gc.collect()
    assert gone and all(ref() is None for ref in refs)


# Modules and optimizers -----------------------------------------------------------------------


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_every_layer(case):
    layer = case.ours()
    for got in (through(layer), through(layer, 2), copy.deepcopy(layer)):
        assert type(got) is type(layer) and repr(got) == repr(layer)
        ours, theirs = layer.state_dict(), got.state_dict()
        assert ours.keys() == theirs.keys()
        assert all(equal(ours[name], theirs[name]) for name in ours)


def loss_of(model):
    return tn.mean(model(tn.arange(8.0).reshape(4, 2)) ** 2)


OPTIMIZERS = [
    lambda p: optim.SGD(p, lr=0.01, momentum=0.9),
    lambda p: optim.AdamW(p, lr=optim.cosine_decay(0.1, 10)),
    lambda p: optim.Adam(
        p, lr=optim.join_schedules([optim.constant(0.1), optim.step_decay(0.1, 0.5, 2)], [1])
    ),
    lambda p: optim.Lion(p, lr=optim.exponential_decay(0.1, 0.9)),
    lambda p: optim.RMSprop(p, lr=optim.linear_schedule(0.1, 0.0, 5)),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_training_goes_on(make):
    """A model and its optimizer, pickled or copied together, take the same steps."""
    model = tn.nn.Sequential(tn.nn.Linear(2, 3), tn.nn.ReLU(), tn.nn.Linear(3, 1))
    optimizer = make(model.parameters())

    def step(model, optimizer):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()

    step(model, optimizer)
    optimizer.zero_grad()
    others = [through((model, optimizer)), copy.deepcopy((model, optimizer))]
    for pair in [(model, optimizer), *others]:
        step(*pair)
        step(*pair)
    want = model.state_dict()
    for other, its_optimizer in others:
        assert repr(its_optimizer) == repr(optimizer)
        got = other.state_dict()
        assert all(equal(got[name], want[name]) for name in want)


def test_schedulers():
    optimizer = optim.SGD(lr=0.5)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    scheduler.step()
    got = through(scheduler)
    got.step()
    assert got.get_last_lr() == [0.25] and scheduler.get_last_lr() == [0.5]
    kinds = optim.lr_scheduler
    for made in (
        kinds.LambdaLR(optimizer, abs),
        kinds.MultiStepLR(optimizer, [1, 3]),
        kinds.OneCycleLR(optimizer, 1.0, total_steps=10, cycle_momentum=False),
        kinds.ReduceLROnPlateau(optimizer),
    ):
        through(made).step(*[1.0] * isinstance(made, kinds.ReduceLROnPlateau))


# Compiled functions ---------------------------------------------------------------------------


@tn.compile
def decorated(x):
    return tn.sin(x) + 1


def squared(x, n=1):
    return x * x * n


class Scale:
    def __init__(self, by):
        self.by = tn.array(by)

    @tn.compile
    def first(self, x):
        return x + 1


class Stepper(tn.nn.Module):
    def __init__(self):
        self.weight = tn.ones(3)
        self.step = tn.compile(self._step)

    def _step(self, x):
        return self.weight * x


def test_a_function_that_is_compiled_where_it_is_defined_is_found_by_name():
    assert through(decorated) is decorated is copy.copy(decorated) is copy.deepcopy(decorated)
    assert through(Scale.first) is Scale.first


def test_other_compiled_functions_are_compiled_anew_with_their_options():
    f = tn.compile(squared, shapeless=True, static_argnames="n", optimization_level=1)
    f(tn.ones(3), n=2)
    got = through(f)
    assert got is not f and got.__wrapped__ is squared and got(tn.ones(4), n=3).tolist() == [3] * 4
    got(tn.ones(5), n=3)
    assert got.stats().traces == f.stats().traces  # options as before: one trace for all sizes
    assert copy.deepcopy(f) is f is copy.copy(f)


def test_what_pickle_cannot_name_is_its_own_error():
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(tn.compile(lambda x: x))


def test_compiled_methods_go_with_their_object():
    model = Stepper()
    model.step(tn.ones(3))
    for other in (copy.deepcopy(model), through(model)):
        other.weight = other.weight * 5
        assert other.step(tn.ones(3)).tolist() == [5] * 3
        assert model.step(tn.ones(3)).tolist() == [1] * 3


def test_compiled_modules():
    model = tn.compile(tn.nn.Linear(2, 1), shapeless=True)
    got = through(model)
    x = tn.ones((3, 2))
    assert equal(got(x), model(x)) and got.stats().traces == 1 and "compiled" in repr(got)


def test_functions_with_state_keep_it():
    state = {"n": tn.array(1)}
    f = tn.compile(squared, inputs=state, outputs=state)
    got, its_state = through((f, state))
    assert got(tn.ones(2)).tolist() == [1, 1] and its_state["n"].item() == 1


def test_ops_that_live_in_a_module():
    for module in (tn.fft, tn.linalg, tn.nn, tn.nn.losses):
        ops = [value for value in vars(module).values() if isinstance(value, tn._core.Op)]
        assert len(ops) > 10 and all(through(op) is op for op in ops)


def test_transforms_of_functions_of_a_module():
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(tn.grad(squared))  # a function inside of ours: pickle says so


def test_models_say_what_to_do_instead():
    from tenon import model as tm

    model = tn.Model()
    model |= tm.Linear(2)(input="x", output="y")
    with pytest.raises(TypeError, match="(?s)pickle: logical models are not pickled.*hint: "):
        pickle.dumps(model)
    physical = tn.compile(model, shapes={"x": [3, 4]})
    with pytest.raises(TypeError, match="(?s)pickle: physical models are not pickled.*hint: "):
        pickle.dumps(physical)


# Other processes ------------------------------------------------------------------------------


def work(x):
    return tn.exp(x) + 1


def train(model):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss_of(model).backward()
    optimizer.step()
    return model, optimizer


def answer(questions, answers):
    for x in iter(questions.get, None):
        answers.put(work(x))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_queues_and_pools(method):
    tn.ones((64, 64)).sum().item()  # there are threads before the fork
    context = multiprocessing.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(questions, answers), daemon=True)
    process.start()
    x = tn.arange(1000.0).astype(tn.bfloat16)
    for value in (x, tn.ones(3) + 1, None):
        questions.put(value)
    assert equal(answers.get(timeout=100), work(x))
    assert equal(answers.get(timeout=100), work(tn.ones(3) + 1))
    process.join(timeout=100)
    assert process.exitcode == 0
    with context.Pool(1) as pool:
        assert equal(pool.map(decorated, [tn.ones(3)])[0], decorated(tn.ones(3)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_concurrent_futures(method):
    model = tn.nn.Linear(2, 1)
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        got, optimizer = pool.submit(train, model).result(timeout=100)
        compiled = pool.submit(tn.compile(squared), tn.arange(4.0)).result(timeout=100)
    want = train(model)[0].state_dict()
    assert all(equal(got.state_dict()[name], want[name]) for name in want)
    assert optimizer.state["step"].item() == 1 and compiled.tolist() == [0, 1, 4, 9]


def test_joblib():
    joblib = pytest.importorskip("joblib")
    xs = [tn.ones(3) * i for i in range(4)]
    parallel = joblib.Parallel(n_jobs=2, timeout=100)
    for f in (work, tn.compile(squared), decorated, tn.compile(lambda x: x * 2)):
        got = parallel(joblib.delayed(f)(x) for x in xs)
        assert all(equal(g, f(x)) for g, x in zip(got, xs))


def test_joblib_files(tmp_path):
    joblib = pytest.importorskip("joblib")
    model = tn.nn.Linear(200, 300)
    joblib.dump(model, tmp_path / "model")
    assert equal(joblib.load(tmp_path / "model").weight, model.weight)


def test_a_process_that_has_not_imported_the_package(tmp_path):
    path = tmp_path / "tensor"
    path.write_bytes(pickle.dumps(tn.ones((2, 3))))
    code = f"import pickle; print(pickle.load(open({str(path)!r}, 'rb')).shape)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "(2, 3)\n", done.stderr


def test_copies_of_subclasses_keep_their_class_and_attributes():
    x = Named([1.0, 2.0], ["pair"])
    x.requires_grad = True
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    for got in (shallow, deep):
        assert type(got) is Named and got.name == ["pair"] and got.tolist() == [1, 2]
        assert got.requires_grad and got.is_leaf
    assert shallow.name is x.name and deep.name is not x.name


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tn.top_k(x[0], 2),
        lambda x: x.max(dim=0),
        lambda x: x.sort(dim=1),
        lambda x: tn.linalg.svd(x),
        lambda x: tn.unique_counts(x),
    ],
)
def test_results_with_names(make):
    results = make(tn.array([[1.0, 3.0], [2.0, 5.0]]))
    got = through(results)
    assert type(got) is type(results)
    assert [x.tolist() for x in got] == [x.tolist() for x in results]


def test_results_with_names_in_another_process():
    data = pickle.dumps(tn.array([[1.0, 3.0]]).max(dim=1))
    code = f"import pickle; print(pickle.loads({data!r}).values.tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[3.0]\n", done.stderr
    with pytest.raises(AttributeError):
        tn.no_such_result
