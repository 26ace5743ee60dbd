#!/usr/bin/env python3
"""Writes files as other libraries do, small, for tests/python/test_files.py and test_weights.py.

`tests/data/others.safetensors` has one tensor of each type; gpt2/ and llama/ are models with the
names and layouts of Hugging Face, with logits that PyTorch computes. To be run with a Python that
has torch, numpy and safetensors.
"""
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
DIMS, HEADS, LAYERS, VOCABULARY, CONTEXT = 16, 2, 2, 24, 8
TEXT = {"format": "pt"}


def record_types():
    t = torch.tensor
    tensors = {
        "BOOL": t([True, False]),
        "I64": t([-(2**62), 1]),
        "U8": t([0, 255], dtype=torch.uint8),
        "F64": t([0.1, -1e300], dtype=torch.float64),
        "F16": t([1.5, -2.0], dtype=torch.float16),
        "BF16": t([1.5, -3e38], dtype=torch.bfloat16),
        "F8_E4M3": t([448.0, -0.5]).to(torch.float8_e4m3fn),
        "F8_E5M2": t([57344.0, -0.5]).to(torch.float8_e5m2),
        "C64": t([1 + 2j, -1j], dtype=torch.complex64),
        "matrix": torch.arange(6, dtype=torch.float32).reshape(2, 3),
        "scalar": t(7, dtype=torch.int32),
        "nothing": torch.zeros(3, 0),
    }
    save_file(tensors, DATA / "others.safetensors", TEXT)


class Conv1D(nn.Module):
    """A linear layer with its weight the other way round."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.2)
        self.bias = nn.Parameter(torch.randn(outputs) * 0.2)

    def forward(self, x):
        return x @ self.weight + self.bias


def heads(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def attended(q, k, v):
    made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return made.transpose(1, 2).flatten(2)


class GPT2Attention(nn.Module):
    def __init__(self):
        super().__init__()
        mask = torch.ones(1, 1, CONTEXT, CONTEXT, dtype=torch.bool).tril()
        self.register_buffer("bias", mask)  # which old files hold
        self.c_attn, self.c_proj = Conv1D(3 * DIMS, DIMS), Conv1D(DIMS, DIMS)

    def forward(self, x):
        return self.c_proj(attended(*map(heads, self.c_attn(x).split(DIMS, dim=2))))


class GPT2MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(4 * DIMS, DIMS), Conv1D(DIMS, 4 * DIMS)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GPT2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(DIMS), GPT2Attention()
        self.ln_2, self.mlp = nn.LayerNorm(DIMS), GPT2MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Logits by the embedding of the tokens: files do not hold that twice."""

    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(VOCABULARY, DIMS),
                "wpe": nn.Embedding(CONTEXT, DIMS),
                "h": nn.ModuleList(GPT2Block() for _ in range(LAYERS)),
                "ln_f": nn.LayerNorm(DIMS),
            }
        )

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return parts["ln_f"](x) @ parts["wte"].weight.T


def rotated(x):
    """Rotary positions; feature i is turned with i + half of them."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half) / half)
    angles = torch.arange(x.shape[-2])[:, None] * frequencies
    a, b = x[..., :half], x[..., half:]
    cos, sin = torch.cos(angles), torch.sin(angles)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class LlamaAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj = linear(DIMS, DIMS), linear(DIMS, DIMS)
        self.v_proj, self.o_proj = linear(DIMS, DIMS), linear(DIMS, DIMS)

    def forward(self, x):
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        return self.o_proj(attended(rotated(q), rotated(k), v))


class LlamaMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = linear(DIMS, 40), linear(DIMS, 40)
        self.down_proj = linear(40, DIMS)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(), LlamaMLP()
        self.input_layernorm = nn.RMSNorm(DIMS, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(DIMS, eps=1e-5)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.ModuleDict(
            {
                "embed_tokens": nn.Embedding(VOCABULARY, DIMS),
                "layers": nn.ModuleList(LlamaLayer() for _ in range(LAYERS)),
                "norm": nn.RMSNorm(DIMS, eps=1e-5),
            }
        )
        self.lm_head = linear(DIMS, VOCABULARY)

    def forward(self, tokens):
        x = self.model["embed_tokens"](tokens)
        for layer in self.model["layers"]:
            x = layer(x)
        return self.lm_head(self.model["norm"](x))


def shuffled(model):
    """Norms and biases are ones and zeros otherwise, which hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def record_logits(model, folder):
    tokens = torch.randint(0, VOCABULARY, (2, CONTEXT))
    with torch.no_grad():
        logits = model(tokens)
    np.savez(folder / "logits.npz", tokens=tokens.numpy(), logits=logits.numpy())


def record_gpt2(folder):
    folder.mkdir(exist_ok=True)
    model = shuffled(GPT2())
    save_file(model.state_dict(), folder / "model.safetensors", TEXT)
    record_logits(model, folder)


def record_llama(folder):
    """In bfloat16 and in two files."""
    folder.mkdir(exist_ok=True)
    model = shuffled(Llama()).to(torch.bfloat16)
    state = model.state_dict()
    names = [f"model-{i:05d}-of-00002.safetensors" for i in (1, 2)]
    weight_map = {name: names["model.layers.1." in name or "lm_" in name] for name in state}
    for file in names:
        save_file({n: t for n, t in state.items() if weight_map[n] == file}, folder / file, TEXT)
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    record_logits(model.to(torch.float32), folder)


if __name__ == "__main__":
    torch.manual_seed(0)
    record_types()
    record_gpt2(DATA / "gpt2")
    record_llama(DATA / "llama")
