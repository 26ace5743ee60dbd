"""Checkpoints that several workers write together, and restarts from them."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import kill_workers
import tenon as tn

PRELUDE = """
import os, sys
import tenon as tn
from tenon import distributed as dist
world = dist.init()
rank, size = world.rank(), world.size()
folder = sys.argv[1]
tn.random.seed(0)
model, optimizer = tn.nn.Linear(3, 5), tn.optim.Adam(1e-2)
def train():
    x = tn.random.normal((4, 3), key=tn.random.key(1))
    loss = lambda model: (model(x) ** 2).mean()
    optimizer.update(model, tn.nn.value_and_grad(model, loss)(model)[1])
def say(*words):
    os.write(1, (" ".join(map(str, (rank, *words))) + "\\n").encode())
"""


def launch(tmp_path, program, workers, *options):
    path = tmp_path / "program.py"
    path.write_text(PRELUDE + textwrap.dedent(program))
    command = [sys.executable, "-m", "tenon", "launch", "-n", str(workers), "--threads", "1"]
    command += [*options, str(path), str(tmp_path / "run")]
    env = os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


SAVE = """
train()
tn.Checkpoints(folder).save(7, model=model, optimizer=optimizer, epoch=2)
if rank == 0:
    say(model.weight.tolist())
"""
LOAD = """
rest = tn.Checkpoints(folder).load(model=model, optimizer=optimizer)
say(model.weight.tolist(), rest)
"""


@pytest.mark.parametrize("writers, readers", [(3, 1), (3, 2), (1, 3), (2, 3)])
def test_any_number_of_workers_loads_what_any_number_saved(tmp_path, writers, readers):
    code, saved, errors = launch(tmp_path, SAVE, writers)
    assert code == 0, errors
    code, loaded, errors = launch(tmp_path, LOAD, readers)
    assert code == 0, errors
    weight = saved[0].split(" ", 1)[1]
    assert loaded == [f"{r} {weight} {{'step': 7, 'epoch': 2}}" for r in range(readers)]


def test_replicas_deal_the_tensors_out(tmp_path):
    launch(tmp_path, SAVE, 3)
    folder = tmp_path / "run" / "step-00000007"
    index = json.loads((folder / "index.json").read_text())
    assert sorted(os.listdir(folder)) == sorted(["index.json", *index["files"]])
    held = [tn.load(str(folder / name)) for name in index["files"]]
    names = [name for file in held for name in file]
    assert sorted(names) == sorted(index["tensors"]) and len(set(names)) == len(names)
    assert all(file for file in held)
    assert index["tensors"]["model.weight"]["boxes"][0][1:] == [[0, 0], [5, 3]]


def test_tensors_that_differ_belong_to_their_workers(tmp_path):
    program = """
    checkpoints = tn.Checkpoints(folder)
    model.bias = tn.ones(5) * rank
    checkpoints.save(1, model=model)
    model.bias = tn.zeros(5)
    checkpoints.load(model=model)
    say(model.bias.sum().item())
    """
    code, out, errors = launch(tmp_path, program, 2)
    assert code == 0, errors
    assert out == ["0 0.0", "1 5.0"]
    code, _, errors = launch(tmp_path, LOAD.replace(", optimizer=optimizer", ""), 3)
    assert code != 0
    text = "model.bias differs between the 2 workers that saved it; it cannot be loaded by 3"
    assert text in errors


def test_groups_load_what_their_workers_saved(tmp_path):
    program = """
    half = world.split(rank % 2)
    checkpoints = tn.Checkpoints(os.path.join(folder, str(rank % 2)), group=half)
    model.bias = tn.ones(5) * rank
    checkpoints.save(1, model=model)
    model.bias = tn.zeros(5)
    checkpoints.load(model=model)
    say(model.bias.sum().item())
    """
    code, out, errors = launch(tmp_path, program, 4)
    assert code == 0, errors
    assert out == ["0 0.0", "1 5.0", "2 10.0", "3 15.0"]


def test_groups_that_save_to_one_folder_leave_each_other_alone(tmp_path):
    program = """
    half = world.split(rank % 2)
    checkpoints = tn.Checkpoints(folder, group=half, keep=None)
    for k in range(8):
        checkpoints.save(2 * k + rank % 2 if k < 6 else 99, model=model)
    """
    code, _, errors = launch(tmp_path, program, 4)
    assert code == 0, errors
    checkpoints = tn.Checkpoints(tmp_path / "run")
    assert checkpoints.steps() == [*range(12), 99]
    for step in checkpoints.steps():
        checkpoints.load(step, model=tn.nn.Linear(3, 5))
    assert all(not name.endswith(".saving") for name in os.listdir(tmp_path / "run"))


def test_a_save_under_way_is_not_removed(tmp_path):
    folder = tmp_path / "step-00000005"
    folder.mkdir()
    checkpoints = tn.Checkpoints(tmp_path)
    with tn.worker_checkpoints.locked(str(tmp_path / ".step-00000005.saving")):
        checkpoints.save(6, model=tn.nn.Linear(2, 1))
        assert folder.exists()
        with tn.worker_checkpoints.locked(checkpoints._lock(5), wait=False) as is_ours:
            assert not is_ours
    (tmp_path / ".step-00000004.saving").touch()  # of a process that was killed
    checkpoints.save(7, model=tn.nn.Linear(2, 1))
    names = ["step-00000006.safetensors", "step-00000007.safetensors"]
    assert sorted(os.listdir(tmp_path)) == names


def test_divided_tensors_are_saved_and_loaded(tmp_path):
    program = """
    def divided():
        model = tn.nn.Sequential(tn.nn.Linear(4, 8), tn.nn.Linear(8, 2))
        return tn.nn.shard(model, {"*": tn.stored("data")})
    with tn.Mesh(data=-1):
        tn.random.seed(1)
        first = divided()
        tn.Checkpoints(folder).save(1, model=first)
        tn.random.seed(2)
        model = divided()
        tn.Checkpoints(folder).load(model=model)
        say(tn.layout(model[0].weight))
        assert tn.distributed.gather(model[0].weight).tolist() == (
            tn.distributed.gather(first[0].weight).tolist())
    """
    for workers in (1, 2):
        code, out, errors = launch(tmp_path, program, workers)
        assert code == 0, errors
        layout = "f32[8,4] @[data,-] stored(data)" if workers > 1 else "f32[8,4] @[-,-]"
        assert out == [f"{r} {layout}" for r in range(workers)]


def test_a_mesh_is_saved_by_all_its_workers(tmp_path):
    program = """
    with tn.Mesh(data=-1):
        x = tn.shard(tn.arange(8.0), "data")
    half = world.split(rank // 2)
    try:
        tn.Checkpoints(folder, group=half).save(1, x=x)
    except tn.Error as error:
        say(str(error).split("\\n")[0])
    """
    code, out, errors = launch(tmp_path, program, 4)
    assert code == 0, errors
    text = "save_checkpoint: x lies on a mesh, whose workers must all save it"
    assert out == [f"{r} {text}" for r in range(4)]


def test_what_the_first_worker_cannot_do_ends_all(tmp_path):
    program = """
    checkpoints = tn.Checkpoints(folder)
    checkpoints.save(1, model=model)
    if rank == 0:
        def fail(*_): raise OSError("no access")
        checkpoints._remove_unfinished = fail
    for broken in ("prepare", "clean"):
        try:
            checkpoints.save(2, model=model)
        except (tn.Error, OSError) as error:
            say(str(error).split("\\n")[0])
        if rank == 0:
            vars(checkpoints).pop("_remove_unfinished", None)
            checkpoints._remove_old = fail
    """
    code, out, errors = launch(tmp_path, program, 2)
    assert code == 0, errors
    assert out == [
        "0 no access",
        "0 no access",
        "1 save_checkpoint: worker 0 could not prepare the checkpoint",
        "1 save_checkpoint: worker 0 could not remove old checkpoints",
    ]


def test_what_has_no_index_does_not_count(tmp_path):
    launch(tmp_path, SAVE, 2)
    unfinished = tmp_path / "run" / "step-00000009"
    unfinished.mkdir()
    (unfinished / "worker-0-of-2.0.safetensors").write_bytes(b"half")
    checkpoints = tn.Checkpoints(tmp_path / "run")
    assert checkpoints.steps() == [7]
    assert checkpoints.latest() == str(tmp_path / "run" / "step-00000007")
    launch(tmp_path, SAVE.replace("(7,", "(8,"), 2)
    assert sorted(os.listdir(tmp_path / "run")) == ["step-00000007", "step-00000008"]
    model = tn.nn.Linear(3, 5)
    checkpoints.save(8, model=model)  # one worker: a file, in place of the folder
    assert sorted(os.listdir(tmp_path / "run")) == ["step-00000007", "step-00000008.safetensors"]


def test_old_checkpoints_are_removed(tmp_path):
    program = """
    checkpoints = tn.Checkpoints(folder, keep=2)
    for step in range(4):
        checkpoints.save(step, model=model)
    """
    assert launch(tmp_path, program, 2)[0] == 0
    assert tn.Checkpoints(tmp_path / "run").steps() == [2, 3]


def test_damaged_indices(tmp_path):
    launch(tmp_path, SAVE, 2)
    index = tmp_path / "run" / "step-00000007" / "index.json"
    good = index.read_text()
    for text, want in [
        ("{", "is damaged"),
        ("{}", "is damaged: KeyError"),
        (good.replace('"version": 2', '"version": 9'), "has version 9"),
        (good.replace("model.bias", "model.other"), "is damaged"),
    ]:
        index.write_text(text)
        with pytest.raises(tn.Error, match=want):
            tn.load_checkpoint(tmp_path / "run" / "step-00000007", model=tn.nn.Linear(3, 5))


def test_errors_of_one_worker_are_errors_of_all(tmp_path):
    program = """
    try:
        tn.Checkpoints(folder).save(1, **({"model": model} if rank else {"other": tn.ones(2)}))
    except tn.Error as error:
        say(str(error).split("\\n")[0])
    if rank == 1:  # a file where a folder should be
        open(os.path.join(folder, "step-00000002"), "w").close()
    dist.barrier()
    try:
        tn.Checkpoints(folder).save(2, model=model)
    except (tn.Error, OSError) as error:
        say(type(error).__name__)
    real = tn.files.save_safetensors
    if rank == 1:
        def full(*_): raise OSError("no space left")
        tn.worker_checkpoints.files.save_safetensors = full
    try:
        tn.Checkpoints(folder).save(3, model=model)
    except (tn.Error, OSError) as error:
        say(str(error).split("\\n")[0])
    """
    code, out, errors = launch(tmp_path, program, 2)
    assert code == 0, errors
    text = "save_checkpoint: workers 0 and 1 save tensors of different names or shapes"
    assert f"0 {text}" in out and f"1 {text}" in out
    assert "1 no space left" in out
    assert "0 save_checkpoint: worker 1 could not write its part" in out


def test_restarts_go_on_from_the_last_commit(tmp_path):
    program = """
    import signal
    run = tn.Checkpoints(folder, every=2, model=model, optimizer=optimizer)
    for step in run.steps(6):
        train()
        tn.eval(model.weight)
        if step == 3 and os.environ["TENON_RESTART"] == "0" and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    say(size, os.environ["TENON_RESTART"], model.weight.tolist())
    """
    code, out, errors = launch(tmp_path, program, "2:3", "--restarts", "2")
    assert code == 0, errors
    assert "worker 1 was killed by signal 9" in errors
    assert "restart 1 of 2, with 2 workers" in errors
    (tmp_path / "calm").mkdir()
    calm = launch(tmp_path / "calm", program.replace("rank == 1", "rank == 9"), 1)
    weight = calm[1][0].split(" ", 3)[3]
    assert out == [f"0 2 1 {weight}", f"1 2 1 {weight}"]


def test_restarts_end(tmp_path):
    code, _, errors = launch(tmp_path, "sys.exit(4)", 2, "--restarts", "2")
    assert code == 4
    assert errors.count("tenon: restart") == 2


def test_kills_at_random_moments_lose_nothing():
    done, most = 0, 2.0  # seconds before a kill; a run may end first
    while done == 0 and most > 0.05:
        done, _ = kill_workers.check(kills=4, seed=1, total=25, most=most)
        most /= 2
    assert done > 0


def test_misuse(tmp_path):
    with pytest.raises(tn.Error, match="Checkpoints: every is a number above 0, or None, not 0"):
        tn.Checkpoints(tmp_path, every=0)
