"""Wrong calls: the first line of the message, the line of the call as its place, the hint."""
import ctypes

import numpy as np
import pytest

import tenon as tn

key = tn.random.key(0)


def ones(*shape, dtype=tn.float32):
    return tn.ones(shape, dtype=dtype)


def check(call, message, hint=""):
    with pytest.raises(tn.Error) as caught:
        call()
    first, *rest = str(caught.value).split("\n  ")
    assert first == message
    lines = {line for *_, line in call.__code__.co_lines()}
    places = [f"at {__file__}:{line}" for line in lines]
    assert rest[0].split(", in ")[0] in places
    assert rest[1:] == ([f"hint: {hint}"] if hint else [])


SHAPES = [
    (lambda: tn.narrow(ones(4), 0, (1, 2), 1), "narrow: start is one integer, not 2 (f32[4])"),
    (
        lambda: tn.narrow(ones(4), 0, 0, tn.array([1, 2])),
        "narrow: length must be an integer: tensor([1, 2], dtype=int64)",
    ),
    (lambda: tn.tril(ones(2, 2), 2**70), "tril: k does not fit 64 bits"),
    (
        lambda: tn.full_like(tn.array([1], dtype=tn.uint8), 300),
        "full_like: the number 300 does not fit u8 (u8[1], i64[])",
    ),
    (lambda: tn.arange(-3, 3, dtype="uint8"), "arange: the number -3 does not fit u8"),
    (lambda: tn.arange(0, 300, 50, dtype="int8"), "arange: the number 250 does not fit i8"),
    (
        lambda: tn.pad(tn.array([1], dtype=tn.uint8), 1, constant_values=-1),
        "pad: the number -1 does not fit u8 (u8[1])",
    ),
    (
        lambda: tn.unflatten(ones(4), 0, (-1, -1)),
        "unflatten: only one extent may be -1: [-1,-1] (f32[4])",
    ),
    (
        lambda: tn.diagonal(ones(2, 2), axis1=1, axis2=-1),
        "diagonal: two different axes are needed: 1 (f32[2,2])",
    ),
    (
        lambda: ones(4).split([-1, 5], dim=0),
        "split: a section has a negative size: -1 (f32[4])",
    ),
    (
        lambda: ones(4).split(dim=0),
        "split: give either the size of all sections or a list of sizes (f32[4])",
    ),
    (lambda: tn.zeros(-1), "zeros: a size is negative: -1"),
    (lambda: tn.iota((2, -1)), "iota: a size is negative: -1"),
    (lambda: tn.arange(0, 3, 0), "arange: the step is 0"),
    (lambda: tn.arange(0.0, 3.0, 0.0), "arange: the step is 0"),
    (
        lambda: tn.compile(lambda x: tn.arange(0, x.shape[0], 0), shapeless=True)(ones(3)),
        "arange: the step is 0",
    ),
    (
        lambda: tn.full(2, 1j, dtype=tn.float32),
        "full: a complex number does not convert to f32",
    ),
    (
        lambda: tn.linspace(0, 1j, 3, dtype=tn.float32),
        "linspace: complex ends need a complex type: f32",
    ),
    (lambda: tn.logspace(0, 1j, 3), "logspace: the ends must be real"),
]

PRODUCTS = [
    (
        lambda: tn.einsum("ij->ii", ones(2, 2)),
        "einsum: 'i' occurs twice in the result: \"ij->ii\" (f32[2,2])",
    ),
    (
        lambda: tn.tensordot(ones(2, 2), ones(2, 2), ((0, 0), (0, 1))),
        "tensordot: an axis is named twice: x1 f32[2,2] and x2 f32[2,2]",
    ),
    (
        lambda: tn.linalg.expm(ones(2, 2), max_squarings=-1),
        "expm: max_squarings must lie in [0, 64]: -1 (f32[2,2])",
    ),
    (
        lambda: tn.linalg.norm(ones(2, 2, 2), axis=(0, 1, 2), ord=2),
        "norm: axis is one axis or two, not 3",
    ),
    (
        lambda: tn.eval(tn.linalg.qr(tn.zeros((2**32, 0)))),
        "linalg: a matrix has at most 2147483647 rows and columns: 4294967296",
    ),
    (
        lambda: tn.gradient(ones(5, 5), ones(5)),
        "gradient: coordinates are needed for each of 2 axes",
    ),
    (lambda: tn.polyfit(ones(0), ones(0), 1), "polyfit: there are no points: f32[0]"),
    (
        lambda: tn.polyfit(ones(3), ones(3), 1, w=ones(2)),
        "polyfit: w and x have different shapes: f32[2] and f32[3]",
    ),
]

INDICES = [
    (
        lambda: tn.dynamic_slice(ones(3), [0], [4]),
        "dynamic_slice: size 4 does not fit axis 0: 3 (f32[3])",
    ),
    (
        lambda: tn.dynamic_update_slice(ones(3), ones(4), [0]),
        "dynamic_update_slice: the update does not fit axis 0: 4 (f32[4]) and 3 (f32[3])",
    ),
    (
        lambda: tn.gather(ones(2, 3), [tn.array([0]), tn.array([0])], (0, 0)),
        "gather: axis 0 is given twice (f32[2,3])",
    ),
    (
        lambda: tn.gather(ones(2, 3), [tn.array([0])], (0,), batch_dims=1),
        "gather: batch_dims must lie in [0, 0]: 1 (f32[2,3])",
    ),
    (
        lambda: tn.gather(ones(2, 3), [tn.array([[0], [1], [2]])], (1,), batch_dims=1),
        "gather: batch axis 0 differs: 3 (indices [3,1]) and 2 (f32[2,3])",
    ),
    (
        lambda: tn.searchsorted(ones(3), ones(2), sorter=tn.array([0])),
        "searchsorted: sorter does not fit x1: i64[1] and f32[3]",
    ),
    (lambda: tn.unique(tn.array([1]), size=-1), "unique: a negative size: -1"),
    (
        lambda: tn.unique(ones(2, 20000), axis=0),
        "unique: rows of more than 16384 elements: f32[2,20000]",
    ),
    (
        lambda: tn.histogram(ones(3), tn.array([1.0])),
        "histogram: at least two bin edges are needed: f32[1]",
    ),
    (
        lambda: tn.bincount(tn.array([1]), minlength=-1),
        "bincount: a negative minlength: -1 (i64[1])",
    ),
    (
        lambda: tn.scatter(ones(3), ones(3), [tn.array([0, 1])], (0,)),
        "scatter: updates of f32[3] do not fit the indexed shape [2]",
    ),
    (
        lambda: tn.slice_update(ones(3), ones(3), (0,), (2,)),
        "slice_update: an update of f32[3] does not fit the slice [2]",
    ),
    (
        lambda: ones(2).at[0].set("a"),
        "index: the assigned value is not a tensor or a number: str",
    ),
    (
        lambda: ones(2).__setitem__(0, 1j),
        "index: cannot assign a value of type c64 to a tensor of type f32; convert it with astype",
    ),
    (
        lambda: ones(2, 3).__setitem__(tn.ones((3, 2), dtype=tn.bool), 0.0),
        "index: mask bool[3,2] does not fit f32[2,3]",
    ),
    (
        lambda: ones(3).__delitem__(0),
        "del: tensors have a fixed size",
        "x = tn.delete(x, indices)",
    ),
]

LAYERS = [
    (
        lambda: tn.rope(ones(2, 4), 4, base=0.0),
        "rope: base must be positive: 0 (f32[2,4])",
    ),
    (
        lambda: tn.scaled_dot_product_attention(
            ones(2, 3, 4), ones(2, 3, 4), ones(2, 3, 4), ones(5, 3, 3)
        ),
        "scaled_dot_product_attention: the mask does not broadcast to [2,3,3]: f32[5,3,3]",
    ),
    (
        lambda: tn.scaled_dot_product_attention(
            ones(2, 3, 4), ones(2, 3, 4), ones(2, 3, 4), ones(5, 2, 3, 3)
        ),
        "scaled_dot_product_attention: the mask does not broadcast to [2,3,3]: f32[5,2,3,3]",
    ),
    (
        lambda: tn.group_norm(ones(2, 4), num_groups=2, axis=0),
        "group_norm: axis 0 is the batch axis: f32[2,4]",
    ),
    (
        lambda: tn.interpolate(ones(1, 1, 4), size=3, scale_factor=2.0),
        "interpolate: give either size or scale_factor: f32[1,1,4]",
    ),
    (
        lambda: tn.interpolate(ones(1, 1, 4), size=(3, 3)),
        "interpolate: size has 2 numbers for 1 spatial axes: f32[1,1,4]",
    ),
    (
        lambda: tn.interpolate(ones(1, 1, 4), scale_factor=1e30),
        "interpolate: scale_factor must lie between 0 and 2**31: 1e+30 (f32[1,1,4])",
    ),
]

RANDOM = [
    (
        lambda: tn.random.categorical(tn.array(1.0)),
        "categorical: logits need an axis of classes: f32[]",
    ),
    (
        lambda: tn.random.categorical(ones(2, 3), shape=(4,)),
        "categorical: logits without their classes do not broadcast to shape [4]: f32[2,3]",
    ),
    (
        lambda: tn.random.categorical(ones(5, 2, 3), shape=(2,)),
        "categorical: logits without their classes do not broadcast to shape [2]: f32[5,2,3]",
    ),
    (
        lambda: tn.random.multinomial(tn.array(1.0), 1),
        "multinomial: weights need an axis of classes: f32[]",
    ),
    (
        lambda: tn.random.permutation(3.0),
        "permutation: x must be an integer or have an axis: f32[]",
    ),
]


@pytest.mark.parametrize("case", SHAPES + PRODUCTS + INDICES + LAYERS + RANDOM)
def test_ops(case):
    check(*case)


# Transforms and control flow -------------------------------------------------------------------


@tn.custom_jvp
def without_rule(x):
    return x


@tn.custom_jvp
def with_one_result(x):
    return x


with_one_result.defjvp(lambda primals, tangents: tangents)


@tn.custom_vjp
def without_residuals(x):
    return x


without_residuals.defvjp(lambda x: x, lambda residuals, ct: ct)

TRANSFORMS = [
    (
        lambda: tn.while_loop(lambda: True, lambda: (), ()),
        "while_loop: there is no carry, so nothing can change",
    ),
    (
        lambda: tn.scan(lambda c, x: (c, x), 0.0),
        "scan: without xs the length must be given",
    ),
    (lambda: tn.associative_scan(tn.add, ()), "associative_scan: there are no tensors"),
    (
        lambda: tn.associative_scan(lambda a, b: (a, b), ones(4)),
        "associative_scan: the function changes the structure",
    ),
    (
        lambda: without_rule(ones(2)),
        "custom_jvp: without_rule has no rule; call defjvp first",
    ),
    (
        lambda: tn.jvp(with_one_result, [ones(2)], [ones(2)]),
        "custom_jvp: the rule must return a pair: result and tangents",
    ),
    (
        lambda: tn.vjp(without_residuals, [ones(2)], ones(2)),
        "custom_vjp: fwd must return a pair: result and residuals",
    ),
    (
        lambda: tn.linearize(lambda x: x, ones(2), has_aux=True),
        "linearize: with has_aux the function must return a pair",
    ),
    (
        lambda: setattr(tn.top_k(ones(3), 2)[0], "grad", ones(2)),
        "grad: the tensor is one of several results of an op, and cannot hold a gradient",
        "call requires_grad_() on it first",
    ),
    (
        lambda: tn.compile(lambda x: x, static_argnames=[3]),
        "compile: static_argnames are strings, not [3]",
    ),
    (
        lambda: tn.print("", *[ones(1)] * 66000),
        "print: 66000 operands and 1 results, the maximum is 65535",
    ),
    (lambda: tn.print("{}", None), "print: a value is missing"),
    (lambda: tn.signal.tensor(ones(2), ""), "signal.tensor: the name of a signal is empty"),
    (
        lambda: tn.signal.load("/proc/self/mem"),
        "signal.load: /proc/self/mem: Input/output error",
    ),
]


@pytest.mark.parametrize("case", TRANSFORMS)
def test_transforms(case):
    check(*case)


def test_rules_live_as_long_as_the_transform_around_their_call():
    double = tn.custom_function(lambda x: x * 2)
    double.vjp(lambda primals, ct, outputs: ct)
    x, kept = ones(2).requires_grad_(), []
    tn.vmap(lambda y: (kept.append(double(x).sum()), y)[1])(ones(2))
    with pytest.raises(ValueError, match="custom_function: its rules were released") as caught:
        kept[0].backward()
    assert "hint: take the derivative inside the function that calls it" in str(caught.value)


def test_an_executable_does_not_use_values_of_a_trace_around_it():
    info = tn.InputInfo((2,), tn.float32)
    outer = tn.compile(lambda y: tn.compile(lambda x: x + y, args=[info])(y))
    with pytest.raises(ValueError, match="uses a value of a function that is being traced") as e:
        outer(ones(2))
    assert "hint: pass the value as an argument, or compile outside of" in str(e.value)


def test_constants_must_be_comparable():
    class Incomparable:
        def __eq__(self, other):
            raise RuntimeError("no")

        def __hash__(self):
            return 1

    f = tn.compile(lambda x, o: x + 1)
    f(ones(2), Incomparable())
    with pytest.raises(TypeError, match="constant arguments cannot be compared: .*Incomparable"):
        f(ones(2), Incomparable())


# The Python API --------------------------------------------------------------------------------

M = tn.model



def linear_model():
    model = tn.Model()
    model |= M.Linear(2)(input="x", output="y")
    return model


PYTHON = [
    (
        lambda: tn.compile(lambda x: x, optimisation_level=1),
        "compile: unknown keyword: optimisation_level",
        "did you mean 'optimization_level'?",
    ),
    (
        lambda: tn.compile(
            linear_model(), shapes={"x": [4, 3]}, types={"x": tn.int32}, trainable_keys=["x"]
        ),
        "model: 'x' has no gradient: it is int32",
    ),
    (lambda: tn.sum(ones(2, 2), axis=0, dim=0), "sum: axis is given twice"),
    (
        lambda: M.Max(dim=0),
        "max: PyTorch's keywords select an op with other results, which is not a block",
        "give axis and keepdims in place of dim and keepdim",
    ),
    (
        lambda: M.Concat(arrays=[ones(2)]),
        "concat: arrays are inputs of the block, not options",
        "connect them when the block is added to a model",
    ),
    (
        lambda: M.Block.of("Odd", [M.Terminal("x", "no")], lambda *_: []),
        "Terminal: no role 'no'; there are input, parameter, state, output",
    ),
    (lambda: tn.Model(name=3), "Model: a name is a string, not int"),
    (lambda: tn.nn.LSTM(3, 4)("a"), "LSTM: expected a tensor, given a str"),
    (lambda: tn.result_type(), "result_type: at least one argument is needed"),
    (lambda: tn.result_type("abc"), "result_type: not a tensor or a number: str"),
    (
        lambda: tn.asarray(np.array(["a"])),
        "asarray: no element type for dtype('<U1')",
    ),
    (
        lambda: tn.asarray(np.ones(2, np.float32), dtype=tn.int32, copy=False),
        "asarray: f32 cannot become i32 without a copy",
    ),
    (
        lambda: tn.asarray(ones(2), dtype=tn.int32, copy=False),
        "asarray: f32 cannot become i32 without a copy",
    ),
    (
        lambda: ones(2, dtype=tn.bfloat16).__array__(copy=False),
        "__array__: bfloat16 cannot be exported without a copy",
    ),
    (
        lambda: ones(2).__array__(dtype="int32", copy=False),
        "__array__: float32 cannot become 'int32' without a copy",
    ),
    (lambda: complex(ones(2)), "complex: needs a tensor of one element: f32[2]"),
    (lambda: f"{ones(2):.2f}", "format: '.2f' needs a tensor of rank 0: f32[2]"),
    (lambda: tn.tree.register(3, id, id), "tree.register: not a class: 3"),
    (
        lambda: ones(2).__dlpack__(stream=1),
        "__dlpack__: the stream must be None on the CPU: 1",
    ),
    (
        lambda: tn.optim.lr_scheduler.CosineAnnealingLR(tn.optim.SGD([ones(2)], lr=0.1), 0),
        "CosineAnnealingLR: T_max must be above 0, not 0",
    ),
]


@pytest.mark.parametrize("case", PYTHON)
def test_python(case):
    check(*case)


def test_sources_of_what_torch_has_not():
    with pytest.raises(tn.Unsupported, match="torch has no lt of uint64\n.*\n  hint: comp"):
        tn.compile(lambda x: x < 2).source("torch", tn.ones(3, dtype=tn.uint64))
    with pytest.raises(tn.Unsupported, match="torch converts no floats to uint64\n.*\n  hint:"):
        tn.compile(lambda x: x.astype(tn.uint64)).source("torch", ones(3))


def test_a_gradient_of_another_shape():
    model = tn.compile(linear_model(), tn.NumpyBackend(), shapes={"x": [4, 3]})
    params = model.randomize_params()
    check(
        lambda: model.evaluate(params, {"x": ones(4, 3)}, {"y": ones(5, 2)}),
        "evaluate: the gradient of 'y' is float32[5, 2] but must be float32[4, 2]",
    )


def test_a_missing_index_of_shards(tmp_path):
    name = tmp_path / "model.safetensors.index.json"
    with pytest.raises(FileNotFoundError, match=f"cannot open {name}: No such file or directory"):
        tn.load(name)


class NewerCapsule:
    """Offers a tensor by a version of DLPack that does not exist yet."""

    def __init__(self):
        self.version = (ctypes.c_uint32 * 32)(9, 1)

    def __dlpack__(self, **options):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        self.name = ctypes.create_string_buffer(b"dltensor_versioned")
        return make(ctypes.addressof(self.version), ctypes.addressof(self.name), None)

    def __dlpack_device__(self):
        return (1, 0)


def test_a_newer_dlpack():
    check(lambda: tn.from_dlpack(NewerCapsule()), "from_dlpack: version 9.1 is not known")


@pytest.mark.parametrize("call", [
    lambda: tn.zeros(2, requires_grad=np.ones(2)),
    lambda: ones(2).__array__(copy=np.ones(2)),
    lambda: ones(2).__array__("int32", copy=np.ones(2)),
])
def test_what_is_neither_true_nor_false(call):
    with pytest.raises(ValueError, match="ambiguous"):
        call()


class Stateful:
    def __init__(self, state):
        self.state = state


def test_state_that_cannot_be_replaced():
    counter = Stateful((ones(2),))

    def count(x):
        counter.state = (counter.state[0] + x,)
        return x

    with pytest.raises(TypeError, match="the state of a Stateful cannot be replaced") as caught:
        tn.compile(count, inputs=[counter], outputs=[counter])(ones(2))
    assert "hint: let `state` be a list or a dict" in str(caught.value)


def test_state_that_cannot_be_made():
    made = {}
    f = tn.compile(lambda x: (made.update(a=Stateful([ones(2)])), x)[1], outputs=made)
    with pytest.raises(TypeError, match="a new Stateful in the outputs cannot be created") as e:
        f(ones(2))
    assert "hint: create it before the function is called" in str(e.value)


def test_frequencies_of_positions_are_ordered():
    with pytest.raises(tn.Error, match="0 < min_freq <= max_freq must hold: 2 and 1"):
        tn.nn.SinusoidalPositionalEncoding(8, min_freq=2.0, max_freq=1.0)
