"""Two machines, as two network namespaces with a host name each and a cable between them."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from test_machines import BITS, launch, run, with_mpi, written

ADDRESS = {"a": "10.77.0.1", "b": "10.77.0.2"}
# As ssh would: the words after the address, on the host that has it.
AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done  # options of ssh
case $1 in {b}) ns={name}b host=b ;; *) ns={name}a host=a ;; esac
shift
mkdir -p {folder}/$host
exec ip netns exec $ns unshare --uts sh -c '
  echo '$host' >/proc/sys/kernel/hostname; export TMPDIR={folder}/'$host'; eval "$@"' sh "$@"
"""


class Hosts:
    def __init__(self, tmp_path):
        self.name = f"tn{os.getpid()}"
        self.folder = tmp_path / "hosts"
        self.folder.mkdir()
        self.agent = tmp_path / "agent.sh"
        self.agent.write_text(
            AGENT.format(b=ADDRESS["b"], name=self.name, folder=self.folder)
        )
        self.agent.chmod(0o755)

    def ip(self, *words):
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip())
        return done.stdout

    def connect(self):
        for host in "ab":
            self.ip("netns", "add", self.name + host)
        ends = [f"{self.name}{host}" for host in "ab"]
        self.ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for host, end in zip("ab", ends, strict=True):
            inside = ["-n", self.name + host]
            self.ip("link", "set", end, "netns", self.name + host)
            self.ip(*inside, "addr", "add", ADDRESS[host] + "/24", "dev", end)
            self.ip(*inside, "link", "set", end, "up")
            self.ip(*inside, "link", "set", "lo", "up")

    def cut(self):
        self.ip("-n", self.name + "a", "link", "set", self.name + "a", "down")

    def words(self, kind, path):
        """mpirun on host a, with two workers on each."""
        hosts = ",".join(f"{ADDRESS[host]}:2" for host in "ab")
        mpirun = with_mpi(kind)
        if kind == "openmpi":
            mpirun += ["--mca", "plm_rsh_agent", str(self.agent), "--host", hosts]
            mpirun += ["--mca", "btl", "self,vader,tcp"]
            for name in os.environ:
                if name.startswith(("TENON_", "PYTHON")) or name == "PATH":
                    mpirun += ["-x", name]
        else:
            mpirun += ["-launcher", "ssh", "-launcher-exec", str(self.agent), "-hosts", hosts]
        return [str(self.agent), ADDRESS["a"], *mpirun, "-n", "4", sys.executable, path]

    def processes(self):
        found = []
        for host in "ab":
            found += [int(p) for p in self.ip("netns", "pids", self.name + host).split()]
        return found

    def remove(self):
        for host in "ab":
            try:
                for process in self.ip("netns", "pids", self.name + host).split():
                    os.kill(int(process), signal.SIGKILL)
                self.ip("netns", "del", self.name + host)
            except (OSError, ProcessLookupError):
                continue


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and iproute2")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("TENON_NUM_THREADS", "1")
    made = Hosts(tmp_path)
    try:
        made.connect()
    except OSError as error:
        made.remove()
        pytest.skip(f"network namespaces cannot be made here: {error}")
    yield made
    made.remove()


@pytest.mark.parametrize("kind", ["openmpi", "mpich"])
def test_two_machines_give_the_bits_of_one(tmp_path, hosts, kind):
    path = written(tmp_path, BITS + "\nimport socket; say('host', socket.gethostname())\n")
    words = hosts.words(kind, path)
    code, out, errors = run(words, timeout=60)
    assert code == 0, errors
    alone = [line for line in launch("-n", "4", path)[1] if " host " not in line]
    assert [line for line in out if " host " not in line] == alone
    assert [line for line in out if " host " in line] == [f"{r} host {'aabb'[r]}" for r in range(4)]


def test_a_cable_that_is_cut_ends_both_sides(tmp_path, hosts, monkeypatch):
    monkeypatch.setenv("TENON_HEARTBEAT_TIMEOUT", "2")
    program = f"""
    import time
    ready, said = "{tmp_path}/ready{{}}".format(rank), "{tmp_path}/said{{}}".format(rank)
    try:
        for step in range(10_000):
            dist.all_sum(tn.ones(1000)).eval()
            if step == 3:
                open(ready, "w").close()
            time.sleep(0.01)
    except tn.WorkerFailed as error:
        with open(said + "-part", "w") as file:
            file.write(str(error))
        os.rename(said + "-part", said)
        time.sleep(600)  # when one ends, mpirun ends the others of its machine
    """
    path = written(tmp_path, program)
    with subprocess.Popen(
        hosts.words("openmpi", path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ):
        try:
            wait_for([tmp_path / f"ready{r}" for r in range(4)])
            hosts.cut()
            wait_for([tmp_path / f"said{r}" for r in range(4)])
        finally:
            hosts.remove()
    for r in range(4):
        other = "worker 2 on host b" if r < 2 else "worker 0 on host a"
        text = (tmp_path / f"said{r}").read_text()
        assert f"{other} has given no sign of life for 2 s" in text


def wait_for(paths):
    deadline = time.monotonic() + 60
    while not all(path.exists() for path in paths):
        assert time.monotonic() < deadline, [str(p) for p in paths if not p.exists()]
        time.sleep(0.02)
