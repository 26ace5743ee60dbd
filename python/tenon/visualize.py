"""python -m tenon.visualize d/trace_*.log --output t.png: draws recorded timelines."""

from __future__ import annotations

if __name__ == "__main__":
    from tenon.scripts.visualize import main

    raise SystemExit(main())
