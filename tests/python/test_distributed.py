"""Programs of several workers: collectives, the launcher, and workers that fail."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tenon as tn

PRELUDE = """
import os
import numpy as np
import tenon as tn
from tenon import distributed as dist
world = dist.init()
rank, size = world.rank(), world.size()
def say(*words):  # one write a line: workers share the output
    os.write(1, (" ".join(map(str, (rank, *words))) + "\\n").encode())
"""


def launch(tmp_path, program, workers=3, timeout=120, **environment):
    """(exit code, lines of all workers sorted, what was written to stderr)"""
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(program))
    command = [sys.executable, "-m", "tenon", "launch", "-n", str(workers), str(path)]
    env = os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"} | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


def lines(tmp_path, program, workers=3, **environment):
    code, out, errors = launch(tmp_path, program, workers, **environment)
    assert code == 0, errors
    return out


def test_one_worker_needs_no_launcher():
    world = tn.distributed.init()
    assert (world.rank(), world.size()) == (0, 1)
    assert not tn.distributed.is_available()
    x = tn.array([1.0, 2.0])
    for f in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter", "all_to_all"):
        assert getattr(tn.distributed, f)(x).tolist() == [1.0, 2.0]
    assert tn.distributed.broadcast(x).tolist() == [1.0, 2.0]
    assert tn.distributed.all_gather(tn.array(3.0)).shape == (1,)
    tn.distributed.barrier()
    part = world.split(4)
    assert (part.rank(), part.size()) == (0, 1)


def test_collectives(tmp_path):
    program = """
    x = tn.arange(6.0) + 10 * rank
    for f in (dist.all_sum, dist.all_max, dist.all_min, dist.all_gather, dist.sum_scatter,
              dist.all_to_all):
        say(f.__name__, f(x).tolist())
    say("broadcast", dist.broadcast(x, 1).tolist())
    dist.barrier()
    """
    out = lines(tmp_path, program)
    x = [np.arange(6.0) + 10 * r for r in range(3)]
    want = []
    for rank in range(3):
        two = slice(2 * rank, 2 * rank + 2)
        want += [
            f"{rank} all_sum {sum(x).tolist()}",
            f"{rank} all_max {x[2].tolist()}",
            f"{rank} all_min {x[0].tolist()}",
            f"{rank} all_gather {np.concatenate(x).tolist()}",
            f"{rank} sum_scatter {sum(x)[two].tolist()}",
            f"{rank} all_to_all {np.concatenate([y[two] for y in x]).tolist()}",
            f"{rank} broadcast {x[1].tolist()}",
        ]
    assert out == sorted(want)


def test_collectives_have_derivatives_and_compile(tmp_path):
    program = """
    x = tn.arange(4.0) + rank
    loss = lambda x: ((rank + 1) * dist.all_sum(x) ** 2).sum()
    say(tn.grad(loss)(x).tolist(), tn.compile(tn.grad(loss))(x).tolist())
    say(tn.vmap(dist.all_sum)(tn.ones((2, 3))).tolist())
    """
    out = lines(tmp_path, program, workers=2)
    total = 2 * np.arange(4.0) + 1
    wanted = (3 * 2 * total).tolist()  # the losses of both workers depend on every x
    for rank in range(2):
        assert f"{rank} {wanted} {wanted}" in out
        assert f"{rank} {[[2.0] * 3] * 2}" in out


def test_messages(tmp_path):
    program = """
    x = tn.arange(3.0) + 10 * rank
    if rank == 0:
        dist.send(x, 1)
        say("got", dist.recv_like(x, size - 1).tolist())
    else:
        y = dist.recv((3,), tn.float32, rank - 1)
        dist.send(x + y, (rank + 1) % size)
    half = world.split(rank // 2)
    if half.size() == 2 and half.rank() == 0:
        dist.send(tn.array([rank]), 1, half)
    elif half.size() == 2:
        say("half", dist.recv((1,), tn.int64, 0, half).tolist())
    """
    out = lines(tmp_path, program)
    assert out == ["0 got [30.0, 33.0, 36.0]", "1 half [0]"]


def test_messages_in_compiled_functions_keep_their_order(tmp_path):
    program = """
    other = 1 - rank
    @tn.compile
    def f(x):
        for k in range(3):  # a receive that is not used, and one that decides the result
            if rank == 0:
                dist.send(x + k, other)
                y = dist.recv_like(x, other)
            else:
                y = dist.recv_like(x, other)
                dist.send(10 * y, other)
        return y
    for k in range(3):
        say(k, f(tn.array([1.0, 2.0]) * (k + 1)).tolist())
    @tn.compile
    def g(x):
        def body(x, _):
            if rank == 0:
                dist.send(x, other)
                return dist.recv_like(x, other), None
            y = dist.recv_like(x, other)
            dist.send(y + 1, other)
            return y, None
        return tn.scan(body, x, None, length=4)[0]
    say("scan", g(tn.array([0.0])).tolist())
    """
    out = lines(tmp_path, program, workers=2)
    assert out == [
        "0 0 [30.0, 40.0]",
        "0 1 [40.0, 60.0]",
        "0 2 [50.0, 80.0]",
        "0 scan [4.0]",
        "1 0 [3.0, 4.0]",
        "1 1 [4.0, 6.0]",
        "1 2 [5.0, 8.0]",
        "1 scan [3.0]",
    ]


def test_messages_that_differ_are_reported_by_both(tmp_path):
    program = """
    try:
        if rank == 0:
            dist.send(tn.ones(3), 1)
            dist.barrier()
        else:
            dist.recv((2,), tn.float32, 0)
    except tn.WorkerFailed as error:
        say(error)
    """
    code, out, _ = launch(tmp_path, program, workers=2)
    text = "workers disagree: worker 0 sends float32[3], worker 1 expects float32[2] (program.py:"
    assert code == 0 and len(out) == 2
    assert out[0].startswith(f"0 {text}") and out[1].startswith(f"1 {text}")


def test_a_worker_that_waits_for_a_message_is_told_of_the_end(tmp_path):
    program = """
    import sys
    if rank == 1:
        sys.exit(3)
    try:
        dist.recv((2,), tn.float32, 1)
    except tn.WorkerFailed as error:
        say(error)
    """
    code, out, _ = launch(tmp_path, program, workers=2)
    assert code == 3 and out == ["0 worker 1 ended with code 3"]


def test_sharded_linear_layers_equal_whole_ones(tmp_path):
    program = """
    tn.random.seed(0)
    up, down = tn.nn.Linear(4, 12), tn.nn.Linear(12, 3)
    x = tn.random.normal((5, 4), key=tn.random.key(1))
    first = tn.nn.shard_linear(up, "all-to-sharded", segments=2)
    second = tn.nn.shard_linear(down, "sharded-to-all", segments=2)
    def whole(x, w, b):
        return (down(tn.tanh(x @ w.T + b)) ** 2).sum()
    def parts(x, w, b):
        first.weight, first.bias = w, b
        return (second(tn.tanh(first(x))) ** 2).sum()
    want = tn.grad(whole, argnums=(0, 1, 2))(x, up.weight, up.bias)
    got = tn.grad(parts, argnums=(0, 1, 2))(x, first.weight, first.bias)
    assert abs(whole(x, up.weight, up.bias) - parts(x, first.weight, first.bias)).item() < 1e-4
    mine = lambda g: tn.concat([g[k : k + 3] for k in (3 * rank, 6 + 3 * rank)])
    assert tn.allclose(got[0], want[0], 1e-4, 1e-4)  # summed over the workers
    assert tn.allclose(got[1], mine(want[1]), 1e-4, 1e-4)
    assert tn.allclose(got[2], mine(want[2]), 1e-4, 1e-4)
    say(first, second)
    """
    out = lines(tmp_path, program, workers=2)
    text = "AllToShardedLinear(4 -> 6 of 12) ShardedToAllLinear(6 of 12 -> 3)"
    assert out == [f"0 {text}", f"1 {text}"]


def test_groups(tmp_path):
    program = """
    half = world.split(rank % 2, -rank)
    say(half.rank(), half.size(), dist.all_gather(tn.array([rank]), half).tolist())
    """
    out = lines(tmp_path, program, workers=4)
    assert out == ["0 1 2 [2, 0]", "1 1 2 [3, 1]", "2 0 2 [2, 0]", "3 0 2 [3, 1]"]


def test_training_in_parts_equals_training_on_all(tmp_path):
    program = """
    tn.random.seed(0)
    model = tn.nn.Sequential(tn.nn.Linear(6, 8), tn.nn.tanh, tn.nn.Linear(8, 1))
    optimizer = tn.optim.SGD(learning_rate=0.1)
    x = tn.random.normal((12, 6), key=tn.random.key(1))
    y = x.sum(axis=1, keepdims=True)
    loss = lambda model, x, y: ((model(x) - y) ** 2).mean()
    step = tn.nn.value_and_grad(model, loss)
    mine = slice(12 // size * rank, 12 // size * (rank + 1))
    for _ in range(5):
        value, gradients = step(model, x[mine], y[mine])
        optimizer.update(model, tn.nn.average_gradients(gradients))
    say(dist.all_sum(value).item() / size, model.layers[0].weight.sum().item())
    """
    alone = lines(tmp_path, program, workers=1)[0].split()
    several = [line.split() for line in lines(tmp_path, program, workers=3)]
    assert len({tuple(words[1:]) for words in several}) == 1  # the same bits
    np.testing.assert_allclose(
        [float(w) for w in several[0][1:]], [float(w) for w in alone[1:]], rtol=1e-5
    )


def test_workers_do_not_change_plans_at_different_times(tmp_path):
    program = """
    for k in range(40):
        x = tn.arange(100.0) + k
        a, b = dist.all_sum(x * 2), dist.all_sum(x * 2)  # which a compiled plan computes once
        total = (a + b + dist.all_max(x)).sum().item()
    say(total)
    """
    environment = {"TENON_AUTO_COMPILE": "1", "TENON_HOTPATH_THRESHOLD": "3"}
    assert len({line[1:] for line in lines(tmp_path, program, **environment)}) == 1


@pytest.mark.parametrize("way", ["hot", "timeout", "autotune"])
def test_processes_of_a_mesh_do_not_change_plans_at_different_times(tmp_path, way):
    program = f"""
    way = {way!r}
    def f(x):  # with four sums interpreted, two compiled
        return x.sum() * 2 + x.sum() * 3 + tn.sum(x * 1.0) + (x * x).sum() * 10
    if way == "hot":
        tn.set_auto_compile(True, threshold=5)
    if way == "timeout":
        f = tn.compile(f, timeout=(1e-9, "interpret"))
    if way == "autotune":
        f = tn.compile(f, mode="max-autotune")
    with tn.Mesh(data=2):
        x = tn.shard(tn.random.normal((4, 64), key=tn.random.key(2)), "data")
        found = {{f(x).item() for _ in range(300)}}
    refused = sum("at the same time" in str(path) for path in tn.hot_paths())
    say(len(found), refused)
    """
    refused = int(way == "hot")
    assert lines(tmp_path, program, workers=2) == [f"{rank} 1 {refused}" for rank in (0, 1)]


def test_different_calls_are_reported_by_all(tmp_path):
    program = """
    try:
        dist.all_sum(tn.ones(3 if rank == 1 else 2)).eval()
    except tn.Error as error:
        say(type(error).__name__, error)
    """
    code, out, _ = launch(tmp_path, program)
    assert code == 0
    reports = [line for line in out if "WorkerFailed" in line]
    assert len(reports) == 3
    for line in reports:
        assert "workers disagree: worker " in line
        assert "of float32[3] (program.py:" in line and "of float32[2] (program.py:" in line


@pytest.mark.parametrize(
    "first, second",
    [("(2, 3)", "(3, 2)"), ("(6,)", "(6, 1)"), ("(2, 3)", "(2, 3), tn.int32")],
)
def test_shapes_and_types_are_compared(tmp_path, first, second):
    program = f"""
    x = tn.zeros({first}) if rank == 0 else tn.zeros({second})
    try:
        dist.all_gather(x).eval()
    except tn.WorkerFailed as error:
        say(str(error).split("\\n")[0])
    """
    code, out, _ = launch(tmp_path, program, workers=2)
    assert code == 0 and len(out) == 2
    for line in out:
        assert "worker 0 calls all_gather #1 of float32[" in line
        assert f"worker 1 calls all_gather #1 of {'int' if 'int' in second else 'float'}32[" in line


@pytest.mark.parametrize(
    "end, text, code",
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "worker 1 was killed by signal 9", 137),
        ("sys.exit(3)", "worker 1 ended with code 3", 3),
        ("os._exit(0)", "worker 1 has ended, but worker ", 1),
    ],
    ids=["killed", "failed", "ended"],
)
def test_a_worker_that_ends_is_named_by_all_others(tmp_path, end, text, code):
    program = f"""
    import os, signal, sys
    dist.all_sum(tn.ones(3)).eval()
    if rank == 1:
        {end}
    try:
        dist.all_sum(tn.ones(3)).eval()
    except tn.WorkerFailed as error:
        say(error)
        sys.exit(1)
    """
    found, out, _ = launch(tmp_path, program)
    assert found == code
    assert sum(line.startswith((f"0 {text}", f"2 {text}")) for line in out) == 2


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9 after all_reduce"),
        ("os._exit(0)", "has ended, but worker [12] waits for it in all_reduce"),
    ],
    ids=["killed", "ended"],
)
def test_a_worker_that_ends_in_a_mesh_is_named_with_its_collective(tmp_path, end, text):
    program = f"""
    import os, signal, sys
    with tn.Mesh(data=2, model=2):
        x = tn.shard(tn.ones((4, 4)), ("data", "model"))
        try:
            x.sum().eval()
            if rank == 3:
                {end}
            for _ in range(2):
                x.max(axis=0).eval(), x.max(axis=1).eval()
        except tn.WorkerFailed as error:
            say(error)
            sys.exit(1)
    """
    _, out, _ = launch(tmp_path, program, 4)
    pattern = rf"[012] worker 3 {text}( by max)? #\d of .* \(program.py:\d+"
    assert sum(bool(re.match(pattern, line)) for line in out) == 3, out


def test_a_worker_that_hangs_is_reported(tmp_path):
    program = """
    import time
    if rank == 1:
        time.sleep(1000)
    try:
        dist.all_sum(tn.ones(3)).eval()
    except tn.WorkerFailed as error:
        say(error)
        raise SystemExit(1)
    """
    _, out, _ = launch(tmp_path, program, TENON_COLLECTIVE_TIMEOUT="1")
    reports = [line for line in out if "no progress for 1 s in all_reduce #1" in line]
    assert len(reports) == 2
    for line in reports:
        assert "worker 1 is before its first call" in line


def test_workers_end_with_their_launcher(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import os, time\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(1000)\n")
    command = [sys.executable, "-m", "tenon", "launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        workers = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.kill()
    deadline = time.monotonic() + 30
    for worker in workers:
        while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not os.path.exists(f"/proc/{worker}")


def test_launcher_passes_signals_on(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import os, time\nos.write(1, b'ready\\n')\ntime.sleep(1000)\n")
    command = [sys.executable, "-m", "tenon", "launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert [launcher.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == 128 + signal.SIGTERM


def test_programs_that_do_not_start(tmp_path):
    command = [sys.executable, "-m", "tenon", "launch", "-n", "2", "no-such-program"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 127
    assert "worker 0 could not start no-such-program" in done.stderr or (
        "worker 1 could not start no-such-program" in done.stderr
    )


@pytest.mark.parametrize(
    "environment, text",
    [
        ({"TENON_RANK": "1"}, "workers: the environment is incomplete: TENON_RANK=1"),
        ({"TENON_RANK": "x"}, "workers: TENON_RANK is not a number: x"),
        (
            {"RANK": "0", "WORLD_SIZE": "2"},
            "workers: RANK=0 and WORLD_SIZE=2 name several workers",
        ),
        (
            {"TENON_RANK": "0", "TENON_SIZE": "2", "TENON_WORLD_MEMORY": "0"},
            "file descriptor 0 is not the shared memory of a launcher",
        ),
    ],
    ids=["incomplete", "text", "torchrun", "no memory"],
)
def test_environments_of_no_launcher(environment, text):
    command = [sys.executable, "-c", "import tenon as tn; tn.distributed.init()"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert text in done.stderr


def test_the_size_is_that_of_the_launcher(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import os\nos.environ['TENON_SIZE'] = '5'\n"
        "import tenon as tn\ntn.distributed.init()\n"
    )
    command = [sys.executable, "-m", "tenon", "launch", "-n", "1", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "workers: TENON_SIZE is 5, but the launcher started 1" in done.stderr


def test_misuse_of_messages_and_layers(tmp_path):
    with pytest.raises(tn.Error, match="send: there is no worker 1: the group has 1"):
        tn.distributed.send(tn.ones(2), 1)
    with pytest.raises(tn.Error, match="recv: worker 0 cannot send to or receive from itself"):
        tn.distributed.recv((2,), tn.float32, 0)
    with pytest.raises(tn.Error, match="nn.shard_linear: expected a Linear, not ReLU"):
        tn.nn.shard_linear(tn.nn.ReLU(), "all-to-sharded")
    with pytest.raises(tn.Error, match="'rows' is not 'all-to-sharded' or 'sharded-to-all'"):
        tn.nn.shard_linear(tn.nn.Linear(2, 2), "rows")
    with pytest.raises(tn.Error, match=r"1 workers do not divide axis 0 of \(2,\) in 3 segments"):
        tn.nn.shard_linear(tn.nn.Linear(2, 2), "all-to-sharded", segments=3)


def test_misuse():
    with pytest.raises(tn.Error, match="broadcast: there is no worker 3: the group has 1"):
        tn.distributed.broadcast(tn.ones(2), 3)
    with pytest.raises(tn.Error, match="sum_scatter: 1 workers do not divide axis 0"):
        tn.distributed.sum_scatter(tn.array(1.0))
