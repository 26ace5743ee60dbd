"""Under a launcher all processes give a mesh the same tensors and numbers of the host."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os
import numpy as np
import tenon as tn
from tenon import nn

rank = tn.distributed.init().rank()
mesh = tn.Mesh(data=-1)
with mesh:
    model = nn.Linear(4, 3)

def rows(seed=0, count=8):
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)

@tn.compile
def loss(x, factor=1.0):
    return (model(x) ** 2).mean() * factor

"""


def launched(tmp_path, program, workers=2):
    path = tmp_path / "program.py"
    inside = textwrap.indent(textwrap.dedent(program), "    ")
    path.write_text(f'{PRELUDE}with mesh:\n{inside}\nos.write(1, b"done\\n")\n')
    return path, subprocess.run(
        [sys.executable, "-m", "tenon", "launch", "-n", str(workers), str(path)],
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"},
        capture_output=True, text=True, timeout=120)


DIFFERENT = {
    "divided": 'loss(tn.shard(tn.array(rows(rank)), "data")).item()  # here',
    "evaluated": """
    x = tn.shard(tn.array(rows(rank)), "data")  # here
    tn.eval(x)
    loss(x).item()
    """,
    "large": """
    x = tn.shard(tn.array(rows(rank, 4000)), "data")  # here
    tn.eval(x)
    loss(x * 2).item()
    """,
    "on every worker": """
    x = tn.shard(tn.array(rows()), "data")
    bias = tn.array(rows(rank, 1), device="cpu")
    (x + bias).sum().item()  # here
    """,
    "swapped": """
    a, b = tn.shard((tn.array(rows(1 + rank)), tn.array(rows(2 - rank))), "data")  # here
    (a * 2 + b).sum().item()
    """,
    "number": """
    x = tn.shard(tn.array(rows()), "data")
    (loss(x, 2.0 + rank) * x).sum().item()
    """,
    "keys": """
    tn.random.seed(rank)
    x = tn.shard(tn.random.normal((8, 4)), "data")  # here
    tn.eval(x)
    loss(x).item()
    """,
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_processes_with_different_values_are_told(tmp_path, name):
    path, done = launched(tmp_path, DIFFERENT[name])
    assert done.returncode != 0 and "done" not in done.stdout
    text = "worker 0 and worker 1 were given different values"
    assert text in done.stderr and "from all processes" in done.stderr
    lines = [i for i, line in enumerate(path.read_text().splitlines(), 1) if "# here" in line]
    for line in lines:
        assert f"program.py:{line}" in done.stderr.split(text)[1].split(", but")[0], done.stderr


def test_workers_along_another_axis_compare_too(tmp_path):
    _, done = launched(tmp_path, """
    with tn.Mesh(data=2, model=2):
        x = tn.shard(tn.array(rows(rank // 2)), "data")
        w, v = tn.shard(tn.array(rows(2, 4)), (None, "model")), tn.shard(tn.ones((4, 2)), "model")
        tn.eval(x)
        tn.eval(x @ w @ v)  # a sum along `model`
        x.sum().item()
    """, 4)
    assert re.search("worker (0 and worker 2|1 and worker 3) were given different", done.stderr)


def test_what_one_process_does_alone_is_no_matter(tmp_path):
    path, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    for _ in range(2):
        value = loss(x)
        tn.eval(value)
        if rank == 0:
            (value / tn.array(7.0)).item()  # of the first process
            (value * rows(rank)).sum().item()
        tn.distributed.all_sum(tn.array(1.0 * rank, device="cpu")).item()
        mine = tn.place(tn.array(rows(rank)), mesh)
        loss(x, 0.5).item()
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n" * 2


def test_stages_of_a_pipeline_use_the_values_of_their_own_processes(tmp_path):
    path, done = launched(tmp_path, """
    mesh = tn.Mesh(stage=2, data=2)
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    x, y = rows(rank // 2), rows(3 - rank // 2)
    with mesh:
        x, y = tn.shard((x, y), "data")
    b = tn.place(tn.place(x, first) * 2, last) + tn.place(y, last)
    b.sum().to(mesh).item()
    """, 4)
    assert done.returncode == 0, done.stderr


def test_one_process_may_evaluate_earlier(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data") * 3
    bias = tn.array([1.0, 2.0, 3.0, 4.0]) + 5
    doubled, hidden = x * 2, nn.relu(x + bias)
    if rank == 0:
        bias.tolist(), tn.eval(doubled), hidden.local
    (x + bias).sum().item(), (doubled + x).sum().item(), ((hidden - x) ** 2).sum().item()
    doubled.sum().item()
    count, weight = tn.array(0.0), tn.ones((4, 1))
    for _ in range(3):  # a schedule that one process prints
        count = count + 1
        rate = 0.1 * count ** -0.5
        if rank == 0:
            rate.item()
        weight = weight - rate * (x.T @ (x @ weight)) / (1 - 0.9 ** count)
        weight.mean().item()
    """)
    assert done.returncode == 0, done.stderr


def test_a_process_that_reads_another_value_first_is_told(tmp_path):
    path, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    loss = (x * x).mean()  # loss
    size = tn.abs(x).mean()  # size
    if rank == 0:
        size.item()
    loss.item()
    """)
    lines = path.read_text().splitlines()
    assert "workers disagree: worker 0 calls all_reduce #" in done.stderr
    for what in "loss", "size":
        line = next(i for i, text in enumerate(lines, 1) if text.endswith("# " + what))
        assert f"(program.py:{line}, in <module>)" in done.stderr
    assert "evaluate a value on all before one prints it" in done.stderr


def test_one_process_may_make_the_plan_of_another_line(tmp_path):
    """Lines are those of the program, not those that a plan was made for."""
    _, done = launched(tmp_path, """
    whole, x, y = tn.array(rows()), *tn.shard((tn.array(rows(1)), tn.array(rows(2))), "data")
    tn.eval(whole, x, y)
    if rank == 0:
        tn.square(whole).sum().item()  # needs no collective
    tn.square(x).sum().item()
    size = tn.abs(y).sum()
    if rank == 0:
        size.item()
    tn.eval(size, whole * 2)  # another plan than that of the first process
    for _ in range(2):
        tn.square(x + 1).sum().item()
        tn.square(y + 1).sum().item()  # the plan of the line before
    """)
    assert done.returncode == 0, done.stderr


def test_processes_may_evaluate_a_value_on_lines_of_their_own(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    for _ in range(2):
        if rank == 0:
            print(tn.distributed.gather(x).sum())
        else:
            tn.eval(tn.distributed.gather(x).sum())
        (x * x).sum().item() if rank == 0 else (
            (x * x).sum().item())
    """)
    assert done.returncode == 0, done.stderr


def test_values_of_one_form_in_another_order_are_told(tmp_path):
    """They are results of one run, so what each was made of tells them apart."""
    _, done = launched(tmp_path, """
    batches = [tn.shard(tn.array(rows(i)), "data") for i in range(3)]
    tn.eval(batches)
    losses = [(x ** 2).mean() for x in batches]
    if rank == 0:
        losses[2].item()
    print([x.item() for x in losses])
    """)
    assert "were given different values" in done.stderr and "in the same order" in done.stderr
    assert "[" not in done.stdout


def test_one_process_that_reads_some_losses_earlier_is_told(tmp_path):
    """It still refers to more than the others, so its plan has other results than theirs."""
    _, done = launched(tmp_path, """
    losses = []
    for i in range(4):
        y = tn.shard(tn.array(rows(i)), "data")
        value = (model(y) ** 2).mean()
        losses.append(value)
        if rank == 0 and i % 2:
            value.item()
    print([x.item() for x in losses])
    """)
    assert "were given different values" in done.stderr
    assert "[" not in done.stdout


def test_one_process_may_evaluate_some_steps_earlier_in_order(tmp_path):
    """The plans of the others have several steps of the loop, whose sums have one line."""
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    weight, losses = tn.ones((4, 1)), []
    for i in range(6):
        value = ((x @ weight - 1) ** 2).mean()
        weight = weight - 0.1 * (x.T @ (x @ weight - 1)) / 8
        losses.append(value)
        if rank == 0 and i % 2:
            tn.eval(losses, weight)
        if i == 3:
            tn.eval(losses, weight)
    print([x.item() for x in losses], weight.tolist())
    """)
    assert done.returncode == 0, done.stderr
    first, second = sorted(set(done.stdout.split("\n")) - {"", "done"})[:1] * 2
    assert first == second


ONE_PROCESS_EARLIER = {
    "a gradient": """
    w = tn.array(rows(3, 4))
    g = tn.grad(lambda w: ((tn.shard(tn.array(rows()), "data") @ w) ** 2).sum())(w)
    if rank == 0:
        print(g[0].tolist())
    w = w - 0.1 * g
    w.sum().item()
    """,
    "a function, for other sizes": """
    x = tn.shard(tn.array(rows()), "data")
    mean = tn.compile(lambda x: (x / x.shape[0]).sum() + (x * 2).mean())
    if rank == 0:
        [mean(tn.array(rows(0, n))).item() for n in (5, 6)]
    mean(x).item()
    """,
    "a function, with another number": """
    x = tn.shard(tn.array(rows()), "data")
    f = tn.compile(lambda x, k: tn.exp(x * k).sum())
    if rank == 0:
        f(tn.array(rows(1)), 0.5).item()
    f(x, 0.25).item()
    """,
    "many ops": """
    x, w = tn.shard(tn.array(rows()), "data"), tn.array(rows(1, 1))
    values = [tn.tanh(w + i) for i in range(24000)]
    if rank == 0:
        tn.eval(values[-1])
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2])] + values[len(values) // 2 * 2:]
    (x * values[0]).sum().item()
    """,
}


@pytest.mark.parametrize("name", ONE_PROCESS_EARLIER)
def test_one_process_may_compute_earlier(tmp_path, name):
    _, done = launched(tmp_path, ONE_PROCESS_EARLIER[name])
    assert done.returncode == 0, done.stderr


def test_operands_that_one_op_gathers_are_told_apart(tmp_path):
    """How a value lies depends on when it was evaluated."""
    _, done = launched(tmp_path, """
    x, w = tn.shard(tn.array(rows()), "data"), tn.array(rows(3))
    a, b = w * 2, w * 3
    if rank == 1:
        tn.eval(a)
    (x * a).sum().item()
    if rank == 0:
        tn.eval(b)
    (x * b).sum().item()
    print(tn.conv1d(a.T.reshape(1, 4, 8), b.T.reshape(1, 4, 8)).item())
    """)
    assert "given different values" in done.stderr or "workers disagree" in done.stderr
    assert "." not in done.stdout


LOADED = {
    "pickles": "w = pickle.loads(pickle.dumps(tn.array(rows(3 + rank, 4))))",
    "parameters": """
    layer = nn.shard(nn.Linear(4, 4), {"*": tn.stored("data")})
    layer.load_state_dict({"weight": rows(3 + rank, 4), "bias": np.zeros(4, np.float32)})
    w = layer.weight
    """,
}


@pytest.mark.parametrize("name", LOADED)
def test_other_weights_are_told(tmp_path, name):
    program = textwrap.dedent(LOADED[name])
    _, done = launched(tmp_path, "import pickle\n" + program + """
x = tn.shard(tn.array(rows()), "data")
print((x @ w).sum().item())
""")
    assert "given different values" in done.stderr and "." not in done.stdout


def test_explicit_sums_of_derivatives_have_their_order(tmp_path):
    _, done = launched(tmp_path, """
    D, a = tn.distributed, tn.array(1.0 + rank, device="cpu")
    g = tn.grad(lambda x: D.all_sum(x * 2) ** 2)(a)
    s = D.all_sum(a)
    if rank == 0:
        s.item()
    print(g.item(), s.item())
    """)
    assert "workers disagree" in done.stderr and "." not in done.stdout


def test_only_the_first_stage_needs_its_input(tmp_path):
    _, done = launched(tmp_path, """
    mesh = tn.Mesh(stage=2, data=2)
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    with mesh:
        x = tn.shard(tn.array(rows() if rank < 2 else rows(100 + rank)), "data")
        hidden = tn.place(tn.place(x, first) * 2, last)
        tn.eval((hidden ** 2).mean())
    """, 4)
    assert done.returncode == 0, done.stderr


def test_batches_of_other_lengths_are_told(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows(0, 8 + 4 * rank)), "data")
    print(x.mean().item())
    """)
    assert "by different ops or from other shapes" in done.stderr
    assert "." not in done.stdout


def test_what_reaches_no_collective_may_differ(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    clock, mine = tn.array(1.5 + rank) * 2, tn.ones((3,)) * rank
    for _ in range(2):
        value = loss(x) + (x * 2).sum()
        tn.eval(value, clock * rank, mine)
    assert mine.tolist() == [rank] * 3
    """)
    assert done.returncode == 0, done.stderr


def test_a_number_that_differs_has_a_line(tmp_path):
    path, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    value = (x * (2.0 + rank)).sum()  # here
    value.item()
    """)
    line = next(i for i, text in enumerate(path.read_text().splitlines(), 1) if "# here" in text)
    assert "given different values (" in done.stderr and f"program.py:{line}" in done.stderr


def test_explicit_sums_in_another_order_are_told(tmp_path):
    path, done = launched(tmp_path, """
    D = tn.distributed
    total = D.all_sum(tn.array(1.0 + rank, device="cpu")) / 2  # total
    right = D.all_sum(tn.array(3.0 * rank, device="cpu")) / 2  # right
    if rank == 0:
        right.item()
    print(total.item() + right.item())
    """)
    lines = path.read_text().splitlines()
    assert "workers disagree: worker 0 calls all_reduce #" in done.stderr
    for what in "total", "right":
        line = next(i for i, text in enumerate(lines, 1) if text.endswith("# " + what))
        assert f"(program.py:{line}, in <module>)" in done.stderr
    assert "." not in done.stdout


def test_explicit_sums_in_order_may_be_evaluated_together(tmp_path):
    _, done = launched(tmp_path, """
    D = tn.distributed
    both = tn.compile(lambda a, b: (D.all_sum(a), D.all_max(b)))
    for i in range(4):
        a = tn.array(1.0 + rank, device="cpu")
        x, y = D.all_sum(a + i), D.all_sum(a * i)
        if i % 2 == rank:
            tn.eval(x, y)
        assert (x.item(), y.item()) == (3 + 2 * i, 3 * i)
        if i == 2:
            assert [v.item() for v in both(a, a * 2)] == [3, 4]
        assert D.broadcast(a, 1).item() == 2
    """)
    assert done.returncode == 0, done.stderr


def test_explicit_sums_evaluated_after_a_call_of_a_function_are_told(tmp_path):
    _, done = launched(tmp_path, """
    D = tn.distributed
    a = tn.array(1.0 + rank, device="cpu")
    double = tn.compile(lambda x: D.all_sum(x * 2))
    total = D.all_sum(a)
    if rank == 0:
        total.item()
    print(double(a).item(), total.item())
    """)
    assert "workers disagree" in done.stderr and "." not in done.stdout


def test_processes_may_call_functions_of_their_own(tmp_path):
    _, done = launched(tmp_path, """
    D = tn.distributed
    a = tn.array(1.0 + rank, device="cpu")
    first, other = tn.compile(lambda x: D.all_sum(x * 2)), tn.compile(lambda x: D.all_sum(x + 1))
    assert [(other if rank else first)(a).item() for _ in range(3)] == [5] * 3
    """)
    assert done.returncode == 0, done.stderr


def test_messages_of_stages_in_another_order_are_told(tmp_path):
    _, done = launched(tmp_path, """
    mesh = tn.Mesh(stage=2)
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    x = tn.place(tn.array(rows()), first)
    a, b = tn.place(x * 2, last) + 1, tn.place(tn.exp(x), last) + 2
    for value in (a, b) if rank else (b, a):
        tn.eval(value)
    """)
    assert "workers disagree" in done.stderr and "in another way" in done.stderr


def test_functions_that_are_not_compiled_evaluate_in_the_order_of_calls(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows()), "data")
    highest = tn.compile(lambda x: {"highest": x.max()})
    tn.disable_compile()
    mean = loss(x)
    highest(x)
    if rank == 0:
        mean.item()
    """)
    assert done.returncode == 0, done.stderr


def test_shown_values_are_evaluated_at_every_step(tmp_path):
    """A progress bar draws at times of its own."""
    path, done = launched(tmp_path, """
    import io
    from tenon import progress_bar
    class Terminal(io.StringIO):
        def isatty(self):
            return True
    progress_bar._SECONDS_BETWEEN = 0 if rank else 1000
    batches = [tn.shard(tn.array(rows(i)), "data") for i in range(6)]
    losses = []
    bar = tn.progress(batches, file=Terminal())
    for x in bar:
        losses.append((x ** 2).mean())
        bar.show(loss=losses[-1])
    assert [x.item() for x in losses] == [(x ** 2).mean().item() for x in batches]
    """)
    assert done.returncode == 0, done.stderr


def test_batches_on_a_mesh_are_prefetched(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.shard(tn.array(rows(0, 64)), "data")
    batches = tn.data.batches(x, 16, key=0, epochs=2)
    for batch in tn.data.prefetch(batches, ahead=2):
        loss(tn.shard(batch, "data")).item()
    """)
    assert done.returncode == 0, done.stderr


def test_a_thread_may_evaluate_at_its_own_time(tmp_path):
    _, done = launched(tmp_path, """
    import threading, time
    x = tn.shard(tn.array(rows()), "data")
    tn.eval(x)
    made = []
    def double():
        with mesh:
            time.sleep(0.3 * rank)
            made.append(x * 2)
            tn.eval(made)
    thread = threading.Thread(target=double)
    thread.start()
    time.sleep(0.15)
    x.sum().item()
    thread.join()
    made[0].sum().item()
    """)
    assert done.returncode == 0, done.stderr


def test_values_may_differ_that_the_program_exchanges(tmp_path):
    _, done = launched(tmp_path, """
    x = tn.distributed.broadcast(tn.array(rows(rank)), 0)
    tn.shard(x, "data").sum().item()
    """)
    assert done.returncode == 0, done.stderr
