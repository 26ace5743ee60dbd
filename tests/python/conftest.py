"""The tests import their helpers by name, and leave settings of the library as they found them."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import tenon as tn  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "recipe: compiles; about ten seconds")


@pytest.fixture(autouse=True)
def settings_restored():
    threads = tn.num_threads()
    yield
    if tn.num_threads() != threads:
        tn.set_num_threads(threads)
