"""Numbers as people read them."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """`1.5 MiB`, with the unit that fits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1023.5:
            return f"{count:.0f} {unit}" if count >= 99.95 or unit == "B" else f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def time_text(seconds: float) -> str:
    """`1.5 ms`, with the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * scale:  # what rounds to 1000 of one unit is 1 of the next
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
