"""Bad input: one error that names the op, the operands and the line, and the process goes on."""

import gc
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn

X, Y, V = tn.ones((8, 16)), tn.ones((4, 16)), tn.ones(3)
I = tn.asarray([1, 2])
C = tn.ones(2, dtype=tn.complex64)

# What is called, the exception, and words of the message (an operand's type among them).
CASES = {
    "broadcast": (lambda: X + Y, ValueError, "add", "8,16", "4,16"),
    "inner dimensions": (lambda: tn.matmul(X, Y), ValueError, "matmul", "f32[8,16]", "f32[4,16]"),
    "operator": (lambda: X @ Y, ValueError, "matmul", "f32[8,16]", "f32[4,16]"),
    "axis": (lambda: tn.sum(X, axis=2), (ValueError, IndexError), "sum", "axis 2"),
    "negative axis": (
        lambda: tn.softmax(X, axis=-3),
        (ValueError, IndexError),
        "softmax",
        "axis -3",
    ),
    "axis twice": (lambda: tn.sum(X, axis=(0, -2)), ValueError, "sum", "twice"),
    "reshape": (lambda: tn.reshape(X, (5, 5)), ValueError, "reshape", "f32[8,16]", "128", "25"),
    "two inferred": (lambda: tn.reshape(X, (-1, -1)), ValueError, "reshape", "-1"),
    "negative size": (lambda: tn.zeros((-2, 3)), ValueError, "-2"),
    "concat": (lambda: tn.concat([X, V]), ValueError, "concat", "f32[8,16]", "f32[3]"),
    "empty concat": (lambda: tn.concat([]), (ValueError, TypeError), "concat"),
    "stack": (lambda: tn.stack([X, Y]), ValueError, "stack", "f32[8,16]", "f32[4,16]"),
    "broadcast_to": (lambda: tn.broadcast_to(V, (4,)), ValueError, "broadcast_to", "f32[3]"),
    "squeeze": (lambda: tn.squeeze(X, 0), ValueError, "squeeze", "f32[8,16]"),
    "permutation": (lambda: tn.permute_dims(X, (0, 0)), ValueError, "permute_dims"),
    "bits of floats": (lambda: X & X, TypeError, "bitwise_and", "f32"),
    "complex order": (lambda: C < C, TypeError, "less", "c64"),
    "complex to real": (lambda: C.astype(tn.float32), TypeError, "astype", "c64[2]"),
    "indices": (lambda: tn.take(V, V), (TypeError, IndexError), "take", "f32"),
    "einsum terms": (lambda: tn.einsum("ij,jk->ik", X), ValueError, "einsum", "ij,jk->ik"),
    "einsum label": (lambda: tn.einsum("ij->ik", X), ValueError, "einsum", "k"),
    "einsum extents": (lambda: tn.einsum("ij,jk->ik", X, X), ValueError, "einsum", "j"),
    "einsum text": (lambda: tn.einsum("i!j->i", X), ValueError, "einsum"),
    "einsum rank": (lambda: tn.einsum("ijk->i", X), ValueError, "einsum"),
    "ragged": (lambda: tn.array([[1, 2], [3]]), ValueError, "array"),
    "ragged depth": (lambda: tn.array([[1, 2], 3]), (ValueError, TypeError), "array"),
    "not numbers": (lambda: tn.array(["a", "b"]), TypeError, "array"),
    "nothing": (lambda: tn.array(None), TypeError, "array"),
    "too large": (lambda: tn.array([2**70]), (OverflowError, ValueError), "64"),
    "too large beside": (lambda: I + 2**70, (OverflowError, ValueError), "64"),
    "does not fit": (
        lambda: tn.ones(2, dtype=tn.int8) + 1000,
        (OverflowError, ValueError),
        "add",
        "1000",
        "i8",
    ),
    "unknown keyword": (lambda: tn.sum(X, axs=1), TypeError, "sum", "axs", "axis"),
    "unknown choice": (
        lambda: tn.pad(X, 1, mode="mirror"),
        (ValueError, TypeError),
        "pad",
        "mirror",
    ),
    "too many arguments": (lambda: tn.exp(X, X, X), TypeError, "exp"),
    "missing argument": (lambda: tn.add(X), TypeError, "add", "x2"),
    "wrong argument": (lambda: tn.sum(X, axis="0"), TypeError, "sum", "axis"),
    "not a tensor": (lambda: tn.exp("text"), TypeError, "exp"),
    "unknown dtype": (lambda: tn.zeros(2, dtype="float31"), (TypeError, ValueError), "float31"),
    "unknown device": (lambda: tn.zeros(2, device="moon"), ValueError, "moon", "cpu"),
    "many elements": (lambda: tn.zeros((2**40, 2**40)), (ValueError, MemoryError, OverflowError)),
    "much memory": (lambda: tn.eval(tn.ones(2**50) + 1), MemoryError, "PiB"),
    "much memory later": (lambda: (tn.broadcast_to(V[:1], (2**50,)) * 2).numpy(), MemoryError),
    "max of nothing": (lambda: tn.max(tn.zeros(0)), ValueError, "max", "f32[0]"),
    "top_k": (lambda: tn.top_k(V, 4), ValueError, "top_k", "f32[3]"),
    "layer_norm": (lambda: tn.layer_norm(X, V), ValueError, "layer_norm", "f32[8,16]", "f32[3]"),
    "too many axes": (lambda: tn.ones((1,) * 17), ValueError, "17"),
    "expand many": (lambda: tn.reshape(V, (1,) * 16 + (3,)), ValueError),
    "negative power": (lambda: I**-2, ValueError, "pow"),
    "assignment": (lambda: V.at[0].set(tn.ones(2)), ValueError),
    "split": (lambda: tn.split(V, 2), ValueError, "split", "f32[3]"),
    "arange step": (lambda: tn.arange(0, 5, 0), ValueError, "arange"),
    "foreign axis": (lambda: tn.sum(X, dim=7), (ValueError, IndexError), "sum"),
}


def this_line(case):
    code = CASES[case][0].__code__
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


@pytest.mark.parametrize("case", sorted(CASES))
def test_one_error_that_says_what_and_where(case, capfd):
    call, kind, *words = CASES[case]
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    for word in words:
        assert word in text, text
    assert isinstance(caught.value, (tn.Error, OverflowError)), type(caught.value)
    assert not isinstance(caught.value, tn.InternalError)
    if isinstance(caught.value, tn.Error):
        assert this_line(case) in text, text
    first = text.splitlines()[0]
    assert not first.endswith(".") and len(text) < 1000
    assert capfd.readouterr() == ("", "")
    assert (X + 1)[0, 0].item() == 2


@pytest.mark.parametrize(
    "case", ["axis", "negative axis", "axis twice", "permutation", "bits of floats", "broadcast"]
)
def test_operand_types_are_written_as_types(case):
    with pytest.raises(tn.Error) as caught:
        CASES[case][0]()
    assert re.search(r"\b(f32|i64|c64)\[\d", str(caught.value)), str(caught.value)


def test_the_place_is_that_of_the_recording_call():
    def model(x, w):
        hidden = tn.relu(x @ w)
        return hidden @ w

    with pytest.raises(tn.Error) as caught:
        model(tn.ones((2, 3)), tn.ones((3, 4)))
    line = model.__code__.co_firstlineno + 2
    assert f"test_errors.py:{line}, in model" in str(caught.value)


def test_methods_and_operators_give_the_place_too():
    calls = [
        lambda: V + X,
        lambda: X.sum(axis=9),
        lambda: V[5],
        lambda: V.at[9].set(1),
        lambda: X.reshape(7),
    ]
    for call in calls:
        with pytest.raises(tn.Error) as caught:
            call()
        assert f"test_errors.py:{call.__code__.co_firstlineno}" in str(caught.value), str(
            caught.value
        )


def test_hints():
    with pytest.raises(tn.Error) as caught:
        tn.matmul(tn.ones((8, 16)), tn.ones((4, 16)))
    assert "hint:" in str(caught.value)
    with pytest.raises(AttributeError) as missing:
        tn.soft_max
    assert "softmax" in str(missing.value)
    with pytest.raises(TypeError) as keyword:
        tn.sum(X, keepdim_=True)
    assert "keepdims" in str(keyword.value)


def test_a_failed_flush_can_be_repeated():
    x = tn.ones(2**18)
    wanted = x * 3 + 1
    former = tn.memory.set_memory_limit(tn.memory.active_memory() + 1000)
    try:
        with pytest.raises(MemoryError):
            tn.eval(wanted)
    finally:
        tn.memory.set_memory_limit(former)
    assert wanted[5].item() == 4


def test_many_errors_leak_nothing():
    tn.eval(X, Y)
    gc.collect()
    before = tn.memory.active_memory()
    for _ in range(300):
        for case in (
            "broadcast",
            "inner dimensions",
            "reshape",
            "einsum label",
            "much memory later",
        ):
            with pytest.raises(tn.Error):
                CASES[case][0]()
    assert tn.memory.active_memory() == before


def test_nothing_is_printed_even_at_exit():
    code = """
import tenon as tn, numpy as np
x = tn.ones((3, 3)); y = x @ x; y.numpy(); tn.async_eval(y + 1)
import builtins
builtins.kept = [tn.float32, tn.sum, x.__add__, x.at[0], tn.testing.samples(), tn.Error, y]
for bad in (lambda: x + tn.ones(5), lambda: x[7], lambda: tn.ones(2**50).numpy()):
    try: bad()
    except tn.Error: pass
class Holder: pass
h = Holder(); h.me = h; h.x = y
raise SystemExit(3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_an_uncaught_error_ends_cleanly():
    done = subprocess.run(
        [sys.executable, "-c", "import tenon as tn\ntn.ones(3) + tn.ones(4)"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "add" in done.stderr and "leaked" not in done.stderr


def test_keyboard_interrupts_and_exceptions_pass_through():
    class Strange:
        def __array__(self, *args, **kwargs):
            raise KeyError("mine")

        def __dlpack__(self, **kwargs):
            raise KeyError("mine")

    with pytest.raises((KeyError, TypeError)):
        tn.asarray(Strange())
    assert tn.asarray(np.ones(2)).tolist() == [1, 1]
