"""x[...] and x.at[...] under derivatives and vmap."""

import numpy as np
import pytest

import flat
import tenon as tn


def vjp(f, *operands, ct):
    operands = [tn.asarray(np.asarray(x, np.float64)) for x in operands]
    out, back = flat.vjp(lambda x: [f(*x)], operands, [tn.asarray(np.asarray(ct, np.float64))])
    return [g.numpy().tolist() for g in back]


def test_elements_read_twice_get_the_sum():
    i = tn.asarray([0, 2, 0])
    assert vjp(lambda x: x[i], [1, 2, 3], ct=[1, 10, 100]) == [[101, 0, 10]]
    rows = [[1, 2], [3, 4]]
    assert vjp(lambda x: x[i - 1], rows, ct=[[1, 2]] * 3) == [[[0, 0], [3, 6]]]


W = tn.asarray([1.0, 10.0, 100.0])


def test_clamped_indices_give_to_the_element_they_read():
    i = tn.asarray([-7, 1, 9])
    f = lambda x: tn.gather(x, [i], axes=[0], outside="clamp")
    assert vjp(f, [1, 2, 3], ct=[1, 10, 100]) == [[1, 10, 100]]
    compiled = tn.compile(tn.grad(lambda x, i: (tn.gather(x, [i], axes=[0]) * W).sum()))
    assert compiled(tn.asarray([1.0, 2.0, 3.0]), i).tolist() == [1, 10, 100]
    f = lambda x: tn.gather(x, [i], axes=[0], outside="drop")
    assert vjp(f, [1, 2, 3], ct=[1, 10, 100]) == [[0, 10, 0]]


def test_small_index_types_reach_far():
    i = tn.asarray(np.array([200, 3, 3], np.uint8))
    [g] = vjp(lambda x: tn.take(x, i), np.zeros(300), ct=[1, 10, 100])
    assert (g[200], g[3], sum(g)) == (1, 110, 111)


def test_the_last_writer_gets_the_gradient():
    i = tn.asarray([1, 0, 1])
    f = lambda x, u: x.at[i].set(u)
    assert vjp(f, [5, 6, 7], [1, 2, 3], ct=[1, 10, 100]) == [[0, 0, 100], [0, 1, 10]]
    rows = lambda x, u: x.at[i].set(u)
    back = vjp(rows, np.zeros((3, 2)), np.zeros((3, 2)), ct=[[1, 2], [3, 4], [5, 6]])
    assert back == [[[0, 0], [0, 0], [5, 6]], [[0, 0], [1, 2], [3, 4]]]


def test_a_number_written_everywhere_gets_the_sum():
    f = lambda x, u: x.at[tn.asarray([0, 2])].set(u)
    assert vjp(f, [5, 6, 7], 1, ct=[1, 10, 100]) == [[0, 10, 0], 101]


def test_dropped_updates_get_nothing():
    i = tn.asarray([0, 7, -1])
    f = lambda x, u: tn.scatter(x, u, [i], axes=[0], mode="add", outside="drop")
    assert vjp(f, [5, 6, 7], [1, 2, 3], ct=[1, 10, 100]) == [[1, 10, 100], [1, 0, 0]]


def test_added_updates_with_equal_indices():
    f = lambda x, u: x.at[tn.asarray([1, 1])].add(u)
    assert vjp(f, [5, 6, 7], [1, 2], ct=[1, 10, 100]) == [[1, 10, 100], [10, 10]]


def test_factors_with_zeros_and_equal_indices():
    i = tn.asarray([0, 0, 1, 2, 2])
    f = lambda x, u: x.at[i].multiply(u)
    back = vjp(f, [5, 6, 7], [2, 0, 4, 0, 0], ct=[1, 1, 1])
    assert back == [[0, 4, 0], [0, 10, 6, 0, 0]]


def test_equal_maxima_share():
    i = tn.asarray([0, 0, 1])
    f = lambda x, u: x.at[i].max(u)
    assert vjp(f, [3, 9], [3, 3, 2], ct=[6, 1]) == [[2, 1], [2, 2, 0]]
    f = lambda x, u: x.at[i].min(u)
    assert vjp(f, [4, 9], [3, 3, 2], ct=[6, 1]) == [[0, 0], [3, 3, 1]]


def test_masks_and_slices():
    mask = tn.asarray([True, False, True])
    assert vjp(lambda x: x[mask], [1, 2, 3], ct=[1, 10]) == [[1, 0, 10]]
    assert vjp(lambda x: x[::-2], [1, 2, 3], ct=[1, 10]) == [[10, 0, 1]]
    f = lambda x, u: x.at[1:].set(u)
    assert vjp(f, [1, 2, 3], [4, 5], ct=[1, 10, 100]) == [[1, 0, 0], [10, 100]]


READS = {
    "integer": lambda x, i: x[i[0]],
    "two tensors": lambda x, i: x[i, i],
    "tensor and slice": lambda x, i: x[:, i],
    "apart": lambda x, i: x[i, :, i],
    "add": lambda x, i: x.at[i].add(1.5),
    "set": lambda x, i: x.at[:, i].set(x[:, :3]),
    "multiply": lambda x, i: x.at[i, i].multiply(2.0),
    "max": lambda x, i: x.at[i].max(0.25),
    "take_along_axis": lambda x, i: tn.take_along_axis(x, tn.reshape(i, (1, 3, 1)), axis=1),
    "dynamic_slice": lambda x, i: tn.dynamic_slice(x, [i[0], i[1], i[2]], (2, 4, 1)),
    "dynamic_update_slice": lambda x, i: tn.dynamic_update_slice(
        x, x[:2, :, :1], [i[0], i[1], i[2]]
    ),
}


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (2, 1)])
@pytest.mark.parametrize("name", READS)
def test_vmap_is_a_loop(name, axes):
    f = READS[name]
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 4, 4, 4))
    i = rng.integers(-2, 5, (2, 3))
    i = np.clip(i, 0, 3) if not name.startswith("dynamic") else i
    ct = rng.normal(size=f(tn.asarray(x[0]), tn.asarray(i[0])).shape)

    def both(args):
        value, [back] = flat.vjp(lambda p: [f(p[0], args[1])], args[:1], [tn.asarray(ct)])
        return [value[0], back]

    given = [x if axes[0] is not None else x[0], i if axes[1] is not None else i[0]]
    given = [tn.asarray(np.moveaxis(v, 0, a) if a else v) for v, a in zip(given, axes)]
    got = flat.vmap(both, given, axes)
    for k in range(2):
        pair = [x[k if axes[0] is not None else 0], i[k if axes[1] is not None else 0]]
        for a, b in zip(got, both([tn.asarray(v) for v in pair])):
            np.testing.assert_allclose(a.numpy()[k], b.numpy(), rtol=1e-12, atol=1e-12)


def test_vmap_of_vmap_of_gather():
    x, i = np.arange(24.0).reshape(2, 3, 4), np.array([[[0, 3]] * 3, [[1, 2]] * 3])
    inner = lambda a: flat.vmap(lambda b: [b[0][b[1]]], a, (0, 0))
    [got] = flat.vmap(inner, [tn.asarray(x), tn.asarray(i)], (0, 0))
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, i, 2))


def test_sizes_that_depend_on_values_cannot_be_batched():
    x = tn.asarray(np.ones((2, 3)))
    for f in (lambda p: tn.nonzero(p[0]), lambda p: [p[0][p[0] > 0]]):
        with pytest.raises(tn.Error, match="values"):
            flat.vmap(f, [x], (0,))
