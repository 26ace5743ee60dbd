"""`Executable`: a function compiled ahead of time, which can be called, saved and loaded."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from . import _core, surface
from .files import opening, path_of, writing
from .input_infos import DimensionInputInfo, Info, from_core


class Executable(_core._Executable):
    """A function compiled ahead of time by `tn.compile(f, args=[tn.InputInfo(...)])`.

    Calls pass the described inputs; all other arguments are constants.

        >>> info = tn.InputInfo(shape=((1, 2, 3), 2), dtype=tn.float32)
        >>> double = tn.compile(lambda x: 2 * x, args=[info])
        >>> double(tn.ones((3, 2))).shape
        (3, 2)
        >>> double.input_infos
        {'x': InputInfo(shape=((1, 2, 3), 2), dtype=float32)}

    Parts of a tree argument without a description are constants: calls pass equal values, or None.
    Calls may come from any thread, and release the GIL. Copies are the same object; pickling uses
    the bytes of the file. With `mesh=` it runs on the workers of a mesh, and results lie there.
    """

    def __init__(
        self,
        program: _core._Program,
        parameters: Sequence[surface.Parameter] = (),
        results: _core.TreeStructure | None = None,
    ) -> None:
        if not isinstance(program, _core._Program):
            _core._fail("type", "Executable: made by tn.compile(f, args=[...]) or Executable.load")
        given = [p for p in parameters if p.is_input]
        fixed = [p.name for p in parameters if not p.is_input]
        rows = [
            (p.name, int(p.kind), p.structure, [*zip(p.names, map(_role, p.leaves))]) for p in given
        ]
        super().__init__(program, rows, fixed, results)
        self.__name__ = program.name
        self.__signature__ = inspect.Signature([inspect.Parameter(p.name, p.kind) for p in given])

    @cached_property
    def input_infos(self) -> dict[str, Info]:
        """The inputs by name; a part of an argument is named like `data.b.list[1]`."""
        return {info.name: from_core(info) for info in self._program.inputs}

    @property
    def peak_bytes(self) -> int:
        """The bytes that a call with the largest sizes needs besides its arguments."""
        return self._program.peak_bytes

    def memory(self) -> _core.MemoryReport:
        """A report on the memory that a call with the best sizes needs besides its arguments."""
        return self._program.memory()

    def source(self, language: str = "c") -> str:
        """The program as one C file (if no size varies), or as one Python file.

        A Python file needs only "numpy", "torch" or "jax"; its function takes the constants after
        the inputs.
        """
        return self._program.source(language)

    def show(self, stage: str) -> str:
        """A stage of the compilation as text; the stages are those of `tn.show`."""
        return self._program.show(stage)

    def stats(self) -> _core.ExecutableStats:
        """Calls, plans and kernels so far, the CPU level and origin of the code, and the mesh."""
        return self._program.stats()

    def save(
        self,
        path: str | os.PathLike[str],
        targets: str | Sequence[str] = (),
        debug: bool = True,
    ) -> None:
        """Writes everything to one file, which is replaced atomically.

        `targets` are the CPUs to include machine code for, as `target_hardware` of `tn.compile`; by
        default those that it was compiled for. `debug=False` omits source locations.
        """
        levels = [targets] if isinstance(targets, str) else list(targets)
        name = path_of("save", path)
        with writing(name):
            self._program.save(name, levels, debug)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], trust: bool = False, verify: bool | None = None
    ) -> Executable:
        """Loads a file that `save` wrote.

        Its machine code is used only if this user saved the file on this machine, or with `trust`;
        otherwise the graph is compiled again. Named tuples and dataclasses are restored if their
        modules are imported, otherwise they become tuples and dicts.

        Checksums cover the whole file. Files up to 4 MiB are verified now; the weights of larger
        files, which are mapped, are verified in the first call before it returns. `verify=True`
        verifies everything now, `verify=False` skips the weights.
        """
        name = path_of("load", path)
        with opening(name):
            program = _core._Program.load(name, trust, verify)
        try:
            names = [info.name for info in program.inputs]
            infos = [from_core(info) for info in program.inputs]
            return cls(program, *surface.read(program.surface, names, infos, program.num_outputs))
        except UnicodeDecodeError:
            _core._fail("value", f"load: {name} is damaged: a text in it is not UTF-8")

    def __str__(self) -> str:
        return str(self._program)

    def __repr__(self) -> str:
        return f"<executable {self.__name__}{self.__signature__}>"

    def __copy__(self) -> Executable:
        return self

    def __deepcopy__(self, memo: Any) -> Executable:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "executable.tnx")
            self.save(path)
            with open(path, "rb") as file:
                return _from_bytes, (file.read(),)


def _from_bytes(data: bytes) -> Executable:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".tnx") as file:
        file.write(data)
        file.flush()
        return Executable.load(file.name)


def _role(leaf: Any) -> Any:
    """Return the role of a leaf for the core: "size", "tensor", or (constant,)."""
    if isinstance(leaf, Info):
        return "size" if isinstance(leaf, DimensionInputInfo) else "tensor"
    return (leaf,)
