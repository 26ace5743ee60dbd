"""python -m tenon.top [pid]: a live table of what running processes do."""

from __future__ import annotations

if __name__ == "__main__":
    from tenon.scripts.top import main

    raise SystemExit(main())
