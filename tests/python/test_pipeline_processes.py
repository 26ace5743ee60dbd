"""Pipelines whose stages are processes of `tenon launch`."""

import os
import subprocess
import sys
import textwrap

import tenon as tn
from tenon.watching import log_reader
from tenon.watching.worker_lanes import meetings

PROGRAM = """
import os
import tenon as tn
from tenon import nn, optim

mesh = tn.Mesh(parts={"stage": 2, "data": 2}, **eval(os.environ["SIZES"]))
last = mesh.shape["stage"] - 1
tn.random.seed(0)
with mesh:
    stages = [
        tn.place(nn.Sequential(nn.Linear(6, 8), nn.relu), mesh.at(stage=0)),
        tn.place(nn.Sequential(nn.Linear(8, 8), nn.relu, nn.Linear(8, 4)), mesh.at(stage=last)),
    ]
    pipe = tn.pipeline(stages, microbatches=4)
    optimizer = optim.AdamW(learning_rate=1e-2)
    state = [pipe.state, optimizer.state]

    def loss(m, x, y):
        return m.loss(lambda p, y: nn.losses.cross_entropy(p, y).mean(), x, y)

    def step(x, y):
        value, g = nn.value_and_grad(pipe, loss)(pipe, x, y)
        optimizer.update(pipe, g)
        return value

    step = tn.compile(step, inputs=state, outputs=state)
    x = tn.random.normal((32, 6), key=tn.random.key(1))
    x, y = tn.shard((x, tn.arange(32) % 4), "data")
    values = [step(x, y).item() for _ in range(5)]
    values += [tn.distributed.gather(w).sum().item() for w in tn.tree.leaves(pipe)]
    values.append(tn.distributed.gather(pipe(x)).sum().item())
lines = ["bits " + " ".join(value.hex() for value in values)]
held = ""
for stage in pipe.stages:
    try:
        stage.state_dict()["layers.0.weight"].local
        held += "+"
    except tn.InvalidValue as error:
        held += "-"
        lines.append(str(error).split("\\n")[0])
lines.append("held " + held)
os.write(1, ("\\n".join(lines) + "\\n").encode())  # at once
"""


def run(tmp_path, program, sizes, launched):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    launch = ["-m", "tenon", "launch", "-n", str(launched)] if launched else []
    done = subprocess.run(
        [sys.executable, *launch, str(path)],
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60", "SIZES": sizes},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_processes_compute_the_same_bits(tmp_path):
    threads = run(tmp_path, PROGRAM, "dict(stage=2, data=2)", 0)
    bits = next(line for line in threads.splitlines() if line.startswith("bits"))
    for count, sizes in ((2, "dict(stage=2, data=1)"), (4, "dict(stage=2, data=2)")):
        out = run(tmp_path, PROGRAM, sizes, count)
        assert out.count(bits) == count, out
        assert out.count("held +-") == out.count("held -+") == count // 2, out
        assert out.count("this process holds nothing of the tensor") == count


def test_processes_move_values(tmp_path):
    program = """
    import os
    import tenon as tn
    mesh = tn.Mesh(stage=2, data=2)
    x = tn.arange(64.0).reshape(8, 8)
    parts = [mesh, mesh.at(stage=0), mesh.at(stage=1), mesh.at(data=1), mesh.at(stage=1, data=0)]
    good = 0
    for spec in [None, "data", "stage", ("stage", "data"), (("stage", "data"),)]:
        with mesh:
            y = tn.shard(x, spec)
        for one in parts:
            for other in parts:
                z = (y.to(one) + 1).to(other)
                good += tn.distributed.gather(z).tolist() == (x + 1).tolist()
    os.write(1, f"good {good}\\n".encode())
    """
    assert run(tmp_path, program, "", 4).count("good 125") == 4


def test_processes_read_what_comes_back_from_a_part(tmp_path):
    program = """
    import os
    import numpy as np
    import tenon as tn
    from tenon import nn, optim
    mesh = tn.Mesh(**eval(os.environ["SIZES"]))
    rank = tn.distributed.init().rank()
    mine = mesh.at(stage=rank // 2)  # processes name parts in different orders
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    x = tn.place(tn.arange(8.0), last) * 2
    lines = [x.to(mesh).numpy().sum(), x.to(mesh)[1].item(), tn.place(x, first).to(mesh).tolist()]
    a = tn.place(tn.ones(20000), first) + 1
    b = tn.place(tn.ones(20000), last) + 2
    both = tn.place(b, first) + a, tn.place(a, last) + b
    lines += [y.sum().to(mesh).item() for y in both]
    with mesh:
        stages = [nn.Embedding(8, 4), nn.Linear(4, 2)]
        pipe = tn.pipeline([tn.place(s, p) for s, p in zip(stages, (first, last))], microbatches=2)
        nn.shard(pipe, {"*": tn.stored("data")})
        optimizer = optim.AdamW(learning_rate=0.1)
        optimizer.init(pipe.parameters())
        tokens = tn.shard(tn.arange(8), "data")
        tn.eval(tokens)
        lines.append(nn.Embedding(8, 4)(tokens).shape)
        loss = pipe.loss(lambda p, y: ((p - y) ** 2).mean(), tokens, tn.ones((8, 2)))
        lines.append(np.isfinite(loss.item()))
    os.write(1, (str(lines) + "\\n").encode())
    """
    out = run(tmp_path, program, "dict(stage=2, data=2)", 4)
    values = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    found = [56.0, 2.0, values, 100000.0, 100000.0, (8, 4), True]
    assert out.replace("np.float32(56.0)", "56.0").replace("np.True_", "True") == f"{found}\n" * 4


def test_processes_save_one_file(tmp_path):
    program = """
    import os
    import tenon as tn
    from tenon import nn, optim
    mesh = tn.Mesh(**eval(os.environ["SIZES"]))
    path = os.path.dirname(os.path.abspath(__file__))
    weights, checkpoint = path + "/w.safetensors", path + "/c.safetensors"
    rank = tn.distributed.init().rank()

    def made():
        with mesh:
            stages = [nn.Linear(4, 8), nn.Linear(8, 2)]
            pipe = tn.pipeline([tn.place(s, mesh.at(stage=k)) for k, s in enumerate(stages)],
                               microbatches=2)
            nn.shard(pipe, {"*.weight": "data"})
            optimizer = optim.AdamW(learning_rate=0.1)
            optimizer.init(pipe.parameters())
            return pipe, optimizer

    def bits(pipe):
        return [tn.distributed.gather(w).tolist() for w in tn.tree.leaves(pipe)]

    pipe, optimizer = made()
    wanted = bits(pipe)
    pipe.save_weights(weights)
    os.path.exists(weights) or os._exit(1)  # it is there when the call returns
    tn.save_checkpoint(checkpoint, pipe=pipe, optimizer=optimizer, epoch=3)
    lines = []
    for load in ("weights", "checkpoint"):
        other, optimizer = made()
        differs = bits(other) != wanted
        if load == "weights":
            other.load_weights(weights)
        else:
            rest = tn.load_checkpoint(checkpoint, pipe=other, optimizer=optimizer)
            lines.append(rest["epoch"])
        lines.append((differs, bits(other) == wanted))
    lines.append(len(tn.load(weights)))
    try:
        pipe.save_weights(path + "/none/w.safetensors")
    except tn.Error as error:
        lines.append(str(error).split("\\n")[0].replace(path, ""))
    os.write(1, (f"{rank} {lines}\\n").encode())
    """
    out = sorted(run(tmp_path, program, "dict(stage=2, data=2)", 4).splitlines())
    for rank, line in enumerate(out):
        assert line.startswith(f"{rank} [(True, True), 3, (True, True), 4, "), line
        whose = "folder" if rank == 0 else "worker 0 could not write /none/w.safetensors"
        assert whose in line, line
    assert sorted(tn.load(tmp_path / "w.safetensors")["stages.0.weight"].shape) == [4, 8]


def test_a_slow_disk_is_waited_for(tmp_path):
    slow = tmp_path / "slow.c"
    slow.write_text("#include <unistd.h>\nint fsync(int file) { return sleep(2); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "slow.so", slow], check=True)
    preload = f"{os.environ.get('LD_PRELOAD', '')} {tmp_path}/slow.so"
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(f"""
        import tenon as tn
        with tn.Mesh(data=2):
            x = tn.shard(tn.ones((8, 4)), "data")
        tn.save_safetensors("{tmp_path}/x.safetensors", {{"x": x}})
        assert tn.distributed.all_sum(tn.array(1.0)).item() == 2
    """))
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "launch", "-n", "2", str(program)],
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "1", "LD_PRELOAD": preload},
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_transfers_of_processes_are_counted_and_logged(tmp_path):
    program = """
    import os
    import tenon as tn
    mesh = tn.Mesh(**eval(os.environ["SIZES"]))
    rank = tn.distributed.init().rank()
    tn.worker_stats()
    x = tn.place(tn.ones(1000), mesh.at(stage=0)) * 2
    tn.eval(tn.place(x, mesh.at(stage=1)) + 1)
    [own] = [one for one in tn.worker_stats() if one["worker"] == rank]
    good = own["running"] >= own["communicating"] > 0
    os.write(1, f"{own['collectives']} {own['bytes']} {good}\\n".encode())
    """
    log = tmp_path / "run.log"
    os.environ["TENON_INSTRUCTION_LOG"] = str(log)
    try:
        assert run(tmp_path, program, "dict(stage=2)", 2) == "1 4000 True\n" * 2
    finally:
        del os.environ["TENON_INSTRUCTION_LOG"]
    logs = [log, tmp_path / "run.log.worker_1"]
    for path, title, peers in zip(logs, ("Send", "Recv"), ("0,1,2", "1,-1,2"), strict=True):
        [line] = [x for x in path.read_text().splitlines() if "COLLECTIVE" in x]
        assert f"| {title} | 4.0KB | group=world took=" in line, line
        assert line.endswith(f"peers={peers}")
    [both] = log_reader.joined([log_reader.read(path) for path in logs])
    assert [meeting.workers for meeting in meetings(both)] == [[0, 1]]


def test_messages_of_a_failed_run_are_not_taken_by_the_next(tmp_path):
    program = """
    import os
    os.environ["TENON_COLLECTIVE_TIMEOUT"] = "15"
    import tenon as tn
    mesh = tn.Mesh(**eval(os.environ["SIZES"]))
    first, last = mesh.at(stage=0), mesh.at(stage=1)
    table = tn.place(tn.arange(4.0), last)

    @tn.compile
    def f(x, i):
        y = tn.place(x, first) * 2  # sent also where the other stage fails before
        return (tn.place(y, last) + table[tn.place(i, last)]).to(mesh).sum()

    tn.debug_indices(True)
    lines = []
    for number, i in ((1.0, 0), (2.0, 99), (3.0, 0)):
        try:
            lines.append(f(tn.full(4, number), tn.array(i) + 0).item())
        except tn.Error as error:
            lines.append(type(error).__name__)
    os.write(1, (str(lines) + "\\n").encode())
    """
    for line in run(tmp_path, program, "dict(stage=2)", 2).splitlines():
        first, _, third = eval(line)
        assert first == 8.0 and third in (24.0, "WorkerFailed"), line  # and no number of the second


def test_a_report_of_one_process_sends_nothing(tmp_path):
    program = """
    import os
    import tenon as tn
    mesh = tn.Mesh(**eval(os.environ["SIZES"]))
    constant = tn.place(tn.full(3, 2.0), mesh.at(stage=0)) + 0
    tn.eval(constant)
    f = tn.compile(lambda x: (x + tn.place(constant, mesh.at(stage=1))).sum().to(mesh))
    x = tn.place(tn.ones(3), mesh.at(stage=1))
    if tn.distributed.init().rank() == 0:
        str(tn.explain(f)(x))
    os.write(1, f"{f(x).item()} {f(x + 1).item()}\\n".encode())
    """
    assert run(tmp_path, program, "dict(stage=2)", 2) == "9.0 12.0\n" * 2
