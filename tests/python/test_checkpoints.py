"""Checkpoints: a run that goes on is the run that was not stopped; nothing is lost by a kill."""

import doctest
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import traceback

import pytest

import tenon as tn
from tenon import checkpoints, nn, optim

PROGRAM = pathlib.Path(__file__).with_name("checkpoint_program.py")


def trained(steps=3, optimizer=None):
    model = nn.Sequential(nn.Linear(2, 3), nn.relu, nn.Linear(3, 1))
    optimizer = optimizer or optim.Adam(1e-2)
    loss_and_grad = nn.value_and_grad(model, lambda x: tn.mean(model(x) ** 2))
    for _ in range(steps):
        _, grads = loss_and_grad(tn.random.normal((4, 2)))
        optimizer.update(model, grads)
    return model, optimizer


def flat(tree):
    return [t.tolist() for t in tn.tree.leaves(tree)]


@pytest.mark.parametrize("mode", ["update", "compiled-update", "backward", "compiled-backward"])
def test_a_run_that_goes_on_is_the_run_that_was_not_stopped(tmp_path, mode):
    def run(name, steps):
        command = [sys.executable, str(PROGRAM), str(tmp_path / name), str(steps), mode]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return (tmp_path / name / f"step-{steps:08d}.safetensors").read_bytes()

    whole = run("whole", 10)
    run("parts", 5)
    assert run("parts", 10) == whole


def test_what_a_checkpoint_holds(tmp_path):
    path = tmp_path / "c.safetensors"
    model, optimizer = trained()
    values = {
        "step": 7, "loss": 0.1, "worst": float("inf"), "note": "naïve", "best": None, "done": False,
        "key": tn.random.key(1), "data": {"order": [3, 1, 2], "pair": (1.5, {"x": tn.ones(2)})},
        "a.b": tn.ones(1), "a": {"b": tn.zeros(1)},
    }  # fmt: skip
    tn.save_checkpoint(path, model=model, optimizer=optimizer, **values)
    other, its_optimizer = trained(1)
    container = its_optimizer.state
    loaded = tn.load_checkpoint(path, model=other, optimizer=its_optimizer)
    assert repr(loaded) == repr(values)
    assert flat(other.parameters()) == flat(model.parameters())
    assert flat(its_optimizer.state) == flat(optimizer.state)
    assert its_optimizer.state is container  # which a compiled step may have captured
    assert "model.layers.0.weight" in tn.load(path)
    assert "optimizer.moments.layers.0.weight.m" in tn.load(path)
    both = tn.load_checkpoint(path)
    assert both["model"].keys() == model.state_dict().keys()
    assert both["optimizer"]["step"].item() == 3


def test_the_random_state(tmp_path):
    path = tmp_path / "c"
    tn.random.seed(1)
    tn.save_checkpoint(path)
    first = tn.random.normal((3,)).tolist()
    tn.save_checkpoint(tmp_path / "none", random=False)
    tn.load_checkpoint(path)
    assert tn.random.normal((3,)).tolist() == first
    second = tn.random.normal((3,)).tolist()
    tn.load_checkpoint(path, random=False)
    tn.load_checkpoint(tmp_path / "none")
    assert tn.random.normal((3,)).tolist() not in (first, second)


@pytest.mark.parametrize("first, second", [(2, 0), (0, 2), (2, 2)])
def test_optimizers_of_several(tmp_path, first, second):
    def made():
        return optim.MultiOptimizer([optim.SGD(0.1, momentum=0.9), optim.Adam(0.1)],
                                    [lambda name, w: w.ndim == 1])

    model, optimizer = trained(first, made())
    tn.save_checkpoint(tmp_path / "c", model=model, optimizer=optimizer)
    other, its_optimizer = trained(second, made())
    tn.load_checkpoint(tmp_path / "c", model=other, optimizer=its_optimizer)
    assert flat(its_optimizer.state) == flat(optimizer.state)
    assert its_optimizer.optimizers[0].state is its_optimizer.state["optimizers"][0]


def test_an_optimizer_of_tensors(tmp_path):
    def made():
        w = tn.array([3.0, 4.0])
        return w, optim.SGD([w], lr=0.1, momentum=0.5)

    def step(w, optimizer):
        optimizer.zero_grad()
        tn.sum(w * w).backward()
        optimizer.step()

    w, optimizer = made()
    step(w, optimizer)
    tn.save_checkpoint(tmp_path / "c", optimizer=optimizer)
    other, its_optimizer = made()
    tn.load_checkpoint(tmp_path / "c", optimizer=its_optimizer)
    assert other.tolist() == w.tolist()  # the tensor that was given, not another one
    step(w, optimizer), step(other, its_optimizer)
    assert other.tolist() == w.tolist()


def test_schedulers_and_objects_of_users(tmp_path):
    class Counter:
        def __init__(self):
            self.seen = []

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    def made():
        optimizer = optim.SGD(0.8)
        return optimizer, optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5), Counter()

    parts = dict(zip(("optimizer", "scheduler", "counter"), made()))
    for epoch in range(3):
        parts["counter"].seen.append((epoch, parts["optimizer"].learning_rate.item()))
        parts["scheduler"].step()
    tn.save_checkpoint(tmp_path / "c", **parts)
    others = dict(zip(parts, made()))
    assert tn.load_checkpoint(tmp_path / "c", **others) == {}
    assert others["counter"].seen == parts["counter"].seen
    for held in (parts, others):
        held["scheduler"].step()
    rates = [held["optimizer"].learning_rate.item() for held in (parts, others)]
    assert rates == [pytest.approx(0.2)] * 2


def test_parts_that_do_not_fit(tmp_path):
    path = tmp_path / "c.safetensors"
    model, optimizer = trained()
    tn.save_checkpoint(path, model=model, optimizer=optimizer, step=3)
    before = flat(model.parameters())
    for parts, error in [
        ({"net": model}, "has no 'net'; it has model, optimizer, step"),
        ({"optimizer": optim.SGD(0.1)}, "'optimizer' was saved as a Adam, not as a SGD"),
        ({"step": model}, "'step' was saved as a value, not as a Sequential"),
        ({"step": 3}, "step is a int, which has no state"),
        ({"model": nn.Sequential(nn.Linear(2, 4))}, "load_state_dict: 4 problems with the weights"),
    ]:
        with pytest.raises(tn.Error, match=re.escape(error)) as raised:
            tn.load_checkpoint(path, **parts)
        assert f"{__file__}:" in str(raised.value)
    assert flat(model.parameters()) == before

    class Renamed(nn.Sequential):
        pass

    other = Renamed(nn.Linear(2, 3), nn.relu, nn.Linear(3, 1))
    tn.load_checkpoint(path, model=other)
    assert flat(other.parameters()) == before
    model.save_weights(path)
    with pytest.raises(ValueError, match="holds tensors, not a checkpoint\n.*\n.*load_weights"):
        tn.load_checkpoint(path, model=model)
    with pytest.raises(FileNotFoundError, match="cannot open"):
        tn.load_checkpoint(tmp_path / "none")
    with pytest.raises(TypeError, match="save_checkpoint: data.0 is a set, which cannot be saved"):
        tn.save_checkpoint(path, data=[{1, 2}])
    with pytest.raises(TypeError, match="data: a key must be a string: 3"):
        tn.save_checkpoint(path, data={3: 4})


def test_states_that_are_no_states():
    with pytest.raises(ValueError, match=r"SGD: load_state_dict: a state has \[.*\], not \['m'\]"):
        optim.SGD(0.1).load_state_dict({"m": tn.ones(2)})
    with pytest.raises(ValueError, match="not list"):
        optim.SGD(0.1).load_state_dict([])
    small, large = (optim.Adam(nn.Linear(n, 1).parameters()) for n in (1, 3))
    with pytest.raises(ValueError, match=r"moments.weight.m is \(1, 3\), given \(1, 1\)"):
        large.load_state_dict(small.state_dict())


@pytest.mark.parametrize("parts", ["3", '{"a": {}}', '{"a": {"tensor": "b"}}', "[" * 99999])
def test_metadata_of_strangers(tmp_path, parts):
    for text in ("", "{", "[]", "{}", '{"version": 2}', f'{{"version": 1, "parts": {parts}}}'):
        tn.save_safetensors(tmp_path / "c", {}, {"tenon.checkpoint": text})
        with pytest.raises(ValueError, match="load_checkpoint: .*/c (is damaged|has version 2)"):
            tn.load_checkpoint(tmp_path / "c")


def test_damaged_checkpoints(tmp_path):
    path = tmp_path / "c"
    model, optimizer = trained()
    tn.save_checkpoint(path, model=model, optimizer=optimizer, step=3)
    content, before = path.read_bytes(), flat(model.parameters())
    generator = random.Random(0)
    for k in range(300):
        damaged = bytearray(content[: generator.randrange(len(content)) if k % 3 == 0 else None])
        if len(damaged) == len(content):
            bit = generator.randrange(8 * len(content))
            damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            tn.load_checkpoint(path, model=model, optimizer=optimizer)
    assert flat(model.parameters()) == before


@pytest.mark.host  # a child cannot use a device of its parent
def test_whoever_is_killed_while_saving_loses_nothing(tmp_path):
    held = tn.Checkpoints(tmp_path, keep=2)
    began = time.monotonic()
    held.save(0, x=tn.zeros(1 << 18))
    longest = max(0.02, 5 * (time.monotonic() - began))  # on a busy machine a save takes longer
    generator, newest = random.Random(0), 0
    for _ in range(100):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for step in range(newest + 1, newest + 10_000):
                held.save(step, x=tn.full((1 << 18,), step))
            os._exit(1)
        time.sleep(generator.random() * longest)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        loaded = held.load()
        assert loaded["step"] >= newest
        newest = loaded["step"]
        assert tn.all(loaded["x"] == newest).item()
    assert newest > 0
    held.save(newest + 1, x=tn.ones(2))
    assert len(held.steps()) == len(os.listdir(tmp_path)) == 2


@pytest.mark.host  # a child cannot use a device of its parent
def test_several_processes_save_to_one_folder(tmp_path):
    held = tn.Checkpoints(tmp_path, keep=2)
    children = []
    for writer in range(4):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                for step in range(25):  # the steps of all writers are the same
                    held.save(step, writer=writer, x=tn.full((1000,), 10 * step + writer))
                    loaded = held.load()
                    assert tn.all(loaded["x"] == 10 * loaded["step"] + loaded["writer"]).item()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert held.steps()[-1] == 24 and held.load()["step"] == 24
    assert len(os.listdir(tmp_path)) == len(held.steps()) <= 3
    held.save(25)
    assert held.steps() == [24, 25]


def test_how_many_are_kept(tmp_path):
    held = tn.Checkpoints(tmp_path / "new" / "folder", keep=1)
    assert held.steps() == [] and held.latest() is None and held.load() == {}
    for step in (1, 5, 20):
        held.save(step)
        assert held.steps() == [step]
    (tmp_path / "new" / "folder" / "notes.txt").write_text("not ours")
    held.save(3)  # gone on from an earlier one
    assert held.steps() == [3]
    everything = tn.Checkpoints(tmp_path / "new" / "folder", keep=None)
    for step in range(5):
        everything.save(step, name=str(step))
    assert everything.steps() == [0, 1, 2, 3, 4] and everything.latest() == everything.path(4)
    assert everything.load(2) == {"step": 2, "name": "2"}
    with pytest.raises(FileNotFoundError):
        everything.load(9)
    for keep in (0, -1, "3"):
        with pytest.raises(ValueError, match="keep is a number above 0, or None"):
            tn.Checkpoints(tmp_path, keep=keep)
    for step in (-1, 2.0, True):
        with pytest.raises(ValueError, match="a step must be 0 or more"):
            everything.save(step)


def test_examples_in_the_documentation():
    assert doctest.testmod(checkpoints, extraglobs={"tn": tn}).failed == 0


def test_a_damaged_checkpoint_names_the_one_before(tmp_path):
    model, _ = trained(0)
    kept = tn.Checkpoints(tmp_path)
    kept.save(10, model=model)
    kept.save(20, model=model)
    path = pathlib.Path(kept.latest())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"damaged(.|\n)*before it: checkpoints.load\(10, "):
        kept.load(model=model)
    assert kept.load(10, model=model) == {"step": 10}
    os.remove(kept.path(10))
    with pytest.raises(ValueError, match="damaged") as caught:
        kept.load(model=model)
    assert "before it" not in str(caught.value)
