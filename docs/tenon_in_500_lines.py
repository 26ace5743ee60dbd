"""Tenon in 500 lines: a lazy, differentiable tensor compiler in one file of plain Python.

    call -> node -> graph -> passes -> fusion -> LoopIR -> plan -> values

All elements are float64. Compiled functions become machine code if there is a C compiler.
All else is interpreted, with the same bits. tenon-in-500-lines.md explains each part.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import operator
import pathlib
import shutil
import subprocess
import tempfile
from array import array
from functools import partial
from typing import Callable, Hashable, Iterable, NamedTuple, Sequence

Shape = tuple[int, ...]
LANES = 4  # of a sum


class Error(ValueError):
    """A mistake of the caller. The message names the op, what is wrong, and the values."""


# ---- 1. Nodes: a call is recorded, not computed ----------------------------------------
class Tensor:
    """A node: a recorded op with its operands, and its values once they are computed."""

    def __init__(self, op: str, args=(), attr=(), shape: Shape = (), data: array | None = None):
        self.op, self.args, self.attr = op, tuple(args), tuple(attr)
        self.shape, self.data = tuple(shape), data

    def tolist(self):
        """The values as nested lists. A pending node is evaluated first."""
        evaluate(self)
        values = list(self.data)
        for size in reversed(self.shape[1:]):
            values = [values[i : i + size] for i in range(0, len(values), size)]
        return values if self.shape else values[0]

    def pending(self) -> tuple[Tensor, ...]:
        return self.args if self.data is None else ()

    __repr__ = lambda self: f"tensor({self.tolist()})"
    __neg__ = lambda self: call("neg", self)
    __add__ = __radd__ = lambda self, other: call("add", self, other)
    __mul__ = __rmul__ = lambda self, other: call("mul", self, other)
    __sub__ = lambda self, other: call("sub", self, other)
    __rsub__ = lambda self, other: call("sub", other, self)
    __truediv__ = lambda self, other: call("div", self, other)
    __rtruediv__ = lambda self, other: call("div", other, self)
    __matmul__ = lambda self, other: matmul(self, other)


def tensor(values) -> Tensor:
    """A leaf with the values of a number or of nested lists."""
    if isinstance(values, Tensor):
        return values
    shape, flat = [], [values]
    while flat and isinstance(flat[0], (list, tuple)):
        shape.append(len(flat[0]))
        if any(len(row) != shape[-1] for row in flat):
            raise Error(f"tensor: the rows have different lengths: {values}")
        flat = list(itertools.chain.from_iterable(flat))
    return Tensor("constant", shape=shape, data=array("d", flat))


def call(op: str, *operands) -> Tensor:
    """Records an elementwise op on tensors and numbers. Shapes align at their last axes."""
    args = [tensor(x) for x in operands]
    shape = max((x.shape for x in args), key=len)
    aligned = [broadcast(x, shape, range(-len(x.shape), 0), op) for x in args]
    return Tensor(op, aligned, shape=shape)


def broadcast(x, shape: Shape, axes: Iterable[int], op: str = "broadcast") -> Tensor:
    """Repeats `x` to `shape`. Axis k of `x` becomes axis axes[k], so this also transposes."""
    x, axes = tensor(x), tuple(a % len(shape) for a in axes)
    if x.shape != tuple(shape[a] for a in axes) or len(set(axes)) != len(axes):
        raise Error(f"{op}: operand {x.shape} does not fit axes {axes} of {shape}")
    return x if axes == tuple(range(len(shape))) else Tensor("broadcast", [x], axes, shape)


def total(x, axes: Iterable[int] | None = None) -> Tensor:
    """The sum along `axes`, or along all axes."""
    x = tensor(x)
    axes = {range(len(x.shape))[a] for a in (range(len(x.shape)) if axes is None else axes)}
    shape = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
    return Tensor("sum", [x], sorted(axes), shape) if axes else x


def matmul(a, b) -> Tensor:
    """A composite: its body is made of other ops. Fusion makes one kernel of it."""
    a, b = tensor(a), tensor(b)
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise Error(f"matmul: inner dimensions differ: {a.shape} and {b.shape}")
    shape = (a.shape[0], b.shape[1], a.shape[1])
    return total(broadcast(a, shape, (0, 2)) * broadcast(b, shape, (2, 1)), [2])


# ---- 2. Ops: everything about an op is in one place ------------------------------------
class OpDef(NamedTuple):
    vjp: Callable  # (cotangent of the result, result, *operands) -> cotangents of the operands
    scalar: Callable | None = None  # elementwise ops: the function at one point,
    c: str = ""  # and its expression in C


def vjp_broadcast(ct: Tensor, y: Tensor, x: Tensor) -> list[Tensor]:
    """Repeating is linear. Its adjoint adds up the repetitions."""
    kept = sorted(y.attr)
    added = total(ct, [a for a in range(len(y.shape)) if a not in kept])
    return [broadcast(added, x.shape, [y.attr.index(a) for a in kept])]


def vjp_sum(ct: Tensor, y: Tensor, x: Tensor) -> list[Tensor]:
    """Adding up is linear. Its adjoint repeats."""
    return [broadcast(ct, x.shape, [a for a in range(len(x.shape)) if a not in y.attr])]


def scalar_exp(x: float) -> float:
    """Ops are defined for every operand, but math.exp fails where its result overflows."""
    return math.exp(x) if x <= 709.782712893384 else x * math.inf


scalar_div = lambda a, b: a / b if b != 0 else a * math.copysign(math.inf, b)
OPS = {
    "copy": OpDef(lambda ct, y, x: [ct], lambda x: x, "{0}"),
    "neg": OpDef(lambda ct, y, x: [-ct], operator.neg, "-{0}"),
    "exp": OpDef(lambda ct, y, x: [ct * y], scalar_exp, "exp({0})"),
    "tanh": OpDef(lambda ct, y, x: [ct * (1 - y * y)], math.tanh, "tanh({0})"),
    "add": OpDef(lambda ct, y, a, b: [ct, ct], operator.add, "{0} + {1}"),
    "sub": OpDef(lambda ct, y, a, b: [ct, -ct], operator.sub, "{0} - {1}"),
    "mul": OpDef(lambda ct, y, a, b: [ct * b, ct * a], operator.mul, "{0} * {1}"),
    "div": OpDef(lambda ct, y, a, b: [ct / b, -ct * y / b], scalar_div, "{0} / {1}"),
    "broadcast": OpDef(vjp_broadcast),
    "sum": OpDef(vjp_sum),
}
exp, tanh = partial(call, "exp"), partial(call, "tanh")


# ---- 3. Graphs: what was recorded, as data ---------------------------------------------
class Op(NamedTuple):
    """Value n of a graph is the result of its op n. Operands have smaller numbers."""

    name: str
    args: tuple[int, ...]
    attr: tuple  # axes; of a constant its elements, or one number that all of them are
    shape: Shape

    def __str__(self) -> str:
        args = ",".join(f" %{a}" for a in self.args)
        attr = f" {list(self.attr)}" if self.attr else ""
        return f"{self.name}{args}{attr} : f64{list(self.shape)}"

    def number(self) -> float | None:
        return self.attr[0] if self.name == "constant" and len(self.attr) == 1 else None


class Graph(NamedTuple):
    ops: list[Op]  # inputs come first
    outputs: list[int]

    def __str__(self) -> str:
        lines = [f"  %{v} = {op}" for v, op in enumerate(self.ops)]
        outputs = ", ".join(f"%{v}" for v in self.outputs)
        return "\n".join(["graph {", *lines, f"  return {outputs}", "}"])


def behind(roots: Iterable[Hashable], operands: Callable) -> list:
    """Everything behind `roots`, operands first. A loop, since chains may be long."""
    order, seen, stack = [], set(), [(root, False) for root in roots]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack += [(node, True), *((a, False) for a in reversed(operands(node)))]
    return order


def capture(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Graph:
    """The graph from `inputs` to `outputs`. Other leaves become constants of the graph."""
    ops = [Op("input", (), (), node.shape) for node in inputs]
    numbers = {node: v for v, node in enumerate(inputs)}
    for node in behind(outputs, Tensor.pending):
        if node in numbers:
            continue
        if node.op == "input":
            raise Error("evaluate: a tensor has no values while its function is traced")
        name, attr = (node.op, node.attr) if node.data is None else ("constant", node.data)
        args = tuple(numbers[a] for a in node.pending())
        numbers[node] = len(numbers)
        ops.append(Op(name, args, tuple(attr), node.shape))
    return Graph(ops, [numbers[node] for node in outputs])


# ---- 4. Passes: graphs to graphs -------------------------------------------------------
def rewrite(graph: Graph, rule: Callable) -> Graph:
    """Rebuilds a graph without dead ops. The rule gives an op, or the number of a value."""
    inputs = [v for v, op in enumerate(graph.ops) if op.name == "input"]
    ops, renamed = [], {}
    for v in inputs + behind(graph.outputs, lambda v: graph.ops[v].args):
        if v not in renamed:
            op = graph.ops[v]
            new = rule(ops, op._replace(args=tuple(renamed[a] for a in op.args)))
            renamed[v] = len(ops) if isinstance(new, Op) else new
            ops += [new] if isinstance(new, Op) else []
    return Graph(ops, [renamed[v] for v in graph.outputs])


def fold(ops: list[Op], op: Op) -> Op | int:
    """Computes with numbers. Exact rewrites only: x * 1 is x, but -0.0 + 0 is not -0.0."""
    numbers = [ops[a].number() for a in op.args]
    if op.name == "copy":
        return op.args[0]
    if op.name == "mul" and 1.0 in numbers:
        return op.args[1 - numbers.index(1.0)]
    if op.name in ("input", "constant", "sum") or None in numbers:
        return op
    value = numbers[0] if op.name == "broadcast" else OPS[op.name].scalar(*numbers)
    return Op("constant", (), (value,), op.shape)


def cse() -> Callable:
    """Common subexpression elimination: ops with equal text have equal values."""
    first: dict[str, int] = {}

    def rule(ops: list[Op], op: Op) -> Op | int:
        same = len(ops) if op.name == "input" else first.setdefault(str(op), len(ops))
        return op if same == len(ops) else same

    return rule


# ---- 5. Fusion: which values are stored at all -----------------------------------------
def fuse(graph: Graph) -> set[int]:
    """The values that get a kernel and memory: outputs, sums, and what would otherwise be
    computed by two kernels or repeated by a broadcast. Kernels compute the rest on the way."""
    stored, repeated = set(), set()
    kernels: list[set[int]] = [set() for _ in graph.ops]  # those that need each value
    for v, op in reversed(list(enumerate(graph.ops))):
        view = op.name == "broadcast"
        again = not view and (len(kernels[v]) > 1 or v in repeated)
        if op.args and (v in graph.outputs or op.name == "sum" or again):
            stored.add(v)
            kernels[v] = {v}
        for a in op.args:
            kernels[a] |= kernels[v]
            grows = math.prod(op.shape) > math.prod(graph.ops[a].shape)
            if view and (grows or (v in repeated and v not in stored)):
                repeated.add(a)
    return stored


# ---- 6. LoopIR: loops over axes, scalar values at a point ------------------------------
class Kernel(NamedTuple):
    extents: Shape  # of the loops i0, i1, ..., outermost first
    parallel: int  # so many loops are parallel; the others add up the last value
    values: list[tuple]  # ("load", buffer, strides), ("literal", x) or (op, *values)
    reads: list[int]  # the values of the graph that the buffers x0, x1, ... hold

    def lines(self) -> list[str]:
        def text(op: str, *args) -> str:
            if op == "load":
                terms = [f"{stride}*i{k}" for k, stride in enumerate(args[1]) if stride]
                return f"x{args[0]}[{' + '.join(terms) or 0}]"
            return repr(*args) if op == "literal" else OPS[op].c.format(*(f"v{a}" for a in args))

        return [f"v{v} = {text(*value)}" for v, value in enumerate(self.values)]

    def __str__(self) -> str:
        loops = [f"i{k}:{n}" for k, n in enumerate(self.extents)]
        outer, inner = ", ".join(loops[: self.parallel]), ", ".join(loops[self.parallel :])
        result = (f"sum over {inner} of " if inner else "") + f"v{len(self.values) - 1}"
        return "\n  ".join([f"kernel over {outer} {{", *self.lines(), f"y = {result}"]) + "\n}"


def lower(graph: Graph, root: int, stored: set[int]) -> Kernel:
    """The kernel of a stored value. A place is a value with the loop of each of its axes; a
    broadcast only chooses the loops of its operand, so it costs nothing."""
    op = graph.ops[root]
    last, folded = (op.args[0], op.attr) if op.name == "sum" else (root, ())
    shape = graph.ops[last].shape
    axes = sorted(range(len(shape)), key=lambda a: a in folded)  # folded loops are innermost

    def operands(place: tuple[int, Shape]) -> list[tuple[int, Shape]]:
        v, loops = place
        name, args, attr, _ = graph.ops[v]
        chosen = tuple(loops[a] for a in attr) if name == "broadcast" else loops
        return [(a, chosen) for a in args] if v == root or v not in stored else []

    values, reads, numbers = [], [], {}
    for place in behind([(last, tuple(axes.index(a) for a in range(len(shape))))], operands):
        (v, loops), args = place, [numbers[operand] for operand in operands(place)]
        op = graph.ops[v]
        if args:
            value = (op.name, *args)
        elif op.number() is not None:
            value = ("literal", op.number())
        else:
            reads += [v] if v not in reads else []
            stride = {loop: math.prod(op.shape[a + 1 :]) for a, loop in enumerate(loops)}
            value = ("load", reads.index(v), [stride.get(k, 0) for k in range(len(axes))])
        values += [value] if value[0] != "broadcast" else []
        numbers[place] = len(values) - 1 if value[0] != "broadcast" else args[0]
    return Kernel(tuple(shape[a] for a in axes), len(axes) - len(folded), values, reads)


# ---- 7. Running kernels: by an interpreter, or as machine code -------------------------
def tree_sum(elements: Iterable[float]) -> float:
    """Defines the bits of sums: element i joins lane i % LANES; then lanes join in pairs."""
    lanes = [0.0] * LANES
    for i, element in enumerate(elements):
        lanes[i % LANES] += element
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


def interpret(kernel: Kernel, *buffers: array) -> None:
    """The meaning of LoopIR. The last buffer is the result."""
    def element(point: Sequence[int]) -> float:
        values: list[float] = []
        for op, *args in kernel.values:
            if op == "load":
                values.append(buffers[args[0]][sum(map(operator.mul, args[1], point))])
            elif op == "literal":
                values.append(args[0])
            else:
                values.append(OPS[op].scalar(*(values[a] for a in args)))
        return values[-1]

    loops = [range(n) for n in kernel.extents]
    outer, inner = loops[: kernel.parallel], loops[kernel.parallel :]
    for i, point in enumerate(itertools.product(*outer)):
        elements = (element(point + rest) for rest in itertools.product(*inner))
        buffers[-1][i] = tree_sum(elements) if inner else next(elements)


def c_function(name: str, kernel: Kernel) -> str:
    """The same meaning in C."""
    loops = [f"for (long i{k} = 0; i{k} < {n}; ++i{k})" for k, n in enumerate(kernel.extents)]
    outer, inner = " ".join(loops[: kernel.parallel]), " ".join(loops[kernel.parallel :])
    body, result = f"double {', '.join(kernel.lines())};", f"v{len(kernel.values) - 1}"
    if inner:
        body = f"{inner} {{ {body} t[n++ % {LANES}] += {result}; }}"
        body = f"double t[{LANES}] = {{0}}; long n = 0;\n    {body}"
        result = "(t[0] + t[2]) + (t[1] + t[3])"
    reads = "".join(f"const double *x{b}, " for b in range(len(kernel.reads)))
    head, store = f"void {name}({reads}double *y) {{", f"*y++ = {result};"
    return f"{head}\n  {outer} {{\n    {body}\n    {store}\n  }}\n}}\n"


def machine_code(kernels: Iterable[Kernel]) -> list[Callable]:
    """Functions on arrays. The flags keep the C compiler from changing the arithmetic."""
    source = "#include <math.h>\n#define inf INFINITY\n#define nan NAN\n"
    source += "".join(c_function(f"k{n}", kernel) for n, kernel in enumerate(kernels))
    flags = ["-O2", "-ffp-contract=off", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-"]
    with tempfile.TemporaryDirectory() as folder:
        command = ["cc", *flags, "-o", f"{folder}/kernels.so", "-lm"]
        subprocess.run(command, input=source, text=True, check=True)
        library = ctypes.CDLL(f"{folder}/kernels.so")
    address = lambda buffer: ctypes.c_void_p(buffer.buffer_info()[0])
    run = lambda name, *buffers: library[name](*map(address, buffers))
    return [partial(run, f"k{n}") for n, _ in enumerate(kernels)]


# ---- 8. Plans: the one way anything runs -----------------------------------------------
PLANS: dict[str, Plan] = {}  # by the text of their graphs
TRACES: list[Callable] = []  # the functions that are being traced


class Plan:
    """The kernels of a graph and their code."""

    def __init__(self, graph: Graph, native: bool = False, policy: Callable = fuse):
        self.graph, stored = graph, policy(graph)
        self.kernels = {v: lower(graph, v, stored) for v in sorted(stored)}
        self.code = [partial(interpret, kernel) for kernel in self.kernels.values()]
        if native and self.kernels and shutil.which("cc"):
            self.code = machine_code(self.kernels.values())

    def run(self, arguments: Iterable[array]) -> list[array]:
        ops, buffers = self.graph.ops, dict(enumerate(arguments))
        for v, op in enumerate(ops):
            if op.name == "constant":
                repeats = 1 if op.number() is None else math.prod(op.shape)
                buffers[v] = array("d", op.attr * repeats)
        for (v, kernel), code in zip(self.kernels.items(), self.code):
            buffers[v] = array("d", bytes(8 * math.prod(ops[v].shape)))
            code(*(buffers[read] for read in kernel.reads), buffers[v])
        return [buffers[v] for v in self.graph.outputs]

    def __call__(self, *args):
        args, ops = [tensor(x) for x in args], self.graph.ops
        if [x.shape for x in args] != [op.shape for op in ops if op.name == "input"]:
            raise Error(f"plan: {[x.shape for x in args]} are not the shapes of its inputs")
        evaluate(*args)
        results = zip(self.graph.outputs, self.run(x.data for x in args))
        tensors = [Tensor("constant", shape=ops[v].shape, data=data) for v, data in results]
        return tensors if len(tensors) > 1 else tensors[0]

    def save(self, path: str) -> None:
        pathlib.Path(path).write_text(json.dumps(self.graph))


def load(path: str) -> Plan:
    ops, outputs = json.loads(pathlib.Path(path).read_text())
    return Plan(Graph([Op(name, *map(tuple, rest)) for name, *rest in ops], outputs), native=True)


def evaluate(*tensors: Tensor) -> None:
    """Computes pending tensors. Leaves are inputs of their graph, so a loop finds its plan."""
    wanted = [node for node in tensors if node.data is None]
    leaves = [node for node in behind(wanted, Tensor.pending) if node.data is not None]
    graph = capture(leaves, wanted)
    plan = PLANS[str(graph)] = PLANS.get(str(graph)) or Plan(graph)
    for node, data in zip(wanted, plan.run(x.data for x in leaves)):
        node.data = data
        node.args = node.args if TRACES else ()  # a derivative will need the operands


# ---- 9. Compiled functions: one plan for each key --------------------------------------
def traced(function: Callable, inputs: list[Tensor]) -> list[Tensor]:
    TRACES.append(function)
    try:
        results = function(*inputs)
    finally:
        TRACES.pop()
    return [tensor(x) for x in (results if isinstance(results, (list, tuple)) else [results])]


class Compiled:
    """A function that is traced once for each key: the shapes of its arguments."""

    def __init__(self, function: Callable):
        self.function, self.plans = function, {}

    def plan(self, *args) -> Plan:
        key = tuple(tensor(x).shape for x in args)
        if key not in self.plans:
            inputs = [Tensor("input", shape=shape) for shape in key]
            graph = capture(inputs, traced(self.function, inputs))
            self.plans[key] = Plan(rewrite(rewrite(graph, fold), cse()), native=True)
        return self.plans[key]

    def __call__(self, *args):
        return self.function(*args) if TRACES else self.plan(*args)(*args)


# ---- 10. Derivatives: rules that record more nodes -------------------------------------
def grad(function: Callable) -> Callable:
    """The derivatives of a scalar function with respect to its arguments."""

    def gradient(*args) -> list[Tensor]:
        # Copies give this level of differentiation nodes of its own, so that levels nest.
        inputs = [Tensor("copy", [x], (), x.shape) for x in map(tensor, args)]
        (result,) = traced(function, inputs)
        if result.shape:
            raise Error(f"grad: the result must be a scalar, not {result.shape}")
        cts = {result: tensor(1.0)}
        for node in reversed(behind([result], lambda n: () if n in inputs else n.args)):
            if node in cts and node.args and node not in inputs:
                for x, ct in zip(node.args, OPS[node.op].vjp(cts[node], node, *node.args)):
                    cts[x] = cts[x] + ct if x in cts else ct
        return [cts[x] if x in cts else broadcast(0.0, x.shape, ()) for x in inputs]

    return gradient


# ---- The program checks itself: values, bits, derivatives ------------------------------
def check() -> None:
    rows = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]
    x, w = tensor(rows), tensor([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.6]])
    softmax = lambda x: exp(x) / broadcast(total(exp(x), [1]), x.shape, [0])
    error = softmax(x) - tensor([[math.exp(a) / sum(map(math.exp, r)) for a in r] for r in rows])
    assert total(error * error).tolist() < 1e-30
    loss = lambda x, w: total(softmax(tanh(x @ w)) * tanh(x @ w)) / 2
    step = Compiled(lambda x, w: [loss(x, w), *grad(loss)(x, w)])
    plan = step.plan(x, w)
    unfused = Plan(plan.graph, policy=lambda g: {v for v, op in enumerate(g.ops) if op.args})
    with tempfile.TemporaryDirectory() as folder:
        plan.save(f"{folder}/step.json")
        routes = [plan, Plan(plan.graph), unfused, load(f"{folder}/step.json"), step.function]
    assert len({str(list(route(x, w))) for route in routes}) == 1  # floats print exactly
    h, (slope, _) = 1e-5, grad(loss)(x, w)
    difference = (loss(x + h, w) - loss(x - h, w)) / (2 * h)
    assert abs((total(slope) - difference).tolist()) < 1e-8
    assert grad(lambda a: grad(lambda a: a * a * a)(a)[0])(2.0)[0].tolist() == 12
    print(f"checked: {len(plan.kernels)} kernels for {len(plan.graph.ops)} ops")


if __name__ == "__main__":
    check()
