"""scripts: programs that are run with `python -m`; the shorter `python -m tenon.trace` does too."""
