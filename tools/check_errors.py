#!/usr/bin/env python3
"""Check that tests reach every place that raises an error.

    TENON_ERROR_SITES=sites.log ctest ...; python tools/check_errors.py sites.log

The library appends a line to the file that TENON_ERROR_SITES names for every error it raises
(src/base/error.h); tools/error_sites does so for `raise` in Python. This program scans the sources
for the places that raise errors, and fails for those that are neither in the log nor in
tools/unreached_errors.txt, which gives a reason for each. Statements that pass an error on are not
such places. With --add it appends them to that file as "no test yet", to be replaced by a test or
a reason: such an entry fails too. An entry that tests reach, or whose error is gone, fails unless
its reason begins with "depends on", because not every machine reaches it.
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tools/unreached_errors.txt"
UNTESTED = "no test yet"
VARIES = "depends on"

# Definitions of functions that raise an error at the line of their caller.
RAISES = re.compile(r"\bvoid (\w+)\((?=(?:[^{;]|\{\})*(?:ErrorText<|__builtin_LINE))")
STRING = r'"(?:[^"\\\n]|\\.)*"'
SKIPPED = re.compile(rf'//[^\n]*|R"\((?:.|\n)*?\)"|{STRING}|\'(?:[^\'\\\n]|\\.)+\'')


# Errors that are thrown without `fail`. They have a text, unless they pass another error on.
THROWS = re.compile(r"(?<!\w)throw [\w:]+\(")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def cpp_files():
    for folder in ("include", "src", "python/src"):
        yield from sorted((ROOT / folder).rglob("*.h"))
        yield from sorted((ROOT / folder).rglob("*.cpp"))


def end_of_call(text, start):
    """The position after the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at + 1
    return len(text)


def cpp_sites():
    """(path, first line, last line, message) of calls that raise errors."""
    texts = {path: path.read_text() for path in cpp_files()}
    names = {path: set(RAISES.findall(text)) for path, text in texts.items()}
    shared = {name for path in names if path.suffix == ".h" for name in names[path]}
    for path, text in texts.items():
        if path.name == "error.h" and path.parent.name == "base":
            continue
        code = SKIPPED.sub(blank, text)
        known = "|".join(sorted(shared | names[path]))
        for call in re.finditer(rf"(?<!\w)({known})\((?!\))", code):
            if code[: call.start()].rstrip().endswith("void"):  # a definition
                continue
            end = end_of_call(code, call.end() - 1)
            first = code.count("\n", 0, call.start()) + 1
            message = "".join(s[1:-1] for s in re.findall(STRING, text[call.end() : end]))
            yield path, first, code.count("\n", 0, end) + 1, message


def thrown_sites():
    """The same of errors that are thrown without `fail`: the line before may log them."""
    for path in cpp_files():
        text = path.read_text()
        code = SKIPPED.sub(blank, text)
        for call in THROWS.finditer(code):
            end = end_of_call(code, call.end() - 1)
            arguments = text[call.end() : end - 1]
            message = "".join(s[1:-1] for s in re.findall(STRING, arguments))
            has_text = len(message) > 8 or "Fault::" in arguments
            if has_text and "what()" not in arguments and path.parent.name != "base":
                first = code.count("\n", 0, call.start())
                yield path, first, code.count("\n", 0, end) + 1, message or arguments


def python_message(call, lines):
    """The source of the text of an error; of a variable, the line that assigns it."""
    text = ast.unparse(call.args[1]) if len(call.args) > 1 else ast.unparse(call)
    if text.isidentifier():
        before = [line.strip() for line in lines[: call.lineno]]
        text = next((s for s in reversed(before) if s.startswith(f"{text} = ")), text)
    return text


def python_sites():
    for path in sorted((ROOT / "python/tenon").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                if ast.unparse(node.exc.func) != "SystemExit":
                    yield path, node.lineno, node.end_lineno, ast.unparse(node.exc)
            elif isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
                name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
                if name == "_fail":
                    message = python_message(node, text.splitlines())
                    yield path, node.lineno, node.end_lineno, message


def site_hash(path):
    """As ErrorSite::here: of the folder and the file."""
    value = 0xCBF29CE484222325
    for byte in "/".join(path.parts[-2:]).encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value % 2**48


def reached_lines(logs, paths):
    """{path: lines} of the sites in the logs."""
    hashes = {}
    for path in paths:
        if hashes.setdefault(site_hash(path), path) != path:
            sys.exit(f"{path} and {hashes[site_hash(path)]} have one hash: rename one of them")
    lines = {}
    for entry in {line for log in logs for line in pathlib.Path(log).read_text().split("\n")}:
        if re.fullmatch(r"[0-9a-f]{16}", entry):
            path, line = hashes.get(int(entry[:12], 16)), int(entry[12:], 16)
        elif match := re.fullmatch(r".*/tenon/(.*):(\d+)", entry):
            path, line = ROOT / "python/tenon" / match[1], int(match[2])
        else:
            continue
        lines.setdefault(path, set()).add(line)
    return lines


def key_of(path, message):
    """What stands for a site in the list: it survives that lines and folders change."""
    return path.name, " ".join(message.replace("|", "/").split())[:70].rstrip()


def allowed_sites():
    """{(file name, beginning of the message): reason}"""
    lines = [line for line in ALLOWED.read_text().splitlines() if line and line[0] != "#"]
    entries = [[part.strip() for part in line.split(" | ")] for line in lines]
    return {(name, message): reason for name, message, reason in entries}


def main():
    arguments = [arg for arg in sys.argv[1:] if arg != "--add"]
    sites = [*cpp_sites(), *thrown_sites(), *python_sites()]
    lines = reached_lines(arguments, {site[0] for site in sites})
    allowed, unreached = allowed_sites(), []
    for path, first, last, message in sites:
        if not lines.get(path, set()) & set(range(first, last + 1)):
            unreached.append((path, first, key_of(path, message)))
    new = [site for site in unreached if site[2] not in allowed]
    for path, first, (_, message) in new:
        print(f"{path.relative_to(ROOT)}:{first}: no test reaches: {message}")
    stale = sorted(allowed.keys() - {key for _, _, key in unreached})
    stale = [entry for entry in stale if not allowed[entry].startswith(VARIES)]
    for entry in stale:
        print(f"{ALLOWED.name}: tests reach it, or it is gone: {' | '.join(entry)}")
    for path, first, key in unreached:
        if allowed.get(key) == UNTESTED:
            print(f"{path.relative_to(ROOT)}:{first}: {UNTESTED}: {key[1]}")
    if "--add" in sys.argv:
        with ALLOWED.open("a") as file:
            for entry in sorted({key for _, _, key in new}):
                file.write(f"{' | '.join(entry)} | {UNTESTED}\n")
    untested = sum(allowed.get(key, UNTESTED) == UNTESTED for _, _, key in unreached)
    print(f"{len(sites)} error sites: {len(sites) - len(unreached)} reached by tests, ", end="")
    print(f"{len(unreached) - untested} with a reason, {untested} without a test")
    sys.exit(bool(new or stale or untested))


if __name__ == "__main__":
    main()
