"""Random calls of every op, mostly wrong: each gives a result or one error of the right kind."""

import inspect

import numpy as np
import pytest

import tenon as tn

OPS = sorted(tn.testing.op_names())
SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (4,),
    (2, 3),
    (3, 2),
    (3, 3),
    (1, 3),
    (2, 0),
    (2, 3, 4),
    (1, 1, 1),
    (2, 1, 3, 2),
]
TYPES = [
    "bool",
    "int8",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "float8_e4m3",
]
NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    -2,
    7,
    100,
    -100,
    2**31,
    -(2**31),
    2**62,
    -(2**63),
    2**63,
    0.5,
    -1.5,
    1e300,
    float("inf"),
    float("nan"),
    True,
    1j,
]
ODD = [
    None,
    "",
    "text",
    "ij,jk->ik",
    "...",
    "->",
    (),
    (0,),
    (0, 0),
    (-1,),
    (1, 0),
    (2, 3),
    (0, 1, 2),
    (99,),
    (2**62, 4),
    (-1, -1),
    [1],
    [[1, 2], [3, 4]],
    {},
    object(),
    tn.float32,
    tn.int8,
    "float32",
    "max",
    "sum",
    b"x",
    ...,
]
POOL = {}


def operand(rng):
    kind = rng.integers(12)
    if kind == 0:
        return NUMBERS[rng.integers(len(NUMBERS))]
    if kind == 1:
        return ODD[rng.integers(len(ODD))]
    shape, name = SHAPES[rng.integers(len(SHAPES))], TYPES[rng.integers(len(TYPES))]
    if (shape, name) not in POOL:
        values = np.arange(int(np.prod(shape))).reshape(shape) % 3
        POOL[shape, name] = tn.asarray(values.astype(np.float32)).astype(getattr(tn, name))
    return POOL[shape, name]


def attribute(rng):
    if rng.integers(3):
        return NUMBERS[rng.integers(len(NUMBERS))]
    return ODD[rng.integers(len(ODD))]


def small(results):
    return sum(r.size for r in results if isinstance(r, tn.Tensor)) < 1 << 20


def tensors_in(result):
    return [
        r
        for r in (result if isinstance(result, (list, tuple)) else [result])
        if isinstance(r, tn.Tensor)
    ]


ALLOWED = (tn.Error, OverflowError)


@pytest.mark.parametrize("op", OPS)
def test_wrong_calls_end_in_errors(op):
    rng = np.random.default_rng([ord(c) for c in op])
    function = getattr(tn._core, op)
    parameters = list(inspect.signature(function).parameters.values())
    sample = next(s for s in tn.testing.samples() if s.op == op)
    operands = len(sample.arg_names)
    for _ in range(60):
        args, keywords = [], {}
        for number, p in enumerate(parameters):
            is_operand = p.name in sample.arg_names
            if p.default is not p.empty and rng.integers(2):
                continue
            value = operand(rng) if is_operand else attribute(rng)
            if (
                is_operand
                and sample.has_list
                and number == operands - 1 + ("equation" == parameters[0].name)
            ):
                value = [operand(rng) for _ in range(rng.integers(0, 4))]
            keywords[p.name] = value
        try:
            result = tensors_in(function(*args, **keywords))
            if small(result):
                tn.eval(result)
        except tn.InternalError as error:
            raise AssertionError(f"{op}({keywords}) is a defect: {error}") from None
        except ALLOWED as error:
            assert str(error)
        except Exception as error:
            raise AssertionError(
                f"{op}({keywords}) raised {type(error).__name__}: {error}"
            ) from None
    assert tn.sum(tn.ones(3)).item() == 3


def itself():
    held = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tn.moveaxis(tn.ones((2, 3)), (-1, 0), itself()),
         "moveaxis: destination is nested deeper than 16"),
        (lambda: tn.reshape(tn.ones((2, 3)), itself()), "reshape: shape is nested deeper than 16"),
        (lambda: tn.optim.Adam(1e-3).init(["a"]), "parameters: a tensor is expected, given 'a'"),
        (lambda: tn.optim.Adam(1e-3).init(itself()), "parameters: a module or a list holds itself"),
        (lambda: tn.model.block(tn.nn.Linear(3, 2), inputs=[1.0]),
         "block: a name is a string, not 1.0"),
        (lambda: tn.data.split(tn.zeros((0,)), 2**63),
         "split: 0 examples do not divide into 9223372036854775808 parts"),
        (lambda: tn.compile(lambda x: x).source("\ud800"), "is of the wrong type"),
        (lambda: tn.associative_scan(lambda x, y: tn.ones(3), tn.ones((2, 3))),
         "associative_scan: the function changes the shape: (1, 3) to (3,)"),
        (lambda: tn.profile("\ud800.json"), "profile: invalid file name"),
    ],
)
def test_arguments_that_fuzzing_found(call, text):
    with pytest.raises(tn.Error) as raised:
        call()
    assert text in str(raised.value)


def test_modules_are_found_beside_a_list_that_holds_itself():
    module = tn.nn.Sequential(tn.nn.Linear(3, 2))
    module.odd = itself()
    assert [path for path, _ in module.named_modules()] == ["", "layers.0"]
    for use in (repr, tn.tree.leaves, tn.grad(lambda m: tn.sum(m(tn.ones(3))))):
        with pytest.raises(tn.Error, match="holds itself"):
            use(module)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tn.random.seed("a"), "seed: an integer is needed, not 'a'"),
        (lambda: tn.random.seed(1.5), "seed: an integer is needed, not 1.5"),
        (lambda: tn.set_num_threads(1.5), "set_num_threads: an integer is needed, not 1.5"),
        (lambda: tn.set_num_threads(0), "set_num_threads: at least 1 is needed: 0"),
        (lambda: tn.set_matmul_precision("fast"), '"exact" is needed, not "fast"'),
        (lambda: tn.set_matmul_precision(2), '"exact" is needed, not "2"'),
        (lambda: tn.set_memory_limit("1GB"), "set_memory_limit: an integer is needed, not '1GB'"),
        (lambda: tn.set_cache_limit(-1), "set_cache_limit: at least 0 is needed: -1"),
        (lambda: tn.ones(4).item(3), "item: takes no arguments"),
        (lambda: tn.set_printoptions(precision=-3), "precision must be at least 0: -3"),
        (lambda: tn.optim.lr_scheduler.StepLR(3, 1), "first argument is an optimizer, not a int"),
        (lambda: tn.where(tn.ones(2) > 0), "tn.nonzero(condition)"),
        (lambda: tn.triu_indices(3, 3), "PyTorch's triu_indices(rows, columns, offset)"),
        (lambda: tn.tril_indices(3, 4, 0), "PyTorch's tril_indices(rows, columns, offset)"),
        (lambda: tn.ones(2).to("float64"), "'float64' is an element type, not a device"),
    ],
)
def test_calls_of_new_users_are_told_what_to_do(call, text):
    with pytest.raises(tn.Error) as raised:
        call()
    assert text in str(raised.value)


def test_attributes_of_pytorch_name_what_there_is_instead():
    x = tn.ones(2)
    for name, instead in {"add_": "x += y", "zero_": "x[...] = 0", "data": "x.detach()"}.items():
        assert not hasattr(x, name)
        with pytest.raises(AttributeError) as raised:
            getattr(x, name)
        assert instead in str(raised.value)
