"""tn.nn.losses against PyTorch, where PyTorch has no numbers, and what they refuse."""

import doctest
import pathlib

import numpy as np
import pytest

import tenon as tn
from tenon import nn
from tenon.nn import loss_modules, losses
from torch_cases import compare
from training_cases import LOSSES

DATA = pathlib.Path(__file__).parents[1] / "data/torch_training.npz"


@pytest.fixture(scope="module")
def recorded():
    with np.load(DATA) as file:
        return dict(file)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("case", LOSSES, ids=lambda case: case.name.replace(" ", "_"))
def test_values_and_gradients_are_those_of_pytorch(case, dtype, tolerance, recorded):
    compare(case, recorded, tolerance, dtype)


# Where functions have kinks and poles -------------------------------------------------------

ZERO = tn.zeros((2, 3))
EXTREME = {
    "binary_cross_entropy": (tn.array([-1e4, 1e4, 0.0]), tn.array([1.0, 0.0, 1.0])),
    "cosine_similarity_loss": (ZERO, ZERO),
    "cross_entropy": (tn.array([[1e4, -1e4], [0.0, 0.0]]), tn.array([1, 0])),
    "gaussian_nll_loss": (ZERO, ZERO, ZERO),
    "hinge_loss": (tn.ones(3), tn.ones(3)),
    "huber_loss": (tn.array([0.0, 1.0, 1e18]), tn.zeros(3)),
    "kl_div_loss": (tn.array([[-tn.inf, 0.0]]), tn.array([[-tn.inf, 0.0]])),
    "l1_loss": (ZERO, ZERO),
    "log_cosh_loss": (tn.array([0.0, 1.0, 1e18]), tn.zeros(3)),
    "margin_ranking_loss": (ZERO, ZERO, ZERO + 1),
    "mse_loss": (ZERO, ZERO),
    "nll_loss": (ZERO, tn.array([0, 2])),
    "smooth_l1_loss": (tn.array([0.0, 1.0, 1e18]), tn.zeros(3)),
    "triplet_loss": (ZERO, ZERO, ZERO),
}


def test_every_loss_is_tried_at_its_extremes():
    assert EXTREME.keys() == set(losses.__all__)


@pytest.mark.parametrize("name", EXTREME)
def test_values_and_gradients_are_finite(name):
    first, *others = EXTREME[name]
    f = lambda x: getattr(losses, name)(x, *others, reduction="sum")
    value, gradient = tn.value_and_grad(f)(first)
    assert np.isfinite(value.item()) and np.isfinite(gradient.numpy()).all()


def test_a_surely_wrong_probability_moves():
    p, targets = tn.array([0.0, 1.0, 0.25]), tn.array([1.0, 1.0, 0.0])
    f = lambda p: losses.binary_cross_entropy(p, targets, None, False, "none")
    np.testing.assert_allclose(f(p).numpy(), [100, 0, -np.log(0.75)], 1e-6)
    slopes = tn.grad(lambda p: tn.sum(f(p)))(p).numpy()
    np.testing.assert_allclose(slopes, [-1e12, 0, 1 / 0.75], 1e-5)


def test_log_cosh_of_small_errors_keeps_its_digits():
    got = losses.log_cosh_loss(tn.array([1e-4, 1e-2, 0.5, 50.0]), tn.zeros(4)).numpy()
    x = np.array([1e-4, 1e-2, 0.5, 50.0])
    np.testing.assert_allclose(got, x + np.log1p(np.expm1(-2 * x) / 2), 1e-6)


def test_classes_outside_the_range_are_errors_and_ignored_ones_nothing():
    logs, targets = tn.log(tn.full((4, 2), 0.5)), tn.array([0, 2, -1, -100])
    for f in (losses.nll_loss, losses.cross_entropy):
        for bad in (2, -1, -100):
            with pytest.raises(tn.InvalidIndex, match=f"{bad} is out of bounds for axis 1 .* 2 "):
                tn.eval(f(logs, tn.array([0, 1, bad, 0])))
        compiled = tn.compile(lambda x, t: f(x, t, ignore_index=-100))
        got = compiled(logs, targets).numpy()  # which does not check
        np.testing.assert_allclose(got, [np.log(2), np.nan, np.nan, 0], 1e-6)
        kept = f(logs, tn.array([0, 1, -100, 1]), ignore_index=-100).numpy()
        np.testing.assert_allclose(kept, np.log(2) * np.array([1, 1, 0, 1]), 1e-6)
        none = tn.full((4,), -100, dtype=tn.int64)
        assert f(logs, none, reduction="mean", ignore_index=-100).item() == 0


def test_weights_multiply_losses():
    logits, targets = tn.array([[2.0, -1.0], [0.0, 3.0]]), tn.array([1, 1])
    each = losses.cross_entropy(logits, targets).numpy()
    got = losses.cross_entropy(logits, targets, tn.array([2.0, 0.5]), reduction="mean")
    np.testing.assert_allclose(got.item(), np.mean(each * [2, 0.5]), 1e-6)


# What they refuse ---------------------------------------------------------------------------

PAIRS = [name for name in EXTREME if name not in ("cross_entropy", "nll_loss")]


@pytest.mark.parametrize("name", PAIRS)
def test_shapes_that_would_broadcast_are_refused(name):
    others = [tn.ones(2)] * (len(EXTREME[name]) - 1)
    with pytest.raises(ValueError, match=rf"{name}: shapes differ: f32\[2,1\] .* and f32\[2\]"):
        getattr(losses, name)(tn.ones((2, 1)), *others)


@pytest.mark.parametrize("name", EXTREME)
def test_an_unknown_reduction_is_refused(name):
    text = f"{name}(_loss)?: reduction must be one of none, mean, sum: 'avg'"
    with pytest.raises(ValueError, match=text):
        getattr(losses, name)(*EXTREME[name], reduction="avg")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: losses.huber_loss(ZERO, ZERO, 0), "huber_loss: delta must be above 0, not 0"),
        (lambda: losses.smooth_l1_loss(ZERO, ZERO, -1), "smooth_l1_loss: beta must be above 0"),
        (
            lambda: losses.nll_loss(ZERO, tn.array([[0], [1]])),
            r"nll_loss: targets must be classes of shape \[2\]: i64\[2,1\] \(inputs f32\[2,3\]\)",
        ),
        (
            lambda: losses.nll_loss(tn.array(0.0), tn.array(0)),
            "nll_loss: inputs need an axis of classes: f32",
        ),
        (
            lambda: losses.cross_entropy(ZERO, tn.array([0, 1]), tn.ones((2, 1))),
            r"cross_entropy_loss: weights of shape \[2,1\] for losses of shape \[2\]",
        ),
        (
            lambda: nn.CrossEntropyLoss()(tn.array(0.0), tn.array(0)),
            "CrossEntropyLoss: expected an axis of classes, given f32",
        ),
        (lambda: nn.HuberLoss(beta=1.0), "unexpected keyword argument 'beta'"),
        (lambda: nn.HuberLoss(reduction="avg"), "HuberLoss: reduction must be one of none, mean"),
    ],
)
def test_errors(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call()


# Modules ------------------------------------------------------------------------------------


def test_losses_as_modules():
    loss = nn.HuberLoss(delta=0.5)
    assert repr(loss) == "HuberLoss(delta=0.5)"
    assert loss.parameters() == {} and type(loss).__module__ == "tenon.nn.loss_modules"
    loss.reduction = "none"
    assert loss(tn.array([0.0, 3.0]), tn.zeros(2)).tolist() == [0, 1.375]


@pytest.mark.parametrize("module", [losses, loss_modules], ids=lambda m: m.__name__)
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_classes_have_weights(smoothing):
    weight = np.array([0.5, 2.0, 1.0], np.float32)
    logits = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 1.0], [3.0, 0.0, 0.0]], np.float32)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    classes = np.array([1, 0, -100])  # the last one is not counted
    share = np.full((2, 3), smoothing / 3)
    share[[0, 1], classes[:2]] += 1 - smoothing
    want = -(log_p[:2] * weight * share).sum() / weight[classes[:2]].sum()
    loss = nn.CrossEntropyLoss(weight=tn.array(weight), label_smoothing=smoothing)
    assert loss(tn.array(logits), tn.array(classes)).item() == pytest.approx(want, rel=1e-5)
    assert not loss.trainable_parameters() and "weight=float32[3]" in repr(loss)
    if smoothing == 0:
        nll = nn.NLLLoss(weight=tn.array(weight))
        assert nll(tn.array(log_p), tn.array(classes)).item() == pytest.approx(want, rel=1e-5)
    text = r"CrossEntropyLoss: weight must be one number for each of 4 classes, not f32\[3\]"
    with pytest.raises(ValueError, match=text):
        loss(tn.zeros((2, 4)), tn.array([0, 1]))


def test_positive_targets_have_weights():
    x, targets = tn.array([[0.5, -200.0]]), tn.array([[1.0, 0.25]])
    loss = nn.BCEWithLogitsLoss(pos_weight=tn.array([3.0, 2.0]), reduction="none")
    np.testing.assert_allclose(loss(x, targets).numpy(), [[3 * np.log1p(np.exp(-0.5)), 100]], 1e-6)
    halved = nn.BCEWithLogitsLoss(weight=tn.array(0.5), reduction="none")
    plain = nn.BCEWithLogitsLoss(reduction="none")
    assert halved(x, targets).tolist() == (plain(x, targets) / 2).tolist()


@pytest.mark.parametrize("layer", [tn.nn.CrossEntropyLoss, tn.nn.NLLLoss])
def test_classes_along_the_last_axis_are_asked_for(layer):
    x, target = tn.zeros((2, 3, 5)), tn.zeros((2, 3), dtype=tn.int64)
    with pytest.raises(tn.InvalidValue, match=r"along axis 1[\s\S]*hint: .*Loss\(axis=-1\)"):
        layer()(x, target)
    assert layer(axis=-1)(x, target).shape == ()


def test_classes_along_axis_1_add_no_guards():
    loss = tn.compile(lambda x, t: tn.nn.CrossEntropyLoss()(x, t), shapeless=True)
    for length in (5, 7, 3):  # in the last call there are as many places as classes
        loss(tn.zeros((2, 3, length)), tn.zeros((2, length), dtype=tn.int64))
    assert loss.stats().traces == 1
