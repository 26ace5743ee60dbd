"""Messages that no other test asks for, by theme: a call and a part of its message."""
import numpy as np
import pytest

import tenon as tn

nn = tn.nn
key = tn.random.key(0)


def ones(*shape, dtype=tn.float32):
    return tn.ones(shape, dtype=dtype)


def check(call, message):
    with pytest.raises((tn.Error, BufferError)) as caught:
        call()
    assert message in str(caught.value), caught.value


SHAPES = [
    (lambda: tn.moveaxis(ones(2, 3), (0, 1), 0), "moveaxis: 2 axes to 1 places (f32[2,3])"),
    (lambda: tn.flatten(ones(2, 3, 4), 2, 0), "flatten: axis 2 comes after axis 0: f32[2,3,4]"),
    (lambda: tn.as_strided(ones(4), (3,), (1, 1)), "as_strided: 2 strides for the shape [3]"),
    (lambda: tn.as_strided(ones(4), (3,), (2,)), "as_strided: elements 0 to 4 of f32[4]"),
    (lambda: tn.as_strided(ones(4), (2**40,), (2**40,)), "elements passes 64 bits (f32[4])"),
    (lambda: tn.full((2,), 300, dtype=tn.int8), "full: the number 300 does not fit i8"),
    (lambda: tn.roll(ones(3), -(2**63)), "roll: the shift is below -9223372028264841216"),
    (lambda: tn.compile(tn.exp, on="interpret-first")(ones(2)), "no pass named 'interpret-first'"),
    (lambda: tn.roll(ones(2, 3), (1, 2, 3), (0, 1)), "roll: 3 shifts for 2 axes (f32[2,3])"),
    (lambda: tn.array_split(ones(4)), "array_split: give either sections or indices (f32[4])"),
    (lambda: tn.rot90(ones(2, 3), axes=(0,)), "rot90: axes are two numbers, not 1: f32[2,3]"),
    (lambda: tn.std(ones(2, 3), 0, True), "std: correction must be a number: True"),
    (lambda: tn.var(ones(3), correction=False), "var: correction must be a number: False"),
    (lambda: tn.insert(ones(3), 0, ones(2, 2)), "insert: values have more axes than x"),
    (lambda: tn.pad(ones(2, 3), (1, 2, 3)), "pad: 3 widths for f32[2,3]: give 4"),
    (lambda: tn.pad(ones(2), -1), "pad: a negative width: -1 (f32[2])"),
    (lambda: tn.pad(ones(0), 1, mode="edge"), "pad: nothing to repeat along axis 0: f32[0]"),
    (lambda: tn.pad(ones(*[1] * 9), 1), "pad: more than 8 axes"),
    (lambda: tn.arange(-(2**63), 2**63 - 1), "arange: too many elements: from"),
    (lambda: tn.arange(2**63), "arange: too many elements: from 0 to 9223372036854775808"),
    (lambda: tn.arange(0, 2**63 + 1, 2**62), "arange: the number 9223372036854775808 does not"),
    (lambda: tn.arange(0.0, float("inf")), "arange: not a finite range: from 0 to inf by 1"),
    (lambda: tn.iota((3,), 0, dtype=tn.bool), "iota: coordinates are numbers: bool"),
    (lambda: tn.broadcast_shapes((2,), (3,)), "broadcast_shapes: sizes differ: [2], [3]"),
]

PRODUCTS = [
    (lambda: tn.vecdot(ones(3), ones(4)), "vecdot: extents differ along axis -1: 3"),
    (lambda: tn.tensordot(ones(3), ones(3), 2), "tensordot: cannot sum over 2 axes"),
    (lambda: tn.gather_mm(ones(3), ones(3, 3)), "gather_mm: operands are matrices: f32[3]"),
    (lambda: tn.linalg.multi_dot([ones(2, 2)]), "multi_dot: two matrices are needed at least: 1"),
    (lambda: tn.linalg.multi_dot([ones(1, 1)] * 513), "multi_dot: more than 512 matrices: 513"),
    (
        lambda: tn.linalg.multi_dot([ones(2, 2), ones(2), ones(2, 2)]),
        "multi_dot: operand 1 is not a matrix: f32[2]",
    ),
    (lambda: tn.einsum("...i...", ones(3)), "einsum: two ellipses in '...i...'"),
    (lambda: tn.einsum("i", ones(3), ones(3)), 'einsum: 1 terms and 2 operands: "i"'),
    (lambda: tn.linalg.cond(ones(0, 0)), "no elements: f32[0,0]"),
    (lambda: tn.linalg.norm(ones(3), ord="fro"), "norm"),
    (lambda: tn.linalg.norm(ones(3), ord="nuc"), "norm: ord='nuc' is a norm of matrices"),
]

INDICES = [
    (lambda: tn.take_along_axis(ones(2, 3), tn.array([0])), "take_along_axis: ranks differ"),
    (
        lambda: tn.put_along_axis(ones(2, 3), tn.array([0]), 1.0, 0),
        "put_along_axis: ranks differ: f32[2,3] and i64[1]",
    ),
    (lambda: tn.gather(ones(2, 3), [tn.array([0])], (0, 1)), "1 index tensors for 2 axes"),
    (lambda: tn.vmap(lambda i: ones(0)[i])(tn.array([0])), "nothing to index along axis 0: f32[0]"),
    (lambda: tn.segment_sum(ones(3), tn.array([0]), 2), "one segment for each row is needed"),
    (lambda: tn.segment_max(ones(3), tn.array([0]), 2), "one segment for each row is needed"),
    (
        lambda: tn.dynamic_update_slice(ones(3), ones(1, 1), [0]),
        "dynamic_update_slice: an update of f32[1,1] and 1 starts for f32[3]",
    ),
    (
        lambda: tn.searchsorted(ones(2, 3), ones(3, 2), batch_dims=1),
        "searchsorted: batch axis 0 differs: f32[2,3] and f32[3,2]",
    ),
    (lambda: ones(3)["a"], "index: not an integer, slice, None, Ellipsis or array"),
    (lambda: [1, 2][ones(1)], "index: only integer tensors are indices: f32[1]"),
]

STATISTICS = [
    (lambda: tn.quantile(ones(3), tn.array(True)), "quantile: q must be real: bool[]"),
    (lambda: tn.sum(ones(3, dtype=tn.complex64), dtype=tn.float32), "sum: a complex tensor has no"),
    (lambda: tn.round(tn.array([11]), -1), "round: integers with negative decimals: -1 (i64[1])"),
    (lambda: tn.array([2]) ** -1, "pow: an integer has no negative power: -1 (i64[1])"),
    (lambda: tn.interp([0.5], [0.0, 1.0], [0.0, 1.0], period=0), "interp: the period is 0"),
    (lambda: tn.gradient(ones(5), edge_order=3), "gradient: edge_order is 1 or 2, not 3"),
    (lambda: tn.gradient(ones(5, 5), 1.0, 2.0, 3.0), "gradient: 3 spacings for 2 axes"),
    (lambda: tn.fft.fftn(ones(3), s=(2, 2), axes=(0,)), "2 lengths for 1 axes (f32[3])"),
    (lambda: tn.fft.fftn(ones(3), axes=()), "0 axes to transform (f32[3])"),
    (lambda: ones(0).median(dim=0), "median: no elements: f32[0]"),
]

LAYERS = [
    (
        lambda: tn.adaptive_avg_pool(ones(1, 1, 0), 1),
        "adaptive_avg_pool: axis 2 has no elements: f32[1,1,0]",
    ),
    (lambda: tn.pixel_shuffle(ones(4, 4), 2), "pixel_shuffle: x has channels, a height and a"),
    (
        lambda: tn.scaled_dot_product_attention(ones(2, 3), ones(1, 2, 3), ones(1, 2, 3)),
        "q, k and v need one rank, 2 or more",
    ),
    (
        lambda: tn.scaled_dot_product_attention(ones(2, 3), ones(2, 4), ones(2, 4)),
        "depths differ: 3 (q f32[2,3]) and 4 (k f32[2,4])",
    ),
    (
        lambda: tn.scaled_dot_product_attention(ones(2, 3), ones(2, 3), ones(4, 3)),
        "keys and values differ in number: 2 (k f32[2,3]) and 4 (v f32[4,3])",
    ),
    (
        lambda: tn.scaled_dot_product_attention(ones(3, 2, 3), ones(2, 2, 3), ones(2, 2, 3)),
        "heads do not fit: q f32[3,2,3], k f32[2,2,3] and v f32[2,2,3]",
    ),
    (lambda: tn.interpolate(ones(1, 1, 0), size=2), "interpolate: cannot resize 0 to 2"),
    (lambda: tn.max_pool(ones(1, 1, 4), 0), "max_pool: kernel_size must be 1 or more: 0"),
    (
        lambda: tn.cross_entropy(ones(2, 3), tn.array([0, 1, 2])),
        "cross_entropy: targets must be classes of shape [2]: i64[3] (logits f32[2,3])",
    ),
]

RANDOM = [
    (
        lambda: tn.random.categorical(ones(3), shape=(2,), num_samples=2),
        "give shape or num_samples, not both",
    ),
    (lambda: tn.random.categorical(ones(3), num_samples=-1), "num_samples is negative: -1"),
    (lambda: tn.random.multinomial(ones(3), -1), "num_samples is negative: -1"),
    (lambda: tn.random.poisson(1.0, dtype=tn.float32), "draws i32 or i64: f32"),
    (lambda: tn.random.split(tn.random.split(key), 2).shape and tn.random.categorical(
        ones(3), key=tn.random.split(key)), "needs one key, not several"),
    (lambda: tn.random.normal(3, 4), "the second argument is an element type, not 4"),
]

CONTROL_FLOW = [
    (
        lambda: tn.cond(tn.array(True), lambda x: x, lambda x: (x, x), ones(2)),
        "cond: results differ in structure",
    ),
    (lambda: tn.scan(lambda c, x: (c, x), 0.0, length=-1), "scan: the length is negative: -1"),
    (
        lambda: tn.associative_scan(tn.add, (ones(2), ones(3))),
        "associative_scan: lengths differ",
    ),
    (lambda: tn.vmap(lambda x: x, in_axes=(0, 0))(ones(2)), "vmap"),
    (
        lambda: tn.grad(lambda x: x.sum(), argnums=())(ones(2)),
        "argnums and argnames are both empty",
    ),
    (
        lambda: tn.linearize(lambda x: x, ones(2))[1](ones(2), ones(2)),
        "linearize: 2 tangents are given for 1 primals",
    ),
    (
        lambda: tn.grad(lambda x: tn.linalg.svd(x)[0].sum())(ones(3, 2)),
        "svd: full matrices have no derivative for f32[3,2]",
    ),
    (
        lambda: setattr((ones(2).requires_grad_() * 2), "requires_grad", False),
        "requires_grad: cannot be turned off for a computed tensor: f32[2]",
    ),
]

PYTHON = [
    (lambda: tn.array([[1], [2, 3]]), "array: ragged list"),
    (lambda: tn.array([-1, 2**63]), "array: negative integers and integers beyond int64"),
    (lambda: tn.asarray(object()), "asarray: cannot make a tensor from object"),
    (lambda: tn.from_dlpack(3), "from_dlpack: int has no __dlpack__"),
    (lambda: ones(2).__dlpack__(dl_device=(2, 0)), "tensors live on the CPU, device type 1"),
    (lambda: memoryview(ones(2, dtype=tn.bfloat16)), "bfloat16 has no buffer format"),
    (lambda: float(tn.array(1j)), "the element is complex"),
    (lambda: tn.sum(ones(2), 0, True, tn.float32, 5), "arguments given, it takes at most"),
    (lambda: tn.reshape(ones(2), "a"), "reshape"),
    (lambda: tn.tril(ones(2, 2), 1.5), "tril: k must be an integer: 1.5"),
    (lambda: tn.Executable(None), "Executable: made by tn.compile(f, args=[...])"),
    (lambda: tn.finfo(tn.int32), "finfo: not a floating-point type: int32"),
    (lambda: tn.iinfo(tn.float32), "iinfo: not an integer type: float32"),
    (lambda: tn.isdtype(tn.float32, "no"), "isdtype: unknown kind: 'no'; known: bool"),
    (lambda: ones(2).__array_namespace__(api_version="1"), "unknown version: '1'"),
    (lambda: list(tn.array(1.0)), "iter: a tensor of rank 0 has no axis to iterate over"),
    (lambda: ones(2).to("float32"), "to: 'float32' is an element type, not a device"),
    (lambda: ones(2, 2).transpose(0, 1), "exchanges the axes in PyTorch and keeps them in NumPy"),
    (lambda: ones(2, 2).repeat(1, 1), "is repeats and axis in NumPy and repeats by axis in"),
    (lambda: tn.check(ones(2), "x"), "check: the condition must be bool, not f32[2]"),
    (lambda: tn.vmap(lambda x: x, in_axes=(5.0,))(ones(2)), "vmap"),
]


class BadTree:
    """Its flatten function returns a list."""


tn.tree.register(BadTree, lambda x: [1], lambda static, tree: BadTree())


class BadCapsule:
    def __dlpack__(self, **options):
        return None

    def __dlpack_device__(self):
        return (1, 0)


def scaled_with_bad_vmap():
    f = tn.custom_function(lambda x: x * 2)
    f.vmap(lambda x, axis: x)
    return f


def linear_model():
    model = tn.Model()
    model |= tn.model.Linear(2)(input="x", output="y")
    return model


def terminal_block(*terminals):
    return tn.model.Block.of("Odd", [tn.model.Terminal(*t) for t in terminals], lambda *_: [])


FOREIGN = [
    (lambda: tn.asarray(np.ones([1] * 20, np.float32)), "asarray: 20 axes are more than 16"),
    (lambda: tn.from_dlpack(BadCapsule()), "__dlpack__ of BadCapsule gave no usable capsule"),
    (lambda: tn.from_dlpack(np.ones([1] * 20, np.float32)), "from_dlpack: 20 axes are more than"),
    (lambda: tn.tree.leaves(BadTree()), "flatten of BadTree must return (tree, static), not list"),
    (lambda: tn.vmap(scaled_with_bad_vmap())(ones(2)), "vmap must return results and their axes"),
    (lambda: tn.save("x.npy", {"a": ones(2)}), "save: takes a path and one tensor, not a dict"),
]

MODELS = [
    (lambda: tn.model.Relu()(name=3), "Relu: the name of a block is a string, not int"),
    (lambda: tn.compile(linear_model(), discard_keys=[3]), "discard_keys are names, not 3"),
    (
        lambda: tn.compile(
            linear_model(), tn.CpuBackend(precision="float64"), mixed_precision=True
        ),
        "mixed_precision with a precision of",
    ),
    (
        lambda: tn.compile(linear_model(), jit_options={"static_argnums": 2}),
        "compile: only params (0) and data (1) can be static",
    ),
    (
        lambda: tn.compile(
            linear_model(),
            shapes={"x": [tn.NamedDimension("n", min=1, opt=2, max=4), 3]},
        ).summary(depth=0),
        "summary: depth must be a positive number, not 0",
    ),
    (
        lambda: tn.compile(linear_model(), shapes={"x": [2, 3]}).draw().save("x.png"),
        "draw: 'x.png' ends neither with .svg nor with .html",
    ),
    (lambda: tn.compile(linear_model(), shapes={"x": [-2, 3]}), "size 0 of 'x' is negative: -2"),
    (lambda: terminal_block(("a",), ("a", "output")), "Odd: two terminals 'a'"),
    (lambda: terminal_block(("a", "output"), ("b",)), "Odd: outputs come after other terminals"),
]


def sgd(**options):
    return tn.optim.SGD([ones(2)], lr=0.1, **options)


scheduler = tn.optim.lr_scheduler
TRAINING = [
    (lambda: nn.init.sparse(0.5)(ones(2)), "init.sparse: expected a matrix, given [2]"),
    (lambda: nn.Linear(2, 3).update({"no": ones(2)}), "has no 'no'"),
    (lambda: nn.Linear(2, 3).update({"weight": {"a": ones(2)}}), "update: "),
    (lambda: nn.Sequential(nn.Linear(2, 3)).update({"layers": []}), "update: "),
    (
        lambda: scheduler.OneCycleLR(sgd(), 1.0, total_steps=10, anneal_strategy="no"),
        "OneCycleLR: anneal_strategy must be 'cos' or 'linear', not 'no'",
    ),
    (
        lambda: scheduler.OneCycleLR(
            tn.optim.Adagrad([ones(2)], lr=0.1), 1.0, total_steps=10, cycle_momentum=True
        ),
        "OneCycleLR: Adagrad has neither momentum nor betas",
    ),
    (
        lambda: scheduler.ReduceLROnPlateau(sgd(), mode="no"),
        "ReduceLROnPlateau: mode must be 'min' or 'max', not 'no'",
    ),
    (
        lambda: scheduler.ReduceLROnPlateau(sgd(), factor=2),
        "ReduceLROnPlateau: factor must be at least 0 and less than 1, not 2",
    ),
    (lambda: tn.amp.LossScaler(scale=-1.0), "LossScaler: scale > 0, growth >= 1"),
    (lambda: tn.model.TrainModel(3), "TrainModel: expected a Model, not int"),
    (
        lambda: tn.compile(
            linear_model(),
            shapes={"x": [tn.NamedDimension("n", 1, 2, 4), tn.NamedDimension("n", 1, 2, 8)]},
        ),
        "'n' is (1, 2, 4) elsewhere, not (1, 2, 8)",
    ),
    (
        lambda: tn.max_pool(tn.broadcast_to(ones(1, 1, 1), (1, 1, 2**31)), 2),
        "a spatial axis of size 2147483648",
    ),
]


def test_memory_of_tensors_is_read_only(tmp_path):
    """`readinto` asks for writable memory, and reports an error of its own."""
    path = tmp_path / "bytes"
    path.write_bytes(bytes(8))
    with path.open("rb") as file, pytest.raises((BufferError, TypeError)):
        file.readinto(ones(2))


def test_an_empty_trace(tmp_path):
    from tenon.watching import log_reader

    path = tmp_path / "empty.log"
    path.write_text("")
    check(lambda: log_reader.read(path), "empty.log: an empty trace")


@pytest.mark.parametrize("call, message", FOREIGN + MODELS + TRAINING)
def test_objects(call, message):
    check(call, message)


@pytest.mark.parametrize("call, message", SHAPES + PRODUCTS + INDICES)
def test_ops(call, message):
    check(call, message)


@pytest.mark.parametrize("call, message", STATISTICS + LAYERS + RANDOM)
def test_more_ops(call, message):
    check(call, message)


@pytest.mark.parametrize("call, message", CONTROL_FLOW + PYTHON)
def test_python(call, message):
    check(call, message)
