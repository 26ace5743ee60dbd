#!/usr/bin/env python3
"""Print the files that have all the given words, in other forms too: tools/where.py pickle tensor.

First come those with the most words in their path and purpose, then those with the most in their
text. If no file has all the words, those with the most of them are printed. A file states its
purpose in its first comment. A source that begins with its header has that of the header.
`--check` fails if some source states none.
"""
import re
import signal
import sys

from sources import ROOT, hand_written, text_of

KINDS = (".cpp", ".cu", ".cuh", ".h", ".py", ".sh", ".cmake")
PAGES = {".css": "A style sheet.", ".js": "A script of a page.", ".yml": "Settings."}
SHOWN = 20
FOLDERS = ("src", "include", "python/src", "tests/cpp")  # of headers
COMMENT = re.compile(r'^(?:///?|#|""")(?!!|pragma|include) ?.+$', re.M)
MARK = re.compile(r'^(?:///?|#|""")? ?|"""$')
ENDING = re.compile(r"(?<=\w{4})(ies|ing|ed|es|s|e|y)$")


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
    if path.suffix in PAGES:
        return first_sentence(text) if COMMENT.match(text) else PAGES[path.suffix]
    own = re.match(r'#include "(.+)"', text)
    headers = [ROOT / folder / own[1] for folder in FOLDERS] if own else []
    header = next((header for header in headers if header.exists()), None)
    return first_sentence(header.read_text() if header else text)


class Word:
    """A word of the search: "pickles" finds "pickling" too, "benchmark" finds bench/."""

    def __init__(self, word):
        self.word = word.lower()
        stem = ENDING.sub("", self.word)
        self.forms = re.compile(f"{re.escape(self.word)}|(?<![a-z]){re.escape(stem)}")

    def count(self, text):
        return len(self.forms.findall(text))

    def is_told(self, path, line):
        parts = re.findall("[a-z]{4,}", path.lower())
        return bool(self.forms.search(line)) or self.word.startswith(tuple(parts))


def rank(path, said, words):
    """How many words are absent, then what orders the files, and the line to print."""
    line, text = f"{path}: {said}", text_of(path).lower()
    told = [word.is_told(str(path), line.lower()) for word in words]
    counts = [word.count(text) for word in words]
    absent = sum(not (shown or count) for shown, count in zip(told, counts))
    return absent, -sum(told), -sum(counts), line


def main():
    asked = sys.argv[1:]
    if not asked:
        sys.exit(__doc__)
    if asked == ["--check"]:
        silent = [path for path in hand_written(*KINDS) if not purpose(path)]
        for path in silent:
            print(f"{path}: begin with a comment that states the purpose of the file")
        sys.exit(bool(silent))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # where.py ... | head
    words = [Word(word) for word in asked]
    ranked = sorted(rank(path, purpose(path), words) for path in hand_written(*KINDS, *PAGES))
    absent = ranked[0][0]
    if absent == len(words):
        sys.exit("No file has any of these words.")
    if absent:
        print(f"No file has all of these words. These have {len(words) - absent} of {len(words)}:")
    best = [line for missing, _, _, line in ranked if missing == absent]
    print("\n".join(best[:SHOWN]))
    if len(best) > SHOWN:
        print(f"... and {len(best) - SHOWN} more")


if __name__ == "__main__":
    main()
