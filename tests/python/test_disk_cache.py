"""Kernels on disk: another process finds them, and nothing that happens to the files matters."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import numpy as np, tenon as tn
x = np.linspace(-3, 3, 3000, dtype=np.float32).reshape(30, 100)
f = tn.compile(lambda x: (tn.exp(-x) + 1, tn.softmax(x, axis=1), (x * x).sum(0), x.T @ x))
print([np.asarray(y).tobytes().hex() for y in f(tn.array(x))])
"""


def start(folder, program=PROGRAM, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TENON_CACHE")}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=env | {"TENON_CACHE_DIR": str(folder)} | extra,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    return out


def run(folder, **extra):
    return finish(start(folder, **extra))


@pytest.fixture(scope="module")
def expected():
    return run("/unused", TENON_CACHE="0")


def entries(folder):
    """Which files there are; a file that is written again is another one."""
    files = list(pathlib.Path(folder).glob("v1/??/*"))
    assert not [p for p in files if p.name.startswith("tmp.")]
    return {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}


def test_another_process_compiles_nothing(tmp_path, expected):
    folder = tmp_path / "made" / "on the way"
    assert run(folder) == expected
    made = entries(folder)
    assert len(made) >= 3
    assert run(folder) == expected
    assert entries(folder) == made


SIZES = """
import numpy as np, tenon as tn
f = tn.compile(lambda x: (tn.softmax(x * 2, axis=1), x.sum(0), x[1:] - x[:-1]))
for n in (30, 31, 50, 7):
    x = np.linspace(-3, 3, n * 100, dtype=np.float32).reshape(n, 100)
    print([np.asarray(y).tobytes().hex() for y in f(tn.array(x))])
print(f.stats().kernel_compiles)
"""


def test_kernels_for_all_sizes_are_found_again(tmp_path):
    *first, compiled = finish(start(tmp_path / "cache", SIZES)).splitlines()
    *second, again = finish(start(tmp_path / "cache", SIZES)).splitlines()
    assert first == second
    assert int(compiled) > 0
    assert int(again) == 0


def test_default_folders(tmp_path, expected):
    def run_in(**env):
        return run("", **env)  # an empty name is none

    assert run_in(XDG_CACHE_HOME=str(tmp_path / "xdg")) == expected
    assert entries(tmp_path / "xdg" / "tenon")
    assert run_in(XDG_CACHE_HOME="", HOME=str(tmp_path)) == expected
    assert entries(tmp_path / ".cache" / "tenon")
    assert run_in(XDG_CACHE_HOME="", HOME=str(tmp_path / "off"), TENON_CACHE="0") == expected
    assert not (tmp_path / "off").exists()


def test_eight_processes_on_an_empty_folder(tmp_path, expected):
    processes = [start(tmp_path / "cache") for _ in range(8)]
    assert [finish(p) for p in processes] == [expected] * 8
    made = entries(tmp_path / "cache")
    assert run(tmp_path / "cache") == expected
    assert entries(tmp_path / "cache") == made


def truncate(paths):
    for n, path in enumerate(paths):
        path.write_bytes(path.read_bytes()[: 7 * n * n])


def empty(paths):
    for path in paths:
        path.write_bytes(b"")


def flip(paths):
    for path in paths:
        data = bytearray(path.read_bytes())
        data[random.Random(path.name).randrange(len(data))] ^= 16
        path.write_bytes(data)


def swap(paths):
    data = [path.read_bytes() for path in paths]
    for path, other in zip(paths, data[1:] + data[:1]):
        path.write_bytes(other)


@pytest.mark.parametrize("damage", [truncate, empty, flip, swap])
def test_damaged_entries_heal(tmp_path, expected, damage):
    cache = tmp_path / "cache"
    run(cache)
    whole = {path: path.read_bytes() for path in entries(cache)}
    damage(sorted(whole))
    assert run(cache) == expected
    assert {path: path.read_bytes() for path in entries(cache)} == whole
    healed = entries(cache)
    assert run(cache) == expected
    assert entries(cache) == healed


def test_killed_processes_leave_nothing_that_matters(tmp_path, expected):
    cache, chance = tmp_path / "cache", random.Random(1)
    for _ in range(6):
        process = start(cache)
        time.sleep(0.1 + chance.random() / 2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for left in cache.glob("v1/??/tmp.*"):
            left.unlink()
    assert run(cache) == expected
    made = entries(cache)
    assert run(cache) == expected
    assert entries(cache) == made


def test_folders_that_others_can_write_to_are_not_used(tmp_path, expected):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    cache.chmod(0o770)
    assert run(cache) == expected
    assert not entries(cache)
    process = start(cache, TENON_DEBUG="1")
    assert "writable for other users" in process.communicate()[1]


def can_mount():
    if not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="file systems cannot be mounted here")
@pytest.mark.parametrize("options", ["ro", "size=8k", "nr_inodes=3", "size=24k"])
def test_read_only_and_full_disks(tmp_path, expected, options):
    program = f"""
import subprocess
subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700,{options}", "none", "{tmp_path}"],
               check=True)
{PROGRAM}"""
    command = ["unshare", "-m", sys.executable, "-c", program]
    env = os.environ | {"TENON_CACHE": "1", "TENON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (expected, "")


def test_size_of_the_cache(tmp_path, expected):
    assert run(tmp_path / "none", TENON_CACHE_SIZE="100") == expected
    assert not entries(tmp_path / "none")
    process = start(tmp_path / "none", TENON_CACHE_SIZE="2 gigs")
    assert "TENON_CACHE_SIZE: not a size: 2 gigs" in process.communicate()[1]
