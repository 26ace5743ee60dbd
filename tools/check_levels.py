#!/usr/bin/env python3
"""Fail when code compiled for a newer CPU could be linked in place of generic code.

An inline function that a *.level.cpp file takes from a header becomes a shared symbol; the linker
keeps one copy, perhaps the one with AVX-512 in it, for the whole program. So the objects of the
upper levels may define global symbols only inside their own namespace.
"""
import pathlib
import subprocess
import sys


def leaks(build):
    for level in ("v3", "v4"):
        for path in sorted(build.glob(f"CMakeFiles/tenon_level_{level}.dir/**/*.o")):
            command = ["nm", "-C", "-g", "--defined-only", str(path)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for line in out.splitlines():
                name = line.split(maxsplit=2)[2]
                if f"tn::{level}::" not in name:
                    yield f"{path.name} ({level}): {name}"


def main():
    found = list(leaks(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "levels: nothing leaks into generic code")
    if found:
        sys.exit("put what the level file uses into namespace tn::TN_LEVEL or an unnamed one")


if __name__ == "__main__":
    main()
