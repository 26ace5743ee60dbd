"""Arguments for random calls, as Python source: ordinary ones by what a parameter is called and
annotated with, and hostile ones of every kind. `tn` and `np` are the only names they use."""

import re

TYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3",
]
SHAPES = [(), (0,), (1,), (3,), (4,), (2, 3), (3, 3), (3, 2), (2, 0), (2, 3, 4), (1, 2, 3, 4)]
SIZES = ["0", "1", "2", "3", "3", "4", "5", "-1"]
SILLY = ["2**31 - 1", "2**31", "2**62", "2**63", "-2**63", "2**64", "10**30", "-2", "-100", "99"]
FLOATS = [
    "0.5", "0.0", "-0.0", "1.5", "-1.5", "1e300", "1e-300", "float('nan')", "float('inf')",
    "-float('inf')", "0.1",
]
NAMES = [
    "'sum'", "'mean'", "'none'", "'max'", "'same'", "'valid'", "'reflect'", "'float32'", "'cpu'",
    "'relu'", "'fro'", "'nearest'", "'linear'", "'ij,jk->ik'", "'...i->...'", "'a'", "'w'", "'C'",
    "'loops'", "'left'",
]
STRINGS = ["''", "'text'", "'a\\0b'", "'\\ud800'", "'x' * 5000", "'->'", "'/'", "'\\n'", "b'x'"]
OBJECTS = [
    "None", "True", "False", "...", "()", "[]", "{}", "set()", "[[]]", "[None]", "[[1, 2], [3]]",
    "{'a': tn.ones(3), 'b': [tn.zeros(2)]}", "{1: 2}", "(tn.ones(3), None)", "object()", "object",
    "int", "tn", "tn.float32", "np.float64", "slice(None)", "slice(None, None, -1)", "range(3)",
    "iter([1, 2])", "lambda: None", "lambda x: x", "1j", "[1, 2, 3]", "(2, 3)", "[2**62, 4]",
    "(-1, -1)", "(0, 0)", "(0, 1, 2)", "(2**31,)", "[float('nan')]", "['a']", "[True, False]",
    "np.ones((2, 3))", "np.array('text')", "np.array([object()])", "np.zeros((0, 2))",
    "np.int64(3)", "np.ones((4, 6), 'f4')[::2, ::-2]", "np.ones(3, '>f4')",
    "np.datetime64('2020')", "np.float16(2)", "memoryview(b'abcd')", "bytearray(4)",
    "frozenset([1])", "type('Bad', (), {'__index__': lambda s: 1 / 0})()",
    "type('Bad', (), {'__array__': lambda s, *a, **k: None})()",
    "type('Bad', (), {'__len__': lambda s: -1, '__getitem__': lambda s, i: s})()",
    "type('Bad', (), {'__float__': lambda s: 'x'})()", "type('Bad', (list,), {})([1, 2])",
    "(lambda a: (a.append(a), a)[1])([])", "(lambda a: (a.update(a=a), a)[1])({})",
]
TREES = [
    "{'w': tn.ones((2, 3)), 'b': tn.zeros(2)}", "[tn.ones(3)]",
    "(tn.ones((2, 3)), [tn.zeros(3)])", "tn.ones((2, 3))", "{}", "{'a': {'b': tn.arange(3.0)}}",
    "[]", "None",
]
FUNCTIONS = [
    "lambda x: x", "lambda x: tn.sum(x * x)", "lambda *a: a[0]", "lambda x: None",
    "lambda x: {'a': x, 'b': [x + 1]}", "lambda: 1", "tn.exp", "tn.sum", "lambda x: x + 1",
    "lambda x: tn.sum(x).item()", "lambda x: 1 / 0", "lambda c, x: (c, x)",
    "lambda c, x: (c + 1, c)", "lambda x, y: x * y", "lambda x: ()", "lambda x: 'text'",
    "lambda x, *r: tn.sum(tn.sin(x))", "lambda *a, **k: tn.ones(3)", "tn.nn.Linear(3, 2)",
    "tn.compile(lambda x: x * 2)", "tn.grad(lambda x: tn.sum(x ** 2))", "len",
]
# A loop that does not end is the caller's own: conditions are false, or no condition at all.
CONDITIONS = [
    "lambda *x: tn.array(False)", "lambda *x: False", "lambda x: tn.zeros(3)", "lambda x: None",
    "lambda x: 'text'", "lambda x: tn.sum(x) > 1e30", "None", "lambda x: tn.zeros(()) > 1",
]
MODULES = [
    "tn.nn.Linear(3, 2)",
    "tn.nn.Sequential(tn.nn.Linear(3, 4), tn.nn.ReLU(), tn.nn.Linear(4, 1))",
    "tn.nn.Embedding(5, 3)", "tn.nn.Dropout(0.5)", "tn.nn.Identity()", "tn.nn.BatchNorm(3)",
    "tn.nn.Conv2d(3, 4, 2)",
]
PATHS = [
    "'a.npy'", "'a.npz'", "'a.safetensors'", "'a.tnx'", "'a.html'", "'a.json'", "'a'", "''",
    "'.'", "'missing/a.npy'", "'/dev/null'", "'a\\0b'", "'\\ud800'", "b'a.npy'", "'x' * 5000",
]
KEYS = [
    "tn.random.key(0)", "tn.random.split(tn.random.key(1))[0]", "None",
    "tn.random.split(tn.random.key(1))",
]


NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d*)?(e-?\d+)?(?![\w.*])")


def is_like(*words):
    return re.compile("|".join(words))


# What a parameter's name (or, after ": ", its annotation) says about it, first match wins.
MEANINGS = [
    (is_like(r"^(cond|pred)\w*f\w*$", r"^cond_?fun", r"^cond_fn$"), "condition"),
    (
        is_like(
            r"^(f|fn|fun|func|body|function|rule)(_\w+)?$",
            r"_(fn|fun)$",
            "^true_f",
            "^false_f",
            ": .*Callable",
        ),
        "function",
    ),
    (is_like(r"dtype$", "^precision$", ": .*DType"), "dtype"),
    (is_like("^(path|file|folder|filename|directory)", ": .*PathLike"), "path"),
    (is_like("^key$", "^keys$", "^rng"), "key"),
    (is_like("^(model|module|layer|network)s?$", ": .*Module"), "module"),
    (is_like("optimizer"), "optimizer"),
    (is_like("^(shape|size|shapes|newshape|out_shape|normalized_shape)$"), "shape"),
    (
        is_like("^(axis|axes|dim|dims|axis1|axis2|source|destination|perm|in_axes|out_axes)$"),
        "axis",
    ),
    (
        is_like(
            "^(tree|params|parameters|grads|gradients|state|primals|tangents|carry|init|xs|operands"
            "|leaves|values)$"
        ),
        "tree",
    ),
    (is_like("^(tensors|arrays|xs|sequence)$"), "list"),
    (is_like("index|indices|idx|segment|^i$|target|labels|ids"), "index"),
    (is_like("^(length|calls|epochs)$"), "trips"),  # so many as the caller wants to wait for
    (
        is_like(
            "^(n|k|num\\w*|length|count|repeats|sections|times|steps|step|depth|window\\w*"
            "|stride\\w*|kernel_size|padding|dilation|groups|\\w+_size|\\w+_features|features"
            "|in_channels|out_channels|channels|d_model|dim\\w*|heads|layers|offset|diagonal|shift"
            "|bins|size\\w*|start|stop|end|minlength|rows|columns|N|M|seed|decimals|level"
            "|batch\\w*)$",
            ": (builtins\\.)?int",
        ),
        "size",
    ),
    (is_like(": (builtins\\.)?bool"), "bool"),
    (
        is_like(
            ": (builtins\\.)?float",
            "^(lr|learning_rate|eps|p|alpha|beta|rate|weight_decay|low|high|momentum|scale|tau)$",
        ),
        "float",
    ),
    (
        is_like(
            "^(equation|subscripts|mode|method|reduction|ord|side|order|indexing|name|string|spec"
            "|padding_mode|stage|device|kind|op)$",
            ": (builtins\\.)?str",
        ),
        "name",
    ),
    (is_like("."), "tensor"),
]


class Arguments:
    """Draws source text from a generator of random numbers."""

    def __init__(self, rng):
        self.rng = rng

    def pick(self, choices):
        return choices[self.rng.randrange(len(choices))]

    def chance(self, share):
        return self.rng.random() < share

    def for_parameter(self, name, annotation="", hostile=0.25):
        """An argument for a parameter, ordinary but for a share of hostile ones."""
        if self.chance(hostile):
            return self.anything()
        text = f"{name}\n: {annotation}" if annotation else name
        for line in text.split("\n"):
            for pattern, meaning in MEANINGS[:-1]:
                if pattern.search(line):
                    return getattr(self, meaning)()
        return self.tensor()

    def changed(self, name, value):
        """Another argument for one of a call that works; None: it was left out."""
        kind = self.rng.randrange(3)
        if kind == 0 or value is None:
            return self.for_parameter(name, hostile=0.3)
        numbers = [found.span() for found in NUMBER.finditer(value)]
        if kind == 1 and numbers and not any(part in value for part in ("tn.", "**", "'")):
            first, end = self.pick(numbers)
            return f"{value[:first]}({self.number()}){value[end:]}"
        return self.anything()

    def anything(self):
        return self.pick(
            [
                self.tensor,
                self.object,
                self.object,
                self.object,
                self.number,
                self.number,
                self.silly,
                self.name,
                self.string,
                self.function,
                self.tree,
                self.module,
                self.shape,
                self.dtype,
                self.key,
            ]
        )()

    def tensor(self):
        kind = self.rng.randrange(16)
        if kind == 0:
            return self.pick(
                [
                    "tn.array([float('nan'), float('inf'), -0.0])", "tn.array(2.5)",
                    "tn.array([1, -1, 2**31 - 1])", "tn.array([2**62, -2**63])", "tn.eye(3)",
                    "tn.random.key(0)", "tn.ones((1, 3, 4, 4))", "tn.ones((1, 4, 4, 3))",
                    "tn.broadcast_to(tn.array(1.0), (2, 3))", "tn.zeros((2, 3), dtype=tn.bool)",
                ]
            )
        if kind == 1:
            return self.number()
        made = self.tensor_only()
        narrow = "bfloat16" in made or "float8" in made
        return f"np.asarray({made})" if kind == 2 and not narrow else made

    def tensor_only(self):
        """No array of NumPy, and no number."""
        kind = self.rng.randrange(16)
        shape, dtype = self.pick(SHAPES), self.pick(TYPES if self.chance(0.5) else ["float32"])
        made = self.filled(shape, dtype)
        if kind == 2 and len(shape) == 2:
            made += ".T"
        elif kind == 3 and shape:
            made += self.pick(["[::2]", "[::-1]", "[..., 1:]", "[:0]"])
        return made

    def filled(self, shape, dtype):
        """A tensor of small numbers."""
        count = 1
        for size in shape:
            count *= size
        if str(dtype) == "float32":
            return f"tn.arange({float(count)}).reshape({tuple(shape)})"
        return f"tn.arange({count}).reshape({tuple(shape)}).astype(tn.{dtype})"

    def object(self):
        return self.pick(OBJECTS)

    def number(self):
        return self.pick([self.size, self.float, self.silly, self.bool])()

    def silly(self):
        return self.pick(SILLY)

    def float(self):
        return self.pick(FLOATS)

    def size(self):
        return self.pick(SIZES) if self.chance(0.75) else self.silly()

    def trips(self):
        return self.pick(["0", "1", "3", "-1", "None", "True", "1.5", "'a'"])

    def bool(self):
        return self.pick(["True", "False"])

    def name(self):
        return self.pick(NAMES)

    def string(self):
        return self.pick(STRINGS)

    def dtype(self):
        return f"tn.{self.pick(TYPES)}"

    def function(self):
        return self.pick(FUNCTIONS)

    def condition(self):
        return self.pick(CONDITIONS)

    def module(self):
        return self.pick(MODULES)

    def optimizer(self):
        return self.pick(["tn.optim.SGD(0.1)", "tn.optim.Adam(1e-3)", "tn.optim.AdamW(0.01)"])

    def path(self):
        return self.pick(PATHS)

    def key(self):
        return self.pick(KEYS)

    def tree(self):
        return self.pick(TREES)

    def list(self):
        return f"[{', '.join(self.tensor() for _ in range(self.rng.randrange(4)))}]"

    def shape(self):
        if self.chance(0.15):
            return self.pick(
                [
                    "(2**31,)", "(2**62, 4)", "(-1, -1)", "2**31", "(2**31, 2**31, 2**31)",
                    "(-2,)", "(0, 2**62)", "[None]", "(1.5,)", "(2**40,)",
                ]
            )
        return self.pick(
            [
                "()", "3", "(3,)", "(2, 3)", "[3, 2]", "(6,)", "(-1,)", "(0, 3)", "(2, -1)",
                "(1, 2, 3)", "(2, 3, 4)", "None",
            ]
        )

    def axis(self):
        return self.pick(
            [
                "0", "0", "1", "-1", "None", "(0, 1)", "[0]", "2", "(1, 0)", "()", "(0, 0)",
                "(-1, 0)", "99", "-99", "2**62",
            ]
        )

    def index(self):
        """An integer tensor or number, mostly in range for small sizes."""
        return self.pick(
            [
                "0", "-1", "1", "tn.array([0, 1, 0])", "tn.array([0, -1, 2])", "tn.array(1)",
                "tn.array([[0, 1], [1, 0]])", "np.array([0, 1])", "[0, 1]", "tn.array([99])",
                "tn.array([-99, 2**62])", "tn.zeros((0,), dtype=tn.int32)", "2**62",
                "tn.array([1], dtype=tn.uint8)", "tn.array([0.0, 1.0])",
            ]
        )

    def subscript(self):
        """What stands between brackets."""
        parts = [
            self.pick(
                [
                    "0", "-1", ":", "::2", "::-1", "1:", ":-1", "...", "None", "True", "False",
                    "tn.array([0, 1])", "tn.array([[0, 1]])", "[1, 0]", "np.array([0])",
                    "tn.array([True, False, True])", "tn.ones((2, 3)) > 0", "99", "-99", "2**62",
                    "2**62:", "::2**62", "::0", "'a'", "0.5", "tn.array(1)", ":2**31", "()",
                    "slice(None, tn.array(1))", "tn.array([99])", "[]", "np.int64(1)",
                    "tn.zeros((0,), dtype=tn.int64)", "-2**63:", "range(2)", "tn.array([])",
                ]
            )
            for _ in range(self.pick([1, 1, 1, 2, 2, 3, 5]))
        ]
        return ", ".join(parts)
