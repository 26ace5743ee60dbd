"""Runs written Python files without Tenon: python -I source_runner.py TARGET FOLDER.

FOLDER/cases.json lists cases: a file, the names of its arguments in FOLDER/arguments.npz, and which
function to call. Results go to FOLDER/results.npz, errors to FOLDER/errors.json.
"""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def conversions(target):
    if target == "numpy":
        return (lambda x: x), np.asarray
    if target == "torch":
        import torch

        def array(x):
            x = x.float() if x.dtype == torch.bfloat16 else x
            return x.resolve_conj().resolve_neg().numpy()

        return torch.tensor, array
    import jax.numpy as jnp

    return jnp.asarray, lambda x: np.asarray(
        x.astype(jnp.float32) if x.dtype == jnp.bfloat16 else x
    )


def main(target, folder):
    if target == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    given, taken = conversions(target)
    arguments = np.load(folder / "arguments.npz")
    results, errors = {}, {}
    for case in json.loads((folder / "cases.json").read_text()):
        name = case["name"]
        try:
            function = getattr(load(folder / case["file"]), case["function"])
            function = jax.jit(function) if target == "jax" else function
            made = function(*(given(arguments[a]) for a in case["arguments"]))
            made = made if isinstance(made, tuple) else (made,)
            for i, x in enumerate(made):
                results[f"{name}/{i}"] = taken(x)
        except Exception as error:  # reported by the test
            errors[name] = f"{type(error).__name__}: {error}"
    np.savez(folder / "results.npz", **results)
    (folder / "errors.json").write_text(json.dumps(errors))
    assert "tenon" not in sys.modules


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
