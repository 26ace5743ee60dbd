#!/usr/bin/env python3
"""Fail when a folder includes a folder, or a library, that it may not see."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

BELOW_COMPILER = "base runtime storage ir loop plan ops transforms passes sharding backend"
BELOW_EVAL = BELOW_COMPILER + " compiler executable mesh observe"
MAY_SEE = {  # folder of src/: what it may include, besides itself and the public headers
    "base": "",
    "runtime": "base",
    "storage": "base runtime",
    "workers": "base runtime ir plan ops backend",
    "ir": "base runtime",
    "loop": "base runtime ir",
    "plan": "base runtime ir loop",
    "ops": "base runtime ir loop plan",
    "transforms": "base ir loop ops",
    "passes": "base runtime ir loop plan ops",
    "sharding": "base runtime ir loop plan ops",
    "backend": "base runtime storage ir loop plan ops",
    "compiler": BELOW_COMPILER,
    "executable": BELOW_COMPILER + " compiler",
    "c_api": "base runtime ir loop plan ops backend compiler executable",
    "mesh": BELOW_COMPILER + " compiler workers",
    "observe": BELOW_COMPILER + " compiler executable mesh workers",
    "eval": BELOW_EVAL,
    "functions": BELOW_EVAL + " eval workers",
    "files": "base runtime storage ir mesh eval",
    "nn": "base ir ops transforms",
    "model": BELOW_EVAL + " eval functions nn",
    "cli": BELOW_EVAL + " eval functions files nn model workers",
}
BINDINGS = MAY_SEE["cli"] + " cli"

# A kind of device is a folder of src/backend. These see none: what they need of one goes through
# plan/target.h and plan/backend.h.
DEVICE_FREE = (
    "base storage ir loop plan ops transforms passes sharding compiler executable mesh observe "
    "eval functions files nn model").split()
DEVICE_HEADER = re.compile(r"backend/(?!source/)\w+/|runtime/native\.h")
DEVICE_TYPE = re.compile(
    r"\b(?:CpuLevel|(?:best_)?cpu_level|NativeKernel|KernelFrame|cpu::\w+|"
    r"DeviceKind::(?!count)\w+)\b")

HOMES = {  # third-party header, by its first path component: the folders that may include it
    "nanobind": ["python/src"],
    "Python.h": ["python/src"],
    "llvm": ["src/backend/llvm", "src/backend/cpu/codegen", "src/backend/cuda/codegen"],
    "llvm-c": ["src/backend/llvm"],
    "nvrtc.h": ["src/backend/cuda"],
    "cuda.h": ["src/runtime/cuda"],
    "CLI": ["src/cli"],
    "nlohmann": ["src/cli", "src/files"],
    "fmt": ["src/base"],
    "xxhash.h": ["src/storage"],
    "yaml-cpp": ["src/eval"],
    "zstd.h": ["src/storage"],
    "doctest": ["tests"],
    "benchmark": ["bench"],
}
C_HEADERS = ("stddef.h", "stdint.h")  # of the interface for C
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)')


def folder_fault(path, target):
    """Why `path` may not include "target", or None."""
    first = target.split("/")[0]
    if first == "tenon" or target == "tenon_rt.h":
        return None
    if path.parts[0] == "include":
        return f'public headers include "tenon/..." and the standard library, not "{target}"'
    if path.parts[:2] == ("python", "src"):
        return folder_rule("python/src", BINDINGS, path, target)
    here = path.parts[1]
    if here not in MAY_SEE:
        return f"src/{here} has no place in the layers; give it one in tools/check_layers.py"
    if here in DEVICE_FREE and DEVICE_HEADER.match(target):
        return f"src/{here} may not know one device: {target}"
    shared = target.startswith("backend/llvm/")  # what code generators share
    own = path.parts[2:3]
    if here == first == "backend" and not shared and own != tuple(target.split("/")[1:2]):
        if len(path.parts) > 3 and target.count("/") > 1:
            return f"a backend may not include another: {target}"
    return folder_rule(here, f"{here} {MAY_SEE[here]}", path, target)


def folder_rule(name, visible, path, target):
    first, _, rest = target.partition("/")
    if path.parts[:2] == ("python", "src") and (ROOT / "python" / "src" / target).exists():
        return None
    if not rest:
        return f'write the folder: "{target}" should be "folder/{target}"'
    return None if first in visible.split() else f"{name} may not include {first}/"


def library_fault(path, target):
    """Why `path` may not include <target>, or None."""
    homes = HOMES.get(target.split("/")[0])
    if homes and not any(path.is_relative_to(home) for home in homes):
        return f"<{target}> belongs in {' or '.join(homes)}"
    if path.parts[0] == "include" and target not in C_HEADERS and re.search(r"[./]", target):
        return f"public headers include the standard library only, not <{target}>"
    return None


def device_fault(path, line):
    """Why `path` may not have this line, or None."""
    if path.parts[0] != "src" or path.parts[1] not in DEVICE_FREE:
        return None
    named = DEVICE_TYPE.search(line.partition("//")[0])
    return f"src/{path.parts[1]} names a type of one device: {named[0]}" if named else None


def main():
    faults = []
    for top in ("include", "src", "python/src"):
        for path in sorted((ROOT / top).rglob("*.[hc]*")):
            path = path.relative_to(ROOT)
            for line, text in enumerate((ROOT / path).read_text().splitlines(), 1):
                found = INCLUDE.match(text)
                check = library_fault if found and found[1] == "<" else folder_fault
                fault = check(path, found[2]) if found else device_fault(path, text)
                if fault:
                    faults.append(f"{path}:{line}: {fault}")
    print("\n".join(faults) or "layers: includes point down")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
