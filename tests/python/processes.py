"""Processes that tests start."""

import os
import subprocess
import sys


def environment(**variables):
    """This one's without settings of the library, and with `variables`."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TENON_") or name in ("TENON_CACHE", "TENON_ERROR_SITES")}
    return {**kept, **variables}


def run_on_mock(text, **variables):
    """What a program on a mock of a GPU prints."""
    here = os.path.dirname(__file__)
    lines = ["import sys", f"sys.path.insert(0, {here!r})", "import tenon as tn", text]
    env = {n: v for n, v in os.environ.items() if n != "TENON_DEVICE"} | {"TENON_CUDA_MOCK": "1"}
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, env=env | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
