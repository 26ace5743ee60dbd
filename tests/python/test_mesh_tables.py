"""Tables that are divided where they are indexed: embeddings with a divided vocabulary."""

import re

import numpy as np
import pytest

import tenon as tn
from tenon import nn, optim

COUNTS = [1, 2, 3, 4]
PARTS = 12
ROWS = np.array([[3, 5], [23, 0], [7, -1]])


def table_of(dtype):
    table = np.random.default_rng(0).normal(size=(24, 6)).astype(dtype)
    if table.dtype.kind == "f":
        table[3], table[5], table[7] = -0.0, np.nan, -np.inf
        table[5, 1] = np.copysign(np.nan, -1)
    return table


def local_graph(f):
    return f.show("sharding").rpartition("func @")[2]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8", "bool"])
def test_rows_keep_their_bits(dtype, compiled):
    table = table_of(dtype)
    for count in COUNTS:
        with tn.Mesh(model=count, parts=PARTS):
            f = tn.compile(lambda t, i: tn.take(t, i, axis=0))
            rows = (f if compiled else f.__wrapped__)(tn.shard(tn.array(table), "model"), ROWS)
            assert rows.numpy().tobytes() == table[ROWS].tobytes(), count
            if compiled and count > 1:
                assert "all_gather" not in local_graph(f)


def test_complex_tables_are_gathered():
    table = table_of("complex64")
    with tn.Mesh(model=2):
        rows = tn.take(tn.shard(tn.array(table), "model"), ROWS, axis=0)
        np.testing.assert_array_equal(rows.numpy(), table[ROWS])


def test_an_index_out_of_bounds_is_found():
    for count in COUNTS:
        with tn.Mesh(model=count, parts=PARTS):
            table, at = tn.shard(tn.ones((24, 2)), "model"), tn.array([0, 23]) + 1
            text = "gather: 24 is out of bounds for axis 0 of extent 24"
            with pytest.raises(tn.InvalidIndex, match=text):
                tn.take(table, at, axis=0).numpy()
            with pytest.raises(tn.InvalidIndex, match="24 is out of bounds for axis 0 of extent"):
                tn.scatter_add(table, tn.ones((2, 2)), at, axes=0).numpy()
            f = tn.compile(lambda t, i: tn.take(t, i, axis=0))
            assert f(table, at).tolist() == [[1, 1], [1, 1]]  # clamped


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(96, 8), nn.Linear(8, 8)

    def forward(self, tokens):
        return self.hidden(self.embedding(tokens)) @ self.embedding.weight.T


def train(meshes):
    graphs, weights = [], []
    for sizes in meshes:
        tn.random.seed(0)
        with tn.Mesh(**sizes, parts={"data": 2, "model": PARTS}):
            model, optimizer = Language(), optim.Adam(0.01)
            nn.shard(model, {"embedding.weight": "model"})
            state = [model.state, optimizer.state]

            def loss_of(model, tokens, next_tokens):
                logits = model(tokens).reshape(-1, 96)
                return nn.losses.cross_entropy(logits, next_tokens.reshape(-1), reduction="mean")

            @tn.compile(inputs=state, outputs=state)
            def step(tokens, next_tokens):
                run = nn.value_and_grad(model, loss_of)
                loss, gradients = run(model, tokens, next_tokens)
                optimizer.update(model, gradients)
                return loss

            tokens = tn.array(np.arange(8).reshape(4, 2) * 11 % 96)
            for _ in range(3):
                loss = step(*tn.shard((tokens, (tokens + 1) % 96), "data"))
            assert tn.layout(model.embedding.weight) == "f32[96,8] @[model,-]"
            graphs.append(local_graph(step))
            weights.append([loss.numpy(), *(p.numpy() for _, p in model.named_parameters())])
    return graphs, weights


def test_a_language_model_with_a_divided_vocabulary():
    meshes = [{"data": d, "model": m} for d, m in [(1, 1), (1, 2), (2, 2), (1, 3), (2, 4)]]
    graphs, weights = train(meshes)
    for other in weights[1:]:
        for x, y in zip(weights[0], other, strict=True):
            np.testing.assert_array_equal(x, y)
    for graph in graphs:  # neither the table nor the logits, nor their gradients
        assert not re.search(r"all_gather.*: f32\[.*96", graph)
