#!/usr/bin/env python3
"""Fail on names and words that the house rules exclude."""
import collections
import re
import sys

from sources import is_generated, listed_files, text_of

VAGUE = re.compile(r"(^|[/_.-])(utils?|common|misc|helpers?|v2)([/_.-]|$)")
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E)\b(?!\s*\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w./$}*-])/(?:work|root|home)(?![\w.-])")
OUTPUT = re.compile(r"\bstd::(cout|cerr|clog)\b|\b(f?printf|puts|abort|_?exit|quick_exit)\s*\(")
DEVICE_MEMORY = re.compile(r"\bbuffer(\(\))?(\.data\b|(->|\.)address\b)|\bhost_address\(")
# `host_address` fails for memory of devices: these know that theirs is the host's.
OWNERS_OF_MEMORY = ("src/runtime/buffer", "src/backend/", "src/mesh/", "src/eval/tensor.cpp")
NAMESPACE = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{(?!.*\})")
TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?)\s+"
                  r"(?:\[\[.*?\]\]\s*)?(\w+(?:::\w+)*)[^;<]*\{")
ROOMS = ("src", "include", "python/src", "python/tenon")  # where a file is found by its name
PACKAGE_FILES = ("__init__", "__main__")
SHARED_FILE_NAMES = {  # file name without suffixes: why two folders have it
    "checks": "of the arguments of layers, in the languages of nn",
    "layers": "of nn and of models, in both languages",
    "physical": "the model that runs, in both languages",
    "weights": "initial and saved ones, in the languages of nn",
    "top": "python -m tenon.top and tenon.scripts.top are one command",
    "trace": "python -m tenon.trace is a command; src/ir/trace.h is tracing",
    "visualize": "python -m tenon.visualize and tenon.scripts.visualize are one command",
}
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|//.*')


def line_faults(path, line):
    word = UNFINISHED.search(line)
    if word:
        yield f"{word[1]} without an issue number, as {word[1]}(#12)"
    if MACHINE_PATH.search(line):
        yield "path of one machine"
    in_library = path.parts[0] == "src" and path.parts[1] != "cli" and path.suffix in (".h", ".cpp")
    if in_library:
        call = OUTPUT.search(LITERAL.sub('""', line))
        if call:
            yield f"the library never prints or ends the process: {call[0].rstrip('( ')}"
    in_code = path.parts[0] in ("src", "python") and path.suffix in (".h", ".cpp")
    if in_code and not str(path).startswith(OWNERS_OF_MEMORY) and DEVICE_MEMORY.search(line):
        yield "the host reads values through HostView"


def types_defined(text):
    """Names of the classes that other files would see, with their namespaces."""
    spaces = []
    for line in text.splitlines():
        opened, defined = NAMESPACE.match(line), TYPE.match(line)
        if opened:
            spaces.append(opened[1] or "")
        elif line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif defined and spaces and all(spaces):
            yield "::".join([*spaces, defined[1]])


def shared_names(paths):
    """Two classes of one name in one program: the linker takes members of either for both."""
    homes = collections.defaultdict(list)
    for path in paths:
        library = path.parts[0] in ("src", "include") or path.parts[:2] == ("python", "src")
        if library and path.suffix in (".h", ".cpp"):
            for name in types_defined(text_of(path)):
                homes[name].append(str(path))
    for name, files in homes.items():
        if len(files) > 1:
            yield f"{files[0]}: {name} is also defined in {', '.join(files[1:])}"


def shared_file_names(paths):
    """File names that lead to several folders. A public header, its implementation and the Python
    module that offers the same are one place. Generated files name their source."""
    homes = collections.defaultdict(set)
    for path in paths:
        in_a_room = str(path).startswith(tuple(f"{room}/" for room in ROOMS))
        if in_a_room and not is_generated(text_of(path) or ""):
            homes[path.name.split(".")[0]].add(str(path.parent))
    for name, folders in sorted(homes.items()):
        public = any(folder.startswith("include") for folder in folders)
        kinds = [folder.startswith("python/tenon") for folder in folders
                 if not folder.startswith("include")]
        apart = max(kinds.count(True), kinds.count(False)) > 1 if public else len(kinds) > 1
        if apart and name not in SHARED_FILE_NAMES and name not in PACKAGE_FILES:
            yield f"{name}: files of this name are in {', '.join(sorted(folders))}"
        if not apart and name in SHARED_FILE_NAMES:
            yield f"tools/check_names.py: {name} need not be in SHARED_FILE_NAMES"


def main():
    faults = list(shared_names(listed_files())) + list(shared_file_names(listed_files()))
    for path in listed_files():
        vague = VAGUE.search(str(path))
        if vague:
            faults.append(f"{path}: the name says nothing: {vague[2]}")
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            faults += [f"{path}:{number}: {fault}" for fault in line_faults(path, line)]
    print("\n".join(faults) or "names: none that the house rules exclude")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
