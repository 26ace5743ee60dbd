#!/usr/bin/env python3
"""Run every test of a built tree and end with a summary; --asan runs those of build/asan."""
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITES = ROOT / "build/release/error_sites.log"  # errors that the tests reach

# Tests that run once more with an emulated device as the default.
EMULATED = [
    f"tests/python/test_{name}.py"
    for name in (
        "ops derivatives transforms control_flow_trees compile nn optim amp checkpoints "
        "executables executable_files random lazy"
    ).split()
]


def sanitized_python():
    """Environment in which an ordinary Python loads a sanitized module."""
    preload = []
    for name in ("libasan.so", "libstdc++.so"):  # the second lets it intercept throwing
        command = ["g++", f"-print-file-name={name}"]
        preload.append(subprocess.check_output(command, text=True).strip())
    return {
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT / "build/asan/python"),
    }


def steps(asan):
    """(name, command, extra environment, what must exist for it to run)"""
    python = sys.executable
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"]
    if asan:
        yield "C++ tests", ["ctest", "--preset", "asan"], {}, "build/asan/tenon_tests"
        # Frames of sanitized code are several times larger.
        deep = ["sh", "-c", 'ulimit -s 65536 && exec "$@"', "sh"]
        yield "Python tests", deep + pytest, sanitized_python(), "tests/python"
        return
    tenon = "build/release/tenon"
    yield "lint", [python, "tools/lint.py"], {}, "tools/lint.py"
    yield "levels", [python, "tools/check_levels.py", "build/release"], {}, "src"
    yield "generated files", [tenon, "gen", "--check"], {}, "src/cli"
    yield "site", [python, "tools/site/build.py"], {}, "docs"
    hook = os.pathsep.join([str(ROOT / "tools/error_sites"), os.environ.get("PYTHONPATH", "")])
    logged = {"TENON_ERROR_SITES": str(SITES), "PYTHONPATH": hook.rstrip(os.pathsep)}
    SITES.write_text("")
    yield "C++ tests", ["ctest", "--preset", "release"], logged, "tests/cpp"
    yield "Python tests", pytest, logged, "tests/python"
    yield "error sites", [python, "tools/check_errors.py", str(SITES)], {}, "src"
    placed = {"TENON_EMULATED_DEVICES": "2", "TENON_DEVICE": "emu:0"}
    yield "emulated device", pytest[:-1] + EMULATED, placed, "src/backend/emulated"
    calls = [python, "tests/fuzz/api.py", "--calls", "2000"]
    yield "hostile calls", calls, {}, "tests/fuzz/api.py"
    yield "installed library", ["tests/install/run.sh", "build/release"], {}, "include/tenon"


class Fuzzer:
    """Looks for files, texts and calls that do harm, while the other tests run."""

    log = ROOT / "build/release/fuzz.log"

    def __init__(self):
        self.began = time.monotonic()
        with open(self.log, "w") as out:
            command = ["nice", "tests/fuzz/run.sh", "30"]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)

    def result(self):
        failed = self.process.wait()
        if failed:
            print(f"\n== bad files: {self.log}", *self.log.read_text().splitlines()[-40:], sep="\n")
        return "bad files", "FAILED" if failed else "passed", time.monotonic() - self.began


def main():
    # Tests of Ctrl-C need it, and what runs in the background may have been started without.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asan = "--asan" in sys.argv[1:]
    results = []
    fuzzer = None if asan else Fuzzer()
    for name, command, extra, needed in steps(asan):
        if not (ROOT / needed).exists():
            results.append((name, "absent", 0.0))
            continue
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        env = os.environ | {"TENON_CACHE": "0"} | extra  # they see what this build compiles
        code = subprocess.run(command, cwd=ROOT, env=env).returncode
        results.append((name, "FAILED" if code else "passed", time.monotonic() - began))
    if fuzzer:
        results.append(fuzzer.result())
    print("\n== summary")
    for name, verdict, seconds in results:
        print(f"{name:<20}{verdict:>8}{seconds:>9.1f} s")
    failed = [name for name, verdict, _ in results if verdict == "FAILED"]
    print("FAILED: " + ", ".join(failed) if failed else "all passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
