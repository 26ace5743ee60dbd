"""Gradients by `backward()`: the values of `tn.grad`, the rules of PyTorch."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import tenon as tn

X = tn.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


def variable(*values: float) -> tn.Tensor:
    return tn.array(values, tn.float32, requires_grad=True)


def same(a: tn.Tensor, b: tn.Tensor) -> bool:
    return a.dtype == b.dtype and np.array_equal(a.numpy(), b.numpy())


LOSSES = {
    "products": lambda w: tn.sum(tn.tanh(X @ w) ** 2),
    "shared": lambda w: tn.sum(w * w) + tn.sum(tn.exp(w) * w[0]),
    "several results": lambda w: tn.sum(tn.topk(w, 2)[0] * tn.split(w, 3)[1]),
    "loop": lambda w: tn.scan(lambda c, x: (c * x + 1, c), tn.array(1.0), w)[0],
    "branch": lambda w: tn.cond(w[0] > 0, lambda v: tn.sum(v**2), lambda v: tn.sum(v), w),
    "checkpoint": lambda w: tn.checkpoint(lambda v: tn.sum(tn.sin(v) * v))(w),
    "vmap": lambda w: tn.sum(tn.vmap(lambda x: tn.sum(x * w) ** 2)(X)),
    "complex": lambda w: tn.sum(tn.abs(tn.fft.fft(w)) ** 2),
    "narrow": lambda w: tn.sum(w.astype(tn.bfloat16) * 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_grad(name: str) -> None:
    w = variable(0.5, -1.5, 2.0)
    LOSSES[name](w).backward()
    assert w.grad is not None
    assert same(w.grad, tn.grad(LOSSES[name])(w.detach()))


def test_gradients_add_up_until_they_are_let_go_of() -> None:
    w = variable(1, 2)
    (w * w).sum().backward()
    (3 * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [5, 7]
    w.grad = None
    assert w.grad is None


def test_a_loss_may_be_looked_at_first() -> None:
    w = variable(1, 2)
    loss = (w**3).sum()
    assert loss.item() == 9
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [3, 12]


def test_a_graph_is_walked_over_once_unless_it_is_retained() -> None:
    w = variable(2)
    loss = (w**2).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [8]
    with pytest.raises(tn.InvalidValue, match="second time.*\n.*\n.*retain_graph=True"):
        loss.backward()


def test_elements_are_set_where_gradients_are_not_wanted() -> None:
    w = variable(1, 2)
    (w * w).sum().backward()
    with tn.no_grad():
        w[0] = 5.0
    assert w.requires_grad and w.is_leaf and w.tolist() == [5, 2]
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [12, 8]


def test_doctests() -> None:
    from tenon import grad_mode

    assert doctest.testmod(grad_mode, extraglobs={"tn": tn}).failed == 0
