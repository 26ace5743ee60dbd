"""python -m tenon.trace -s 5 --dir d script.py: records what a program does."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from tenon.scripts.trace import main

    raise SystemExit(main())

# Imported, the name stays what it is in the package: the sum along a diagonal.
sys.modules[__name__] = sys.modules["tenon"].trace
