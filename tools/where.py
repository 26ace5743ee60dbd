#!/usr/bin/env python3
"""Print the files that have all the given words, or parts of words: tools/where.py pickl tensor.

First come those with the most words in their path and purpose, then those with the most in their
text. A file states its purpose in its first comment. A source that begins with its header has that
of the header. `--check` fails if some file states none.
"""
import re
import signal
import sys

from sources import ROOT, hand_written, text_of

KINDS = (".cpp", ".cu", ".cuh", ".h", ".py", ".sh", ".cmake")
SHOWN = 20
FOLDERS = ("src", "include", "python/src", "tests/cpp")  # of headers
COMMENT = re.compile(r'^(?:///?|#|""")(?!!|pragma|include) ?.+$', re.M)
MARK = re.compile(r'^(?:///?|#|""")? ?|"""$')


def first_sentence(text):
    """The first comment, up to a line that ends a sentence, as one line."""
    found = COMMENT.search(text)
    lines = []
    for line in text[found.start() :].splitlines() if found else ():
        lines.append(MARK.sub("", line.strip()))
        if not lines[-1] or lines[-1][-1] in ".:":
            break
    return " ".join(lines).strip()


def purpose(path):
    text = text_of(path)
    own = re.match(r'#include "(.+)"', text)
    headers = [ROOT / folder / own[1] for folder in FOLDERS] if own else []
    header = next((header for header in headers if header.exists()), None)
    return first_sentence(header.read_text() if header else text)


def main():
    words = [word.lower() for word in sys.argv[1:]]
    found = {path: purpose(path) for path in hand_written(*KINDS)}
    if words == ["--check"]:
        silent = [path for path, said in found.items() if not said]
        for path in silent:
            print(f"{path}: begin with a comment that states the purpose of the file")
        sys.exit(bool(silent))
    if not words:
        sys.exit(__doc__)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # where.py ... | head
    ranked = []
    for path, said in found.items():
        line = f"{path}: {said}"
        text = text_of(path).lower()
        if all(word in line.lower() or word in text for word in words):
            told = sum(word in line.lower() for word in words)
            ranked.append((-told, -sum(text.count(word) for word in words), line))
    for _, _, line in sorted(ranked)[:SHOWN]:
        print(line)
    if len(ranked) > SHOWN:
        print(f"... and {len(ranked) - SHOWN} more")


if __name__ == "__main__":
    main()
