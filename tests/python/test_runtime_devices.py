"""libtenon_rt on GPUs, against a mock of the driver, which it finds as it finds a driver."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import runtime_library as rt
import tenon as tn
from test_runtime import BUILD, LIBRARY, RELEASE, ROOT

MOCK = BUILD / "mock_cuda"
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or not (MOCK / "libcuda.so.1").exists(),
    reason="libtenon_rt and the mock of the driver are not built here",
)
TARGETS = ["native", "sm_80", "ptx_80"]


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def doubled(tmp_path_factory):
    """A file of the function whose kernel the mock has, with code for these targets."""
    made = tn.compile(lambda x: x * 2 + 1, args=[tn.InputInfo((4,), tn.float32)])
    folder = tmp_path_factory.mktemp("files")

    def save(*targets):
        path = folder / f"{'-'.join(targets)}.tnx"
        made.save(path, targets=list(targets or TARGETS))
        return path

    return save


def environment(**settings):
    folders = os.environ.get("LD_LIBRARY_PATH", "")
    return os.environ | {"LD_LIBRARY_PATH": f"{MOCK}:{folders}"} | settings


def in_child(path, program, env=None, **settings):
    """What a program prints in a process that has no module: `f(device)` loads the file."""
    begin = f"""
        import sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
        import ctypes
        import numpy as np
        import runtime_library as rt
        library = rt.open_library({str(LIBRARY)!r})

        def f(device="cuda", **how):
            return rt.Executable(library, {str(path)!r}, device=device, **how)

        def fails(call, *args, **how):
            try:
                call(*args, **how)
            except rt.Failure as error:
                print(error)
            else:
                print("nothing is wrong")
    """
    source = textwrap.dedent(begin) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True,
        env=environment(**settings) if env is None else env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_gpu_runs_the_code_of_the_file(doubled):
    program = """
        g = f()
        print(g.device, g.target, *g(np.arange(4, dtype=np.float32))[0])
        print(*g(np.arange(4, dtype=np.float32) * 2)[0])
        h = f("cpu")
        print(h.device, h.target[:6], *h(np.arange(4, dtype=np.float32))[0])
    """
    same = ["1.0 5.0 9.0 13.0", "cpu x86-64 1.0 3.0 5.0 7.0"]
    first = "cuda:0 {} 1.0 3.0 5.0 7.0"
    assert in_child(doubled(), program) == [first.format("sm_80"), *same]
    later = in_child(doubled(), program, MOCK_MAJOR="9")  # which no machine code of sm_80 serves
    assert later == [first.format("ptx_80"), *same]


def test_a_file_for_gpus_alone(doubled):
    program = """
        print(*f()(np.ones(4, np.float32))[0])
        fails(f, "cpu")
    """
    assert in_child(doubled("ptx_80"), program) == [
        "3.0 3.0 3.0 3.0",
        f"load: {doubled('ptx_80')}: it has code for ptx_80 only",
        "  hint: load it on a GPU, or with the whole library",
    ]


def test_results_stay_on_the_device_and_are_inputs_of_other_calls(doubled):
    program = """
        g = f()
        x = np.arange(4, dtype=np.float32)
        there = g.to_device(rt.tensor(x))
        print(there.device, there.data >> 62, *g.read(there))
        once = g.on_device(there)[0]
        twice = g.on_device(once)[0]
        print(twice.device, twice.rank, twice.shape[0], *g.read(twice))
        library.tenon_rt_release(once)
        thrice = g.on_device(twice)[0]
        print(*g.read(thrice), *g.run([twice])[0], *g.read(g.on_device(rt.tensor(x))[0]))
        other = rt.Tensor.from_buffer_copy(twice)  # memory that the caller owns
        other.owner = None
        print(*g.run([other])[0])
        fails(g.read, other)
        other.data += 4 << 60
        for result in (there, twice, thrice):
            library.tenon_rt_release(result)
        print(library.tenon_rt_read(there, None), library.tenon_rt_error().decode())
    """
    assert in_child(doubled(), program) == [
        "1 1 0.0 1.0 2.0 3.0",
        "1 1 4 3.0 7.0 11.0 15.0",
        "7.0 15.0 23.0 31.0 7.0 15.0 23.0 31.0 1.0 3.0 5.0 7.0",
        "7.0 15.0 23.0 31.0",
        "read: the tensor is not a result",
        "1 read: the tensor is not a result",
    ]


def test_streams_of_the_caller_wait_for_what_uses_the_inputs(doubled):
    program = """
        mock = ctypes.CDLL("libcuda.so.1")
        mock.mock_waits.argtypes = [ctypes.c_void_p]
        g = f()
        there = g.to_device(rt.tensor(np.ones(4, np.float32)))
        g.on_device(there, stream=1)
        print(mock.mock_waits(1))
        short = rt.Tensor.from_buffer_copy(there)
        short.shape = (ctypes.c_int64 * 1)(3)
        try:
            g.on_device(short, stream=1)
        except rt.Failure as error:
            print(str(error).split(";")[0], mock.mock_waits(1))
        fails(g.to_device, there)
        result = g.on_device(there, stream=2)[0]  # of each thread
        print(mock.mock_waits(2), mock.mock_synchronized(), *g.read(result))
        print(mock.mock_synchronized())
        library.tenon_rt_release(result)
        print(mock.mock_synchronized())
    """
    assert in_child(doubled(), program) == [
        "1",
        "function(): argument `x` has shape [3] 2",
        "to_device: x is in memory of cuda:0: it takes elements of the host",
        "1 0 3.0 3.0 3.0 3.0",
        "1",
        "2",
    ]


def test_an_executable_on_the_cpu_takes_the_same_calls(doubled):
    f = rt.Executable(rt.open_library(LIBRARY), doubled())
    x = np.ones(4, np.float32)
    there = f.to_device(rt.tensor(x))
    result = f.on_device(there)[0]
    assert f.device == "cpu" and there.device == result.device == 0
    assert f.read(result).tolist() == [3] * 4
    assert f.lib.tenon_rt_read(result, None) == 1
    assert f.lib.tenon_rt_error() == b"read: there is no memory to copy to: null"
    assert f.lib.tenon_rt_to_device(f.f, None, result) == 1  # which takes the result for empty
    assert f.lib.tenon_rt_error() == b"to_device: x is null"
    assert f.lib.tenon_rt_to_device(f.f, there, None) == 1
    assert f.lib.tenon_rt_error() == b"to_device: copy is null"
    given = rt.tensor(x)
    for device, text in [
        (2, "x: data is in memory of cuda:1, and the executable runs on cpu"),
        (-1, "x: there is no device -1"),
    ]:
        given.device = device
        with pytest.raises(rt.Failure) as refused:
            f.run([given])
        assert str(refused.value) == text
    f.lib.tenon_rt_release(there)


def test_memory_of_another_gpu_is_refused(doubled):
    program = """
        g = f()
        x = rt.tensor(np.ones(4, np.float32))
        x.device = 2
        fails(g.run, [x])
        print(f("cuda:1").device)
    """
    assert in_child(doubled(), program, MOCK_DEVICES="2") == [
        "x: data is in memory of cuda:1, and the executable runs on cuda:0",
        "cuda:1",
    ]


def test_what_is_missing_is_said_in_one_sentence(doubled):
    level = rt.Executable(rt.open_library(LIBRARY), doubled()).target

    def failure(path, device="cuda", **settings):
        return in_child(path, f"fails(f, {device!r})", **settings)

    save = "  hint: save it with code for this GPU, save(path, targets=[...]), or for all, ptx_80"
    name = "load: function: there is no code for cuda:0 ({}) in the file: it has {}"
    without = failure(doubled("native", "sm_80"), MOCK_MAJOR="9")
    assert without == [name.format("sm_90", f"{level}, sm_80"), save]
    assert failure(doubled("native")) == [name.format("sm_80", level), save]
    old = failure(doubled(), MOCK_MAJOR="3")
    assert old[0] == name.format("older than sm_70", f"{level}, ptx_80, sm_80")
    devices = "  hint: the devices are cpu"
    assert failure(doubled(), MOCK_DEVICES="0") == ["load: cuda: the driver finds no GPU", devices]
    needed = "it is for CUDA 11.8, and CUDA 12.0 (driver 525) is needed"
    assert failure(doubled(), MOCK_VERSION="11080") == [
        f"load: cuda: the driver is too old: {needed}", devices
    ]  # fmt: skip
    for wrong in ("cuda:1", "gpu"):
        assert failure(doubled(), wrong) == [
            f"load: no such device: '{wrong}'", "  hint: the devices are cpu, cuda:0"
        ]  # fmt: skip
    calls = "print(library.tenon_rt_load_on(b'f.tnx', 0, None), library.tenon_rt_error().decode())"
    assert in_child(doubled(), calls) == ["None load: the device is null"]


@pytest.mark.skipif(has_driver(), reason="there is a driver here")
def test_without_a_driver_only_the_cpu_runs_it(doubled):
    program = """
        fails(f)
        print(*f("cpu")(np.ones(4, np.float32))[0])
    """
    assert in_child(doubled(), program, env=dict(os.environ)) == [
        "load: cuda: no NVIDIA driver was found (libcuda.so.1 is missing)",
        "  hint: the devices are cpu",
        "3.0 3.0 3.0 3.0",
    ]


def test_the_default_device_of_the_environment_is_not_taken(doubled):
    program = "print(f('cpu').device, *f('cpu')(np.ones(4, np.float32))[0])"
    assert in_child(doubled(), program, TENON_DEVICE="cuda") == ["cpu 3.0 3.0 3.0 3.0"]


def test_lack_of_memory_is_an_error_and_work_goes_on(doubled):
    program = """
        g = f()
        fails(g.to_device, rt.tensor(np.ones(1 << 20, np.float32)))
        print(*g(np.ones(4, np.float32))[0])
    """
    refused, *rest, result = in_child(doubled(), program, MOCK_BYTES="4096")
    assert refused == (
        "cuda:0: not enough memory: 4.00 MiB requested, 0 bytes active, limit 4.00 KiB"
    )
    assert not rest and result == "3.0 3.0 3.0 3.0"
    refused, *report = in_child(doubled(), "fails(f(), np.ones(4, np.float32))", MOCK_BYTES="600")
    assert refused.startswith("cuda:0: not enough memory: 16 bytes requested, 16 bytes active, ")
    assert report[0].startswith("peak 16 bytes")


def compiled(tmp_path, language):
    """The example that runs any file."""
    program = tmp_path / f"run_model_{language}"
    source = ROOT / "examples" / language / f"run_model.{language}"
    compiler = {"c": ["gcc", "-std=c99"], "cpp": ["g++", "-std=c++20"]}[language]
    flags = ["-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    link = [f"-L{BUILD}", "-ltenon_rt", f"-Wl,-rpath,{BUILD}"]
    subprocess.run([*compiler, *flags, str(source), *link, "-o", str(program)], check=True)
    return program


@pytest.mark.compiles
@pytest.mark.skipif(not RELEASE or not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_examples_choose_the_device(doubled, tmp_path, language):
    program = compiled(tmp_path, language)

    def run(*options, **settings):
        command = [program, *options, doubled()]
        env = environment(TRUST="1", **settings)
        return subprocess.run(command, capture_output=True, text=True, env=env)

    on_cpu, on_gpu = run(), run("--device", "cuda")
    assert on_cpu.returncode == on_gpu.returncode == 0, on_cpu.stderr + on_gpu.stderr
    assert " on cpu\n" in on_cpu.stdout and "on the device" not in on_cpu.stdout
    assert "runs sm_80 on cuda:0\n" in on_gpu.stdout and "result: [4]" in on_gpu.stdout
    assert "on the device" in on_gpu.stdout
    refused = run("--device", "cuda", MOCK_DEVICES="0")
    assert refused.returncode == 1
    said = "run_model: load: cuda: the driver finds no GPU\n  hint: the devices are cpu\n"
    assert refused.stderr == said
