"""Which files the checks look at: those git tracks, and new ones that it does not ignore."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNTRACKED_TREE_SKIPS = {"build", "dist", ".venv", "__pycache__"}


def listed_files():
    """Paths relative to the root, sorted. Outside a checkout (a source archive): all files."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if out.returncode == 0:
        paths = {pathlib.Path(name) for name in out.stdout.split("\0") if name}
    else:
        paths = {path.relative_to(ROOT) for path in ROOT.rglob("*")}
        paths = {path for path in paths if UNTRACKED_TREE_SKIPS.isdisjoint(path.parts)}
    return sorted(path for path in paths if (ROOT / path).is_file())


def text_of(path):
    """The file's text, or None when it is not text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def is_generated(text):
    return "generated" in text.partition("\n")[0].lower()


def hand_written(*suffixes):
    """Paths of the sources with these suffixes that no program generates."""
    listed = (path for path in listed_files() if path.suffix in suffixes)
    return [path for path in listed if not is_generated(text_of(path))]
