"""x[i] = v gives the object another value: who sees it, and who does not."""

import copy

import numpy as np
import pytest

import tenon as tn


def test_other_names_and_containers_see_it():
    x = tn.array([1.0, 2.0, 3.0])
    y, held, named = x, [x, (x,)], {"x": x}
    y[0] = 5
    assert x is y and x.tolist() == [5, 2, 3]
    assert held[0].tolist() == held[1][0].tolist() == named["x"].tolist() == [5, 2, 3]

    def clear(t):
        t[:] = 0

    clear(x)
    assert y.tolist() == [0, 0, 0]


def test_what_was_made_from_it_keeps_its_value():
    x = tn.array([[1.0, 2.0], [3.0, 4.0]])
    row, turned, flat, double, array = x[0], x.T, x.reshape(-1), x * 2, x.numpy()
    copies = [x.copy(), tn.array(x), tn.asarray(x), copy.copy(x)]
    x[0, 0] = 9
    assert row.tolist() == [1, 2] and turned[0, 0].item() == 1 and flat[0].item() == 1
    assert double[0, 0].item() == 2 and array[0, 0] == 1 and np.asarray(x)[0, 0] == 9
    assert all(c[0, 0].item() == 1 for c in copies)
    row[0] = 7  # nor the other way
    copies[0][0, 0] = 7
    assert x[0, 0].item() == 9


def test_augmented_assignment_makes_a_new_tensor_for_the_name():
    x = tn.array([1.0, 2.0])
    y = x
    y += 1
    assert y is not x and x.tolist() == [1, 2] and y.tolist() == [2, 3]
    z = x
    z[0] += 1  # of a part: an assignment to it
    assert z is x and x.tolist() == [2, 2]
    held = [x]
    held[0] *= 3
    assert x.tolist() == [2, 2] and held[0].tolist() == [6, 6]


def test_compiled_functions_warn_of_assignments_to_arguments():
    def scaled(x, parts):
        x[0] = 10
        parts["w"][1] = 20
        return x.sum() + parts["w"].sum()

    x, w = tn.array([1.0, 2.0]), tn.array([3.0, 4.0])
    with pytest.warns(UserWarning, match=r"scaled .* assigns to parts of (x|parts\['w'\])") as seen:
        assert tn.compile(scaled)(x, {"w": w}).item() == 35
    assert len(seen) == 2
    assert x.tolist() == [1, 2] and w.tolist() == [3, 4]
    assert scaled(x, {"w": w}).item() == 35
    assert x.tolist() == [10, 2] and w.tolist() == [3, 20]  # its own call does it


def test_a_tensor_made_inside_is_its_own(recwarn):
    @tn.compile
    def f(x):
        y = x.copy()
        y[0] = 10
        z = y
        z[1] = 20
        return y

    x = tn.array([1.0, 2.0])
    assert f(x).tolist() == [10, 20] and x.tolist() == [1, 2]
    assert not recwarn.list


def test_transforms_differentiate_through_it_and_leave_arguments_alone():
    def loss(x):
        y = x
        y[0] = y[1] * 3  # y and x are one
        return (x * x).sum()

    x = tn.array([1.0, 2.0])
    assert tn.grad(loss)(x).tolist() == [0, 2 * 3 * 6 + 4] and x.tolist() == [1, 2]
    assert tn.vmap(loss)(tn.stack([x, x])).tolist() == [40, 40] and x.tolist() == [1, 2]
    assert loss(x).item() == 40 and x.tolist() == [6, 2]
