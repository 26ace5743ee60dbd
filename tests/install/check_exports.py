#!/usr/bin/env python3
"""Fail unless a libtenon.so exports what the public headers declare, and nothing else.

    check_exports.py LIBRARY HEADERS VERSION
"""
import pathlib
import re
import subprocess
import sys

NESTED = re.compile(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}")


def exported(library):
    """(mangled, demangled) of each symbol, both with the version of the symbol."""
    command = ["nm", "-D", "--defined-only", "--format=posix", library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    names = [line.split()[0] for line in lines if line.split()[1] != "A"]
    bare = "\n".join(name.split("@")[0] for name in names)
    readable = subprocess.run(["c++filt"], input=bare, check=True, capture_output=True, text=True)
    return list(zip(names, readable.stdout.splitlines(), strict=True))


def scopes_of(name):
    """The parts of a qualified name, without arguments: tn::nn::f(int) -> [tn, nn, f]."""
    name = re.sub(r"^(typeinfo name|typeinfo|vtable|VTT|guard variable) for ", "", name)
    name = re.sub(r"\[abi:\w+\]", "", name)
    name = re.sub(r"\boperator [\w:].*", "operator", name)  # a conversion
    name = re.sub(r"\boperator\W+?(?=\()", "operator", name)
    while NESTED.search(name):
        name = NESTED.sub("", name)
    return re.sub(r"( const)?( ?&{1,2})?$", "", name).split()[-1].split("::")


def main():
    library, folder, version = sys.argv[1:]
    headers = "\n".join(p.read_text() for p in pathlib.Path(folder).rglob("*.h"))
    words = set(re.findall(r"\w+", headers))
    private = set(re.findall(r"^ +struct (\w+);", headers, re.M))  # exported with their class
    faults = []
    names = set()
    for symbol, name in exported(library):
        if name.startswith("std::vector<tn::Tensor["):  # instantiated in the library
            continue
        parts = scopes_of(name)
        names.add(parts[-1])
        if not symbol.endswith("@" + version):
            faults.append(f"without the version {version}: {name}")
        named = parts[: next((i for i, p in enumerate(parts) if p in private), len(parts))]
        if parts[0] != "tn" or not words.issuperset(p.lstrip("~") for p in named):
            faults.append(f"exported, but in no public header: {name}")
    ops = re.findall(r"^\w+ (\w+)\(", (pathlib.Path(folder) / "ops.h").read_text(), re.M)
    faults += [f"declared, but not exported: {op}" for op in sorted(set(ops) - names)]
    print("\n".join(faults) or f"exports: {len(names)} names, {len(set(ops))} ops among them")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
