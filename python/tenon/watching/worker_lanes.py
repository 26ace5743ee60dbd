"""Lanes that show what each worker of a mesh does, and the collectives that join them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .recording import Event, Recording

MOST_WORKERS = 32


def workers_of(recording: Recording) -> list[int]:
    """The workers that did something, in order."""
    kinds = ("step", "worker_run", "collective")
    return sorted({event.worker for event in recording.of(*kinds) if event.worker >= 0})


def events_of_workers(recording: Recording) -> dict[int, list[Event]]:
    """Steps or runs of each worker, and over them its collectives, of which a part is waiting."""
    workers = workers_of(recording)[:MOST_WORKERS]
    lanes: dict[int, list[Event]] = {worker: [] for worker in workers}
    has_steps = any(event.worker >= 0 for event in recording.of("step"))
    for event in recording.of("step" if has_steps else "worker_run"):
        if event.worker in lanes:
            lanes[event.worker].append(event)
    for event in recording.of("collective"):
        if event.worker in lanes:
            lanes[event.worker] += _in_two(event)
    return lanes


def _in_two(event: Event) -> Iterator[Event]:
    """A worker that comes first waits, and then data move."""
    if event.waited:
        yield event._replace(kind="waiting", seconds=event.waited)
    yield event._replace(began=event.began + event.waited,
                         seconds=max(0.0, event.seconds - event.waited))


class Meeting(NamedTuple):
    """A collective of several workers: when the last of them came."""

    time: float
    workers: list[int]


def meetings(recording: Recording) -> list[Meeting]:
    """All workers of a group make the same calls in the same order. A `Recv` meets the `Send` of
    its peer.
    """
    counts: dict[tuple[int, str, tuple[int, int, int]], int] = {}
    calls: dict[tuple[str, tuple[int, int, int], int], list[Event]] = {}
    for event in recording.of("collective"):
        name, (first, step, count) = event.name, event.peers
        if count == 2 and first < 0:  # a message whose peer is not known
            continue
        if name.startswith("Recv "):
            name, first, step = f"Send {name[5:]}", first + step, -step
        own = (event.worker, name, (first, step, count))
        counts[own] = number = counts.get(own, -1) + 1
        calls.setdefault((name, (first, step, count), number), []).append(event)
    return [Meeting(max(event.began for event in call), sorted(event.worker for event in call))
            for call in calls.values() if len(call) > 1]
