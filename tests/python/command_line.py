"""Runs the command `tenon`."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TENON = ROOT / "build/release/tenon"
PYTHON = [sys.executable, "-m", "tenon"]
PATHS = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)


def tenon(*args, cwd=None, command=(TENON,), env=None, **options):
    env = os.environ | {"PYTHONPATH": PATHS, "TENON_PYTHON": sys.executable} | (env or {})
    return subprocess.run([*command, *map(str, args)], cwd=cwd, env=env, text=True,
                          capture_output=True, **options)


def answer(*args, **options):
    """The standard output of a command that succeeds."""
    done = tenon(*args, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*args, code=1, **options):
    """The message of a command that fails."""
    done = tenon(*args, **options)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == "" and done.stderr.startswith("tenon: ")
    return done.stderr
