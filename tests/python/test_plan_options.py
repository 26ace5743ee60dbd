"""Options that change how a plan is made or run, and nothing about its results."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import tenon as tn
from tenon import nn

PLANNINGS = ("none", "greedy", "best_fit", "optimal")


def branches(x, w):
    """Temporaries of many sizes that live for different times."""
    kept, total = [], 0
    for i in range(1, 9):
        part = tn.cumsum(x[: 16 * i] @ w[:, : 24 + 8 * (i % 3)], 0)
        kept.append(part)
        if i % 3 == 0:
            total = total + tn.sum(tn.sort(kept.pop(0), 0))
    return total + sum(tn.max(tn.cumsum(part, 1)) for part in kept)


def arguments():
    rng = np.random.default_rng(0)
    normal = lambda *shape: tn.array(rng.standard_normal(shape, dtype=np.float32))
    return [normal(128, 40), normal(40, 48)]


# Memory planning ----------------------------------------------------------------------------


def test_plannings_differ_in_memory_and_not_in_results():
    args = arguments()
    wanted = branches(*args).item()
    reports = {}
    for planning in PLANNINGS:
        f = tn.compile(branches, memory_planning=planning)
        assert f(*args).item() == tn.compile(branches)(*args).item()
        assert np.isclose(f(*args).item(), wanted)
        reports[planning] = f.memory(*args)
        assert reports[planning].planning == planning
        text = f.show("memory", *args)
        assert f"placed by {planning}" in text and "lower bound" in text
    peaks = [reports[planning].peak for planning in PLANNINGS]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] > 1.5 * peaks[1] and peaks[1] > peaks[3]
    assert all(report.lower_bound <= report.peak for report in reports.values())
    assert reports["optimal"].is_least
    assert "no placement needs less" in repr(reports["optimal"])


def test_the_usual_planning_follows_the_level():
    plannings = [
        tn.compile(branches, optimization_level=level).memory(*arguments()).planning
        for level in (0, 1, 2, 3)
    ]
    assert plannings == ["greedy", "greedy", "best_fit", "best_fit"]


def test_with_planning_none_nothing_is_written_over():
    x = tn.ones((256, 256))
    f = lambda x: tn.cumsum(tn.cumsum(x, 0), 1)
    f = tn.compile(f, donate_argnums=0, memory_planning="none")
    peak = f.memory(x).peak
    assert peak >= 2 * x.nbytes
    assert f(tn.ones((256, 256)))[-1, -1].item() == 256 * 256


def test_an_executable_keeps_its_planning(tmp_path):
    info = [tn.InputInfo((128, 40), tn.float32), tn.InputInfo((40, 48), tn.float32)]
    peaks = []
    for planning in ("none", "optimal"):
        f = tn.compile(branches, args=info, memory_planning=planning)
        f.save(tmp_path / planning)
        loaded = tn.Executable.load(tmp_path / planning)
        assert loaded.memory().planning == planning
        assert loaded.memory().peak == f.memory().peak
        assert loaded(*arguments()).item() == f(*arguments()).item()
        peaks.append(f.memory().peak)
    assert peaks[0] > peaks[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_planning": "best"}, "memory_planning is one of 'greedy', 'best_fit', 'optimal'"),
        ({"optimize_for": "speed"}, "optimize_for is one of 'latency', 'throughput', not 'speed'"),
        ({"target_hardware": "zen9"}, r"no hardware of this name: 'zen9'[\s\S]*did you mean 'zen"),
        ({"target_hardware": "pentium"}, r"there are native, x86-64-v2, [\s\S]*haswell"),
        ({"target_hardware": "nvidia_t4"}, "code for nvidia_t4 ahead of time: code for GPUs"),
        ({"target_hardware": 4}, "target_hardware takes names, not 4"),
        ({"on": "absorbe"}, r"no pass named 'absorbe'[\s\S]*did you mean 'absorb'"),
        ({"on": "cse"}, "no pass named 'cse'"),
        ({"off": "xyz"}, r"no pass named 'xyz'[\s\S]*fuse, row-kernels, epilogue, bundle, inline"),
    ],
)
def test_names_that_do_not_exist(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tn.compile(lambda x: x + 1, **options)(tn.ones(3))
    with pytest.raises((ValueError, TypeError), match=message):
        tn.compile(lambda x: x + 1, args=[tn.InputInfo((3,), tn.float32)], **options)


# Throughput ---------------------------------------------------------------------------------


def test_throughput_stays_on_the_thread_that_calls(tmp_path):
    def f(x, w):
        return tn.tanh(x @ w) @ w

    x, w = tn.ones((512, 512)), tn.full((512, 512), 0.01)
    fast, many = tn.compile(f), tn.compile(f, optimize_for="throughput")
    assert many.show("plan", x, w).startswith("on the thread that calls\n")
    assert "thread" not in fast.show("plan", x, w).splitlines()[0]
    wanted = fast(x, w).numpy()
    results = []
    call = lambda: results.append(many(x, w).numpy())
    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, wanted) for result in results)
    info = [tn.InputInfo((512, 512), tn.float32)] * 2
    tn.compile(f, args=info, optimize_for="throughput").save(tmp_path / "f.tnx")
    loaded = tn.Executable.load(tmp_path / "f.tnx")
    assert loaded.show("plan").startswith("on the thread that calls\n")
    assert np.array_equal(loaded(x, w).numpy(), wanted)


# Hardware -----------------------------------------------------------------------------------

INFO = [tn.InputInfo((64, 64), tn.float32)]


def curve(x):
    return tn.maximum(x, 0) * 2 + tn.sum(x, 1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "level"),
    [("x86-64-v2", "x86-64-v2"), ("x86-64-v3", "x86-64-v3"), ("haswell", "x86-64-v3")],
)
def test_code_for_a_lower_level_runs_here(name, level):
    x = tn.array(np.random.default_rng(1).standard_normal((64, 64), dtype=np.float32))
    native = tn.compile(curve, args=INFO)
    f = tn.compile(curve, args=INFO, target_hardware=name)
    if native.stats().target < level:
        pytest.skip(f"this machine has {native.stats().target}")
    assert f.stats().target == level
    assert np.array_equal(f(x).numpy(), native(x).numpy())
    registers = re.compile("zmm" if level == "x86-64-v3" else "[yz]mm")
    assert not registers.search(f.show("kernels")) and f.stats().kernels > 0
    g = tn.compile(curve, target_hardware=name)
    assert np.array_equal(g(x).numpy(), native(x).numpy())
    assert not registers.search(g.show("kernels", x))


def test_a_file_holds_code_for_what_is_named(tmp_path):
    path = tmp_path / "curve.tnx"
    tn.compile(curve, args=INFO, target_hardware=["haswell", "zen4"]).save(path)
    text = subprocess.run(
        [sys.executable, "-m", "tenon", "inspect", str(path)], capture_output=True, text=True
    ).stdout
    assert "code for x86-64-v3, x86-64-v4" in text


def test_a_higher_level_is_for_the_file_only(tmp_path):
    program = f"""
import tenon as tn
def curve(x): return tn.exp(x) + 1
f = tn.compile(curve, args=[tn.InputInfo((8,), tn.float32)], target_hardware="zen4")
print(f.stats().target, f(tn.zeros(8)).tolist()[0])
f.save({str(tmp_path / "f.tnx")!r})
try:
    tn.compile(curve, target_hardware="zen4")(tn.zeros(8))
except ValueError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "TENON_CPU_LEVEL": "v2"},
    )
    assert run.stdout.startswith("x86-64-v2 2.0\n"), run.stdout + run.stderr
    assert "code for x86-64-v4 does not run here: this machine has x86-64-v2" in run.stdout
    assert (tmp_path / "f.tnx").stat().st_size > 0


# Absorbing factors --------------------------------------------------------------------------


def normalised(x, w, mean, var, weight, bias):
    return nn.relu(tn.batch_norm(tn.conv(x, w), mean, var, weight, bias, axis=1))


def conv_arguments(channels: int = 8):
    rng = np.random.default_rng(2)
    normal = lambda *shape: tn.array(rng.standard_normal(shape, dtype=np.float32))
    vectors = [normal(channels), normal(channels) ** 2 + 1, normal(channels), normal(channels)]
    return [normal(4, 3, 20, 20), normal(channels, 3, 3, 3), *vectors]


def ops_on_images(text: str) -> list[str]:
    """Ops of the optimised graph with results of rank 4 and many elements."""
    found = re.findall(r"= (\w+) .*: f32\[4,(?:18,18,8|8,18,18)\]", text)
    return [op for op in found if op not in ("permute_dims", "reshape")]


def test_batch_norm_ends_as_a_bias_with_statistics_at_run_time():
    args = conv_arguments()
    plain, absorbed = tn.compile(normalised), tn.compile(normalised, on="absorb")
    assert np.allclose(absorbed(*args).numpy(), plain(*args).numpy(), rtol=1e-5, atol=1e-5)
    assert ops_on_images(absorbed.show("optimized", *args)) == ["conv", "add", "relu"]
    assert len(ops_on_images(plain.show("optimized", *args))) > 3
    assert "absorb: factors of conv in its weight" in absorbed.show("decisions", *args)


def test_batch_norm_is_folded_into_constant_weights():
    x, *constants = conv_arguments()
    f = lambda x: normalised(x, *constants)
    plain, absorbed = tn.compile(f), tn.compile(f, on=["absorb"])
    assert np.allclose(absorbed(x).numpy(), plain(x).numpy(), rtol=1e-5, atol=1e-5)
    text = absorbed.show("optimized", x)
    assert ops_on_images(text) == ["conv", "add", "relu"]
    assert "multiply" not in text and "rsqrt" not in text


def test_an_executable_absorbs_too(tmp_path):
    x, *constants = conv_arguments()
    f = tn.compile(
        lambda x: normalised(x, *constants),
        args=[tn.InputInfo((4, 3, 20, 20), tn.float32)],
        on="absorb",
    )
    assert ops_on_images(f.show("optimized")) == ["conv", "add", "relu"]
    f.save(tmp_path / "f.tnx")
    loaded = tn.Executable.load(tmp_path / "f.tnx")
    assert np.array_equal(loaded(x).numpy(), f(x).numpy())
    assert ops_on_images(loaded.show("optimized")) == ["conv", "add", "relu"]


# Limits -------------------------------------------------------------------------------------


def slow_to_compile(count: int):
    numbers = [random.random() for _ in range(count)]
    return lambda x: [tn.cumsum(tn.exp(x * n + i), i % 2) for i, n in enumerate(numbers)]


def test_a_timeout_names_the_stage():
    stages = "passes|fusion|lowering|code generation|memory planning|waiting for other compilations"
    f = tn.compile(slow_to_compile(60), timeout=(0.002, "error"))
    f_again = tn.compile(slow_to_compile(60), timeout=(1e-9, "error"))
    with pytest.raises(ValueError, match=f"timed out after 0.002 s in ({stages}|tracing)"):
        f(tn.ones((8, 8)))
    with pytest.raises(ValueError, match="compilation timed out after 1e-09 s in tracing"):
        f_again(tn.ones((8, 8)))


def test_a_limit_that_cannot_be_met_says_the_least():
    def loss(params, x):
        for w in params:
            x = tn.tanh(x @ w)
        return tn.sum(x)

    step = tn.value_and_grad(loss)
    args = [tn.full((32, 32), 0.1) for _ in range(8)], tn.ones((512, 32))

    def least(limit: int) -> int:
        with pytest.raises(MemoryError) as caught:
            tn.compile(step, memory_limit=limit)(*args)
        text = str(caught.value)
        assert f"memory_limit is {limit} bytes" in text and "most at step" in text
        return int(re.search(r"smallest peak is (\d+) bytes", text)[1])

    plain = tn.compile(step).memory(*args).peak
    found = [least(1), least(plain // 10)]
    assert max(found) < plain
    tn.compile(step, memory_limit=max(found))(*args)  # fits


# Checkpoints in segments --------------------------------------------------------------------


def mlp(params, x):
    for w, b in params:
        x = nn.relu(x @ w + b)
    return x


def mlp_arguments(layers: int = 24, width: int = 16, rows: int = 2048):
    rng = np.random.default_rng(4)
    normal = lambda *shape: tn.array(rng.standard_normal(shape, dtype=np.float32) / 4)
    return [(normal(width, width), normal(width)) for _ in range(layers)], normal(rows, width)


def test_segments_lower_the_peak_and_keep_the_bits():
    params, x = mlp_arguments()

    def step_in(segments):
        f = tn.checkpoint(mlp, segments=segments) if segments else mlp
        return tn.compile(tn.value_and_grad(lambda p, x: tn.sum(f(p, x) ** 2)))

    steps = {segments: step_in(segments) for segments in (0, 1, 4)}
    peaks = {segments: step.memory(params, x).peak for segments, step in steps.items()}
    assert peaks[4] <= 0.6 * peaks[0]
    wanted, gradients = steps[0](params, x)
    for segments in (1, 4):
        got, others = steps[segments](params, x)
        assert got.item() == wanted.item()
        for a, b in zip(tn.tree.leaves(gradients), tn.tree.leaves(others)):
            assert np.array_equal(a.numpy(), b.numpy())


def test_segments_outside_of_compile_and_nested():
    params, x = mlp_arguments(6, 8, 16)
    loss = lambda f: lambda p: tn.sum(f(p, x) ** 2)
    wanted = tn.grad(loss(mlp))(params)
    got = tn.grad(loss(tn.checkpoint(mlp, segments=3)))(params)
    for a, b in zip(tn.tree.leaves(wanted), tn.tree.leaves(got)):
        assert np.array_equal(a.numpy(), b.numpy())
    many = tn.checkpoint(mlp, segments=100)(params, x)
    assert np.array_equal(many.numpy(), mlp(params, x).numpy())


@pytest.mark.parametrize("segments", [0, -1, 1.5, True, "2"])
def test_segments_are_a_number(segments):
    with pytest.raises(ValueError, match="segments must be 1 or more"):
        tn.checkpoint(mlp, segments=segments)
