"""The runtime without compiler or Python: the same bits, its size, its errors, its memory."""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import runtime_library as rt
import tenon as tn
import test_docs

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(tn.__file__).absolute().parent.parent.parent
LIBRARY = BUILD / "libtenon_rt.so"
RELEASE = BUILD.name == "release"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="libtenon_rt is not built here")


@pytest.fixture(scope="module")
def library():
    return rt.open_library(LIBRARY)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


rows = tn.NamedDimension("rows", 1, 8, 64)


def geglu():
    class GEGLU(tn.Module):
        def __init__(self):
            self.proj = tn.Linear(16, 64)

        def __call__(self, x):
            x, gate = tn.split(self.proj(x), 2, axis=-1)
            return x * tn.gelu(gate)

    return GEGLU(), [tn.InputInfo((rows, 16), tn.float32)], lambda n: [numbers(n, 16)]


def mlp():
    first, second = (tn.array(numbers(*s, seed=k)) for k, s in enumerate([(24, 96), (96, 5)]))

    def f(x, bias):
        return tn.softmax(tn.tanh(x @ first) @ second + bias, axis=-1)

    infos = [tn.InputInfo((rows, 24), tn.float32), tn.InputInfo((5,), tn.float32)]
    return f, infos, lambda n: [numbers(n, 24), numbers(5, seed=2)]


def conv_net():
    kernel = tn.array(numbers(6, 4, 3, 3))

    def f(x):
        return tn.mean(tn.relu(tn.conv2d(x, kernel)), axis=(2, 3))

    return f, [tn.InputInfo((rows, 4, 9, 9), tn.float32)], lambda n: [numbers(n, 4, 9, 9)]


def attention():
    def f(q, k):
        return tn.scaled_dot_product_attention(q, k, k)

    one = tn.InputInfo((2, 3, rows, 16), tn.float32)
    return f, [one, one], lambda n: [numbers(2, 3, n, 16), numbers(2, 3, n, 16, seed=1)]


def control_flow():
    def f(x, at):
        x = tn.take(tn.sort(x, axis=0), at, axis=0)
        x = tn.cond(tn.sum(x) > 0, lambda y: y * 2, lambda y: y - 1, x)
        total, partial = tn.scan(lambda c, row: (c + row, c * row), tn.zeros((7,)), x)
        return total, partial, tn.argsort(partial, axis=0), tn.fft.rfft(x, axis=1)

    infos = [tn.InputInfo((rows, 7), tn.float32), tn.InputInfo((5,), tn.int32)]
    return f, infos, lambda n: [numbers(n, 7), np.arange(5, dtype=np.int32) % n]


MODELS = [geglu, mlp, conv_net, attention, control_flow]


def saved(tmp_path, model, **how):
    f, infos, args = model()
    made = tn.compile(f, args=infos)
    path = tmp_path / f"{model.__name__}.tnx"
    made.save(path, **how)
    return made, path, args


def flat(results):
    results = results if isinstance(results, (list, tuple)) else [results]
    return [np.asarray(r) for r in results]


def assert_same(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_results_are_the_same_bit_for_bit(library, tmp_path, model):
    made, path, args = saved(tmp_path, model)
    loaded = rt.Executable(library, path)
    assert loaded.target.startswith("x86-64-")
    try:
        for threads in (1, 2, 5):
            assert library.tenon_rt_set_threads(threads) == 0
            for n in (1, 2, 8, 17, 64):
                given = args(n)
                assert_same(loaded(*given), flat(made(*map(tn.array, given))))
    finally:
        library.tenon_rt_set_threads(os.cpu_count())


CHILD = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
import runtime_library as rt
f = rt.Executable(rt.open_library({library!r}), {path!r})
print(f.target)
given = [np.load(p) for p in {inputs!r}]
np.savez({out!r}, *f(*given))
"""


def in_child(tmp_path, path, given, **environment):
    """Target and results of a process that has this environment and no module."""
    inputs = []
    for i, x in enumerate(given):
        inputs.append(str(tmp_path / f"in{i}.npy"))
        np.save(inputs[-1], x)
    out = str(tmp_path / "out.npz")
    tests = str(pathlib.Path(__file__).parent)
    child = CHILD.format(tests=tests, library=str(LIBRARY), path=str(path), inputs=inputs, out=out)
    done = subprocess.run(
        [sys.executable, "-c", child], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    with np.load(out) as results:
        return done.stdout.strip(), [results[name] for name in results.files]


@pytest.mark.parametrize("model", [mlp, attention, control_flow], ids=lambda m: m.__name__)
@pytest.mark.parametrize("targets", [["native"], ["x86-64-v2"]], ids=str)
def test_an_old_processor_runs_the_code_it_has_or_interprets(tmp_path, model, targets):
    made, path, args = saved(tmp_path, model, targets=targets)
    given = args(9)
    target, got = in_child(tmp_path, path, given, TENON_CPU_LEVEL="v2", TENON_NUM_THREADS="2")
    assert target == ("interpreter" if targets == ["native"] else "x86-64-v2")
    assert_same(got, flat(made(*map(tn.array, given))))


def test_code_of_strangers_is_not_run(library, tmp_path):
    program = "import tenon as tn\n"
    program += "f = tn.compile(lambda x: x * 2, args=[tn.InputInfo((3,), tn.float32)])\n"
    program += f"f.save({str(tmp_path / 'strange.tnx')!r})\n"
    home = tmp_path / "home"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    with pytest.raises(rt.Failure, match="trust") as refused:
        rt.Executable(library, tmp_path / "strange.tnx", trust=False)
    assert "TENON_RT_TRUST" in str(refused.value)
    assert rt.Executable(library, tmp_path / "strange.tnx")(numbers(3))[0].shape == (3,)


def test_weights_are_verified_before_a_result_is_returned(library, tmp_path):
    verify, no_verify = 2, 4
    path = tmp_path / "large.tnx"
    weights = tn.arange(3 << 20, dtype=tn.float32)  # 12 MiB: not verified when loaded
    tn.compile(lambda x: x + weights, args=[tn.InputInfo((3 << 20,), tn.float32)]).save(path)
    x = np.zeros(3 << 20, np.float32)
    for flags in (0, verify, no_verify):
        assert rt.Executable(library, path, flags=flags)(x)[0][9] == 9
    content = bytearray(path.read_bytes())
    content[8 << 20] ^= 2
    path.write_bytes(content)
    loaded = rt.Executable(library, path)
    for _ in range(2):
        with pytest.raises(rt.Failure, match="large.tnx is damaged: the checksum of section"):
            loaded(x)
    with pytest.raises(rt.Failure, match="large.tnx is damaged: the checksum of section weights"):
        rt.Executable(library, path, flags=verify)
    assert rt.Executable(library, path, flags=no_verify)(x)[0].shape == x.shape
    for flags in (verify | no_verify, 8):
        with pytest.raises(rt.Failure, match="unknown flags"):
            rt.Executable(library, path, flags=flags)


def test_wrong_calls_say_what_is_wrong(library, tmp_path):
    _, path, args = saved(tmp_path, mlp)
    with pytest.raises(rt.Failure, match="nowhere.tnx"):
        rt.Executable(library, tmp_path / "nowhere.tnx")
    f = rt.Executable(library, path)
    x, bias = args(4)
    good = [rt.tensor(x), rt.tensor(bias)]
    assert f.run(good)[0].shape == (4, 5)

    def refused(given, room=None):
        with pytest.raises(rt.Failure) as caught:
            f.run(given, room)
        return str(caught.value)

    assert "takes 2 inputs, 1 were given" in refused(good[:1])
    assert "returns 1 results, there is room for 2" in refused(good, 2)
    assert "x" in refused([rt.tensor(x.astype(np.float64)), good[1]])
    assert "65" in refused([rt.tensor(numbers(65, 24)), good[1]])
    for field, value, text in [
        ("dtype", 99, "no element type 99"),
        ("rank", -1, "rank is -1"),
        ("rank", 17, "rank is 17"),
        ("shape", None, "shape is null"),
        ("data", None, "data is null"),
        ("data", x.ctypes.data + 1, "not aligned to 4 bytes"),
    ]:
        bad = rt.tensor(x)
        setattr(bad, field, value)
        assert text in refused([bad, good[1]])
    bad = rt.tensor(x)
    bad.shape[0] = -1
    assert "x: shape[0] is -1" in refused([bad, good[1]])
    assert library.tenon_rt_run(f.f, None, 2, (rt.Tensor * 1)(), 1) != 0
    assert library.tenon_rt_error() == b"run: inputs is null"
    assert not library.tenon_rt_load(None, 0)
    assert library.tenon_rt_error() == b"load: the path is null"
    assert library.tenon_rt_set_threads(0) != 0
    assert library.tenon_rt_run(None, None, 0, None, 0) != 0
    assert library.tenon_rt_inputs(None) == 0 and not library.tenon_rt_input_at(f.f, 2)
    library.tenon_rt_close(None), library.tenon_rt_release(None)


def test_results_own_their_memory(library, tmp_path):
    """Also where a result is an argument or a constant."""
    weights = tn.array(numbers(8))
    made = tn.compile(lambda x: (x, weights, x), args=[tn.InputInfo((8,), tn.float32)])
    made.save(tmp_path / "same.tnx")
    x = numbers(8, seed=1)
    f = rt.Executable(library, tmp_path / "same.tnx")
    out = (rt.Tensor * 3)()
    assert library.tenon_rt_run(f.f, rt.tensor(x), 1, out, 3) == 0
    assert len({x.ctypes.data, *(y.data for y in out)}) == 4
    for y in out:
        library.tenon_rt_release(y)


def test_what_a_function_prints_and_checks(library, tmp_path, capfd):
    def f(x):
        tn.print("sum {}", tn.sum(x))
        tn.check(tn.all(x < 10), "too large: {}", tn.max(x))
        return x + 1

    tn.compile(f, args=[tn.InputInfo((3,), tn.float32)]).save(tmp_path / "speaks.tnx")
    loaded = rt.Executable(library, tmp_path / "speaks.tnx")
    loaded(np.ones(3, np.float32))
    ctypes.CDLL(None).fflush(None)
    assert capfd.readouterr().out == "sum 3.\n"
    with pytest.raises(rt.Failure, match="too large: 11"):
        loaded(np.full(3, 11, np.float32))


def test_sizes_are_inputs(library, tmp_path):
    def f(x, count):
        return x + tn.arange(count, dtype=tn.float32)

    infos = [tn.InputInfo(((1, 4, 9),), tn.float32), tn.DimensionInputInfo((1, 4, 9))]
    tn.compile(f, args=infos).save(tmp_path / "sized.tnx")
    loaded = rt.Executable(library, tmp_path / "sized.tnx")
    size = loaded.inputs()[1]
    assert size.is_size and (size.sizes[0].min, size.sizes[0].opt, size.sizes[0].max) == (1, 4, 9)
    x = numbers(3)
    assert_same(loaded(x, np.int64(3)), [x + np.arange(3, dtype=np.float32)])
    with pytest.raises(rt.Failure, match="^count: it is a size: a tensor of rank 0 and type i64$"):
        loaded(x, np.int32(3))


@pytest.mark.parametrize("lo", [0, 1])
def test_sizes_that_leave_tensors_empty(library, tmp_path, lo):
    """They have kernels of their own, for all values of the other sizes."""
    n, m = (tn.NamedDimension(name, lo, 4, 8) for name in "nm")

    def f(x):
        return tn.softmax(x[lo:]) + 1  # with one row, or none: empty

    tn.compile(f, args=[tn.InputInfo((n, m), tn.float32)]).save(tmp_path / "empty.tnx")
    loaded = rt.Executable(library, tmp_path / "empty.tnx")
    for rows in range(lo, 9):
        for columns in range(lo, 9):
            x = numbers(rows, columns)
            assert_same(loaded(x), [f(tn.array(x)).numpy()])


def test_files_for_meshes_are_refused(library, tmp_path):
    info = tn.InputInfo((4,), tn.float32)
    made = tn.compile(lambda x: tn.shard(x, "data") + 1, args=[info], mesh=tn.Mesh(data=2))
    made.save(tmp_path / "f.tnx")
    with pytest.raises(rt.Failure) as caught:
        rt.Executable(library, tmp_path / "f.tnx")
    first, hint = str(caught.value).split("\n")
    assert first.endswith("f.tnx is for a mesh of workers, and the runtime runs on one device")
    assert hint == "  hint: load it with the whole library, or compile it without mesh="


def test_sizes_that_no_kernel_serves(library, tmp_path):
    """Empty tensors that were not empty together when compiling."""
    infos = [tn.InputInfo((tn.NamedDimension(name, 0, 4, 8),), tn.float32) for name in "abcde"]
    made = tn.compile(lambda *xs: [x + 1 for x in xs], args=infos)
    made.save(tmp_path / "empty.tnx")
    loaded = rt.Executable(library, tmp_path / "empty.tnx")
    assert [len(y) for y in loaded(*map(numbers, (4, 0, 2, 1, 3)))] == [4, 0, 2, 1, 3]
    with pytest.raises(rt.Failure) as caught:
        loaded(*map(numbers, (3, 0, 5, 0, 0)))
    first, hint = str(caught.value).split("\n")
    assert first == (
        "run: the file has no kernels for a=3, b=0, c=5, d=0, e=0, and the runtime has no compiler"
    )
    assert hint == "  hint: narrow the ranges, or load the file with the whole library"


def test_calls_from_several_threads(library, tmp_path):
    made, path, args = saved(tmp_path, mlp)
    f = rt.Executable(library, path)
    cases = [(args(n), flat(made(*map(tn.array, args(n))))) for n in (1, 5, 33, 64)]
    wrong = []

    def work(case):
        for _ in range(30):
            wrong.extend([case] if f(*case[0])[0].tobytes() != case[1][0].tobytes() else [])

    threads = [threading.Thread(target=work, args=(case,)) for case in cases * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.skipif(not RELEASE, reason="measured of what is shipped")
def test_the_library_is_small_and_depends_on_little(tmp_path):
    stripped = tmp_path / "rt.so"
    subprocess.run(["strip", "-o", stripped, LIBRARY], check=True)
    version = subprocess.run(["c++", "-dumpversion"], capture_output=True, text=True, check=True)
    is_newer = int(version.stdout.split(".")[0]) > 12  # gcc 14 makes 3.18 MB of the same sources
    assert stripped.stat().st_size <= (3_200_000 if is_newer else 3_000_000)
    shown = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    allowed = r"linux-vdso|ld-linux|lib(c|m|dl|pthread|stdc\+\+|gcc_s)\.so"
    assert not [line for line in shown.splitlines() if not re.search(allowed, line)]
    names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True)
    assert all(line.split()[-1].startswith("tenon_rt_") for line in names.stdout.splitlines())


@pytest.mark.compiles
@pytest.mark.skipif(not RELEASE or not shutil.which("gcc"), reason="needs gcc")
def test_the_c_program_leaks_nothing(tmp_path):
    _, path, _ = saved(tmp_path, geglu)
    program = tmp_path / "run_model"
    source = ROOT / "examples" / "c" / "run_model.c"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-g", f"-I{ROOT / 'include'}"]
    link = [f"-L{BUILD}", "-ltenon_rt", f"-Wl,-rpath,{BUILD}"]
    sanitized = ["-fsanitize=address", *flags, str(source), *link, "-o", str(program)]
    subprocess.run(["gcc", *sanitized], check=True)
    env = {"TRUST": "1", "TENON_NUM_THREADS": "2"}
    done = subprocess.run([program, path], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "x: [8, 16]" in done.stdout and "result: [8, 32]" in done.stdout


@pytest.mark.compiles
@pytest.mark.skipif(not RELEASE, reason="compilers without sanitizers")
def test_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / "docs" / "tutorial" / "09-deployment.md"
    compilers = {"c": ["gcc", "-std=c99"], "cpp": ["g++", "-std=c++20"]}
    link = [f"-I{ROOT / 'include'}", f"-L{BUILD}", "-ltenon_rt", f"-Wl,-rpath,{BUILD}"]
    found = test_docs.blocks(path)
    for block, output in zip(found, found[1:]):
        where = f"{path.name}:{block.line}"
        if block.language == "python":
            test_docs.run_block(block.text, {}, where)
        if block.language not in compilers or not test_docs.is_program(block):
            continue
        source = tmp_path / f"main.{block.language}"
        source.write_text(block.text)
        compiler = compilers[block.language]
        subprocess.run([*compiler, str(source), *link, "-o", "program"], check=True)
        done = subprocess.run([str(tmp_path / "program")], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        assert test_docs.matches(output.text, done.stdout), f"{where} prints\n{done.stdout}"


SHARER = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
import runtime_library as rt
f = rt.Executable(rt.open_library({library!r}), {path!r})
f(np.ones((1, 4096), np.float32))
print("ready", flush=True)
sys.stdin.readline()
shared = 0
with open("/proc/self/smaps") as maps:
    for line in maps:
        if "-" in line.split()[0]:
            ours = {path!r} in line
        elif line.startswith("Pss:") and ours:
            shared += int(line.split()[1])
print(shared, flush=True)
"""


def test_processes_share_the_weights(tmp_path):
    """Each of two is charged for half of them."""
    weights = tn.array(numbers(4096, 4096))
    made = tn.compile(lambda x: x @ weights, args=[tn.InputInfo((1, 4096), tn.float32)])
    path = tmp_path / "large.tnx"
    made.save(path)
    tests = str(pathlib.Path(__file__).parent)
    program = SHARER.format(tests=tests, library=str(LIBRARY), path=str(path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    two = [subprocess.Popen([sys.executable, "-c", program], **pipes) for _ in range(2)]
    for p in two:
        assert p.stdout.readline() == "ready\n"
    megabytes = [int(p.communicate("\n")[0]) / 1024 for p in two]
    assert all(p.returncode == 0 for p in two)
    assert 28 < megabytes[0] < 40  # of 64; the second is alone when it looks
