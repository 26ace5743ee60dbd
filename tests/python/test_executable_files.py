"""Executables in files: saved, loaded here and in other processes, and what can go wrong."""

import copy
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tenon as tn
from executable_programs import (
    F32,
    Pair,
    Point,
    Wrapped,
    attention,
    doubled,
    normal,
    random_program,
    rearranged,
    same,
    tree_arguments,
    tree_program,
)
from failures import check_that_damage_is_found, damage
from tenon import nn


def reloaded(executable, path):
    executable.save(path)
    return tn.Executable.load(path)


def python(program, *args):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, args)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_trees_come_back(tmp_path):
    made = reloaded(tree_program(), tmp_path / "trees.tnx")(*tree_arguments(3))
    same(made, rearranged(*tree_arguments(3)))
    assert type(made["pair"]) is Pair and type(made["point"]) is Point
    assert made["pair"].label == "made"


def test_classes_that_another_process_does_not_know(tmp_path):
    path = tmp_path / "trees.tnx"
    tree_program().save(path)
    program = (
        "import sys, tenon as tn\n"
        "run = tn.Executable.load(sys.argv[1])\n"
        "one = tn.ones(2)\n"
        "made = run({'left': one, 'right': one}, (one, one), [{'scale': 3.0}, one])\n"
        "print(tn.tree.structure(made), made['pair']['left'].tolist())\n"
    )
    want = "{'pair': {'left': *, 'right': [*, *]}, 'point': (*, (*,)), 3: *} [4.0, 4.0]"
    assert python(program, path) == want


def test_registered_trees_are_what_they_hold(tmp_path):
    described = Wrapped(tn.InputInfo((2,), F32))
    executable = tn.compile(lambda w: Wrapped(w.inside * 2), args=[described])
    loaded = reloaded(executable, tmp_path / "wrapped.tnx")
    assert loaded({"inside": tn.ones(2)})["inside"].tolist() == [2, 2]


def test_constants_inside_trees(tmp_path):
    info = tn.InputInfo((2,), F32)
    weight = tn.array([3.0, 4.0])
    data = {"x": info, "scale": 2, "weight": weight}
    executable = tn.compile(lambda d: d["x"] * d["scale"] + d["weight"], args=[data])
    loaded = reloaded(executable, tmp_path / "f.tnx")
    given = {"x": tn.ones(2), "scale": 2, "weight": weight}
    assert executable(given).tolist() == [5, 6]
    with pytest.raises(ValueError, match="`d.weight` is a constant of the executable: a Tensor"):
        loaded(given)
    assert loaded({**given, "weight": None}).tolist() == [5, 6]
    with pytest.raises(ValueError, match="is a constant of the executable: 2, not 2.0"):
        loaded({**given, "weight": None, "scale": 2.0})


def test_results_that_are_inputs_or_constants(tmp_path):
    fixed = tn.array([1.0, 2.0])

    def fun(x):
        y = x + 1
        return x, fixed, y, y, tn.zeros(3), tn.arange(4)

    executable = tn.compile(fun, args=[tn.InputInfo((2,), F32)])
    same(reloaded(executable, tmp_path / "f.tnx")(normal(2)), fun(normal(2)))


def test_a_function_without_inputs(tmp_path):
    executable = tn.compile(lambda: tn.arange(3) * 2, args=[])
    assert reloaded(executable, tmp_path / "f.tnx")().tolist() == [0, 2, 4]


def test_a_model(tmp_path):
    model = nn.Sequential(nn.Linear(8, 32), nn.gelu, nn.Linear(32, 4))
    executable = tn.compile(model, args=[tn.InputInfo(((1, 4, 64), 8), F32)])
    loaded = reloaded(executable, tmp_path / "model.tnx")
    for rows in (1, 4, 13, 64):
        same(loaded(normal(rows, 8)), model(normal(rows, 8)))


def test_copies_and_pickles():
    assert copy.copy(doubled()) is doubled() and copy.deepcopy(doubled()) is doubled()
    made = pickle.loads(pickle.dumps(doubled()))
    same(made(normal(7)), doubled()(normal(7)))
    assert made.input_infos == doubled().input_infos


def test_the_same_program_gives_the_same_file(tmp_path):
    def save(path):
        tn.compile(attention, args=[tn.InputInfo((4, 4), F32)] * 3).save(path)
        return path.read_bytes()

    assert save(tmp_path / "a.tnx") == save(tmp_path / "b.tnx")


def test_random_programs(tmp_path):
    for seed in range(100, 120):
        run, shapes = random_program(seed)
        executable = tn.compile(run, args=[tn.InputInfo(shape, F32) for shape in shapes])
        values = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
        same(reloaded(executable, tmp_path / "f.tnx")(*values), run(*values))


def test_a_loaded_executable_is_as_it_was(tmp_path):
    batch = tn.NamedDimension("batch", 1, 2, 3)
    infos = [tn.InputInfo((batch, 2), F32), tn.DimensionInputInfo((0, 1, 5))]

    def fun(x, /, *, n):
        return [x * n]

    executable = tn.compile(fun, args=infos[:1], kwargs={"n": infos[1]})
    loaded = reloaded(executable, tmp_path / "f.tnx")
    assert loaded.input_infos == {"x": infos[0], "n": infos[1]}
    assert str(inspect.signature(loaded)) == "(x, /, *, n)"
    assert loaded.__name__ == "fun" and repr(loaded) == repr(executable)
    assert loaded.stats().origin == "loaded"
    same(loaded(normal(3, 2), n=4), [normal(3, 2) * 4])
    assert loaded.stats().kernels_compiled == 0
    with pytest.raises(TypeError, match="no argument `x`"):
        loaded(x=normal(3, 2), n=4)
    same(reloaded(loaded, tmp_path / "again.tnx")(normal(2, 2), n=3), [normal(2, 2) * 3])


def test_what_a_loaded_executable_says_of_itself(tmp_path):
    executable = tn.compile(lambda x: tn.exp(x) * 2, args=[tn.InputInfo((4, 3), F32)])
    loaded = reloaded(executable, tmp_path / "f.tnx")
    assert loaded.peak_bytes == executable.peak_bytes == 48
    assert loaded.memory().peak == 48
    assert loaded.show("graph") == executable.show("graph")
    places = re.compile(r" /\* \w+\.py:\d+ \*/")  # which files hold as text
    assert loaded.source("c") == places.sub("", executable.source("c"))
    assert str(loaded).splitlines()[0] == "function(x: float32[4, 3]) -> float32[4, 3]"


def test_threads_share_a_loaded_executable(tmp_path):
    loaded = reloaded(doubled(), tmp_path / "f.tnx")
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: loaded(normal(n)), range(1, 60)))
    for n, result in enumerate(made, 1):
        same(result, normal(n) * 2)


def test_several_targets(tmp_path):
    doubled().save(tmp_path / "one.tnx", targets="x86-64-v3")
    doubled().save(tmp_path / "two.tnx", targets=["x86-64-v3", "native"], debug=False)
    for name in ("one.tnx", "two.tnx"):
        same(tn.Executable.load(tmp_path / name)(normal(9)), normal(9) * 2)
    with pytest.raises(ValueError, match="x86-64-v9"):
        doubled().save(tmp_path / "bad.tnx", targets=["x86-64-v9"])
    assert sorted(os.listdir(tmp_path)) == ["one.tnx", "two.tnx"]


def test_code_of_strangers_is_made_again(tmp_path, monkeypatch):
    path = tmp_path / "f.tnx"
    doubled().save(path)
    program = (
        "import sys, tenon as tn\n"
        "run = tn.Executable.load(sys.argv[1], trust=sys.argv[2] == 'yes')\n"
        "print(run(tn.ones(2)).tolist(), run.stats().origin.split(':')[0])\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert python(program, path, "no") == "[2.0, 2.0] rebuilt"
    assert python(program, path, "yes") == "[2.0, 2.0] loaded"


@pytest.mark.parametrize(
    "path, content",
    [("missing.tnx", None), ("empty.tnx", b""), ("other.tnx", b"{}" * 100), (".", None)],
)
def test_files_that_are_no_executables(tmp_path, path, content):
    path = tmp_path / path
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((tn.Error, OSError), match=re.escape(str(path))) as error:
        tn.Executable.load(path)
    assert f"{__file__}:" in str(error.value)


def test_paths_that_cannot_be_written(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "folder.tnx", "/proc/f.tnx"):
        with pytest.raises((tn.Error, OSError), match=re.escape(str(path))) as error:
            doubled().save(path)
        assert f"{__file__}:" in str(error.value)
    with pytest.raises(TypeError, match=r"save: not a path: 3 \(int\)"):
        doubled().save(3)
    with pytest.raises(ValueError, match=r"save: a path cannot contain zero bytes: '.*\\x00g'"):
        doubled().save(tmp_path / "f\0g")
    assert os.listdir(tmp_path) == []


def test_paths_that_are_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.tnx"
    assert reloaded(doubled(), path)(tn.ones(2)).tolist() == [2, 2]
    os.truncate(path, 100)
    with pytest.raises(ValueError, match=r"\\xff.tnx is damaged: it is cut off"):
        tn.Executable.load(path)


@pytest.mark.host  # a child cannot use a device of its parent
def test_a_child_of_fork_runs_and_loads(tmp_path):
    run = tn.compile(lambda x: 2 * x, args=[tn.InputInfo(((1, 2, 9),), F32)])
    run.save(tmp_path / "f.tnx")
    child = os.fork()
    if child == 0:  # both make sizes, under a lock that the parent took for the fork
        signal.alarm(30)
        loaded = tn.Executable.load(tmp_path / "f.tnx")
        os._exit(run(tn.ones(3)).tolist() != loaded(tn.ones(3)).tolist())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def large(path):
    """The file of an executable that is too large to be verified when it is loaded."""
    weights = tn.arange(3 << 20, dtype=tn.float32)
    tn.compile(lambda x: x + weights, args=[tn.InputInfo((3 << 20,), F32)]).save(path)
    return path.read_bytes()


@pytest.mark.forks
@pytest.mark.host  # a child cannot use a device of its parent
def test_a_child_of_fork_verifies_what_its_parent_had_begun_to(tmp_path):
    large(tmp_path / "large.tnx")
    x = tn.zeros(3 << 20)
    tn.eval(x)
    for _ in range(30):
        loaded = tn.Executable.load(tmp_path / "large.tnx")
        thread = threading.Thread(target=loaded, args=[x])
        thread.start()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(int(loaded(x)[5].item()))
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_a_call_never_returns_what_comes_from_damaged_weights(tmp_path):
    path = tmp_path / "large.tnx"
    content = large(path)
    x = tn.zeros(3 << 20)
    assert tn.Executable.load(path)(x)[5].item() == 5
    for place in (8192, len(content) // 2, 11 << 20):
        damage(path, content, place, 0x40)
        for load in (tn.Executable.load, tn.load):
            check_that_damage_is_found(path, x, load)
        tn.synchronize()  # a device may still read the file, which is written next


def test_calls_from_several_threads_wait_for_the_checksums(tmp_path):
    path = tmp_path / "large.tnx"
    content = bytearray(large(path))
    right, x = tn.Executable.load(path), tn.zeros(3 << 20)
    content[9 << 20] ^= 1
    path.with_name("bad.tnx").write_bytes(content)
    wrong = tn.Executable.load(path.with_name("bad.tnx"))
    with ThreadPoolExecutor(4) as pool:
        assert [pool.submit(right, x).result()[7].item() for _ in range(8)] == [7] * 8
        for called in [pool.submit(wrong, x) for _ in range(8)]:
            with pytest.raises(ValueError, match="is damaged: the checksum"):
                called.result()


def test_every_byte_of_a_small_executable_counts(tmp_path):
    path = tmp_path / "f.tnx"
    weights = tn.random.normal((16, 16))
    tn.compile(lambda x: tn.tanh(x @ weights), args=[tn.InputInfo(((1, 2, 8), 16), F32)]).save(path)
    content = path.read_bytes()
    for place in range(0, len(content), 1 + len(content) // 400):
        damage(path, content, place, 1 << place % 8)
        with pytest.raises(ValueError, match=r"f\.tnx (is|has)"):
            tn.Executable.load(path)
