"""Tensors called as in PyTorch: what it gave once, and calls that are refused with a hint."""

import pathlib

import numpy as np
import pytest

import tenon as tn
from layer_cases import load
from tensor_cases import ARRAYS, CALLS, results

DATA = pathlib.Path(__file__).parents[1] / "data/torch_tensors.npz"


@pytest.fixture(scope="module")
def recorded():
    return load(DATA)


@pytest.fixture(scope="module")
def tensors():
    return {name: tn.array(array) for name, array in ARRAYS.items()}


def test_every_call_is_recorded(recorded):
    assert {key.rpartition("/")[0] for key in recorded} == set(CALLS)


@pytest.mark.parametrize("call", CALLS)
def test_calls_give_what_they_give_in_pytorch(call, recorded, tensors):
    got = results(eval(call, {"t": tn, **tensors}))
    assert sum(key.rpartition("/")[0] == call for key in recorded) == len(got)
    for i, array in enumerate(got):
        want = recorded[f"{call}/{i}"]
        assert array.shape == want.shape and array.dtype == want.dtype
        np.testing.assert_allclose(array, want, rtol=2e-6, atol=1e-6)


def test_results_have_names():
    x = tn.array([[1.0, 3.0], [4.0, 2.0]])
    best = x.max(dim=1)
    assert best.values.tolist() == [3, 4] and best.indices.tolist() == [1, 0]
    values, indices = x.sort(dim=0, descending=True)
    assert values.tolist() == [[4, 3], [1, 2]] and indices.tolist() == [[1, 0], [0, 1]]


def test_numpys_calls_mean_what_they_mean_in_numpy():
    x = np.array([[1.0, 3.0], [4.0, 2.0]], np.float32)
    t = tn.array(x)
    assert np.array_equal(t.max(axis=1), x.max(axis=1)) and np.array_equal(t.max(1), x.max(1))
    assert np.array_equal(t.sort(axis=0), np.sort(x, axis=0))
    assert np.array_equal(t.std(axis=0), x.std(axis=0)) and t.std().item() == x.std()
    assert np.array_equal(tn.split(t, 2, axis=1), np.split(x, 2, axis=1))
    assert np.array_equal(t.repeat(2), x.repeat(2))
    assert np.array_equal(t.repeat(2, 0), x.repeat(2, 0))
    assert np.array_equal(t.repeat(2, -1), x.repeat(2, -1))
    assert np.array_equal(t[None].repeat(2, 1), x[None].repeat(2, 1))
    assert np.array_equal(t.repeat(tn.array([1, 2]), axis=1), x.repeat([1, 2], axis=1))
    assert np.array_equal(t.repeat(repeats=3, axis=0), x.repeat(3, axis=0))
    assert np.array_equal(t[None].transpose(2, 0, 1), x[None].transpose(2, 0, 1))
    assert np.array_equal(t.transpose((0, 1)), x) and np.array_equal(t.transpose(1, 0), x.T)
    assert np.array_equal(tn.transpose(t), x.T) and np.array_equal(tn.transpose(t, (1, 0)), x.T)
    assert np.array_equal(t.amax(1), x.max(1))


def test_gradients_go_to_the_elements_that_were_chosen():
    x = tn.array([[1.0, 3.0, 3.0], [4.0, 2.0, 0.0]])
    got = tn.grad(lambda x: x.max(dim=1).values.sum())(x)
    assert got.tolist() == [[0, 1, 0], [1, 0, 0]]
    got = tn.grad(lambda x: (x.sort(dim=1)[0] * tn.arange(3.0)).sum())(x)
    assert got.tolist() == [[0, 1, 2], [2, 1, 0]]
    assert tn.vmap(lambda x: x.max(dim=0).indices)(x).tolist() == [1, 0]
    assert tn.compile(lambda x: x.median(dim=1).values)(x).tolist() == [3, 2]


def attention(x, *more, **named):
    return tn.scaled_dot_product_attention(*[x[None, None]] * 3, *more, **named)


def test_attention_has_the_keywords_of_pytorch():
    x = tn.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    mask = tn.array([[True, False], [True, True]])
    want = tn.scaled_dot_product_attention(x, x, x, mask).tolist()
    named = {"query": x, "key": x, "value": x, "attn_mask": mask, "enable_gqa": True}
    assert tn.scaled_dot_product_attention(**named, dropout_p=0.0).tolist() == want


def test_no_dim_is_every_dim_and_no_axis_none():
    x = tn.array([[1.0, 2.0], [3.0, 6.0]])
    assert x.sum(dim=()).item() == 12 and x.mean(dim=[], keepdim=True).tolist() == [[3.0]]
    assert x.std(dim=()).item() == x.std(correction=1).item()
    assert x.sum(axis=()).tolist() == x.tolist() == x.squeeze(dim=()).tolist()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: x.transpose(0, 1), r"transpose: \(0, 1\) exchanges.*\n.*\n.*hint: write x.T"),
        (lambda x: x.transpose(-2, 1), "transpose:.*keeps them in NumPy"),
        (lambda x: tn.transpose(x, 0, 1), "transpose:.*keeps them in NumPy"),
        (lambda x: x.repeat(2, 1), r"hint: write x.repeat\(2, axis=1\), or tn.tile\(x, \(2, 1\)\)"),
        (lambda x: x.max(x), r"max: axis must be an integer or several[\s\S]*tn.maximum\(x, y\)"),
        (lambda x: x.max(tn.array([0, 1])), "max: axis must be an integer or several"),
        (lambda x: x.where(x, 0.0), "where: the condition is not bool: float32"),
        (lambda x: x.split(0, dim=0), "split: the size of a section must be at least 1: 0"),
        (lambda x: x.split([1, 1], dim=1), "split: the sizes sum to 2, not to 3, the extent"),
        (lambda x: x.split(-1, dim=0), "split: the size of a section must be at least 1: -1"),
        (lambda x: x.chunk(0), "chunk: chunks must be at least 1: 0"),
        (lambda x: x.narrow(1, 2, 2), "narrow: 2 elements from index 2 exceed axis 1 of extent 3"),
        (lambda x: x.narrow(1, -4, 1), "narrow: 1 elements from index -4 exceed axis 1"),
        (lambda x: x.index_select(0, tn.zeros((1, 1), tn.int64)), "index_select: indices have one"),
        (lambda x: x.gather(1, tn.zeros((3, 1), tn.int64)), "gather: index is larger than x along"),
        (lambda x: x.gather(1, tn.zeros(3, tn.int64)), "gather: x and index have different ranks"),
        (lambda x: tn.bmm(x, x), "bmm: operands are .batch, m, k."),
        (lambda x: tn.cdist(x, x[:, :2]), "cdist: operands are"),
        (lambda x: tn.cdist(x, x, p=-1.0), "cdist: p must be at least 0"),
        (lambda x: x[None].t(), "t: more than two axes"),
        (lambda x: x.max(dim=2), "max: axis 2"),
        (lambda x: x.max(dim=(0, 1)), "max: dim must be an integer"),
        (lambda x: x.max(dim=1, axis=1), "max: unknown keyword: axis"),
        (lambda x: x.diff(2), r"diff: 2 by position: is it prepend\?.*\n.*\n.*prepend=2, or .*n"),
        (lambda x: tn.diff(x, 1, 0), "diff: 1 by position: is it prepend"),
        (lambda x: x.gather(), "gather: argument dim is missing"),
        (lambda x: tn.multinomial(x * 0, 1), "multinomial: fewer weights above 0 than draws, 1"),
        (lambda x: tn.multinomial(-x, 1), "multinomial: a weight is negative, infinite or NaN"),
        (lambda x: tn.multinomial(x / 0, 1, True), "multinomial: a weight is negative, infinite"),
        (lambda x: tn.multinomial(x - 1, 3), "multinomial: fewer weights above 0 than draws, 3"),
        (lambda x: attention(x, None, 0.0, True),
         "scale must not be 0[\\s\\S]*the fifth is dropout_p"),
        (lambda x: attention(x, dropout_p=0.5), "unknown keyword: dropout_p"),
    ],
)
def test_what_both_could_mean_is_refused(call, text):
    with pytest.raises((ValueError, TypeError, IndexError), match=text):
        call(tn.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def test_large_numbers_of_parts_end_at_once():
    x = tn.arange(5)
    assert [part.tolist() for part in x.chunk(2**40)] == [[0], [1], [2], [3], [4]]
    assert [part.tolist() for part in x.split(2**40, dim=0)] == [[0, 1, 2, 3, 4]]
    assert [part.shape for part in tn.zeros((0, 2)).chunk(3)] == [(0, 2)]


def test_random_numbers_like_a_tensor():
    x, key = tn.zeros((2, 3), tn.float64), tn.random.key(3)
    assert tn.rand_like(x, key=key).tolist() == tn.rand(2, 3, dtype=tn.float64, key=key).tolist()
    assert tn.randn_like(x, key=key).tolist() == tn.randn(2, 3, dtype=tn.float64, key=key).tolist()
    assert tn.randn_like(x, dtype=tn.float32, requires_grad=True).requires_grad
    assert tn.rand_like(x, dtype="float16").dtype == tn.float16


def test_multinomial_draws_in_proportion():
    weights = tn.array([[1.0, 0.0, 3.0], [0.0, 2.0, 2.0]])
    many = tn.multinomial(weights, 4000, replacement=True, key=tn.random.key(1)).numpy()
    assert many.shape == (2, 4000) and many.dtype == np.int64
    shares = [np.bincount(row, minlength=3) / 4000 for row in many]
    np.testing.assert_allclose(shares, [[0.25, 0, 0.75], [0, 0.5, 0.5]], atol=0.03)
    few = tn.multinomial(weights, 2, key=tn.random.key(2))
    assert sorted(few[0].tolist()) == [0, 2] and sorted(few[1].tolist()) == [1, 2]
    with pytest.raises(ValueError, match="4 samples of 3 classes without replacement"):
        tn.multinomial(weights, 4)


def test_the_first_draw_without_replacement_is_in_proportion():
    weights = tn.broadcast_to(tn.array([1.0, 2.0, 5.0]), (4000, 3))
    first = tn.multinomial(weights, 2, key=tn.random.key(7)).numpy()[:, 0]
    np.testing.assert_allclose(np.bincount(first) / 4000, [0.125, 0.25, 0.625], atol=0.03)
