#!/usr/bin/env python3
"""Report sizes: lines per folder, and whatever is over its limit.

One rule: over the limit is listed; over it by more than a fifth fails. Lines over 100 columns fail.
Function lengths are read from the layout of the text, so they are only listed. Generated files,
which say so on line 1, are exempt. Pages with a limit of their own fail beyond it.
"""
import ast
import collections
import re
import sys

from sources import is_generated, listed_files, text_of

HEADER, SOURCE, FUNCTION, COLUMNS = 200, 500, 60, 100
PAGES = {"README.md": 150, "ARCHITECTURE.md": 250}  # what a reader reads first, in lines
SUFFIXES = {".h", ".cpp", ".py", ".pyi", ".sh", ".cmake"}
NOT_A_FUNCTION = re.compile(
    r"\s*(namespace|struct|class|enum|union|if|for|while|switch|else|do|return|case|#|//|\}|public"
    r"|private|using|template|static_assert)"
)


def cpp_functions(lines):
    """(first line, length) of what looks like a function: opened at an indent of 0 or 2."""
    at = 0
    while at < len(lines):
        line = lines[at]
        indent = len(line) - len(line.lstrip())
        start, at = at, at + 1
        if indent not in (0, 2) or "(" not in line or NOT_A_FUNCTION.match(line):
            continue
        opened = start
        while opened < min(start + 8, len(lines)) and not re.search(r"[;{}]\s*$", lines[opened]):
            opened += 1
        if opened >= len(lines) or not lines[opened].endswith("{"):
            continue
        close = " " * indent + "}"
        ends = (i for i in range(opened + 1, len(lines)) if lines[i].startswith(close))
        end = next(ends, None)
        if end is not None:
            yield start + 1, end - start + 1
            at = end + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def judge(path, text, notes, faults):
    lines = text.splitlines()
    limit = HEADER if path.suffix == ".h" else SOURCE
    if len(lines) > limit:
        over = faults if len(lines) > limit * 6 // 5 else notes
        over.append(f"{path}: {len(lines)} lines, limit {limit}")
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            faults.append(f"{path}:{number}: {len(line)} columns, limit {COLUMNS}")
    functions = ()
    if path.suffix in (".h", ".cpp"):
        functions = cpp_functions(lines)
    elif path.suffix == ".py":
        functions = python_functions(text)
    for number, length in functions:
        if length > FUNCTION:
            notes.append(f"{path}:{number}: function of about {length} lines, limit {FUNCTION}")


def folder_of(path):
    depth = 2 if path.parts[0] in ("src", "python", "tests") else 1
    return "/".join(path.parts[:-1][:depth]) or "(root)"


def main():
    notes, faults = [], []
    for page, limit in PAGES.items():
        lines = len(text_of(page).splitlines())
        if lines > limit:
            faults.append(f"{page}: {lines} lines, limit {limit}")
    table = collections.defaultdict(lambda: [0, 0, 0])
    for path in listed_files():
        if path.suffix not in SUFFIXES and path.name != "CMakeLists.txt":
            continue
        text = text_of(path)
        generated = is_generated(text)
        row = table[folder_of(path)]
        row[0] += 1
        row[2 if generated else 1] += text.count("\n")
        if not generated:
            judge(path, text, notes, faults)
    print(f"{'folder':<20}{'files':>7}{'lines':>9}{'generated':>11}")
    for folder, row in sorted(table.items()):
        print(f"{folder:<20}{row[0]:>7}{row[1]:>9}{row[2]:>11}")
    total = [sum(column) for column in zip(*table.values())]
    print(f"{'total':<20}{total[0]:>7}{total[1]:>9}{total[2]:>11}")
    for note in notes:
        print("note:", note)
    for fault in faults:
        print("fault:", fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
