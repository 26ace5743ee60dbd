// The stubs of logical models; python/tenon/model is what users see of them.
#include "cli/gen.h"

namespace tn {

const std::string_view kPythonModels = R"(
_Wire: TypeAlias = tuple[str, str, tuple[Any, ...], DType]

class ModelBlock:
    kind: str
    called: str
    terminals: list[tuple[str, str, str, DType | None, _bool]]

class LogicalModel:
    name: str
    _terminals: list[tuple[str, str, str, DType | None, _bool]]
    def __init__(self, name: str) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class ResolvedModel:
    open: list[_Wire]
    outputs: list[_Wire]
    wires: list[_Wire]
    blocks: list[tuple[str, str, str, list[int], list[int], str]]
    costs: list[Any]
    tried_sizes: dict[str, int]
    def shapes_at(self, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]: ...

class ModelFunctions:
    model: ResolvedModel
    given: list[tuple[str, str, tuple[Any, ...], DType, _bool]]
    outputs: list[str]
    states: list[str]
    training: _bool
    def forward(self, given: list[Tensor]) -> list[Tensor]: ...
    def gradients(
        self, given: list[Tensor], cotangents: list[Tensor | None]
    ) -> list[Tensor]: ...
    def first_values(self, key: Tensor) -> list[Tensor | None]: ...
    def python_file(
        self, target: str, fixed: dict[str, Tensor], constants_file: str
    ) -> tuple[str, dict[str, Tensor]]: ...
    def text(self, stage: str) -> str: ...

class _HeldValues:
    def __init__(self, values: list[Tensor]) -> None: ...
    def are(self, others: list[Tensor]) -> _bool: ...
    def values(self) -> list[Tensor]: ...

def _pass_names() -> dict[str, _bool]: ...
def _make_block(
    kind: str,
    terminals: list[Any],
    sizes: dict[str, int],
    settings: str,
    random: _bool,
    compute: Any,
) -> ModelBlock: ...
)";

}  // namespace tn
