#!/usr/bin/env python3
"""Run every test of a built tree and end with a summary; --asan runs those of build/asan.

Two steps run beside each other. A step prints what it has to say when it ends.
"""
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITES = ROOT / "build/release/error_sites.log"  # errors that the tests reach
LANES = 2  # steps at a time
SHARES = 4  # into which the Python tests are dealt

# Tests that run once more with an emulated device as the default.
EMULATED = [
    f"tests/python/test_{name}.py"
    for name in (
        "ops derivatives transforms control_flow_trees compile nn optim amp checkpoints "
        "executables executable_files random lazy"
    ).split()
]


@dataclasses.dataclass
class Step:
    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    needs: str = "src"  # a path without which it is left out
    after: tuple = ()  # starts when the steps whose names begin so are done
    verdict: str = ""  # "", "running", "passed", "FAILED" or "absent"
    seconds: float = 0.0

    def run(self):
        began = time.monotonic()
        with tempfile.TemporaryFile() as out:
            env = os.environ | {"TENON_CACHE": "0"} | self.env  # they see what this build compiles
            code = subprocess.call(self.command, cwd=ROOT, env=env, stdout=out, stderr=out)
            out.seek(0)
            text = out.read().decode(errors="replace")
        self.seconds = time.monotonic() - began
        self.verdict = "FAILED" if code else "passed"
        print(f"\n== {self.name}\n{text}", end="", flush=True)


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


def python_tests(before, env):
    """The tests of Python in shares of about equal size; `before` starts each command."""
    files = sorted((ROOT / "tests/python").rglob("test_*.py"), key=lambda f: -f.stat().st_size)
    for share in range(SHARES):
        mine = [str(f.relative_to(ROOT)) for f in files[share::SHARES]]
        yield Step(f"Python tests {share + 1}", before + mine, env, "tests/python")


def steps(asan):
    python = sys.executable
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if asan:
        yield Step("C++ tests", ["ctest", "--preset", "asan"], {}, "build/asan/tenon_tests")
        # Frames of sanitized code are several times larger.
        deep = ["sh", "-c", 'ulimit -s 65536 && exec "$@"', "sh"]
        # Reports of sanitizers, which end the program, are not captured.
        yield from python_tests(deep + pytest + ["--capture=sys"], sanitized_python())
        return
    tenon = "build/release/tenon"
    hook = os.pathsep.join([str(ROOT / "tools/error_sites"), os.environ.get("PYTHONPATH", "")])
    logged = {"TENON_ERROR_SITES": str(SITES), "PYTHONPATH": hook.rstrip(os.pathsep)}
    SITES.write_text("")
    yield Step("lint", [python, "tools/lint.py"])
    # Looks for files, texts and calls that do harm.
    yield Step("bad files", ["nice", "tests/fuzz/run.sh", "30"], {}, "tests/fuzz/run.sh")
    yield Step("C++ tests", ["ctest", "--preset", "release"], logged, "tests/cpp")
    yield from python_tests(pytest, logged)
    placed = {"TENON_EMULATED_DEVICES": "2", "TENON_DEVICE": "emu:0"}
    yield Step("emulated device", pytest + EMULATED, placed, "src/backend/emulated")
    yield Step("installed library", ["tests/install/run.sh", "build/release"])
    yield Step("site", [python, "tools/site/build.py"], {}, "docs")
    yield Step("hostile calls", [python, "tests/fuzz/api.py", "--calls", "2000"])
    yield Step("levels", [python, "tools/check_levels.py", "build/release"])
    yield Step("generated files", [tenon, "gen", "--check"])
    sites = [python, "tools/check_errors.py", str(SITES)]
    yield Step("error sites", sites, after=("C++ tests", "Python tests"))


def work(todo, lock):
    """Run steps until none is left; those that wait for others come later."""
    while True:
        with lock:
            busy = [s.name for s in todo if s.verdict in ("", "running")]
            ready = (
                s
                for s in todo
                if not s.verdict and not any(n.startswith(s.after) for n in busy if s.after)
            )
            step = next(ready, None)
            if step:
                step.verdict = "running"
            elif not any(not s.verdict for s in todo):
                return
        if step:
            step.run()
        else:
            time.sleep(0.1)


def main():
    # Tests of Ctrl-C need it, and what runs in the background may have been started without.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    todo = list(steps("--asan" in sys.argv[1:]))
    for step in todo:
        if not (ROOT / step.needs).exists():
            step.verdict = "absent"
    lock = threading.Lock()
    lanes = [threading.Thread(target=work, args=(todo, lock), daemon=True) for _ in range(LANES)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    print("\n== summary")
    for step in todo:
        print(f"{step.name:<20}{step.verdict:>8}{step.seconds:>9.1f} s")
    failed = [step.name for step in todo if step.verdict == "FAILED"]
    print("FAILED: " + ", ".join(failed) if failed else "all passed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
