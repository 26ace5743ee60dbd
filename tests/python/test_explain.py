"""explain: text and page say what was compiled, and why."""

import html.parser
import re

import pytest

import tenon as tn


def loss(w, x):
    return tn.mean(tn.relu(x @ w + 1) @ w.T)


@pytest.fixture
def explanation():
    return tn.explain(tn.compile(loss))(tn.ones((64, 32)), tn.ones((128, 64)))


class Page(html.parser.HTMLParser):
    """Checks that elements nest, and collects what they are."""

    VOID = {"meta", "input"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.sources, self.ids, self.links = [], [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.sources += [attrs[name] for name in ("src", "href") if name in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_text_has_every_section(explanation):
    text = str(explanation)
    assert text.startswith("loss: ")
    for section in ("traces", "graph, optimised", "decisions", "steps", "memory",
                    "memory over steps"):
        assert f"\n{section}\n" in text
    assert re.search(r"library +matmul \+ add \+ relu: reads 40.00 KiB, writes "
                     r".*test_explain.py:\d+, in loss", text)
    assert "1. first call (" in text


def test_the_page_stands_alone(explanation):
    page = Page(explanation.html())
    assert page.tags.count("svg") == 2
    assert {"graph", "memory", "steps", "decisions", "traces", "sources"} <= set(page.ids)
    assert all(source.startswith("#") for source in page.sources)
    assert len(page.ids) == len(set(page.ids))
    assert set(page.sources) <= {f"#{name}" for name in page.ids}


def test_everything_is_escaped():
    def odd(x):
        return tn.exp(x)

    odd.__name__ = "<script>alert('x')</script>"
    page = tn.explain(odd)(tn.ones(3)).html()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    Page(page)


def test_save_writes_a_page_or_text(explanation, tmp_path):
    assert explanation.save(tmp_path / "a.html").read_text() == explanation.html()
    assert explanation.save(str(tmp_path / "a.txt")).read_text() == str(explanation)
    assert explanation._repr_html_().startswith("<iframe srcdoc=")


def test_retraces_are_told_with_what_differed():
    f = tn.compile(lambda x: tn.exp(x) + 1)
    f(tn.ones(3))
    f(tn.ones(4))
    explanation = tn.explain(f)(tn.ones(5))
    assert "x.shape[0] was 3, now 4 (" in str(explanation)
    (size,) = explanation.facts.sizes
    assert (size.symbol, size.path, size.value) == ("s0", "x.shape[0]", 5)
    assert [b.bytes for b in explanation.facts.buffers] == [20, 20]
    Page(explanation.html())


def test_plain_functions_and_keywords():
    def f(x, *, y):
        return x + y

    explanation = tn.explain(f)(tn.ones(3), y=tn.ones(3))
    assert [step.kind for step in explanation.facts.steps] == ["code"]
    assert explanation.facts.steps[0].bytes_read == 24
    assert "store" in explanation.facts.steps[0].loops
    assert "ret" in explanation.facts.steps[0].assembly


def test_interpreted_functions():
    f = tn.compile(lambda x: tn.exp(x), optimization_level=0)
    (step,) = tn.explain(f)(tn.ones(3)).facts.steps
    assert (step.kind, step.assembly) == ("interpreted", "")


def test_a_function_that_computes_nothing():
    explanation = tn.explain(lambda x: x)(tn.ones(3))
    assert "nothing to run" in str(explanation)
    Page(explanation.html())


def test_memory_of_every_step(explanation):
    memory = explanation.facts.memory
    assert max(memory.needed) == memory.lower_bound
    assert memory.needed.index(memory.lower_bound) == memory.step


class Block(tn.nn.Module):
    def __init__(self):
        self.norm = tn.nn.LayerNorm(32)
        self.first, self.second = tn.nn.Linear(32, 64), tn.nn.Linear(64, 32)

    def __call__(self, x):
        return x + self.second(tn.gelu(self.first(self.norm(x))))


class Network(tn.nn.Module):
    def __init__(self, depth):
        self.blocks = [Block() for _ in range(depth)]
        self.head = tn.nn.Linear(32, 8)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return tn.softmax(self.head(x))


def test_kernels_are_named_by_modules_and_by_what_was_called():
    facts = tn.explain(Network(2))(tn.ones((16, 32))).facts
    names = [step.name for step in facts.steps]
    assert {"blocks[0]", "blocks[1]", "head"} <= {step.module.split(".")[0] for step in facts.steps}
    assert any(name.startswith("blocks[0].norm.layer_norm") for name in names)
    assert any(name.startswith("blocks[1]") and "matmul" in name for name in names)
    assert any("softmax" in name for name in names)
    assert not any("call" in name for name in names)


def test_names_are_the_same_in_a_profile_and_in_the_loops():
    network = tn.compile(Network(1))
    network(tn.ones((16, 32)))
    explained = {step.name for step in tn.explain(network)(tn.ones((16, 32))).facts.steps}
    told = [step.name for step in tn.profile(network)(tn.ones((16, 32))).steps]
    assert any(name.startswith("blocks[0].norm") for name in told)
    assert {name for name in told if not name.endswith("and others")} <= explained
    assert "# blocks[0].norm.layer_norm\nkernel " in network.show("loops")


def test_derivatives_are_named_by_the_module_they_are_of():
    network = Network(1)

    def loss(network, x):
        return tn.mean(network(x))

    facts = tn.explain(tn.grad(loss))(network, tn.ones((16, 32))).facts
    assert sum(step.module.startswith("blocks[0]") for step in facts.steps) > 4


def test_what_is_called_outside_of_modules_has_no_path():
    names = [s.name for s in tn.explain(lambda x: tn.softmax(x))(tn.ones((4, 8))).facts.steps]
    assert names == ["softmax"]
    tn.compile(Network(1))(tn.ones((16, 32)))
    names = [s.name for s in tn.explain(lambda x: tn.exp(x) + 1)(tn.ones(3)).facts.steps]
    assert names == ["exp + add"]


def test_an_error_inside_a_module_leaves_its_path():
    broken = tn.nn.Sequential(tn.nn.Linear(3, 4), tn.nn.Linear(5, 4))
    with pytest.raises(tn.Error):
        tn.compile(broken)(tn.ones((2, 3)))
    facts = tn.explain(lambda x: tn.exp(x))(tn.ones(3)).facts
    assert [step.module for step in facts.steps] == [""]


def test_a_long_page_starts_with_memory_and_decisions_and_is_folded():
    explanation = tn.explain(Network(12))(tn.ones((16, 32)))
    text = explanation.html()
    page = Page(text)
    places = [text.index(f'id="{name}"') for name in ("memory", "decisions", "layers", "graph")]
    assert places == sorted(places)
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("svg") == 3  # memory, groups, and every step behind a fold
    assert "<b>blocks[11]</b>" in text and "Every step and its data" in text
    assert " open" not in text.split("<section id=\"layers\">")[1].split("</section>")[0]


def test_groups_hold_every_step_once():
    from tenon.explanation.groups import components, flat, tree

    facts = tn.explain(Network(3))(tn.ones((16, 32))).facts
    root = tree(facts)
    assert len(list(root.all_steps())) == len(facts.steps)
    assert sum(len(list(group.all_steps())) for group in flat(root)) == len(facts.steps)
    assert components("blocks[0].attn['a.b'].x") == ["blocks[0]", "attn['a.b']", "x"]
