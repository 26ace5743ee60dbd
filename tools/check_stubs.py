#!/usr/bin/env python3
"""Compare the stubs of tenon._core with the compiled module, by mypy's stubtest.

check_stubs.py FOLDER compares those of the package in another folder than build/release/python.
tests/typing/stubtest_allowlist.txt has the differences that are meant, with reasons.
"""
import os
import re
import subprocess
import sys

from sources import ROOT

ALLOWLIST = ROOT / "tests/typing/stubtest_allowlist.txt"


def main():
    build = sys.argv[1] if sys.argv[1:] else str(ROOT / "build/release/python")
    env = os.environ | {"PYTHONPATH": build, "MYPYPATH": build, "TENON_CACHE": "0"}
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "tenon._core"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    allowed = [x for x in ALLOWLIST.read_text().splitlines() if x and not x.startswith("#")]
    unused, faults = set(allowed), []
    for line in done.stdout.splitlines():
        matching = {x for x in allowed if re.search(x, line)}
        unused -= matching
        if not matching:
            faults.append(line)
    if not done.stdout:  # it could not begin
        faults.append(done.stderr)
    faults += [f"{ALLOWLIST.name}: matches nothing: {x}" for x in sorted(unused)]
    print("\n".join(faults) or "stubs: those of the module")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
