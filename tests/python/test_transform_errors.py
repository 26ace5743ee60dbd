"""Misuse of transforms: one error that says what is wrong, where, and what to do."""

import gc
import os

import numpy as np
import pytest

import tenon as tn

X, I, C = tn.ones(3), tn.array([1, 2]), tn.ones(2, dtype=tn.complex64)
PARAMS = {"w": [tn.ones((2, 2)), I], "b": tn.ones(2)}


def loss(params, x):
    return tn.sum(params["b"] * x)


def pair(x):
    return {"a": x, "b": (x, x)}


# What is called, the exception, and words of the message.
CASES = {
    # results of grad
    "a vector": (
        lambda: tn.grad(lambda x: x)(X),
        ValueError,
        "grad: the function must return a scalar first, not f32[3]",
        "hint: reduce it with sum or mean, or use vjp or jacobian",
    ),
    "an integer": (
        lambda: tn.grad(lambda x: tn.argmax(x))(X),
        TypeError,
        "grad: the function must return a real floating scalar first, not i64[]",
    ),
    "a complex number": (
        lambda: tn.grad(lambda x: tn.sum(x))(C),
        TypeError,
        "a real floating scalar first, not c64[]",
        "hint: return a real number of it, such as abs",
    ),
    "text": (lambda: tn.grad(lambda x: "no")(X), TypeError, "a scalar first, not str"),
    "nothing": (lambda: tn.grad(lambda x: None)(X), TypeError, "a scalar first, not None"),
    "a dict": (lambda: tn.grad(lambda x: {"l": x})(1.0), TypeError, "a scalar first, not dict"),
    "an empty tuple": (lambda: tn.grad(lambda x: ())(X), ValueError, "not an empty tuple"),
    "no aux": (lambda: tn.grad(lambda x: x, has_aux=True)(1.0), TypeError, "one more value"),
    # arguments of grad
    "an integer argument": (
        lambda: tn.grad(loss)(PARAMS, X),
        TypeError,
        "grad: params['w'][1] is i64[2]: derivatives exist for floating and complex",
        "hint: convert it with astype(float32)",
    ),
    "an integer keyword": (
        lambda: tn.grad(lambda *, n: tn.sum(n), argnames="n")(n=I),
        TypeError,
        "grad: n is i64[2]",
    ),
    "text among parameters": (
        lambda: tn.grad(loss, argnums=(1, 0))({"b": X, "name": "first"}, X),
        TypeError,
        "grad: params['name'] is a str, not a tensor",
    ),
    "a bool": (lambda: tn.grad(lambda x: x)(True), TypeError, "x is a bool, not a tensor"),
    "argnums out of range": (
        lambda: tn.grad(loss, argnums=2)(PARAMS, X),
        IndexError,
        "grad: no argument 2 among the 2 given by position",
    ),
    "argnums by name": (
        lambda: tn.grad(loss)(params=PARAMS, x=X),
        IndexError,
        "no argument 0 among the 0 given by position",
        "hint: argnames differentiates arguments given by name",
    ),
    "unknown argnames": (
        lambda: tn.grad(loss, argnames="weights"),
        ValueError,
        "grad: no argument 'weights' among params, x",
    ),
    "argnames not given": (
        lambda: tn.grad(loss, argnames="x")(PARAMS, X),
        TypeError,
        "grad: argument 'x' of argnames was not given by name",
    ),
    "nothing chosen": (lambda: tn.grad(loss, argnums=()), ValueError, "both empty"),
    "not a function": (lambda: tn.grad(3), TypeError, "grad: not a function: int"),
    "argnums of another type": (
        lambda: tn.grad(loss, argnums=1.5),
        TypeError,
        "grad: argnums must be an integer or a sequence of integers, not 1.5",
    ),
    "argnums of None": (lambda: tn.grad(loss, argnums=(None,)), TypeError, "not (None,)"),
    "argnums of text": (lambda: tn.jacrev(loss, argnums="x"), TypeError, "not 'x'"),
    "argnames of numbers": (
        lambda: tn.grad(loss, argnames=(1,)),
        TypeError,
        "argnames must be a name or a sequence of names, not (1,)",
    ),
    "an argument twice": (
        lambda: tn.grad(loss, argnums=(0, -2))({"b": X}, X),
        ValueError,
        "grad: argument 0 is chosen twice",
    ),
    "a row twice": (
        lambda: tn.jacrev(tn.sin, argnums=(0, 0))(X),
        ValueError,
        "jacrev: argument 0 is chosen twice",
    ),
    "a name twice": (
        lambda: tn.grad(lambda *, a: a, argnames=("a", "a"))(a=1.0),
        ValueError,
        "grad: argument 'a' is chosen twice",
    ),
    # vjp and jvp
    "no primals": (
        lambda: tn.vjp(tn.sin, None),
        TypeError,
        "vjp: primals must be a list or tuple of the arguments, not NoneType",
    ),
    "no primals forwards": (lambda: tn.jvp(tn.sin, None, None), TypeError, "jvp: primals must be"),
    "bare primals": (
        lambda: tn.vjp(tn.sin, X, X),
        TypeError,
        "vjp: primals must be a list or tuple of the arguments, not Tensor",
        "hint: vjp(f, [x], ...)",
    ),
    "missing cotangents": (
        lambda: tn.vjp(pair, [X], {"a": X}),
        ValueError,
        "vjp: cotangents and results differ in structure at ['a']: {'a': *} and "
        "{'a': *, 'b': (*, *)}",
    ),
    "other cotangents": (
        lambda: tn.vjp(pair, [X], {"a": X, "b": [X, X, X]}),
        ValueError,
        "differ in structure at ['b'][0]: {'a': *, 'b': [*, *, *]} and {'a': *, 'b': (*, *)}",
    ),
    "cotangent shape": (
        lambda: tn.vjp(pair, [X], {"a": None, "b": (X, tn.ones(4))}),
        ValueError,
        "vjp: the cotangent of result['b'][1] is f32[4] but must be f32[3]",
    ),
    "cotangent dtype": (
        lambda: tn.vjp(tn.sin, [X], tn.array([1, 2, 3])),
        TypeError,
        "vjp: the cotangent of the result is i64[3] but must be f32[3]",
    ),
    "complex cotangent": (
        lambda: tn.vjp(tn.sin, [X], tn.ones(3, dtype=tn.complex64)),
        TypeError,
        "is c64[3] but must be f32[3]",
    ),
    "text result": (
        lambda: tn.vjp(lambda x: (x, {"name": "x"}), [X]),
        TypeError,
        "vjp: result[1]['name'] is a str, not a tensor",
    ),
    "missing tangents": (
        lambda: tn.jvp(tn.multiply, [X, X], [X]),
        ValueError,
        "jvp: tangents and primals differ in structure at [0]: [*] and [*, *]",
    ),
    "tangent shape": (
        lambda: tn.jvp(loss, [{"b": X}, X], [{"b": tn.ones(2)}, None]),
        ValueError,
        "jvp: the tangent of params['b'] is f32[2] but must be f32[3]",
    ),
    "tangent dtype": (
        lambda: tn.jvp(tn.sin, [X], [tn.ones(3, dtype=tn.float64)]),
        TypeError,
        "jvp: the tangent of x is f64[3] but must be f32[3]",
        "hint: convert it with astype",
    ),
    "integer tangent": (
        lambda: tn.jvp(lambda i: i, [I], [tn.ones(2)]),
        TypeError,
        "jvp: i is i64[2]: derivatives exist for floating and complex",
    ),
    # vmap
    "sizes": (
        lambda: tn.vmap(loss)({"b": tn.ones((3, 2))}, tn.ones((4, 2))),
        ValueError,
        "vmap: the mapped axes differ in size: 3 (params['b'], f32[3,2]) and 4 (x, f32[4,2])",
    ),
    "a scalar": (
        lambda: tn.vmap(loss)({"b": tn.array(1.0)}, X),
        ValueError,
        "vmap: params['b'] has no axis to map over: f32[]",
        "hint: give it in_axes None",
    ),
    "axis out of range": (
        lambda: tn.vmap(loss, in_axes=(0, 2))({"b": X}, X),
        IndexError,
        "vmap: axis 2 is out of range for x: f32[3]",
    ),
    "in_axes too short": (
        lambda: tn.vmap(loss, in_axes=(0,))({"b": X}, X),
        ValueError,
        "vmap: in_axes and arguments differ in structure at [0]['b']: (*,) and ({'b': *}, *)",
    ),
    "in_axes of another tree": (
        lambda: tn.vmap(loss, in_axes=({"c": 0}, 0))({"b": X}, X),
        ValueError,
        "at [0]['b']: ({'c': *}, *) and ({'b': *}, *)",
    ),
    "axis of another type": (
        lambda: tn.vmap(loss, in_axes=("rows", 0))(X, X),
        TypeError,
        "vmap: an axis must be an integer or None, not str",
    ),
    "nothing mapped": (
        lambda: tn.vmap(loss, in_axes=None)({"b": X}, X),
        ValueError,
        "vmap: no argument is mapped over",
        "hint:",
    ),
    "out_axes of another tree": (
        lambda: tn.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X),
        ValueError,
        "vmap: out_axes and results differ in structure at [0]: (*, *, *) and (*, *)",
    ),
    "out_axes None": (
        lambda: tn.vmap(lambda x: {"y": x}, out_axes=None)(X),
        ValueError,
        "vmap: result['y'] differs between examples, so its out_axes cannot be None",
    ),
    "out_axes out of range": (
        lambda: tn.vmap(lambda x: x, out_axes=1)(X),
        IndexError,
        "vmap: axis 1 is out of range for the result: f32[3]",
    ),
    "text out of vmap": (
        lambda: tn.vmap(lambda x: [x, "y"])(X),
        TypeError,
        "vmap: result[1] is a str, not a tensor",
    ),
    # control flow
    "branches that are no functions": (
        lambda: tn.cond(True, 1.0, 2.0),
        TypeError,
        "cond: not a function: float",
    ),
    "a body that is no function": (
        lambda: tn.while_loop(lambda c: c, 1, X),
        TypeError,
        "while_loop: not a function: int",
    ),
    "numbers as xs": (
        lambda: tn.scan(lambda c, y: (c, y), X, [1.0, 2.0]),
        ValueError,
        "scan: xs 0 is a scalar: a number has no axis to scan over",
    ),
    "length of another type": (
        lambda: tn.scan(lambda c, y: (c, y), X, length=2.5),
        TypeError,
        "scan: length must be an integer, not 2.5",
    ),
    "text out of scan": (
        lambda: tn.scan(lambda c, y: (c, "s"), X, X),
        TypeError,
        "scan: result is a str, not a tensor",
    ),
    "text out of checkpoint": (
        lambda: tn.checkpoint(lambda x: "s")(X),
        TypeError,
        "checkpoint: result is a str, not a tensor",
    ),
    # values inside vmap
    "float": (lambda: tn.vmap(lambda x: float(x))(X), ValueError, "vmap: cannot evaluate a tensor"),
    "if": (
        lambda: tn.vmap(lambda x: x if x > 0 else -x)(X),
        ValueError,
        "vmap: cannot evaluate a tensor",
        "hint: use where, cond or while_loop",
    ),
    "numpy": (lambda: tn.vmap(lambda x: np.asarray(x))(X), ValueError, "vmap: cannot evaluate"),
    "str": (lambda: tn.vmap(lambda x: str(x))(X), ValueError, "vmap: cannot evaluate a tensor"),
    # Jacobians
    "integer result": (
        lambda: tn.jacrev(lambda x: tn.argmax(x))(X),
        TypeError,
        "jacrev: the result is i64[]: derivatives exist for floating",
    ),
    "complex result": (
        lambda: tn.jacrev(lambda x: tn.make_complex(x, x))(X),
        TypeError,
        "hint: use jacfwd",
    ),
    "hessian of a vector": (
        lambda: tn.hessian(lambda x: x)(X),
        ValueError,
        "the function must return a scalar first, not f32[3]",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_error_that_says_what_and_where(case):
    call, kind, *words = CASES[case]
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert isinstance(caught.value, tn.Error)
    for word in words:
        assert word in text, text
    code = call.__code__
    places = range(code.co_firstlineno, code.co_firstlineno + 3)
    file = os.path.basename(code.co_filename)
    assert any(f"{file}:{line}, in" in text for line in places), text
    assert tn.grad(lambda x: x * x)(3.0).item() == 6  # nothing is left behind


def test_the_place_is_inside_the_function():
    def example(x):
        y = x * 2
        if y > 0:
            return y
        return -y

    with pytest.raises(tn.Error) as caught:
        tn.vmap(example)(X)
    line = example.__code__.co_firstlineno + 2
    assert f"test_transform_errors.py:{line}, in example" in str(caught.value)

    def mistaken(x):
        return tn.sum(x @ tn.ones((4, 4)))

    with pytest.raises(tn.Error) as caught:
        tn.grad(mistaken)(X)
    line = mistaken.__code__.co_firstlineno + 1
    assert f"test_transform_errors.py:{line}, in mistaken" in str(caught.value)


def test_exceptions_leave_nothing_behind():
    def raises(x):
        tn.exp(x)
        raise KeyError("mine")

    transforms = [
        lambda: tn.grad(raises)(1.0),
        lambda: tn.vjp(raises, [X], X),
        lambda: tn.jvp(raises, [X], [X]),
        lambda: tn.vmap(raises)(X),
        lambda: tn.jacrev(raises)(X),
        lambda: tn.jacfwd(raises)(X),
        lambda: tn.grad(lambda x: tn.sum(tn.vmap(raises)(x)))(X),
    ]
    tn.eval(X)
    gc.collect()  # of what other tests left
    before = tn.memory.active_memory()
    for call in transforms:
        with pytest.raises(KeyError, match="mine"):
            call()
        assert (X + 1).tolist() == [2, 2, 2]  # values are known again
        assert float(tn.grad(lambda x: x * x)(3.0)) == 6
    assert tn.memory.active_memory() == before


def test_a_tensor_that_leaves_vmap_says_so():
    kept = []
    tn.vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(tn.Error, match=r"used after the trace ended[\s\S]*of vmap, scan or comp"):
        kept[0].item()


@pytest.mark.parametrize("transform", [tn.compile, tn.vmap])
def test_sizes_that_depend_on_values_have_hints(transform):
    x = tn.arange(12.0).reshape(3, 4)
    with pytest.raises(tn.InvalidValue, match=r"nonzero: its shape[\s\S]*where\(mask, x, 0"):
        transform(lambda x: x[x > 2])(x)
    with pytest.raises(tn.InvalidValue, match=r"bound of a slice is not known[\s\S]*dynamic_slice"):
        starts = tn.arange(3) if transform is tn.vmap else tn.array(1)
        transform(lambda x, i: x[i:i + 2])(x, starts)
