"""Executables that run on a mesh of workers: threads, and processes of a launcher."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tenon as tn
from failures import check_that_damage_is_found, damage, errors_test
from tenon import nn

TOKENS = tn.InputInfo((1, (1, 8, 32)), tn.int64)
SPECS = {
    "*.down.weight": (None, "model"),
    "embedding.weight": "model",
    "head.weight": tn.stored("model"),
}


class Block(tn.Module):
    def __init__(self):
        self.up, self.down = nn.Linear(8, 24), nn.Linear(24, 8)

    def __call__(self, x):
        return x + self.down(nn.gelu(self.up(x)))


class Model(tn.Module):
    def __init__(self):
        self.embedding, self.block, self.head = nn.Embedding(16, 8), Block(), nn.Linear(8, 16)

    def __call__(self, tokens):
        return self.head(self.block(self.embedding(tokens)))


def made_model():
    tn.random.seed(3)
    return nn.shard(Model(), SPECS)


def tokens(count):
    return tn.array((np.arange(count) * 7 % 16).reshape(1, count))


def bits(x):
    return np.asarray(x.numpy()).tobytes()


@pytest.fixture(scope="module")
def results():
    """By the number of tokens: the bits of the model itself on a mesh of four parts."""
    with tn.Mesh(model=2, parts=4):
        model = made_model()
        return {count: bits(model(tokens(count))) for count in (1, 5, 8)}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_files_compute_what_the_model_does(tmp_path, results, workers):
    mesh = tn.Mesh(model=workers, parts=4)
    with mesh:
        model = made_model()
    exe = tn.compile(model, args=[TOKENS], mesh=mesh)
    exe.save(tmp_path / "llm.tnx")
    loaded = tn.Executable.load(tmp_path / "llm.tnx")
    for count, right in results.items():
        for run in (exe, loaded):
            made = run(tokens(count))
            assert made.device == mesh.device and made.shape == (1, count, 16)
            assert bits(made) == right
    assert loaded.stats().mesh == exe.stats().mesh == f"model={workers}" + ":4" * (workers < 4)
    assert (exe.stats().origin, loaded.stats().origin) == ("compiled", "loaded")
    assert loaded.stats().calls == 3 and loaded.stats().kernels > 0
    assert f"on the mesh model={workers}" in str(loaded)
    # Arguments may lie there, whole or divided.
    on_mesh = tokens(8).to(mesh)
    assert bits(loaded(on_mesh)) == results[8]
    divided = tn.shard(on_mesh, (None, "model"))
    assert bits(loaded(divided)) == bits(model(divided))


def test_divisions_are_those_of_the_model(tmp_path):
    with tn.Mesh(model=2) as mesh:
        model = made_model()
    exe = tn.compile(model, args=[TOKENS], mesh=mesh)
    exe.save(tmp_path / "llm.tnx")
    for run in (exe, tn.Executable.load(tmp_path / "llm.tnx")):
        text = run.show("sharding").splitlines()
        assert text[0] == "mesh model=2"
        assert "%block_down_weight: f32[8,24] @[-,model]" in text
        assert "%embedding_weight: f32[16,8] @[model,-]" in text
        assert "%head_weight: f32[16,8] @[model,-] stored(model)" in text
        assert "%block_up_bias: f32[24] @[-]" in text
        assert any(line.startswith("all_sum along model") for line in text)
        assert run.peak_bytes > 0 and run.memory().peak > 0


def test_every_element_is_once_in_the_file(tmp_path):
    with tn.Mesh(model=4) as mesh:
        layer = nn.shard(nn.Linear(256, 1024, bias=False), {"*": (None, "model")})
    info = tn.InputInfo((2, 256), tn.float32)
    tn.compile(layer, args=[info], mesh=mesh).save(tmp_path / "divided.tnx")
    size = (tmp_path / "divided.tnx").stat().st_size
    assert 256 * 1024 * 4 < size < 256 * 1024 * 4 + 20_000
    once = tn.Executable.load(tmp_path / "divided.tnx")
    once.save(tmp_path / "again.tnx")
    assert (tmp_path / "again.tnx").read_bytes() == (tmp_path / "divided.tnx").read_bytes()


def test_contiguous_blocks_are_views_of_the_file(tmp_path):
    """Rows are mapped, and columns are copied."""
    rows, columns = 1024, 512
    for spec, copied in (("model", 0), ((None, "model"), rows * columns * 4)):
        with tn.Mesh(model=2) as mesh:
            layer = nn.shard(nn.Linear(columns, rows, bias=False), {"*": spec})
        info = tn.InputInfo((1, columns), tn.float32)
        tn.compile(layer, args=[info], mesh=mesh).save(tmp_path / "layer.tnx")
        gc.collect()  # of what other tests left
        before = tn.active_memory()
        exe = tn.Executable.load(tmp_path / "layer.tnx")
        taken = tn.active_memory() - before
        assert copied <= taken < copied + 100_000
        assert exe(tn.ones((1, columns))).shape == (1, rows)


def test_an_executable_keeps_the_values_that_it_was_compiled_with():
    data = np.ones((4, 4), dtype=np.float32)
    with tn.Mesh(data=2) as mesh:
        weight = tn.from_dlpack(data).to(mesh)
    x = tn.ones((2, 4))
    exe = tn.compile(lambda x: x @ weight, args=[tn.InputInfo((2, 4), tn.float32)], mesh=mesh)
    right = bits(exe(x))
    data[:] = 2
    assert bits(exe(x)) == right


def test_tensors_of_the_host_and_annotations_inside():
    mesh = tn.Mesh(data=2)
    table = tn.arange(8.0).reshape(2, 4)

    def f(x, offset):
        y = tn.shard(x, "data") @ table
        return {"y": y + offset, "sum": [y.sum()]}

    info = tn.InputInfo(((2, 4, 8), 2), tn.float32)
    exe = tn.compile(f, args=[info, tn.InputInfo((), tn.float32)], mesh=mesh)
    for rows in (2, 6, 8):
        x = tn.arange(2.0 * rows).reshape(rows, 2)
        made = exe(x, tn.array(1.0))
        with mesh:
            right = f(x, tn.array(1.0))
        assert tn.layout(made["y"]) == tn.layout(right["y"]) == f"f32[{rows},4] @[data,-]"
        assert bits(made["y"]) == bits(right["y"])
        assert bits(made["sum"][0]) == bits(right["sum"][0])


def test_shard_map_inside(tmp_path):
    mesh = tn.Mesh(data=2)

    def centered(x):
        return x - tn.distributed.all_sum(x.sum(axis=0), axis="data")

    def f(x):
        return tn.shard_map(centered, mesh, in_specs=("data",), out_specs="data")(x) * 2

    info = tn.InputInfo((4, (2, 4, 8)), tn.float32)
    tn.compile(f, args=[info], mesh=mesh).save(tmp_path / "f.tnx")
    exe = tn.Executable.load(tmp_path / "f.tnx")
    for columns in (2, 4, 8):
        x = tn.arange(4.0 * columns).reshape(4, columns)
        assert bits(exe(x)) == bits(f(x))
        assert tn.layout(exe(x)) == f"f32[4,{columns}] @[data,-]"


def test_sizes_are_checked():
    mesh = tn.Mesh(data=2)
    exe = tn.compile(lambda x: tn.shard(x, "data") * 2, mesh=mesh,
                     args=[tn.InputInfo(((2, 4, 8), 3), tn.float32)])
    with pytest.raises(ValueError, match=r"dimension 0 = 10 is outside \[2, 8\]"):
        exe(tn.ones((10, 3)))
    with pytest.raises(ValueError, match="cannot divide dimension 0 into 2 equal parts"):
        exe(tn.ones((3, 3)))
    assert exe(tn.ones((4, 3))).sum().item() == 24


def test_copies_and_pickles():
    with tn.Mesh(model=2) as mesh:
        layer = nn.shard(nn.Linear(4, 2), {"weight": "model"})
    exe = tn.compile(layer, args=[tn.InputInfo((2, 4), tn.float32)], mesh=mesh)
    x = tn.ones((2, 4))
    again = pickle.loads(pickle.dumps(exe))
    assert copy.deepcopy(exe) is exe
    assert bits(again(x)) == bits(exe(x)) and again.stats().mesh == "model=2"


def test_a_limit_is_of_a_worker():
    mesh = tn.Mesh(data=2)
    info = tn.InputInfo((64, 64), tn.float32)

    def f(x):
        y = tn.shard(x, "data")
        return (y @ y.T).sum()

    exe = tn.compile(f, args=[info], mesh=mesh)
    with pytest.raises(MemoryError, match="smallest peak of a worker is"):
        tn.compile(f, args=[info], mesh=mesh, memory_limit=exe.peak_bytes // 4)
    limited = tn.compile(f, args=[info], mesh=mesh, memory_limit=exe.peak_bytes)
    assert limited(tn.ones((64, 64))).item() == 64**3


def test_bad_values_are_found():
    mesh = tn.Mesh(data=2)
    exe = tn.compile(lambda x: tn.log(tn.shard(x, "data")), mesh=mesh,
                     args=[tn.InputInfo((4,), tn.float32)])
    with tn.debug_nans():
        assert exe(tn.ones(4)).sum().item() == 0
        with pytest.raises(tn.Error, match="debug_nans: log"):
            exe(-tn.ones(4))


def on(mesh, f=lambda x: x, **options):
    return tn.compile(f, args=[tn.InputInfo((4,), tn.float32)], mesh=mesh, **options)


def doubled_on(mesh):
    return tn.shard_map(lambda x: x * 2, mesh, in_specs=("data",), out_specs="data")


def held_on(mesh):
    x = tn.ones((4,), device=mesh)
    return lambda y: y + x


HOST = tn.ones(4)


def computed_on_the_host(x):
    return x + (HOST + 1)


ERRORS = [
    (lambda: on("data=2"), "compile: not a mesh: 'data=2'"),
    (lambda: tn.compile(lambda x: x, mesh=tn.Mesh(data=2)),
     "compile: mesh applies to executables (args=[...]): Mesh(data=2)"),
    (lambda: on(tn.Mesh(data=2), doubled_on(tn.Mesh(data=4))),
     "shard_map: the executable is for the mesh data=2, and the function for the mesh data=4"),
    (lambda: on(None, doubled_on(tn.Mesh(data=2))), "hint: compile it for that mesh, with mesh="),
    (lambda: on(tn.Mesh(data=2), held_on(tn.Mesh(data=4))), "f32[4]@mesh:"),
    (lambda: on(tn.Mesh(data=2), computed_on_the_host), "add computes f32[4] on the host, called"),
    (lambda: on(tn.Mesh(data=2))(tn.ones((4,), device=tn.Mesh(data=4))),
     "the executable is for the mesh data=2, which is mesh:"),
    (lambda: on(tn.Mesh(data=3), lambda x: tn.shard(x, "data")),
     "shard: axis 'data' cannot divide dimension 0 into 3 equal parts"),
    (lambda: on(tn.Mesh(data=2), target_hardware="x86-64-v2"),
     "target_hardware does not apply to an executable for a mesh"),
    (lambda: on(tn.Mesh(data=2)).save("never.tnx", targets="x86-64-v2"),
     "save: the file of an executable for a mesh holds no machine code"),
    (lambda: on(tn.Mesh(data=2)).source("numpy"), "is for the mesh data=2, and source text is for"),
    (lambda: on(tn.Mesh(data=2)).source("c"), "is for the mesh data=2, and source text is for"),
    (lambda: on(tn.Mesh(data=2)).show("torch"), "is for the mesh data=2, and source text is for"),
]


test_errors = errors_test(ERRORS)


# Files -----------------------------------------------------------------------------------------


def large(path, spec="model"):
    """An executable whose weights are too large to be verified when they are loaded: 16 MiB."""
    with tn.Mesh(model=2) as mesh:
        weight = tn.shard(tn.arange(2048.0 * 2048).reshape(2048, 2048), spec)
    info = tn.InputInfo((2048,), tn.float32)
    tn.compile(lambda x: weight + x, args=[info], mesh=mesh).save(path)


def test_no_result_comes_from_damaged_weights(tmp_path):
    path, x = tmp_path / "large.tnx", tn.zeros(2048)
    for spec in ("model", (None, "model")):
        large(path, spec)
        assert tn.Executable.load(path)(x)[1, 1].item() == 2049
        content = path.read_bytes()
        damage(path, content, len(content) // 2)
        places = "from byte 8388608 on|from byte 4194304 on"
        check_that_damage_is_found(path, x, called=places)


def test_every_byte_of_a_file_counts(tmp_path):
    path = tmp_path / "f.tnx"
    with tn.Mesh(model=2) as mesh:
        layer = nn.shard(nn.Linear(4, 2), {"weight": "model"})
    tn.compile(layer, args=[tn.InputInfo((2, 4), tn.float32)], mesh=mesh).save(path)
    content = path.read_bytes()
    for place in range(0, len(content), 1 + len(content) // 200):
        damage(path, content, place, 1 << place % 8)
        with pytest.raises(ValueError, match=r"f\.tnx (is|has)"):
            tn.Executable.load(path)


def command(*arguments, cwd=None, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "tenon", *arguments], cwd=cwd, capture_output=True, text=True,
        env=os.environ | {"TENON_COLLECTIVE_TIMEOUT": "60"} | variables, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_commands(tmp_path):
    with tn.Mesh(model=2) as mesh:
        layer = nn.shard(nn.Linear(4, 2), {"weight": "model"})
    tn.compile(layer, args=[tn.InputInfo((2, 4), tn.float32)], mesh=mesh).save(tmp_path / "f.tnx")
    np.save(tmp_path / "x.npy", np.ones((2, 4), dtype=np.float32))
    code, out, _ = command("inspect", "f.tnx", cwd=tmp_path)
    assert code == 0 and "on the mesh model=2, loaded" in out and "no machine code" in out
    code, out, _ = command("inspect", "f.tnx", "--json", cwd=tmp_path)
    assert code == 0 and '"mesh": "model=2"' in out and '"layout": "@[model,-]' in out
    code, out, _ = command("inspect", "f.tnx", "--section", "constants", cwd=tmp_path)
    assert code == 0 and "@[model,-]" in out
    code, out, _ = command("show", "f.tnx", "--what", "sharding", cwd=tmp_path)
    assert code == 0 and out.startswith("mesh model=2\n")
    files = ("--input", "x=x.npy", "--output", "y.npy")
    code, _, errors = command("run", "f.tnx", *files, cwd=tmp_path)
    assert code == 0, errors
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), layer(tn.ones((2, 4))).numpy())
    code, _, errors = command("export", "f.tnx", cwd=tmp_path)
    assert code != 0 and "is for the mesh model=2" in errors


# Processes -------------------------------------------------------------------------------------

PRELUDE = """
import hashlib, os, re
import numpy as np
import tenon as tn
rank = tn.distributed.init().rank()
def say(*words):  # one write a line: workers share the output
    os.write(1, (" ".join(map(str, (rank, *words))) + "\\n").encode())
"""


def launch(tmp_path, program, workers=2):
    """(exit code, lines of all workers sorted, what was written to stderr)"""
    (tmp_path / "serve.py").write_text(PRELUDE + textwrap.dedent(program))
    code, out, errors = command("launch", "-n", str(workers), "serve.py", cwd=tmp_path)
    return code, sorted(out.splitlines()), errors


def test_processes_compute_what_threads_do(tmp_path):
    with tn.Mesh(model=2, parts=4) as mesh:
        model = made_model()
    exe = tn.compile(model, args=[TOKENS], mesh=mesh)
    exe.save(tmp_path / "llm.tnx")
    code, out, errors = launch(tmp_path, """
    exe = tn.Executable.load("llm.tnx")
    for count in (1, 5, 8):
        tokens = tn.array((np.arange(count) * 7 % 16).reshape(1, count))
        logits = exe(tokens)
        whole = tn.distributed.gather(logits)
        say(count, tn.layout(logits), hashlib.md5(whole.numpy().tobytes()).hexdigest())
    say(exe.stats().mesh, logits.local.shape)
    """)
    assert code == 0, errors
    import hashlib

    for count in (1, 5, 8):
        made = exe(tokens(count))
        line = f"{count} {tn.layout(made)} {hashlib.md5(bits(made)).hexdigest()}"
        assert f"0 {line}" in out and f"1 {line}" in out
    assert "0 model=2:4 (1, 8, 16)" in out


def test_a_process_holds_and_verifies_its_blocks_only(tmp_path):
    large(tmp_path / "rows.tnx")
    large(tmp_path / "columns.tnx", (None, "model"))
    content = (tmp_path / "rows.tnx").read_bytes()
    damage(tmp_path / "damaged.tnx", content, len(content) * 3 // 4)  # of the second worker
    code, out, errors = launch(tmp_path, """
    def resident(name):  # of the mapping of a file, in MiB
        maps = re.split(r"(?m)^(?=[0-9a-f]+-)", open("/proc/self/smaps").read())
        kib = [int(re.search(r"Rss: *([0-9]+)", m)[1]) for m in maps if name in m]
        return sum(kib) / 1024
    x = tn.zeros(2048)
    tn.eval(x)
    for name in ("rows.tnx", "columns.tnx", "damaged.tnx"):
        exe = None
        before = tn.active_memory()
        exe = tn.Executable.load(name)
        copied = (tn.active_memory() - before) / 2**20
        try:
            say(name, round(copied), tn.layout(exe(x)), resident(name) < 13)
        except ValueError as error:
            say(name, str(error).splitlines()[0])
        try:
            exe.save("again.tnx")
        except tn.Error as error:
            say("save", str(error).splitlines()[0])
    """)
    assert code == 0, errors
    for rank in (0, 1):
        assert f"{rank} rows.tnx 0 f32[2048,2048] @[model,-] True" in out
        assert f"{rank} columns.tnx 8 f32[2048,2048] @[-,model]" in "\n".join(out)
    assert "0 damaged.tnx 0 f32[2048,2048] @[model,-] True" in out
    assert any(line.startswith("1 damaged.tnx load: damaged.tnx is damaged") for line in out)


def test_the_number_of_processes_must_fit(tmp_path):
    large(tmp_path / "large.tnx")
    code, out, errors = launch(tmp_path, """
    try:
        tn.Executable.load("large.tnx")
    except tn.Error as error:
        say(str(error))
    """, workers=3)
    assert code == 0, errors
    wanted = "load: large.tnx is for 2 workers, the mesh model=2, but the launcher started 3"
    assert [line for line in out if wanted in line] == [f"{rank} {wanted}" for rank in range(3)]
    assert sum("tenon launch -n 2" in line for line in out) == 3


def test_processes_compile_and_do_not_save_what_they_do_not_have(tmp_path):
    code, out, errors = launch(tmp_path, """
    with tn.Mesh(model=2) as mesh:
        weight = tn.shard(tn.arange(8.0).reshape(4, 2), "model")
    exe = tn.compile(lambda x: weight @ x, args=[tn.InputInfo((2,), tn.float32)], mesh=mesh)
    say(tn.distributed.gather(exe(tn.ones(2))).tolist())
    try:
        exe.save("f.tnx")
    except tn.Error as error:
        say(str(error))
    """)
    assert code == 0, errors
    assert "1 [1.0, 5.0, 9.0, 13.0]" in out
    wanted = "save: the weights are divided among processes: weight @[model,-]"
    assert any(wanted in line for line in out)
