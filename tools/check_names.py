#!/usr/bin/env python3
"""Fail on names and words that the house rules exclude."""
import re
import sys

from sources import listed_files, text_of

VAGUE = re.compile(r"(^|[/_.-])(utils?|common|misc|helpers?|v2)([/_.-]|$)")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b(?!\s*\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w./$}*-])/(?:work|root|home)(?![\w.-])")
OUTPUT = re.compile(r"\bstd::(cout|cerr|clog)\b|\b(f?printf|puts|abort|_?exit|quick_exit)\s*\(")
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


def main():
    faults = []
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
