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
    assert re.search(r"library +dot: reads 40.00 KiB, writes .*test_explain.py:\d+, in loss", text)
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
