"""watching: recordings of what a program does, their files and their pictures.

`with tn.profile("trace.json")`, `python -m tenon.trace`, `tenon.visualize` and `tenon.top` are made
of this.
"""

from __future__ import annotations

from .recording import Event, Recorder, Recording

__all__ = ["Event", "Recorder", "Recording"]
