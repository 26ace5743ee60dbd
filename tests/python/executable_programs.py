"""Programs that several tests of executables compile, and the trees they work on."""

import collections
import dataclasses
import functools

import tenon as tn
from test_fuzz import Expression

F32 = tn.float32


def same(a, b):
    assert tn.tree.structure(a) == tn.tree.structure(b)
    for x, y in zip(tn.tree.leaves(a), tn.tree.leaves(b)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert x.numpy().tobytes() == y.numpy().tobytes()


def normal(*shape, seed=0):
    return tn.random.normal(shape, key=tn.random.key(seed))


def attention(q, k, v):
    return tn.softmax(q @ k.T / q.shape[1] ** 0.5) @ v


@dataclasses.dataclass
class Pair:
    left: object
    right: object
    label: str = dataclasses.field(default="pair", metadata={"static": True})


Point = collections.namedtuple("Point", "x y")


class Wrapped:
    def __init__(self, inside):
        self.inside = inside


tn.tree.register(Wrapped, lambda w: ({"inside": w.inside}, None), lambda _, d: Wrapped(d["inside"]))


def rearranged(pair, point, rest):
    total = pair.left + point.x * rest[0]["scale"]
    return {
        "pair": Pair(total, [pair.right, total * 2], "made"),
        "point": Point(point.y, (rest[1],)),
        3: total - 1,
    }


@functools.cache
def tree_program():
    info = tn.InputInfo(((1, 2, 4),), F32)
    args = [Pair(info, info), Point(info, y=info), [{"scale": 3.0}, info]]
    return tn.compile(rearranged, args=args)


def tree_arguments(n):
    a, b, c, d, e = (normal(n, seed=i) for i in range(5))
    return Pair(a, b), Point(c, d), [{"scale": 3.0}, e]


@functools.cache
def doubled():
    return tn.compile(lambda x: x * 2, args=[tn.InputInfo(((1, 4, 1000),), F32)])


def random_program(seed):
    """A function, and the shapes of its arguments."""
    program = Expression(seed)

    def run(*values):
        values = list(values)
        for step in program.steps:
            values.append(step(tn, values))
        return values[len(program.inputs) :]

    return run, [x.shape for x in program.inputs]
