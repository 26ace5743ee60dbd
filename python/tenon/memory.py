"""Memory statistics and limits."""

from ._core import (
    active_memory,
    cache_memory,
    clear_cache,
    memory_limit,
    peak_memory,
    reset_peak_memory,
    set_cache_limit,
    set_memory_limit,
)

__all__ = [
    "active_memory",
    "cache_memory",
    "clear_cache",
    "memory_limit",
    "peak_memory",
    "reset_peak_memory",
    "set_cache_limit",
    "set_memory_limit",
]
