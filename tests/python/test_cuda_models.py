"""Models and batches on a GPU, by a mock of the driver that builds for tests have."""

import pytest

from processes import run_on_mock as run

pytestmark = pytest.mark.host  # each program chooses its device


def test_models_are_evaluated_on_a_gpu():
    assert run("""
import numpy as np
from tenon.model import Linear, Relu
def net():
    model = tn.Model()
    model |= Linear(8)(input="x")
    model += Relu()
    return model
x = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
shapes = {"x": [3, 4]}
cpu = tn.compile(net(), tn.CpuBackend(), shapes=shapes)
gpu = tn.compile(net(), tn.CudaBackend(), shapes=shapes)
params = gpu.randomize_params(3)
print({str(v.device) for v in params.values()})
out = gpu.evaluate(params, {"x": x})["output"]
want = cpu.evaluate(cpu.randomize_params(3), {"x": x})["output"]
print(out.device, out.tolist() == want.tolist())
seeds = {"output": np.ones((3, 8), np.float32)}
_, gradients = gpu.evaluate(params, {"x": x}, output_gradients=seeds)
print({str(g.device) for g in gradients.values()})
fixed = tn.compile(net(), tn.CudaBackend(), shapes=shapes, params=params, static_inference=True)
print(fixed.evaluate(data={"x": x})["output"].tolist() == want.tolist())
""") == ["{'cuda:0'}", "cuda:0 True", "{'cuda:0'}", "True"]


def test_batches_are_copied_to_a_gpu_ahead():
    assert run("""
import numpy as np
data = {"x": tn.arange(60000, dtype=tn.float32).reshape(6, 10000), "y": np.arange(6)}
seen = list(tn.data.prefetch(tn.data.batches(data, 2), device="cuda"))
print({str(t.device) for batch in seen for t in batch.values()})
total = float(sum((b["x"] * 2).sum() for b in seen))
print([batch["y"].tolist() for batch in seen], abs(total / 3599940000 - 1) < 1e-5)
rows = tn.data.prefetch([(np.ones(2, np.float32), 3)], device=tn.Device("cuda"))
print([(str(x.device), n) for x, n in rows])
""") == [
        "{'cuda:0'}",
        "[[0, 1], [2, 3], [4, 5]] True",
        "[('cuda:0', 3)]",
    ]


def test_models_are_trained_on_a_gpu():
    assert run("""
from test_model_training import compiled, steps, training_model
from tenon.model import BatchNorm1d, Dropout, Linear, Relu
blocks = Linear(16, bias=False), BatchNorm1d(), Relu(), Dropout(0.2), Linear(3)
cpu, gpu = (
    steps(compiled(training_model(*blocks, optimizer=tn.optim.Adam(0.05)), backend))
    for backend in (tn.CpuBackend(), tn.CudaBackend())
)
print({str(v.device) for v in [*gpu.params.values(), *gpu.state.values(), gpu.loss]})
print(gpu.loss.item() == cpu.loss.item())
print(all(gpu.params[n].tolist() == v.tolist() for n, v in cpu.params.items()))
""") == ["{'cuda:0'}", "True", "True"]
