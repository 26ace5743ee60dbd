"""A line search with the strong Wolfe conditions (Nocedal and Wright, chapter 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Evaluate = Callable[[float], "tuple[float, Any, float]"]  # the loss, its gradient, its slope

SUFFICIENT, CURVATURE = 1e-4, 0.9  # of the decrease, and of the slope that may stay


@dataclass
class Point:
    """A length with what is known there."""

    length: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    evaluate: Evaluate,
    length: float,
    start: tuple[float, Any, float],
    scale: float,
    tolerance: float,
    most: int = 25,
) -> tuple[float, Any, float, int]:
    """The loss and gradient at a length that meets the conditions, the length, and how many
    evaluations it took. `scale` is the largest element of the direction.
    """
    search = _Search(evaluate, Point(0.0, *start), scale, tolerance, most)
    found = search.refined(*search.bracketed(length))
    return found.loss, found.gradient, found.length, search.evaluations


class _Search:
    def __init__(
        self, evaluate: Evaluate, start: Point, scale: float, tolerance: float, most: int
    ) -> None:
        self.evaluate, self.start, self.scale = evaluate, start, scale
        self.tolerance, self.most = tolerance, most
        self.evaluations = self.rounds = 0

    def at(self, length: float) -> Point:
        self.evaluations += 1
        return Point(length, *self.evaluate(length))

    def decreases(self, point: Point) -> bool:
        start = self.start
        return point.loss <= start.loss + SUFFICIENT * point.length * start.slope

    def is_flat(self, point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def bracketed(self, length: float) -> list[Point]:
        """Two points between which a good one lies, or one that is good."""
        before, point = self.start, self.at(length)
        while self.rounds < self.most:
            higher = self.rounds > 1 and point.loss >= before.loss
            if not self.decreases(point) or higher:
                return [before, point]
            if self.is_flat(point):
                return [point]
            if point.slope >= 0:
                return [before, point]
            near = point.length + 0.01 * (point.length - before.length)
            before, point = point, self.at(cubic(before, point, (near, point.length * 10)))
            self.rounds += 1
        return [self.start, point]

    def refined(self, first: Point, second: Point | None = None) -> Point:
        """A point between two, by halving what lies between until the conditions hold."""
        if second is None:
            return first
        low, high = sorted((first, second), key=lambda point: point.loss)
        stuck = False
        while self.rounds < self.most:
            if abs(high.length - low.length) * self.scale < self.tolerance:
                break
            length, stuck = self.between(low, high, stuck)
            point = self.at(length)
            self.rounds += 1
            if not self.decreases(point) or point.loss >= low.loss:
                low, high = sorted((low, point), key=lambda p: p.loss)
                continue
            if self.is_flat(point):
                return point
            if point.slope * (high.length - low.length) >= 0:
                high = low
            low = point
        return low

    def between(self, low: Point, high: Point, stuck: bool) -> tuple[float, bool]:
        """The next length to try, and whether it is near an end for the second time."""
        ends = sorted((low.length, high.length))
        length, margin = cubic(low, high), 0.1 * (ends[1] - ends[0])
        if min(ends[1] - length, length - ends[0]) >= margin:
            return length, False
        if not stuck and ends[0] < length < ends[1]:
            return length, True
        nearer_end = abs(length - ends[1]) < abs(length - ends[0])
        return (ends[1] - margin if nearer_end else ends[0] + margin), False


def cubic(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum, within bounds, of the cubic through two points with their slopes."""
    low, high = bounds or sorted((a.length, b.length))
    first, second = (a, b) if a.length <= b.length else (b, a)
    apart = second.length - first.length
    middle = first.slope + second.slope - 3 * (second.loss - first.loss) / apart if apart else 0.0
    square = middle * middle - first.slope * second.slope
    if not square >= 0 or not apart:
        return (low + high) / 2
    root = math.sqrt(square)
    width = second.slope - first.slope + 2 * root
    if width == 0:
        return (low + high) / 2
    place = second.length - apart * ((second.slope + root - middle) / width)
    return min(max(place, low), high)
