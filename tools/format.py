#!/usr/bin/env python3
"""Format the C++ sources in place, with the clang-format of .venv; --check only compares.

`format.py FILE ...` formats those files.
"""
import pathlib
import subprocess
import sys

from sources import ROOT, hand_written

CLANG_FORMAT = pathlib.Path(sys.executable).parent / "clang-format"


def main():
    check = "--check" in sys.argv[1:]
    files = [name for name in sys.argv[1:] if name != "--check"]
    files = files or [ROOT / path for path in hand_written(".h", ".cpp")]
    mode = ["--dry-run", "--Werror"] if check else ["-i"]
    sys.exit(subprocess.run([CLANG_FORMAT, *mode, *files]).returncode)


if __name__ == "__main__":
    main()
