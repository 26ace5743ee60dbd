"""Weights of modules by name: from other libraries' files, and what does not fit."""

import pathlib
import re

import numpy as np
import pytest

import tenon as tn
from tenon import nn

DATA = pathlib.Path(__file__).parent.parent / "data"
DIMS, HEADS, VOCABULARY, CONTEXT = 16, 2, 24, 8  # as tools/record_weights.py has them


def heads(x):
    batch, length, _ = x.shape
    return x.reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)


def attended(q, k, v):
    made = tn.scaled_dot_product_attention(q, k, v, is_causal=True)
    return made.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], DIMS)


def check_logits(model, folder):
    recorded = tn.load(DATA / folder / "logits.npz")
    logits = model(recorded["tokens"])
    np.testing.assert_allclose(logits.numpy(), recorded["logits"].numpy(), rtol=1e-4, atol=1e-5)


# GPT-2: names and layouts that differ ---------------------------------------------------------


class Attention(nn.Module):
    def __init__(self):
        self.q, self.k, self.v, self.out = (nn.Linear(DIMS, DIMS) for _ in range(4))

    def forward(self, x):
        return self.out(attended(heads(self.q(x)), heads(self.k(x)), heads(self.v(x))))


class Block(nn.Module):
    def __init__(self):
        self.attention, self.norms = Attention(), [nn.LayerNorm(DIMS), nn.LayerNorm(DIMS)]
        self.up, self.down = nn.Linear(DIMS, 4 * DIMS), nn.Linear(4 * DIMS, DIMS)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(nn.gelu_approx(self.up(self.norms[1](x))))


class GPT(nn.Module):
    def __init__(self, blocks=2):
        self.tokens, self.positions = nn.Embedding(VOCABULARY, DIMS), nn.Embedding(CONTEXT, DIMS)
        self.blocks, self.norm = [Block() for _ in range(blocks)], nn.LayerNorm(DIMS)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(tn.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def thirds(part):
    """A weight [inputs, 3 outputs], or a bias [3 outputs], as those of three layers."""
    return lambda x: {f"{n}.{part}": third.T for n, third in zip("qkv", tn.split(x, 3, axis=-1))}


GPT2 = {
    "transformer.wte": "tokens",
    "transformer.wpe": "positions",
    "transformer.ln_f": "norm",
    "transformer.h.*.ln_1": "blocks.*.norms.0",
    "transformer.h.*.ln_2": "blocks.*.norms.1",
    "transformer.h.*.attn.bias": None,  # the mask
    "transformer.h.*.attn.c_attn.weight": ("blocks.*.attention", thirds("weight")),
    "transformer.h.*.attn.c_attn.bias": ("blocks.*.attention", thirds("bias")),
    "transformer.h.*.attn.c_proj": "blocks.*.attention.out",
    "transformer.h.*.attn.c_proj.weight": ("blocks.*.attention.out.weight", tn.transpose),
    "transformer.h.*.mlp.c_fc": "blocks.*.up",
    "transformer.h.*.mlp.c_fc.weight": ("blocks.*.up.weight", tn.transpose),
    "transformer.h.*.mlp.c_proj": "blocks.*.down",
    "transformer.h.*.mlp.c_proj.weight": ("blocks.*.down.weight", tn.transpose),
}


def test_gpt2():
    for source in (DATA / "gpt2", DATA / "gpt2" / "model.safetensors"):
        check_logits(GPT().load_weights(source, mapping=GPT2), "gpt2")


def test_a_mapping_may_be_a_function():
    def mapping(name):
        if name.endswith(".attn.bias"):
            return None
        if name.endswith(("attn.c_attn.weight", "attn.c_attn.bias")):
            layer, part = name.split(".")[2::3]
            return f"blocks.{layer}.attention", thirds(part)
        for old, new in (
            ("transformer.h", "blocks"), ("transformer.wte", "tokens"), ("ln_1", "norms.0"),
            ("transformer.wpe", "positions"), ("transformer.ln_f", "norm"), ("ln_2", "norms.1"),
            ("attn.c_proj", "attention.out"), ("mlp.c_fc", "up"), ("mlp.c_proj", "down"),
        ):  # fmt: skip
            name = name.replace(old, new)
        turned = name.endswith(("out.weight", "up.weight", "down.weight"))
        return (name, tn.transpose) if turned else name

    check_logits(GPT().load_weights(DATA / "gpt2", mapping=mapping), "gpt2")


def test_a_model_that_is_too_short_says_all_that_is_left():
    with pytest.raises(ValueError, match="16 problems with the weights for GPT") as raised:
        GPT(blocks=1).load_weights(DATA / "gpt2", mapping=GPT2)
    assert str(raised.value).count("extra: blocks.1.") == 16
    assert "load_weights: " + str(DATA / "gpt2") in str(raised.value)


# LLaMA: the same names, half as wide, in two files --------------------------------------------


class LlamaAttention(nn.Module):
    def __init__(self):
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(DIMS, DIMS, bias=False) for _ in range(4)
        )
        self.rope = nn.RoPE(DIMS // HEADS)

    def forward(self, x):
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        return self.o_proj(attended(self.rope(q), self.rope(k), v))


class LlamaMLP(nn.Module):
    def __init__(self):
        self.gate_proj = nn.Linear(DIMS, 40, bias=False)
        self.up_proj = nn.Linear(DIMS, 40, bias=False)
        self.down_proj = nn.Linear(40, DIMS, bias=False)

    def forward(self, x):
        return self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self):
        self.self_attn, self.mlp = LlamaAttention(), LlamaMLP()
        self.input_layernorm = nn.RMSNorm(DIMS, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(DIMS, eps=1e-5)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        self.embed_tokens = nn.Embedding(VOCABULARY, DIMS)
        self.layers = [LlamaLayer() for _ in range(2)]
        self.norm = nn.RMSNorm(DIMS, eps=1e-5)
        self.lm_head = nn.Linear(DIMS, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


def test_llama():
    for source in (DATA / "llama", DATA / "llama" / "model.safetensors.index.json"):
        model = Llama().load_weights(source, mapping={"model": ""}, dtype=tn.float32)
        check_logits(model, "llama")
    narrow = Llama().load_weights(DATA / "llama", mapping={"model": ""}, dtype=tn.bfloat16)
    assert {p.dtype for p in narrow.state_dict().values()} == {tn.bfloat16}
    with pytest.raises(ValueError, match="21 problems .*Llama") as raised:
        Llama().load_weights(DATA / "llama", mapping={"model": ""})
    assert "dtype: norm.weight is float32, given bfloat16" in str(raised.value)
    assert "hint: dtype=... converts" in str(raised.value)


# Names ----------------------------------------------------------------------------------------


def mapped(mapping, *names):
    given = {name: tn.array(i) for i, name in enumerate(names)}
    return {new: names[tensor.item()] for new, tensor in nn.weights.renamed(given, mapping).items()}


@pytest.mark.parametrize(
    "mapping, names",
    [
        ({}, {"a.b": "a.b"}),
        ({"a": "x"}, {"a": "x", "a.b": "x.b", "ab": "ab", "b.a": "b.a"}),
        ({"a": ""}, {"a.b.c": "b.c"}),
        ({"": "model"}, {"a.b": "model.a.b"}),
        ({"a.*.c": "x.*"}, {"a.1.c": "x.1", "a.2.c.d": "x.2.d", "a.c": "a.c", "a.1.2": "a.1.2"}),
        ({"**.num": None, "a": "x"}, {"a.b.num": None, "num": None, "anum": "anum", "a.b": "x.b"}),
        ({"**.norm": "**.n"}, {"a.b.norm.w": "a.b.n.w", "norm.w": "n.w", "a.norm": "a.n"}),
        ({"a.**": "x.**"}, {"a.b.c": "x.b.c", "a.b": "x.b", "a": "a"}),
        ({"a.**.b": "x.**.y"}, {"a.b": "x.y", "a.1.2.b.c": "x.1.2.y.c"}),
        ({"a[0]": "x"}, {"a[0].b": "x.b", "a0.b": "a0.b"}),
        ({"*.a.*": "x.*.y.*"}, {"1.a.2.w": "x.1.y.2.w"}),
        ({"a": "x", "a.b": "y", "a.b.c": None}, {"a.q": "x.q", "a.b.q": "y.q", "a.b.c": None}),
        ({"a.*": "x.*", "a.b": "y"}, {"a.c": "x.c", "a.b": "y"}),
    ],
)
def test_patterns(mapping, names):
    want = {new: old for old, new in names.items() if new is not None}
    assert mapped(mapping, *names) == want


def test_mappings_that_make_no_sense():
    model, weights = nn.Linear(2, 1), nn.Linear(2, 1).state_dict()
    for mapping, error in [
        ({"weight": "bias"}, "mapping: two weights become 'bias'"),
        ({"weight": 3}, "mapping: 'weight' becomes a name, None, or (name, function), not 3"),
        ({"weight": ("weight",)}, "mapping: 'weight' becomes a name, None, or (name, function)"),
        (lambda name: 3, "mapping: 'weight' becomes a name, None, or (name, function), not 3"),
        ({"weight": ("weight", lambda w: "")}, "mapping: 'weight': the function returned a str"),
        ([("weight", "bias")], "mapping is a dict or a function, not list"),
        ({3: "weight"}, "mapping: names are strings, not 3"),
    ]:
        with pytest.raises(tn.Error, match=re.escape(error)) as raised:
            model.load_weights(weights, mapping=mapping)
        assert f"{__file__}:" in str(raised.value)


# What does not fit ----------------------------------------------------------------------------


def made():
    return nn.Sequential(nn.Linear(2, 8), nn.relu, nn.Linear(8, 1))


def test_everything_that_does_not_fit_is_listed_at_once():
    model, weights = made(), made().state_dict()
    before = [p.tolist() for p in model.state_dict().values()]
    weights["layers.0.wieght"] = weights.pop("layers.0.weight")
    weights["layers.2.weight"] = weights["layers.2.weight"].T
    weights["layers.2.bias"] = weights["layers.2.bias"].astype(tn.float16)
    weights["other"] = tn.ones((2, 3))
    with pytest.raises(ValueError) as raised:
        model.load_weights(weights)
    assert str(raised.value).split("\n  at ")[0] == (
        "load_weights: 5 problems with the weights for Sequential:\n"
        "    missing: layers.0.weight, float32[8, 2] (like layers.0.wieght?)\n"
        "    extra: layers.0.wieght, float32[8, 2] (like layers.0.weight?)\n"
        "    extra: other, float32[2, 3]\n"
        "    shape: layers.2.weight is (1, 8), given (8, 1), transposed\n"
        "    dtype: layers.2.bias is float32, given float16"
    )
    assert [p.tolist() for p in model.state_dict().values()] == before
    with pytest.raises(ValueError, match="2 problems"):  # a shape is never left alone
        model.load_weights(weights, strict=False)


def test_names_that_differ_by_their_beginning():
    weights = made().state_dict()
    longer = {f"model.net.{name}": tensor for name, tensor in weights.items()}
    with pytest.raises(ValueError, match=r"hint: mapping=\{'model.net': ''\} takes that off"):
        made().load_weights(longer)
    made().load_weights(longer, mapping={"model.net": ""})
    model = nn.Sequential(made())
    with pytest.raises(ValueError, match=r"hint: mapping=\{'': 'layers.0'\} puts that in front"):
        model.load_weights(weights)
    model.load_weights(weights, mapping={"": "layers.0"})
    many = {f"other.{i}": tn.ones(1) for i in range(10_000)}
    with pytest.raises(ValueError, match="10004 problems"):
        model.load_weights(many)


def test_a_dtype_is_for_weights_that_are_floating():
    norm = nn.Linear(2, 1)
    norm.count = tn.array(3)
    state = norm.state_dict()
    narrow = nn.Linear(2, 1)
    narrow.count = tn.array(0)
    narrow.load_weights(state, dtype=tn.float16)
    assert (narrow.weight.dtype, narrow.count.dtype) == (tn.float16, tn.int64)
    assert narrow.count.item() == 3
    state["weight"] = state["weight"].astype(tn.int32)
    with pytest.raises(ValueError, match="dtype: weight is float16, given int32"):
        narrow.load_weights(state, dtype=tn.float16)


def test_without_strict_names_are_left_alone():
    model = made()
    before = model.layers[0].weight.tolist()
    unmatched = model.load_state_dict({"layers.2.bias": tn.ones(1), "x": tn.ones(2)}, strict=False)
    assert unmatched.missing_keys == ["layers.0.weight", "layers.0.bias", "layers.2.weight"]
    assert unmatched.unexpected_keys == ["x"]
    assert model.layers[2].bias.tolist() == [1] and model.layers[0].weight.tolist() == before


@pytest.mark.parametrize(
    "source, error",
    [
        (tn.ones(2), "a Tensor, not tensors by name"),
        (3, "a int, not tensors by name"),
        ([3], "not a name and a tensor: 3"),
        ([("weight", tn.ones(2)), ("weight", tn.ones(2))], "'weight' is given twice"),
        ({"weight": {}}, "'weight' is not a tensor but a dict"),
    ],
)
def test_what_is_no_weights(source, error):
    for load in (nn.Linear(2, 1).load_weights, nn.Linear(2, 1).load_state_dict):
        with pytest.raises(tn.Error, match=re.escape(error)):
            load(source)


def test_files_of_weights(tmp_path):
    model = made()
    for name in ("m.safetensors", "m.npz"):
        model.save_weights(tmp_path / name)
        other = made().load_weights(str(tmp_path / name))
        for a, b in zip(model.state_dict().values(), other.state_dict().values()):
            assert a.tolist() == b.tolist()
    model.save_weights(tmp_path / "m.safetensors", metadata={"format": "pt"})
    assert tn.load(tmp_path / "m.safetensors", return_metadata=True)[1] == {"format": "pt"}
    with pytest.raises(ValueError, match="an .npz file holds no metadata"):
        model.save_weights(tmp_path / "m.npz", metadata={"format": "pt"})
    pairs = list(model.state_dict().items())
    assert made().load_weights(pairs).layers[0].bias.tolist() == model.layers[0].bias.tolist()
    tn.save(tmp_path / "one", tn.ones(2))
    with pytest.raises(TypeError, match="one.npy: a Tensor, not tensors by name"):
        model.load_weights(tmp_path / "one.npy")


# What belongs to whom -------------------------------------------------------------------------


def test_buffers_are_weights_too():
    norm = nn.BatchNorm(2)
    norm(tn.random.normal((8, 2)))
    other = nn.BatchNorm(2).load_weights(norm.state_dict())
    assert other.running_mean.tolist() == norm.running_mean.tolist() != [0, 0]


class Tied(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(3, 2)
        self.head = [self.embedding.weight]

    def forward(self, tokens):
        return self.embedding(tokens) @ self.head[0].T


def test_a_parameter_under_two_names_may_be_given_once():
    for name in ("embedding.weight", "head.0"):
        model = Tied().load_weights({name: tn.ones((3, 2))})
        assert model.head[0] is model.embedding.weight and model.head[0].tolist() == [[1, 1]] * 3
    both = {"embedding.weight": tn.ones((3, 2)), "head.0": tn.ones((3, 2))}
    model = Tied().load_weights(both)
    assert model.head[0] is model.embedding.weight


def test_models_loaded_from_each_other_do_not_share_parameters():
    first, second = made(), made()
    optimizer = nn.SGD(first.parameters(), lr=0.5)
    second.load_state_dict(first.state_dict())
    kept = second.layers[2].bias.tolist()
    tn.sum(first(tn.ones((1, 2)))).backward()
    optimizer.step()
    assert second.layers[2].bias.tolist() == kept != first.layers[2].bias.tolist()
    assert second.layers[2].bias.grad is None and not second.layers[2].bias.requires_grad


def test_an_optimizer_goes_on_with_what_was_loaded():
    model = made()
    optimizer = nn.SGD(model.parameters(), lr=0.5)
    model.load_weights(made().state_dict() | {"layers.2.bias": tn.ones(1)})
    tn.sum(model(tn.ones((1, 2)))).backward()
    optimizer.step()
    assert model.layers[2].bias.item() == 0.5


def test_weights_that_are_kept_and_put_back():
    model = made()
    kept = model.state_dict()
    before = kept["layers.0.bias"].tolist()
    model.load_weights(made().state_dict())
    assert kept["layers.0.bias"].tolist() == before != model.layers[0].bias.tolist()
    assert model.load_weights(kept).layers[0].bias.tolist() == before
