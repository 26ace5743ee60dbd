"""What notebooks show."""

from html.parser import HTMLParser

import tenon as tn
from tenon import nn
from tenon.model import Linear, Relu

VOID = {"rect", "path", "br", "line", "circle", "img", "stop", "feDropShadow", "use"}


class Checker(HTMLParser):
    """Every tag is closed, in order; the texts of cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "b", "summary", "pre"):
            self.cells.append(data)


def cells(thing):
    return Checker(thing._repr_html_()).cells


def test_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1, bias=False)))
    shown = cells(model)
    assert shown[0] == "Sequential: 12 parameters, 48 B"
    assert "Linear(2 -> 3)" in shown and "9" in shown and "float32" in shown
    assert sum(cell == "3" for cell in shown) == 1
    assert cells(nn.ReLU())[0] == "ReLU: 0 parameters, 0 B"
    assert cells(nn.BatchNorm1d(3))[0] == "BatchNorm1d: 6 parameters, 24 B"  # buffers are none


def test_many_modules_are_cut():
    shown = cells(nn.Sequential(*[nn.ReLU() for _ in range(300)]))
    assert "101 more" in shown and len(shown) < 700


def test_compiled_functions():
    @tn.compile
    def scaled(x, by=2.0):
        """<b>not bold</b>"""
        return x * by

    assert cells(scaled)[0] == "compiled scaled(x, by=2.0)"
    scaled(tn.ones(3))
    scaled(tn.ones((2, 2)))
    shown = cells(scaled)
    assert shown[shown.index("traces") + 1] == "2"
    assert any("multiply" in cell for cell in shown)
    assert "Why it was traced" in shown


def test_compiled_modules():
    compiled = tn.compile(nn.Linear(2, 3))
    compiled(tn.ones((1, 2)))
    shown = cells(compiled)
    assert shown[0] == "Linear: 9 parameters, 36 B" and "traces" in shown


def test_logical_and_physical_models():
    model = tn.Model()
    model |= Linear(8)(input="x", output="h")
    model |= Relu()(input="h", output="y")
    shown = cells(model)
    assert shown[0] == "Model 'model', 2 blocks"
    assert {"Linear(output_dims=8)", "x -> h", "h -> y"} <= set(shown)
    physical = tn.compile(model, shapes={"x": [2, 4]})
    html = physical._repr_html_()
    assert html.count("<svg") == 1 and "<details><summary>&lt;model on" in html
