"""Workers that MPI starts: the bits of one machine, two levels, and failures between machines.

Machines are told apart by name (TENON_HOST), so processes of one machine can stand for several.
`test_network_namespaces.py` has two network namespaces instead, with a host name each.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

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

# Prints a hash of the bits of every collective, at sizes below and above the limits of pieces.
BITS = """
import hashlib
def show(name, x):
    say(name, hashlib.md5(np.asarray(x).tobytes()).hexdigest())
for count in (12, 600, 40_000, 600_000):
    count = count // size * size
    x = tn.random.normal((count,), key=tn.random.key(100 * rank + 7))
    half = x.astype(tn.bfloat16)
    show(f"sum {count}", dist.all_sum(x))
    show(f"bf16 {count}", dist.all_sum(half).astype(tn.float32))
    show(f"max {count}", dist.all_max(x))
    show(f"gather {count}", dist.all_gather(x))
    show(f"scatter {count}", dist.sum_scatter(x))
    show(f"scatter16 {count}", dist.sum_scatter(half).astype(tn.float32))
    show(f"exchange {count}", dist.all_to_all(x))
    show(f"broadcast {count}", dist.broadcast(x, size - 1))
    if rank == 0:
        dist.send(x, size - 1)
    if rank == size - 1:
        show("message", dist.recv_like(x, 0))
dist.barrier()
part = world.split(rank % 2, -rank)
show("part", dist.all_gather(dist.all_sum(tn.arange(5.0) * rank, part), part))
show("parts of parts", dist.all_sum(tn.ones(3) * rank, part.split(part.rank() % 2)))
"""

MPIRUNS = {"openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich"}


def with_mpi(kind):
    """The words of an mpirun; skips the test where it is not installed."""
    found = shutil.which(MPIRUNS[kind])
    if not found:
        pytest.skip(f"{MPIRUNS[kind]} is not installed")
    return [found, "--oversubscribe", "--bind-to", "none"] if kind == "openmpi" else [found]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
    monkeypatch.setenv("TENON_COLLECTIVE_TIMEOUT", "60")
    monkeypatch.setenv("TENON_NUM_THREADS", "1")


def written(tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(program))
    return str(path)


def on_hosts(tmp_path, hosts):
    """A program that starts another one as if on the host of its rank."""
    path = tmp_path / "on_host.sh"
    path.write_text(
        '#!/bin/sh\nr=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n'
        f'set -- "$@"\nfor h in {" ".join(hosts)}; do\n'
        '  [ "$r" = 0 ] && export TENON_HOST=$h\n  r=$((r - 1))\ndone\nexec "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def run(words, timeout=120):
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


# One machine; powers of two; parts of the tree that are several roots; ranks that take turns.
@pytest.mark.parametrize(
    "kind, hosts",
    [("openmpi", "aa"), ("openmpi", "aab"), ("mpich", "abab"), ("mpich", "abbcc")],
)
def test_machines_give_the_bits_of_one(tmp_path, kind, hosts):
    mpirun = with_mpi(kind)
    path = written(tmp_path, BITS)
    n = str(len(hosts))
    alone = run([sys.executable, "-m", "tenon", "launch", "-n", n, path])
    words = [*mpirun, "-n", n, on_hosts(tmp_path, hosts), sys.executable, path]
    code, out, errors = run(words)
    assert alone[0] == 0, alone[2]
    assert code == 0, errors
    assert out == alone[1]


def test_calls_that_differ_between_machines(tmp_path):
    program = """
    try:
        dist.all_sum(tn.ones(30_000 if rank == 2 else 2)).eval()
    except tn.WorkerFailed as error:
        say(error)
    """
    words = [*with_mpi("mpich"), "-n", "3", on_hosts(tmp_path, "aab"), sys.executable]
    _, out, errors = run([*words, written(tmp_path, program)])
    reports = [line for line in out if "workers disagree: worker " in line]  # beside mpirun's own
    assert len(reports) == 3, errors
    for line in reports:
        assert " on host b calls all_reduce #1" in line
        assert "of float32[30000]" in line and "of float32[2]" in line


def test_values_that_differ_between_machines(tmp_path):
    program = """
    with tn.Mesh(data=-1):
        x = tn.shard(tn.ones((4, 2)) * rank, "data")
        try:
            x.sum().item()
        except tn.WorkerFailed as error:
            say(error)
    """
    words = [*with_mpi("openmpi"), "-n", "2", on_hosts(tmp_path, "ab"), sys.executable]
    _, out, errors = run([*words, written(tmp_path, program)])
    assert sum("were given different values, but a mesh" in line for line in out) == 2, errors


FAILING = """
import signal, sys, time
dist.all_sum(tn.ones(3)).eval()
dist.barrier()
if rank == {culprit}:
    {end}
began = time.monotonic()
try:
    dist.all_sum(tn.ones(100_000)).eval()
except tn.WorkerFailed as error:
    say(error)
    sys.exit(1)
"""


@pytest.mark.parametrize(
    "culprit, end, text",
    [
        (2, "time.sleep(0.2); os._exit(5)", "was killed or has failed after barrier #2"),
        (1, "os.kill(os.getpid(), signal.SIGSTOP)", "has given no sign of life for 2 s"),
        (2, "sys.exit(0)", "has ended, but worker "),
    ],
    ids=["failed", "stopped", "left"],
)
def test_a_worker_that_fails_is_named_by_all_others(tmp_path, monkeypatch, culprit, end, text):
    monkeypatch.setenv("TENON_HEARTBEAT_TIMEOUT", "2")
    # mpirun would end the others before they can say anything: a shell stays in between.
    shell, done = tmp_path / "stay.sh", tmp_path / "done"
    shell.write_text(f'#!/bin/sh\n"$@"\nwhile [ ! -e {done} ]; do sleep 0.1; done\n')
    shell.chmod(0o755)
    words = [*with_mpi("openmpi"), "-n", "4", on_hosts(tmp_path, "aabb"), str(shell)]
    path = written(tmp_path, FAILING.format(culprit=culprit, end=end))
    with subprocess.Popen([*words, sys.executable, path], stdout=subprocess.PIPE, text=True) as job:
        out = [job.stdout.readline() for _ in range(3)]
        done.touch()
        for process in processes_of(path):
            if culprit == 1:  # the one that was stopped
                os.kill(process, signal.SIGKILL)
        job.wait(60)
    host = "a" if culprit < 2 else "b"
    for line in out:
        assert f"worker {culprit} on host {host} {text}" in line
    deadline = time.monotonic() + 30
    while processes_of(path):
        assert time.monotonic() < deadline, "a process is left behind"
        time.sleep(0.05)


INTERRUPTED = """
import signal, subprocess, sys, threading
dist.barrier()
pids = dist.all_gather(tn.array([os.getpid()])).tolist()
if rank == 1:
    os.kill(os.getpid(), signal.SIGSTOP)  # before it receives
    try:
        dist.all_sum(tn.ones(3)).eval()
    except tn.WorkerFailed as error:
        say(error)
    sys.exit(1)
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    dist.send(tn.ones(4_000_000), 1)
except KeyboardInterrupt:
    say("interrupted")
os.kill(pids[1], signal.SIGCONT)
for _ in range(2):
    try:
        dist.all_sum(tn.ones(3)).eval()
    except tn.WorkerFailed as error:
        say(error)
"""


def test_a_transfer_that_is_interrupted_is_given_up(tmp_path):
    words = [*with_mpi("openmpi"), "-n", "2", on_hosts(tmp_path, "ab"), sys.executable]
    _, out, errors = run([*words, written(tmp_path, INTERRUPTED)], timeout=60)
    assert "0 interrupted" in out, errors
    text = "worker 0 on host a left a transfer in send #1 to worker 1 of float32[4000000]"
    assert sum(text in line for line in out) >= 2, out


def processes_of(path):
    """Those that run a program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if words.startswith(sys.executable.encode()) and path.encode() in words:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("machines", [1, 2])
def test_a_fork_of_a_worker_is_refused(tmp_path, machines):
    program = """
    import multiprocessing
    def child():
        try:
            dist.send(tn.ones(3), 1 - rank)
        except tn.InvalidValue as error:
            say(error)
    dist.barrier()
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    dist.barrier()
    """
    words = [sys.executable, "-m", "tenon", "launch", "-n", "2"]
    if machines == 2:
        words = [*with_mpi("mpich"), "-n", "2", on_hosts(tmp_path, "ab"), sys.executable]
    code, out, errors = run([*words, written(tmp_path, program)])
    assert code == 0, errors
    assert sum("this process is a fork of a worker, and cannot" in line for line in out) == 2, out


def test_a_library_of_another_mpi_is_refused(tmp_path, monkeypatch):
    mpirun = with_mpi("openmpi")
    with_mpi("mpich")
    monkeypatch.setenv("TENON_MPI_LIBRARY", "libmpich.so.12")
    _, _, errors = run([*mpirun, "-n", "2", sys.executable, written(tmp_path, "")])
    text = "workers: OMPI_COMM_WORLD_SIZE is 2, but MPICH (libmpich.so.12) counts 1 workers"
    assert text in errors


def test_mpi_that_is_missing_is_one_sentence(tmp_path):
    env = os.environ | {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    env |= {"TENON_MPI_LIBRARY": "libno_mpi.so"}
    command = [sys.executable, "-c", "import tenon as tn; tn.distributed.init()"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "the program was started by MPI, but its library is not installed" in done.stderr
    assert "hint: apt install openmpi-bin" in done.stderr


def test_a_library_that_is_no_mpi_is_named():
    env = os.environ | {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    env |= {"TENON_MPI_LIBRARY": "libc.so.6"}
    command = [sys.executable, "-c", "import tenon as tn; tn.distributed.init()"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "workers: MPICH (libc.so.6) has no function MPI_Init_thread" in done.stderr


def test_one_worker_of_mpirun_needs_no_mpi():
    env = os.environ | {"PMI_RANK": "0", "PMI_SIZE": "1", "MPI_LOCALRANKID": "0"}
    command = [sys.executable, "-c", "import tenon as tn; print(tn.distributed.init().size())"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize("variable", ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"])
def test_workers_of_mpirun_share_the_cores(variable):
    env = {k: v for k, v in os.environ.items() if k != "TENON_NUM_THREADS"}
    command = [sys.executable, "-c", "import tenon as tn; print(tn.num_threads())"]
    threads = [
        int(subprocess.run(command, env=env | {variable: n}, capture_output=True, text=True).stdout)
        for n in ("1", "2", "1000")
    ]
    is_bound = len(os.sched_getaffinity(0)) < os.cpu_count()
    assert threads[0] == len(os.sched_getaffinity(0))
    assert threads[1:] == ([threads[0]] * 2 if is_bound else [max(1, threads[0] // 2), 1])


def launch(*words):
    return run([sys.executable, "-m", "tenon", "launch", *words])


@pytest.mark.parametrize("kind, way", [("openmpi", "hosts"), ("mpich", "hostfile")])
def test_the_launcher_runs_mpirun(tmp_path, monkeypatch, kind, way):
    monkeypatch.setenv("TENON_MPIRUN", with_mpi(kind)[0])
    path = written(tmp_path, "say(dist.all_sum(tn.array([1.0])).item())")
    hosts = ["--hosts", "localhost:2"]
    if way == "hostfile":
        (tmp_path / "hosts").write_text("# all\nlocalhost slots=2\n")
        hosts = ["--hostfile", str(tmp_path / "hosts")]
    code, out, errors = launch(*hosts, path)
    assert code == 0, errors
    assert out == ["0 2.0", "1 2.0"]


@pytest.mark.parametrize(
    "words, text",
    [
        (["--hosts", "a:x", "p"], "launch: 'a:x' is not a machine with a number of workers"),
        (["--hosts", "-a:2", "p"], "launch: '-a:2' is not a machine with a number of workers"),
        (["--hostfile", "no-such-file", "p"], "launch: cannot read no-such-file"),
        (["--hostfile", os.devnull, "p"], f"launch: {os.devnull} names no machines"),
        (["-n", "8:2", "p"], "--workers: '8:2' is not a number of workers from 1 to 256"),
        (["-n", "0", "p"], "--workers: '0' is not a number of workers from 1 to 256"),
    ],
)
def test_misuse_of_the_launcher(words, text):
    code, _, errors = launch(*words)
    assert code == (2 if words[0] == "-n" else 1) and text in errors


def test_no_mpirun_is_one_sentence(monkeypatch):
    monkeypatch.setenv("TENON_MPIRUN", "no-such-mpirun")
    code, _, errors = launch("--hosts", "a:2,b:2", "p")
    assert code != 0
    assert "launch: several machines need MPI, but there is no mpirun: no-such-mpirun" in errors
