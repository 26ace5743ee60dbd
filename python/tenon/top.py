"""python -m tenon.top [pid]: what a running process does, as a table that follows it."""

from __future__ import annotations

if __name__ == "__main__":
    from tenon.scripts.top import main

    raise SystemExit(main())
