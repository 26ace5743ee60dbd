"""Calls of modules: errors name the module they come from; names, buffers and apply."""

import threading

import pytest

import tenon as tn
from tenon import nn


class Attention(nn.Module):
    def __init__(self):
        self.q = nn.Linear(4, 4)

    def __call__(self, x):  # MLX's habit
        return self.q(x)


class Block(nn.Module):
    def __init__(self):
        self.attn = Attention()

    def forward(self, x):
        return self.attn(x)


class Model(nn.Module):
    def __init__(self, cut=3):
        self.blocks = [Block() for _ in range(4)]
        self.heads = {"main": nn.Linear(4, 2)}
        self.cut = cut

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x[:, :3] if i == self.cut else x)
        return self.heads["main"](x[:, :1] if self.cut == 4 else x)


def error_of(f):
    with pytest.raises(tn.Error) as caught:
        f()
    return str(caught.value)


def test_errors_name_the_module():
    model, x = Model(), tn.ones((2, 4))
    assert error_of(lambda: model(x)).startswith("model.blocks[3].attn.q: ")
    net = Model(cut=4)
    assert error_of(lambda: net(x)).startswith("net.heads['main']: ")
    assert error_of(lambda: Model(cut=0)(x)).startswith("Model.blocks[0].attn.q: ")
    layer = nn.Linear(3, 3)
    assert error_of(lambda: layer(x)).startswith("layer: ")


def test_errors_name_the_module_under_transforms_and_compile():
    model, x = Model(), tn.ones((2, 4))
    loss = lambda model, x: tn.sum(model(x))
    for call in (tn.grad(loss), tn.compile(loss), nn.value_and_grad(model, loss)):
        assert "model.blocks[3].attn.q: " in error_of(lambda: call(model, x))


def test_errors_of_the_model_itself_and_of_others():
    class Plain(nn.Module):
        def forward(self, x):
            return x @ x

    model = Plain()
    assert error_of(lambda: model(tn.ones((2, 3)))).startswith("model: matmul: ")

    class Raises(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="^'mine'$"):
        nn.Sequential(Raises())(tn.ones(1))
    assert nn.Linear(2, 1)(tn.ones((1, 2))).shape == (1, 1)  # no call is open after one that failed


def test_calls_of_other_threads_are_calls_of_their_own():
    model, texts = Model(), []

    class Waits(nn.Module):
        def forward(self, x):
            other = threading.Thread(target=lambda: texts.append(error_of(lambda: model(x))))
            other.start()
            other.join()
            return x

    Waits()(tn.ones((2, 4)))
    assert texts[0].startswith("model.blocks[3].attn.q: ")


def test_a_class_that_calls_its_base():
    class Doubled(Attention):
        def __call__(self, x):
            return 2 * super().__call__(x)

    doubled, x = Doubled(), tn.ones((1, 4))
    assert tn.array_equal(doubled(x), 2 * doubled.q(x))


def test_names_of_parameters_and_modules():
    model = nn.Sequential(nn.Linear(2, 2), tn.relu, nn.Linear(2, 1, bias=False))
    assert list(model.state_dict()) == ["layers.0.weight", "layers.0.bias", "layers.2.weight"]
    assert dict(model.named_parameters())["layers.2.weight"] is model.layers[2].weight
    assert [path for path, _ in Model().named_modules()][:4] == [
        "",
        "blocks.0",
        "blocks.0.attn",
        "blocks.0.attn.q",
    ]


class Counted(nn.Module):
    buffers = ("count",)

    def __init__(self):
        self.scale = tn.ones(2)
        self.count = tn.zeros(())

    def forward(self, x):
        self.count = self.count + 1
        return self.scale * x


def test_buffers_are_state_and_not_trained():
    model = nn.Sequential(Counted())
    assert list(model.state_dict()) == ["layers.0.scale", "layers.0.count"]
    assert list(model.trainable_parameters()["layers"][0]) == ["scale"]
    model.freeze().unfreeze()
    assert list(model.trainable_parameters()["layers"][0]) == ["scale"]

    @tn.compile(inputs=model.state, outputs=model.state)
    def step(x):
        loss, grads = nn.value_and_grad(model, lambda x: tn.sum(model(x)))(x)
        return loss, grads

    for _ in range(3):
        step(tn.ones(2))
    assert model.layers[0].count.item() == 3


def test_apply():
    model = Model().apply(lambda p: p.astype(tn.float16))
    assert {p.dtype for p in tn.tree.leaves(model.parameters())} == {tn.float16}
    seen = []
    assert model.apply_to_modules(seen.append) is model and seen == model.modules()
    with pytest.raises(TypeError, match="apply_to_modules"):
        model.apply(lambda module: None)


def test_parameters_are_a_plain_tree_that_knows_its_module():
    model = nn.Linear(2, 1)
    parameters = model.parameters()
    assert parameters.module is model
    same = {name: p + 1 for name, p in parameters.items()}
    assert tn.tree.structure(parameters) == tn.tree.structure(same)
    assert type(tn.tree.map(lambda p: p, parameters)) is dict
    assert tn.grad(lambda p: tn.sum(p["weight"]))(parameters)["bias"].tolist() == [0]


def test_a_parameter_that_refuses_gradients_is_frozen():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    weight = model.layers[0].weight.tolist()
    for parameter in model.layers[0].parameters().values():
        parameter.requires_grad = False
    assert model.trainable_parameters()["layers"][0] == {}
    optimizer = tn.optim.SGD(model.parameters(), lr=0.1)
    x = tn.array([[1.0, 2.0]])

    def step():
        tn.sum(model(x)).backward()
        optimizer.step()
        optimizer.zero_grad()

    state = [model.state, optimizer.state]
    compiled = tn.compile(step, inputs=state, outputs=state)
    for run in (step, compiled, compiled):
        before = model.layers[1].weight.tolist()
        run()
        assert model.layers[0].weight.tolist() == weight and model.layers[0].weight.grad is None
        assert model.layers[1].weight.tolist() != before
    assert compiled.stats().traces == 1
    model.layers[0].weight.requires_grad = True
    compiled()
    assert model.layers[0].weight.tolist() != weight
