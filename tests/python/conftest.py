"""The tests import their helpers by name, and leave settings of the library as they found them."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("TENON_CACHE", "0")  # tests see what this build compiles
os.environ.setdefault("TENON_EMULATED_DEVICES", "2")  # which only builds with tests have

import tenon as tn

# Types and attributes are counted from the first one on: what goes too early shows in some test.
tn._core._set_lasting_count(0)


def pytest_configure(config):
    config.addinivalue_line("markers", "compiles: runs a compiler, for some seconds")
    config.addinivalue_line("markers", "resident: measures the memory of the process")
    config.addinivalue_line("markers", "forks: forks while other threads allocate memory")
    config.addinivalue_line("markers", "host: shows what is so with the host as default device")
    config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")  # NumPy's, of overflow


def pytest_collection_modifyitems(items):
    """A compiler under a preloaded sanitizer is slow and proves nothing. The memory of a process
    includes what was freed and a sanitizer keeps. Its allocator has locks that a fork does not
    take, so that they may stay locked in the child.

    With TENON_DEVICE=emu:0 the tests run on an emulated device (tools/run_tests.py). With
    TEST_SHARE=2/6 every sixth test runs, from the second on (tools/test_cuda.sh)."""
    share, shares = map(int, os.environ.get("TEST_SHARE", "1/1").split("/"))
    items[:] = items[share - 1 :: shares]
    if tn.default_device() != "cpu":
        for item in items:
            if item.get_closest_marker("host"):
                item.add_marker(pytest.mark.skip("of the host"))
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        return
    for item in items:
        if any(item.get_closest_marker(name) for name in ("compiles", "resident", "forks")):
            item.add_marker(pytest.mark.skip("not under a sanitizer"))


@pytest.fixture(autouse=True)
def settings_restored():
    threads = tn.num_threads()
    yield
    if tn.num_threads() != threads:
        tn.set_num_threads(threads)
