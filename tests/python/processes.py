"""Processes that tests start."""

import os


def environment(**variables):
    """This one's without settings of the library, and with `variables`."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TENON_") or name in ("TENON_CACHE", "TENON_ERROR_SITES")}
    return {**kept, **variables}
