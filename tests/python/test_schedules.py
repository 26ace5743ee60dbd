"""tn.optim.schedules: rates by step. Steps with them are compared with PyTorch in test_optim.py."""

import doctest
import pathlib

import numpy as np
import pytest

import tenon as tn
from tenon import optim
from training_cases import SCHEDULERS

DATA = pathlib.Path(__file__).parents[1] / "data/torch_training.npz"
STEPS = tn.arange(8)


@pytest.mark.parametrize(
    "schedule, rates",
    [
        (optim.step_decay(8.0, 0.5, 3), [8, 8, 8, 4, 4, 4, 2, 2]),
        (optim.exponential_decay(1.0, 0.5), 0.5 ** np.arange(8)),
        (optim.linear_schedule(1.0, 0.0, 4), [1, 0.75, 0.5, 0.25, 0, 0, 0, 0]),
        (optim.linear_schedule(0.0, 2.0, 2), [0, 1, 2, 2, 2, 2, 2, 2]),
        (optim.cosine_decay(1.0, 4), [1, 0.853553, 0.5, 0.146447, 0, 0, 0, 0]),
        (optim.cosine_decay(1.0, 2, end=0.5), [1, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
        (
            optim.join_schedules(
                [optim.constant(9.0), optim.linear_schedule(0.0, 1.0, 2), optim.constant(5.0)],
                [1, 4],
            ),
            [9, 0, 0.5, 1, 5, 5, 5, 5],
        ),
    ],
)
def test_rates(schedule, rates):
    got = [schedule(step) for step in STEPS]
    assert {rate.dtype for rate in got} == {tn.float32}
    np.testing.assert_allclose([rate.item() for rate in got], rates, 1e-5, 1e-7)


def test_late_steps_keep_their_rates():
    step = tn.array(10**9)
    assert optim.cosine_decay(1.0, 1000, 0.1)(step).item() == np.float32(0.1)
    assert optim.exponential_decay(1.0, 0.5)(step).item() == 0
    assert optim.linear_schedule(1.0, 0.25, 7)(step).item() == 0.25


def test_a_compiled_step_is_traced_once_for_all_rates():
    warm = optim.linear_schedule(0.0, 1.0, 2)
    optimizer = optim.SGD(optim.join_schedules([warm, optim.exponential_decay(1.0, 0.5)], [2]))
    state = [{"w": tn.zeros(1)}, optimizer.state]

    @tn.compile(inputs=state, outputs=state)
    def step():
        state[0]["w"] = optimizer.apply_gradients(tn.ones(1), state[0]["w"])

    seen = []
    for _ in range(5):
        before = state[0]["w"].item()
        step()
        seen.append(before - state[0]["w"].item())
    np.testing.assert_allclose(seen, [0, 0.5, 1, 0.5, 0.25], 1e-6)
    assert optimizer.learning_rate.item() == 0.25 and step.stats().traces == 1


def test_schedulers_count_steps_of_their_own():
    kinds = optim.lr_scheduler
    for make, rates in [
        (lambda o: kinds.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5]),
        (lambda o: kinds.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125]),
        (lambda o: kinds.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1]),
        (lambda o: kinds.CosineAnnealingLR(o, 2), [1, 0.5, 0, 0.5]),
        (lambda o: kinds.LambdaLR(o, lambda step: 1 / (1 + step)), [1, 1 / 2, 1 / 3, 1 / 4]),
    ]:
        optimizer, w = optim.SGD(lr=1.0), tn.array([0.0])
        scheduler, seen = make(optimizer), []
        for _ in range(4):
            w = optimizer.apply_gradients(tn.ones(1), w)  # its steps do not count
            seen += scheduler.get_last_lr()
            scheduler.step()
        np.testing.assert_allclose(seen, rates, 1e-6, 1e-7)
        np.testing.assert_allclose(w.item(), -sum(rates), 1e-6)


@pytest.mark.parametrize("case", SCHEDULERS, ids=lambda case: case.name.replace(" ", "_"))
def test_schedulers_have_the_rates_of_pytorch(case):
    with np.load(DATA) as recorded:
        rows = recorded[f"{case.name}/rates"]
    optimizer, got = optim.SGD(lr=0.5, momentum=0.9), []
    scheduler = case.ours(optimizer)
    kept = None
    for number, metric in enumerate(case.metrics):
        got.append([optimizer.learning_rate.item(), optimizer.momentum])
        if number + 1 < len(case.metrics) or metric is not None:
            scheduler.step() if metric is None else scheduler.step(metric)
        kept = scheduler.state_dict() if number == 4 else kept
    np.testing.assert_allclose(got, rows, rtol=1e-6, atol=1e-9)
    if case.metrics[0] is None:
        scheduler.load_state_dict(kept)
        np.testing.assert_allclose(scheduler.get_last_lr(), rows[5, 0], rtol=1e-6)


def test_rates_read_as_they_were_set():
    optimizer = optim.SGD(lr=0.1)
    for rate in (0.1, 3e-4, 0.123456, 1, 0, 2.0**127):
        optimizer.param_groups[0]["lr"] = rate
        assert optimizer.param_groups[0]["lr"] == rate
    optimizer.lr = 0.1
    assert optim.lr_scheduler.StepLR(optimizer, 2).get_last_lr() == [0.1]


def test_schedulers_refuse_what_makes_no_sense():
    kinds, optimizer = optim.lr_scheduler, optim.SGD(lr=0.5, momentum=0.9)
    for call, text in [
        (lambda: kinds.OneCycleLR(optimizer, 1.0), "total_steps is at least 2, not None"),
        (lambda: kinds.OneCycleLR(optimizer, 1.0, 9, pct_start=1.0), "pct_start must lie in"),
        (lambda: kinds.OneCycleLR(optimizer, 1.0, 9, anneal_strategy="no"), "'cos' or 'linear'"),
        (lambda: kinds.OneCycleLR(optim.Adagrad(), 1.0, 9), "neither momentum nor betas"),
        (lambda: kinds.ReduceLROnPlateau(optimizer, "low"), "mode must be 'min' or 'max'"),
        (lambda: kinds.ReduceLROnPlateau(optimizer, factor=1.0), "factor must be at least 0"),
        (lambda: kinds.LRScheduler(optimizer, float, float), "2 schedules for 1 groups"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(TypeError):  # not 'a', 2**62 times
        kinds.OneCycleLR(optimizer, 1.0, epochs="a", steps_per_epoch=2**62)
    cycle = kinds.OneCycleLR(optimizer, 1.0, total_steps=3)
    rates = []
    for _ in range(3):
        cycle.step()
        rates += cycle.get_last_lr()
    assert rates[0] > rates[1] == rates[2] > 0
    with pytest.raises(ValueError, match="the cycle ends after 3 steps"):
        cycle.step()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: optim.step_decay(1.0, 0.5, 0), "step_decay: step_size must be above 0, not 0"),
        (lambda: optim.cosine_decay(1.0, -1), "cosine_decay: decay_steps must be above 0, not -1"),
        (lambda: optim.linear_schedule(0, 1, 0), "linear_schedule: steps must be above 0, not 0"),
        (
            lambda: optim.join_schedules([optim.constant(1.0)], [3]),
            "join_schedules: there must be one schedule more than boundaries: 1 and 1",
        ),
        (
            lambda: optim.join_schedules([optim.constant(1.0)] * 3, [3, 2]),
            r"join_schedules: the boundaries do not increase: \[3, 2\]",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("module", [optim.schedules, optim.lr_scheduler])
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module, extraglobs={"tn": tn}).failed == 0
