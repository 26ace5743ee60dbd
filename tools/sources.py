"""Which files the checks look at: those git tracks, and new ones that it does not ignore."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def listed_files():
    """Paths relative to the root, sorted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = sorted(pathlib.Path(name) for name in set(out.split("\0")) if name)
    return [path for path in paths if (ROOT / path).is_file()]


def text_of(path):
    """The file's text, or None when it is not text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def is_generated(text):
    return "generated" in text.partition("\n")[0].lower()
