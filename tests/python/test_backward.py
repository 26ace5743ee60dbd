"""Gradients by `backward()`: the values of `tn.grad`, the rules of PyTorch."""

from __future__ import annotations

import copy
import doctest
import gc
import threading
import weakref

import numpy as np
import pytest

import tenon as tn
from tenon import _core

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
    "compiled": lambda w: tn.compile(lambda v: tn.sum(tn.exp(v) * v))(w),
    "complex": lambda w: tn.sum(tn.abs(tn.fft.fft(w)) ** 2),
    "narrow": lambda w: tn.sum(w.astype(tn.bfloat16) * 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_grad(name: str) -> None:
    w = variable(0.5, -1.5, 2.0)
    LOSSES[name](w).backward()
    assert w.grad is not None
    assert same(w.grad, tn.grad(LOSSES[name])(w.detach()))


def test_custom_functions_have_their_own_derivative() -> None:
    @tn.custom_function
    def square(x: tn.Tensor) -> tn.Tensor:
        return x * x

    @square.vjp
    def ten_times(primals: tn.Tensor, ct: tn.Tensor, _: tn.Tensor) -> tn.Tensor:
        return 10 * ct * primals

    w = variable(1, 2)
    loss = square(w).sum()
    assert loss.item() == 5
    gc.collect()
    loss.backward(retain_graph=True)
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [20, 40]
    with tn.no_grad():
        assert square(w).tolist() == [1, 4]


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
    with pytest.raises(tn.InvalidValue, match="released by an earlier.*\n.*\n.*retain_graph=True"):
        loss.backward()


def test_a_part_of_a_graph_that_was_let_go_of() -> None:
    w = variable(2)
    shared = w * w
    shared.sum().backward()
    with pytest.raises(tn.InvalidValue, match="released by an earlier"):
        (shared * 3).sum().backward()


# Leaves -------------------------------------------------------------------------------------


def test_who_requires_gradients() -> None:
    x, w = tn.array([1.0]), variable(2)
    y = x * w
    assert (x.requires_grad, w.requires_grad, y.requires_grad) == (False, True, True)
    assert (x.is_leaf, w.is_leaf, y.is_leaf) == (True, True, False)
    for constant in (y.detach(), tn.stop_gradient(y), y > 0, y.astype(tn.int32), tn.argmax(y)):
        assert not constant.requires_grad and constant.is_leaf
    largest = tn.topk(y, 1)
    assert largest[0].requires_grad and not largest[1].requires_grad


def test_requires_grad_can_be_set_and_taken_back() -> None:
    w = tn.ones(2)
    assert w.requires_grad_() is w and w.requires_grad
    w.requires_grad = False
    assert not (w * 2).requires_grad
    with pytest.raises(tn.InvalidValue, match=r"for a computed tensor.*\n.*\n.*detach"):
        (variable(1) * 2).requires_grad = False
    with pytest.raises(tn.InvalidType, match=r"i64\[2\](.*\n)*.*astype"):
        tn.array([1, 2]).requires_grad_()


def test_leaves_among_several_results_have_gradients_of_their_own() -> None:
    a, b = tn.split(tn.array([1.0, 2.0, 3.0, 4.0]), 2)
    a.requires_grad = True
    (a * b).sum().backward()
    assert a.grad is not None and a.grad.tolist() == [3, 4]
    assert b.grad is None and not b.requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda: tn.array([1.0, 2.0], requires_grad=True),
        lambda: tn.zeros(2, requires_grad=True),
        lambda: tn.ones((2,), requires_grad=True),
        lambda: tn.full((2,), 3.0, requires_grad=True),
        lambda: tn.zeros_like(X[0, :2], requires_grad=True),
        lambda: tn.linspace(0, 1, 2, requires_grad=True),
        lambda: tn.rand(2, requires_grad=True),
        lambda: tn.randn(2, requires_grad=True),
    ],
)
def test_tensors_are_made_with_gradients(make) -> None:
    w = make()
    (w * tn.array([3.0, 4.0])).sum().backward()
    assert w.grad.tolist() == [3, 4]


def test_other_functions_do_not_take_requires_grad() -> None:
    with pytest.raises(tn.InvalidType, match="unknown keyword: requires_grad"):
        tn.exp(X, requires_grad=True)


def test_a_gradient_has_the_type_of_its_tensor() -> None:
    w = variable(1, 2)
    w.grad = [5.0, 6.0]
    (w * 2).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [7, 8]
    w.grad *= 0.5
    assert w.grad.tolist() == [3.5, 4]
    with pytest.raises(tn.InvalidValue, match=r"f32\[3\] but must be f32\[2\]"):
        w.grad = tn.ones(3)
    assert w.grad.tolist() == [3.5, 4]


def test_gradients_are_no_function_of_anything() -> None:
    w = variable(3)
    (w**3).sum().backward()
    assert w.grad is not None and not w.grad.requires_grad


def test_leaves_of_a_module_need_no_requires_grad() -> None:
    layer = tn.nn.Linear(3, 1)
    tn._core._watch(layer.parameters())
    loss = layer(X).sum()
    loss.backward()
    assert layer.bias.grad.tolist() == [2] and not layer.bias.requires_grad
    assert same(layer.weight.grad, X.sum(0, keepdims=True))
    loss = layer(X).sum()
    loss.eval()
    with pytest.raises(tn.InvalidValue, match=r"its operands were released(.*\n)*.*optim"):
        loss.backward()


# Where no gradients are wanted ----------------------------------------------------------------


def test_no_grad_is_a_context_and_a_decorator() -> None:
    w = variable(1)

    @tn.no_grad()
    def double(depth: int) -> tn.Tensor:
        return w * 2 if depth == 0 else double(depth - 1)

    assert not double(3).requires_grad and tn.is_grad_enabled()
    with tn.no_grad():
        assert not tn.is_grad_enabled() and not (w * 2).requires_grad
        with tn.enable_grad():
            assert (w * 2).requires_grad
        assert not tn.is_grad_enabled()
    with pytest.raises(KeyError), tn.no_grad():
        raise KeyError
    assert tn.is_grad_enabled() and (w * 2).requires_grad


def test_no_grad_is_of_the_thread() -> None:
    seen = []
    with tn.no_grad():
        thread = threading.Thread(target=lambda: seen.append(tn.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detached_values_are_constants() -> None:
    w = variable(3)
    (w * w.detach()).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3]


# What cannot be ---------------------------------------------------------------------------------


def test_losses_without_a_gradient() -> None:
    w = variable(1, 2)
    with pytest.raises(tn.InvalidValue, match=r"one element, not f32\[2\](.*\n)*.*sum or mean"):
        w.backward()
    hint = "requires_grad = True"
    with pytest.raises(tn.InvalidValue, match=f"no tensor that requires(.*\n)*.*{hint}"):
        X.sum().backward()
    with pytest.raises(tn.InvalidValue, match="no tensor that requires"):
        (w > 0).sum().backward()
    with tn.no_grad(), pytest.raises(tn.InvalidValue, match="outside of no_grad"):
        (w * 2).sum().backward()
    with pytest.raises(tn.InvalidType, match=r"real floating number, not c64\[\]"):
        (w.sum() * 1j).backward()
    with pytest.raises(tn.InvalidValue, match=r"gradient of the loss is f32\[3\] but must be"):
        (w * 2).backward(tn.ones(3))
    assert w.grad is None


def test_a_loss_of_one_element_and_a_weighted_one() -> None:
    w = variable(1, 2)
    (w * 3).sum(keepdims=True).backward()
    (w * w).backward([1.0, 10.0])
    assert w.grad is not None and w.grad.tolist() == [5, 43]


def test_leaves_whose_value_was_replaced() -> None:
    w = variable(1, 2)
    loss = (w * w).sum()
    with tn.no_grad():
        _core._rebind(w, w - 1)
    with pytest.raises(tn.InvalidValue, match="was assigned a new value(.*\n)*.*again after"):
        loss.backward()


# Rebinding --------------------------------------------------------------------------------------


def test_rebinding_keeps_the_gradient_and_who_requires_it() -> None:
    w = variable(1, 2)
    alias, old = w, w.detach()
    (w * w).sum().backward()
    with tn.no_grad():
        _core._rebind(w, w - w.grad)
    assert alias.tolist() == [-1, -2] and old.tolist() == [1, 2]
    assert w.requires_grad and w.is_leaf and w.grad.tolist() == [2, 4]
    w.grad = None
    (w * w).sum().backward()
    assert alias.grad.tolist() == [-2, -4]
    with pytest.raises(tn.InvalidType, match=r"must keep its type f32\[2\]"):
        _core._rebind(w, tn.ones(3))


def test_a_target_that_is_a_copy_of_what_is_trained() -> None:
    layer = tn.nn.Linear(3, 1)
    optimizer = tn.optim.SGD(layer.parameters(), lr=0.1)
    target = copy.deepcopy(layer)
    for _ in range(3):
        ((layer(X) - target(X) - 1) ** 2).mean().backward()
        assert same(target.bias.grad, -layer.bias.grad)
        optimizer.step()
        for each in (layer, target):
            each.bias.grad = each.weight.grad = None
    assert not same(layer.bias, target.bias)


def test_a_former_value_is_a_plain_one() -> None:
    w = variable(1, 2)
    before, handle = w * 3, tn.asarray(w)
    with tn.no_grad():
        _core._rebind(w, w + 1)
    assert not handle.requires_grad and handle.tolist() == [1, 2]
    (handle * w).sum().backward()
    assert w.grad.tolist() == [1, 2] and handle.grad is None
    with pytest.raises(tn.InvalidValue, match="was assigned a new value"):
        (before * w).sum().backward()
    handle.requires_grad = True
    (handle * w).sum().backward()
    assert handle.grad.tolist() == [2, 3]


def test_rebinding_to_a_tensor_of_somebody_else() -> None:
    w, other = variable(1, 2), tn.array([5.0, 6.0])
    _core._rebind(w, other)
    (w * 2).sum().backward()
    assert w.tolist() == [5, 6] and w.grad.tolist() == [2, 2]
    assert other.grad is None and not other.requires_grad


def test_elements_are_set_where_gradients_are_not_wanted() -> None:
    w = variable(1, 2)
    with pytest.raises(tn.InvalidValue, match=r"requires a gradient(.*\n)*.*no_grad"):
        w[0] = 5.0
    (w * w).sum().backward()
    with tn.no_grad():
        w[0] = 5.0
    assert w.requires_grad and w.is_leaf and w.tolist() == [5, 2]
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [12, 8]


# With the transforms ----------------------------------------------------------------------------


def test_a_gradient_of_a_gradient() -> None:
    w = variable(2)
    tn.grad(lambda v: tn.sum(v**3 * w))(tn.array([3.0])).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [27]


def test_backward_inside_a_derivative() -> None:
    def slope(x: tn.Tensor) -> tn.Tensor:
        w = variable(2)
        (x * w * w).sum().backward()
        assert w.grad is not None
        return w.grad.sum()

    assert tn.grad(slope)(tn.array([3.0])).tolist() == [4]


@pytest.mark.parametrize("transform", [tn.vmap, tn.compile])
def test_backward_does_not_leave_a_trace(transform) -> None:
    w = variable(2)

    def f(x: tn.Tensor) -> tn.Tensor:
        (x * w).sum().backward()
        return x

    with pytest.raises(tn.InvalidValue, match="from outside the traced function"):
        transform(f)(X)
    assert w.grad is None

    def g(x: tn.Tensor) -> tn.Tensor:
        x.sum().backward()
        return x

    def h(x: tn.Tensor) -> tn.Tensor:
        w.grad = x.sum() * tn.ones(1)
        return x

    with pytest.raises(tn.InvalidValue, match="a gradient is set"):
        transform(h)(X)
    if transform is tn.compile:
        text = "to an argument from outside(.*\n)*.*inputs=state"
        with pytest.raises(tn.InvalidValue, match=text):
            tn.compile(g)(w)


def test_hints_of_backward_that_leaves_a_compiled_function() -> None:
    w = variable(2)
    computed = w * 3

    def hint(use, state=None) -> str:
        named = {} if state is None else {"inputs": state, "outputs": state}

        def f(x: tn.Tensor) -> tn.Tensor:
            (x * use()).sum().backward()
            return x

        with pytest.raises(tn.InvalidValue, match="from outside the traced function") as error:
            tn.compile(f, **named)(X)
        return str(error.value).partition("hint: ")[2]

    holder = "name what holds it: compile(f, inputs=state, outputs=state)"
    assert hint(lambda: w) == holder
    inside = "the loss uses what was computed from it outside: compute that inside, or detach() it"
    assert hint(lambda: computed) == inside
    state = {"p": computed}
    detach = "; detach() state that was computed from other tensors"
    assert hint(lambda: state["p"], state) == holder + detach
    assert w.grad is None

    def step(x: tn.Tensor) -> tn.Tensor:
        (x * state["p"]).sum().backward()
        return x

    state["p"] = computed.detach().requires_grad_()
    tn.compile(step, inputs=state, outputs=state)(tn.array([5.0]))
    assert state["p"].grad is not None and state["p"].grad.tolist() == [5]


def test_leaves_made_inside_a_trace() -> None:
    @tn.compile
    def slope(x: tn.Tensor) -> tn.Tensor:
        w = tn.ones(3, requires_grad=True)
        (tn.exp(x) * w**2).sum().backward()
        assert w.grad is not None
        return w.grad

    assert same(slope(X[0]), slope(X[0]))
    assert np.allclose(slope(X[0]).numpy(), 2 * np.exp(X[0].numpy()))


def test_through_a_compiled_function() -> None:
    layer = tn.nn.Linear(3, 2)
    plain, compiled = layer, tn.compile(layer)
    tn.optim.SGD(layer.parameters(), lr=0.1)
    grads = []
    for f in (plain, compiled):
        layer.weight.grad = None
        out = f(X)
        assert out.requires_grad
        (out**2).sum().backward()
        grads.append(layer.weight.grad)
    assert np.allclose(*(g.numpy() for g in grads), rtol=1e-6)
    with tn.no_grad():
        assert not compiled(X).requires_grad


# Memory and threads -----------------------------------------------------------------------------


def test_kept_values_go_with_the_graph() -> None:
    w = tn.ones(1000, requires_grad=True).eval()
    before, losses = tn.active_memory(), []
    for _ in range(10):
        loss = tn.exp(tn.sin(w) * w).sum()
        loss.eval()
        loss.backward()
        w.grad.eval()
        w.grad = None
        losses.append(loss)
    assert tn.active_memory() - before < 2 * 4000


def test_pending_gradients_do_not_hold_their_tensors() -> None:
    before = tn.active_memory()
    for _ in range(10):
        a, b = (tn.ones(1000, requires_grad=True).eval() for _ in range(2))
        (a * b).sum().backward()
    del a, b
    variable(1).sum().backward()
    gc.collect()
    assert tn.active_memory() - before < 4 * 4000


def test_objects_die() -> None:
    class Mine(tn.Tensor):
        pass

    w = Mine([1.0, 2.0])
    w.requires_grad = True
    (w * w).sum().backward()
    gone = weakref.ref(w)
    del w
    gc.collect()
    assert gone() is None


def test_long_chains() -> None:
    w = variable(1)
    y = w
    for _ in range(25_000):
        y = y * 1.0
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [1]


def test_threads_add_to_one_gradient() -> None:
    w = tn.ones(100, requires_grad=True)
    shared = tn.sin(w) + w
    errors = []

    def work() -> None:
        try:
            for i in range(20):
                (shared * i).sum().backward(retain_graph=True)
                if i % 5 == 0:
                    assert w.grad is not None
                    w.grad.eval()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert np.allclose(w.grad.numpy(), 4 * 190 * (1 + np.cos(1)), rtol=1e-5)


def test_copies_of_variables_have_gradients_of_their_own() -> None:
    w = variable(1, 2)
    (w * w).sum().backward()
    other = copy.deepcopy(w)
    assert other.requires_grad and other.is_leaf
    (3 * other).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 4]
    assert other.grad is not None and other.grad.tolist() == [5, 7]


def test_copies_of_models_have_gradients_of_their_own() -> None:
    teacher = tn.nn.Linear(2, 1)
    student = copy.deepcopy(teacher)
    optimizer = tn.optim.SGD(student.parameters(), lr=0.1)
    tn.sum(2 * student(tn.ones((1, 2))) - teacher(tn.ones((1, 2)))).backward()
    assert student.weight.grad.tolist() == [[2, 2]] and teacher.weight.grad.tolist() == [[-1, -1]]
    optimizer.step()
    assert not teacher.weight.requires_grad


@pytest.mark.parametrize("same", [tn.asarray, tn.array, lambda x: x[:], lambda x: x.reshape(2)])
def test_who_else_holds_the_value_requires_no_gradient(same) -> None:
    x = tn.ones(2)
    y = same(x)
    y.requires_grad = True
    assert y is x or not x.requires_grad


def test_sums_of_gradients_hold_no_batches() -> None:
    w = tn.ones((1, 64), requires_grad=True)
    x = tn.ones((4096, 1))
    tn.eval(x, w)

    def held(batches: int) -> int:
        w.grad = None
        before = tn.memory.active_memory()
        for _ in range(batches):
            tn.exp(x @ w).mean().backward()
        return tn.memory.active_memory() - before

    assert held(8) == held(2) == w.nbytes


def test_losses_that_are_kept_hold_no_activations() -> None:
    w = tn.ones((1, 64), requires_grad=True)
    x = tn.ones((4096, 1))
    optimizer = tn.optim.SGD([w], lr=0.1)
    losses, before = [], tn.memory.active_memory()
    for _ in range(4):
        optimizer.zero_grad()
        losses.append(tn.mean(tn.square(x @ w)))
        losses[-1].backward()
        optimizer.step()
    assert tn.memory.active_memory() - before < 4096 * 64 * 4  # that of one step
    assert losses[0].item() == 1


def test_doctests() -> None:
    from tenon import grad_mode

    assert doctest.testmod(grad_mode, extraglobs={"tn": tn}).failed == 0
