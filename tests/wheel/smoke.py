"""What an installed wheel has to do, with NumPy and without; run by tools/check_wheel.sh."""

import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile

import tenon as tn
from tenon import nn, optim


def tensors():
    x = tn.array([[1.0, 2.0], [3.0, 4.0]])
    assert (x @ x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert tn.grad(lambda x: (x * x).sum())(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert math.isclose(tn.exp(tn.array(1.0)).item(), math.e, rel_tol=1e-6)
    assert "tensor(" in repr(x)


def compiled():
    f = tn.compile(lambda x: tn.softmax(x * 2, axis=0))
    assert f(tn.ones(4)).tolist() == [0.25] * 4
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "f.tnx"
        info = tn.InputInfo((4,), tn.float32)
        tn.compile(lambda x: tn.softmax(x * 2, axis=0), args=[info]).save(path)
        assert tn.Executable.load(path)(tn.ones(4)).tolist() == [0.25] * 4


def training():
    tn.random.seed(0)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x = tn.random.normal((64, 2))
    losses = []
    for _ in range(20):
        loss = nn.losses.mse_loss(model(x), x[:, :1])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 4, losses


def arrays():
    import numpy as np

    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert (tn.array(array) * 2).numpy().tolist() == (array * 2).tolist()
    assert np.shares_memory(array, tn.from_dlpack(array).numpy())


def files_of_the_package():
    folder = pathlib.Path(tn.__file__).parent
    for name in ("py.typed", "_core.pyi"):
        assert (folder / name).is_file(), name
    command = pathlib.Path(sys.executable).parent / "tenon"
    printed = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert tn.__version__ in printed.stdout


if __name__ == "__main__":
    tensors()
    compiled()
    training()
    files_of_the_package()
    with_numpy = importlib.util.find_spec("numpy") is not None
    if with_numpy:
        arrays()
    print(f"wheel: tenon {tn.__version__} works {'with' if with_numpy else 'without'} NumPy")
