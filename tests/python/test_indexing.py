"""Indexing and functional updates, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenon as tn

FEW = settings(max_examples=150, deadline=None, derandomize=True, database=None)
MANY = settings(max_examples=300, deadline=None, derandomize=True, database=None)


def base(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def same(got, want):
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.shape == want.shape


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@MANY
@given(st.data(), shapes)
def test_basic_indices(data, shape):
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    x = base(shape)
    same(tn.asarray(x)[index], x[index])


@FEW
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
def test_integer_arrays(data, shape):
    index = data.draw(hnp.integer_array_indices(shape, dtype=np.dtype("int64")))
    x = base(shape)
    want = x[index]
    same(tn.asarray(x)[tuple(tn.asarray(i) for i in index)], want)
    same(tn.asarray(x)[index], want)


@st.composite
def mixed_indices(draw, shape):
    """Integers, slices, new axes, an ellipsis and integer arrays together."""
    index_shape = draw(st.sampled_from([(2,), (3, 1), (1, 2)]))
    parts = []
    first = draw(st.integers(0, len(shape)))
    last = draw(st.integers(first, len(shape))) if draw(st.booleans()) else None
    for k, n in enumerate(shape):
        if k == last:
            parts.append(Ellipsis)
        if first <= k and (last is None or k < last):
            continue
        kind = draw(st.sampled_from(["integer", "slice", "array", "array"]))
        if kind == "integer":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            parts.append(draw(st.slices(n)))
        else:
            parts.append(draw(hnp.arrays(np.int64, index_shape, elements=st.integers(-n, n - 1))))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if last == len(shape):
        parts.append(Ellipsis)
    return tuple(parts)


@MANY
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
def test_mixed_indices(data, shape):
    index = data.draw(mixed_indices(shape))
    x = base(shape)
    same(tn.asarray(x)[index], x[index])


def test_an_empty_ellipsis_separates_index_arrays():
    x, i = base((3, 4, 6)), np.array([2, 0])
    for index in [(slice(None), i, ..., -5), (slice(None), -1, ..., i), (slice(None), i, ..., i)]:
        same(tn.asarray(x)[index], x[index])
        y = x.copy()
        y[index] = 7
        same(tn.asarray(x).at[index].set(7), y)


@FEW
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
def test_boolean_masks(data, shape):
    rank = data.draw(st.integers(1, len(shape)))
    mask = data.draw(hnp.arrays(bool, shape[:rank]))
    x = base(shape)
    same(tn.asarray(x)[tn.asarray(mask)], x[mask])
    same(tn.asarray(x)[mask], x[mask])
    y = x.copy()
    y[mask] = -1
    same(tn.asarray(x).at[tn.asarray(mask)].set(-1), y)


@FEW
@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
def test_assignment(data, shape):
    index = data.draw(
        st.one_of(hnp.basic_indices(shape, allow_ellipsis=True), mixed_indices(shape))
    )
    x = base(shape)
    values = (100 + np.arange(x[index].size, dtype=np.float32)).reshape(x[index].shape)
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(p, np.ndarray) for p in parts):
        values = np.float32(7)  # equal places would make the order matter
    want = x.copy()
    want[index] = values
    t = tn.asarray(x)
    kept = t
    t = t.at[index].set(values)
    same(t, want)
    u = tn.asarray(x)
    u[index] = values
    same(u, want)
    same(kept, x)


def test_assignment_leaves_other_handles_alone():
    x = tn.zeros(4)
    y = x
    view = x[1:3]
    x[1:3] = 5
    assert x.tolist() == [0, 5, 5, 0]
    assert y.tolist() == [0, 0, 0, 0] or y is x
    assert view.tolist() == [0, 0]


def test_updates_that_combine():
    x = tn.ones(3)
    places = tn.asarray([0, 0, 2])
    assert x.at[places].add(1).tolist() == [3, 1, 2]
    assert x.at[places].multiply(3).tolist() == [9, 1, 3]
    assert x.at[places].subtract(1).tolist() == [-1, 1, 0]
    assert x.at[1].max(7).tolist() == [1, 7, 1]
    assert x.at[1].min(-7).tolist() == [1, -7, 1]
    assert x.at[places].get().tolist() == [1, 1, 1]
    assert x.at[places].set(tn.asarray([1.0, 2.0, 3.0])).tolist()[2] == 3
    assert x.tolist() == [1, 1, 1]


def test_numpy_lists_and_numbers_as_indices():
    x = base((3, 4))
    t = tn.asarray(x)
    for index in (
        [0, 2],
        np.int64(1),
        (np.asarray([0, 1]), 2),
        ([[0], [1]], [1, 2]),
        [True, False, True],
        ...,
        None,
        (None, 0),
        (slice(None), np.asarray([True, False, True, False])),
    ):
        same(t[index], x[index])
    same(t[tn.asarray(1)], x[1])
    assert [row.tolist() for row in t] == x.tolist()
    assert len(t) == 3 and (5.0 in t) and (99.0 not in t)


@pytest.mark.parametrize(
    "index", [3, -4, (0, 4), (0, 0, 0), "a", 1.5, (slice(None),) * 3, (Ellipsis, Ellipsis)]
)
def test_wrong_indices(index):
    x = tn.ones((3, 4))
    with pytest.raises((IndexError, TypeError)) as caught:
        x[index]
    assert (
        "f32[3,4]" in str(caught.value)
        or not isinstance(index, (int, tuple))
        or index[0] is Ellipsis
    )


def test_wrong_masks_and_steps():
    x = tn.ones((3, 4))
    with pytest.raises((IndexError, ValueError)):
        x[tn.asarray([True, False])]
    with pytest.raises(ValueError):
        x[::0]
    with pytest.raises((IndexError, ValueError)):
        x[tn.asarray([0, 1]), tn.asarray([0, 1, 2])]
    with pytest.raises((IndexError, ValueError)):
        x[0] = tn.ones(3)
    with pytest.raises((IndexError, TypeError)):
        x[tn.asarray([0.5])]
    assert tn.sum(x).item() == 12


def test_scalars_are_not_iterable():
    with pytest.raises(TypeError):
        iter(tn.asarray(1.0)).__next__()
    with pytest.raises(TypeError):
        len(tn.asarray(1.0))


@pytest.mark.parametrize(
    "key",
    [
        True,
        False,
        np.array(True),
        np.bool_(False),
        (True, 1),
        (slice(1, 3), True),
        (..., True),
        (None, True, ..., 0),
        (0, False, slice(None)),
        (True, [0, 2]),
        (np.array([True, False, True, True]), True),
        (True, True),
    ],
)
def test_flags_as_indices(key):
    a = np.arange(24.0).reshape(4, 6)
    x = tn.asarray(a)
    want = a[key]
    got = x[key]
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    a[key] = -1
    x[key] = -1
    np.testing.assert_array_equal(x.numpy(), a)


def test_flags_on_scalars():
    x = tn.asarray(3.0)
    assert x[True].tolist() == [3] and x[tn.asarray(False)].shape == (0,)
    x[tn.asarray(True)] = 5.0
    assert x.item() == 5
    x[False] = 7.0
    assert x.item() == 5
