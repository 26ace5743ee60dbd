"""Short programs that call everything public in tenon, ordinarily and wrongly.

What there is to call is found by looking: modules, functions, classes with their methods and
properties, from `dir(tn)` down. A program follows from the seed, the name and the round alone, so
that a new name changes no other program."""

import inspect
import random
import types

from api_arguments import MODULES, Arguments

import tenon as tn

HEAD = "import numpy as np\nimport tenon as tn\n"
# Instances of classes that users get from a function rather than from the constructor.
INSTANCES = {
    "Tensor": None,  # drawn like arguments
    "DType": ["tn.float32", "tn.int8", "tn.bool", "tn.complex64"],
    "Module": MODULES,
    "Optimizer": ["tn.optim.SGD(0.1)", "tn.optim.Adam(1e-3)"],
    "CompiledFunction": ["tn.compile(lambda x: x * 2)", "tn.compile(lambda *a: tn.sum(a[0]))"],
    "Explanation": ["tn.explain(lambda x: tn.exp(x) + 1)(tn.ones(3))"],
    "Profile": ["tn.profile(lambda x: tn.exp(x) + 1)(tn.ones(3))"],
    "TreeStructure": ["tn.tree.structure([1, {'a': 2}])", "tn.tree.structure(None)"],
    "Model": ["tn.Model()", "tn.Model() + tn.model.Linear(3)"],
    "PhysicalModel": ["tn.compile(tn.Model() + tn.model.Linear(4), shapes={'input': [2, 3]})"],
    "Executable": ["tn.compile(lambda x: x * 2, inputs=[tn.InputInfo((2, 3), tn.float32)])"],
}
NOT_CALLED = {
    "__class__",
    "__new__",
    "__del__",
    "__dict__",
    "__doc__",
    "__module__",
    "__weakref__",
    "__slots__",
    "__annotations__",
    "__init_subclass__",
    "__subclasshook__",
    "__getattribute__",
    "__abstractmethods__",
    "__orig_bases__",
    "__parameters__",
    "__class_getitem__",
    "__match_args__",
    "__hash__",
    "__init__",
    "__dataclass_fields__",
    "__dataclass_params__",
}
# Names of what writes to the terminal by contract.
PRINTS = ("print", "progress", "Progress", "summary")
WRAPPERS = [
    "tn.grad(lambda x: tn.sum({call}))({x})",
    "tn.vjp(lambda x: {call}, {x})",
    "tn.jvp(lambda x: {call}, ({x},), ({x},))",
    "tn.vmap(lambda x: {call})({x})",
    "tn.compile(lambda x: {call})({x})",
    "tn.compile(lambda x: {call}, optimization_level=0)({x})",
    "tn.vmap(tn.grad(lambda x: tn.sum({call})))({x})",
    "tn.jacfwd(lambda x: {call})({x})",
    "tn.compile(tn.grad(lambda x: tn.sum({call})), optimization_level=0)({x})",
    "tn.checkpoint(lambda x: {call})({x})",
    "tn.hessian(lambda x: tn.sum({call}))({x})",
    "tn.grad(tn.compile(lambda x: tn.sum({call}), optimization_level=0))({x})",
    "tn.vmap(tn.compile(lambda x: {call}, optimization_level=0))({x})",
    "tn.vmap(lambda x: {call}, in_axes=-1, out_axes=-1)({x})",
]
FORMS = {  # what has no name: {t} a tensor, {i} a subscript, {v} a value
    "x[i]": "({t})[{i}]",
    "x[i] = v": "(lambda t: (t.__setitem__(np.s_[{i}], {v}), t)[1])({t} + 0)",
    "x.at[i]": "({t}).at[{i}].{m}({v})",
    "x + y": "({t}) {o} ({v})",
    "y + x": "({v}) {o} ({t})",
    "np.f(x)": "np.{n}({t})",
    "iter(x)": "list({t})",
    "format(x)": "f'{{{t}:{v}}}'",
    "copy(x)": "__import__('copy').deepcopy({t})",
    "pickle(x)": "__import__('pickle').loads(__import__('pickle').dumps({t}, {p}))",
}
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "<",
    "==",
    "!=",
    ">=",
    "in",
]
NUMPY = [
    "sin",
    "sum",
    "asarray",
    "concatenate",
    "shape",
    "mean",
    "max",
    "exp",
    "array_equal",
    "sort",
    "isnan",
]


class Target:
    """Something public. `owner` is its class, where it is a member of one."""

    def __init__(self, name, value, owner=None):
        self.name, self.value, self.owner = name, value, owner


def is_ours(value):
    return str(getattr(value, "__module__", "")).split(".")[0] == "tenon"


def members(cls, path, public):
    """What a class adds to bases that are targets themselves."""
    homes = [
        base for base in cls.__mro__ if base is cls or (is_ours(base) and base not in public)
    ]
    for name in sorted({name for home in homes for name in vars(home)}):
        if name in NOT_CALLED or (name.startswith("_") and not name.endswith("__")):
            continue
        yield Target(f"{path}.{name}", inspect.getattr_static(cls, name), cls)


def found_in(module, path, found, seen):
    for name in getattr(module, "__all__", dir(module)):
        value = getattr(module, name, None)
        if name.startswith("_") or id(value) in seen:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__ == f"{module.__name__}.{name}":
                seen.add(id(value))
                found_in(value, f"{path}.{name}", found, seen)
        elif callable(value) and (is_ours(value) or is_ours(type(value))):
            if not (isinstance(value, type) and issubclass(value, BaseException)):
                seen.add(id(value))
                found[f"{path}.{name}"] = value


def targets():
    """By name, sorted."""
    found = {}
    found_in(tn, "tn", found, {id(tn)})
    public = {value for value in found.values() if isinstance(value, type)}
    every = [Target(form, None) for form in FORMS]
    for path, value in found.items():
        every.append(Target(path, value))
        if isinstance(value, type):
            every += members(value, path, public)
    every = [t for t in every if not any(part in PRINTS for part in t.name.split("."))]
    return sorted(every, key=lambda target: target.name)


def literal(value):
    """Source for a keyword of a sample, or None."""
    if isinstance(value, tn.DType):
        return f"tn.{value}"
    if isinstance(value, (list, tuple)):
        parts = [literal(part) for part in value]
        return None if None in parts else f"[{', '.join(parts)}]"
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else None


class Programs:
    def __init__(self):
        self.samples = {}
        for sample in tn.testing.samples():
            self.samples.setdefault(sample.op, []).append(sample)

    def program(self, target, seed, round_):
        """The text of a program that ends with its result in `r`."""
        draw = Arguments(random.Random(f"{seed}/{target.name}/{round_}"))
        setup, call, arguments = self.call(draw, target)
        tensors = [a for a in arguments if a.startswith("tn.arange(")]
        if tensors and draw.chance(0.3):
            taken = draw.pick(tensors)
            text = draw.pick(WRAPPERS).format(call=call.replace(taken, "x", 1), x=taken)
        else:
            text = call
        lines = [*setup, f"r = {text}"]
        if draw.chance(0.6):
            lines += ["if callable(r):", f"    r = r({self.operands(draw)})"]
        return "\n".join(lines) + "\n"

    def operands(self, draw):
        return ", ".join(
            draw.pick([draw.tensor, draw.tensor, draw.tree, draw.anything])()
            for _ in range(draw.pick([1, 1, 1, 2, 2, 0, 3]))
        )

    def call(self, draw, target):
        """Lines before it, the call, and its arguments."""
        if target.name in FORMS:
            return self.form(draw, target.name)
        if target.owner is None:
            arguments = self.sampled(draw, target) or self.arguments(draw, target.value)
            return [], f"{target.name}({', '.join(arguments)})", plain(arguments)
        path, name = target.name.rsplit(".", 1)
        owner = self.instance(draw, path, target.owner)
        raw, member = target.value, f"o.{name}"
        if target.owner is tn.Tensor:
            member = f"({owner}).{name}"
        setup = [] if target.owner is tn.Tensor else [f"o = {owner}"]
        if isinstance(raw, (staticmethod, classmethod)):
            setup, member, raw = [], target.name, raw.__func__
        elif not callable(raw):  # a property
            if draw.chance(0.2):
                return setup + [f"o.{name} = {draw.anything()}"] if setup else [], member, [owner]
            return setup, member, [owner]
        arguments = self.arguments(draw, raw, skip=1)
        return setup, f"{member}({', '.join(arguments)})", [owner, *plain(arguments)]

    def instance(self, draw, path, cls):
        for base in cls.__mro__:
            if base is tn.Tensor:
                return draw.tensor_only()
            if base is cls and INSTANCES.get(base.__name__):
                return draw.pick(INSTANCES[base.__name__])
        return f"{path}({', '.join(self.arguments(draw, cls, hostile=0.02))})"

    def sampled(self, draw, target):
        """Arguments of a sample of an op, most often with one that is exchanged; or None."""
        rows = self.samples.get(target.name.rsplit(".", 1)[-1])
        if (
            not rows
            or getattr(tn._core, rows[0].op, None) is not target.value
            or draw.chance(0.4)
        ):
            return None
        sample = draw.pick(rows)
        keywords = {name: literal(value) for name, value in sample.keywords.items()}
        if None in keywords.values():
            return None
        tensors = [draw.filled(shape, dtype) for dtype, shape in sample.args]
        names = sample.arg_names
        given = dict(zip(names, tensors))
        if sample.has_list:
            given[names[-1]] = f"[{', '.join(tensors[len(names) - 1 :])}]"
        given |= keywords
        for _ in range(draw.pick([0, 1, 1, 1, 1, 2])):
            exchanged = draw.pick([*given, *inspect.signature(target.value).parameters])
            given[exchanged] = draw.changed(exchanged, given.get(exchanged))
        return [f"{name}={value}" for name, value in given.items()]

    def arguments(self, draw, function, skip=0, hostile=0.25):
        """For a signature; a few anythings where there is none."""
        try:
            parameters = list(inspect.signature(function).parameters.values())[skip:]
        except (ValueError, TypeError):
            return [draw.anything() for _ in range(draw.pick([0, 1, 1, 2, 3]))]
        made, named = [], False
        for p in parameters:
            note = "" if p.annotation is p.empty else str(p.annotation)
            if p.kind is p.VAR_POSITIONAL:
                made += (
                    []
                    if named
                    else [
                        draw.for_parameter(p.name, note, hostile)
                        for _ in range(draw.pick([0, 1, 1, 2]))
                    ]
                )
            elif p.kind is p.VAR_KEYWORD:
                made += [f"zzz={draw.anything()}"] if draw.chance(0.1) else []
            elif p.default is not p.empty and draw.chance(0.65):
                named = True
            elif p.default is p.empty and draw.chance(0.02):
                named = True  # left out
            else:
                value = draw.for_parameter(p.name, note, hostile)
                by_name = named or p.kind is p.KEYWORD_ONLY
                if not (by_name and p.kind is p.POSITIONAL_ONLY):
                    made.append(f"{p.name}={value}" if by_name else value)
        if draw.chance(0.01):
            made.append("unknown=1")
        return made

    def form(self, draw, name):
        tensor = draw.tensor_only()
        methods = [m for m in dir(type(tn.ones(1).at[0])) if not m.startswith("_")]
        text = FORMS[name].format(
            t=tensor,
            i=draw.subscript(),
            v=draw.anything() if name != "format(x)" else ".3f",
            m=draw.pick(methods),
            o=draw.pick(OPERATORS),
            n=draw.pick(NUMPY),
            p=draw.rng.randrange(6),
        )
        return [], text, [tensor]


def plain(arguments):
    """Without the keywords before them."""
    return [
        a.split("=", 1)[1] if a.split("=", 1)[0].isidentifier() and "=" in a else a
        for a in arguments
    ]
