"""Compiled kernels that the interpreter runs, as those with sines: gathers and masks in them."""

import numpy as np
import pytest

import tenon as tn

rng = np.random.default_rng(0)


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


def agrees(f, *args):
    """What `f` gives compiled, and each op by itself."""
    made = tn.compile(f)(*args)
    for got, wanted in zip(tn.tree.leaves(made), tn.tree.leaves(f(*args)), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_rows_at_an_index_whose_rest_is_no_sum_of_places():
    def f(x, w, i, j):
        return tn.sin(x[i].T.reshape(1200) + w[j].T.reshape(1200))

    args = (tn.array(floats(5, 30, 40)), tn.array(floats(5, 25, 48)), tn.array(3), tn.array(2))
    agrees(f, *args)


def test_complex_numbers_that_are_stored_and_computed_with():
    z = tn.array((floats(64) + 1j * floats(64)).astype(np.complex64))

    def f(z):
        y = tn.where(tn.arange(64) < 32, z, 0)
        return y, tn.exp(y), tn.sin(tn.real(y))

    agrees(f, z)


@pytest.mark.parametrize("kept", [0, 10, 16])
def test_rows_that_a_known_condition_drops(kept):
    table, rows = tn.array(floats(50, 8)), tn.array(rng.integers(0, 50, 16))

    def f(table, rows):
        mask = (tn.arange(16) < kept)[:, None]
        return tn.sin(tn.where(mask, table[rows], 0))

    agrees(f, table, rows)


def test_places_beside_the_least_integer():
    x = tn.array(floats(64))
    agrees(lambda x: tn.sin(tn.where(tn.arange(64) >= -(2**63), x, 0)), x)
    agrees(lambda x: tn.sin(tn.where(tn.arange(64) < 2**63 - 1, x, 0)), x)


@pytest.mark.parametrize("donated", [False, True])
def test_a_result_in_the_place_of_an_operand_that_another_result_copies_in_part(donated):
    def f(x):
        x = x if donated else tn.sort(x)  # whose memory results may take
        a = tn.sin(x)
        return a, tn.where(tn.arange(4096) < 100, x, a), tn.where(tn.arange(4096) < 7, a, x)

    x = floats(4096)
    wanted = [y.numpy() for y in f(tn.array(x))]
    made = tn.compile(f, donate_argnums=0 if donated else ())(tn.array(x))
    for got, expected in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)


def test_a_result_in_the_place_of_an_operand_that_is_also_seen_as_bits():
    def f(x):
        x = tn.sort(x)
        a, bits = tn.sin(x), tn.bitcast(x, tn.int32)
        return a, bits, a + bits.astype(tn.float32)

    agrees(f, tn.array(floats(4096)))
