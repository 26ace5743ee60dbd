"""Signals: names for parts of a program, and the YAML file that says what becomes of them."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import tenon as tn
from processes import environment


@pytest.fixture(autouse=True)
def no_configuration():
    tn.signal.load(None)
    yield
    tn.signal.load(None)
    tn._core._clear_plans()  # and what is known of them: other tests look at hot paths too


@pytest.fixture
def configure(tmp_path):
    def load(text: str) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tn.signal.load(path)
        return path

    return load


def of_region(name: str) -> list[tn._core.HotPath]:
    return [path for path in tn.hot_paths() if path.region == name]


class TestConfiguration:
    def test_what_is_in_force(self, configure):
        configure(
            "forward:\n"
            "  compile: true\n"
            "  shard: {axis: 0, workers: [0, 1, 2, 3]}\n"
            "  backward: gradients\n"
            "gradients: {compile: {mode: max-autotune, threshold: 3}}\n"
            "weights: {shard: {replicated: true}}\n"
            "off: {compile: false}\n"
            "nothing:\n"
        )
        assert tn.signal.config() == {
            "forward": {
                "compile": True,
                "shard": {"axis": 0, "workers": [0, 1, 2, 3]},
                "backward": "gradients",
            },
            "gradients": {"compile": {"mode": "max-autotune", "threshold": 3}},
            "weights": {"shard": {"replicated": True}},
            "off": {"compile": False},
            "nothing": {},
        }
        assert list(tn.signal.config()) == ["forward", "gradients", "weights", "off", "nothing"]

    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "{}", "---\n", "a:\n...\n"])
    def test_files_that_say_little(self, configure, text):
        configure(text)
        assert set(tn.signal.config()) <= {"a"}

    @pytest.mark.parametrize("word", ["true", "True", "yes", "on", "ON"])
    def test_words_for_true(self, configure, word):
        configure(f"a: {{compile: {word}}}")
        assert tn.signal.config() == {"a": {"compile": True}}

    def test_words_for_false(self, configure):
        configure("a: {compile: off}\nb: {compile: No}")
        assert tn.signal.config() == {"a": {"compile": False}, "b": {"compile": False}}

    @pytest.mark.parametrize("path", [3, b"config.yaml", ["config.yaml"]])
    def test_a_file_has_a_path(self, path):
        with pytest.raises(TypeError, match="signal.load: needs a path, or None, not"):
            tn.signal.load(path)

    def test_names_that_are_nearly_right_are_told_once(self, configure):
        configure("forward: {compile: true}\nlayer1: {compile: true}")
        with pytest.warns(UserWarning) as told:
            for name in ("forwrad", "forwrad", "forwards", "orward", "fxrward", "layer2", "other"):
                with tn.signal.context(name):
                    pass
            with tn.signal.context("other", backward="foward"):
                pass
            tn.signal.tensor(tn.ones(2), "forwarrd")
        names = ["forwrad", "forwards", "orward", "fxrward", "foward", "forwarrd"]
        assert [str(warning.message) for warning in told] == [
            f"signal '{name}' is not in the configuration: it changes nothing; "
            "did you mean 'forward'?" for name in names]

    def test_names_in_the_file_that_are_nearly_right(self, tmp_path):
        path = tmp_path / "config.yaml"
        path.write_text("forward: {compile: true, backward: gradeints}\ngradients:\n")
        with pytest.warns(UserWarning, match="'gradeints' .* did you mean 'gradients'"):
            tn.signal.load(path)

    def test_what_the_module_shows(self):
        assert dir(tn.signal) == sorted(tn.signal.__all__)

    def test_anchors_are_shared(self, configure):
        configure("a: &all {compile: true}\nb: *all\n")
        assert tn.signal.config()["b"] == {"compile": True}

    def test_an_error_leaves_what_was(self, configure):
        path = configure("a: {compile: true}")
        path.write_text("a: {compile: 7}")
        with pytest.raises(ValueError):
            tn.signal.load(path)
        assert tn.signal.config() == {"a": {"compile": True}}

    @pytest.mark.parametrize(
        "text, error",
        [
            ("a:\n  compil: true\n", ":2: a.compil: unknown key; there are compile, shard, backward"
             "\n  hint: did you mean 'compile'?"),
            ("a:\n  zzz: 1\n", ":2: a.zzz: unknown key; there are compile, shard, backward"),
            ("a: {compile: yep}",
             ":1: a.compile: needs true, false, or {mode, threshold}, not 'yep'"),
            ("a: {compile: 'true'}",
             ":1: a.compile: needs true, false, or {mode, threshold}, not 'true'"),
            ("a: {compile: [1]}",
             ":1: a.compile: needs true, false, or {mode, threshold}, not a list"),
            ("a:\n  compile:\n    mode: max-autotun\n",
             ":3: a.compile.mode: needs default, reduce-overhead, max-autotune, not 'max-autotun'"
             "\n  hint: did you mean 'max-autotune'?"),
            ("a:\n  compile: {mode: }\n",
             ":2: a.compile.mode: needs default, reduce-overhead, max-autotune, not nothing"),
            ("a:\n  compile: {threshold: 0}", ":2: a.compile.threshold: needs 1 or more, not '0'"),
            ("a:\n  compile: {threshold: 1.5}",
             ":2: a.compile.threshold: needs an integer, not '1.5'"),
            ("a:\n  compile: {threshold: 99999999999999999999}",
             ":2: a.compile.threshold: needs an integer, not '99999999999999999999'"),
            ("a:\n  compile: {thresold: 3}",
             ":2: a.compile.thresold: unknown key; there are mode, threshold"
             "\n  hint: did you mean 'threshold'?"),
            ("a:\n  shrd:\n    axis: 0\n",
             ":2: a.shrd: unknown key; there are compile, shard, backward"
             "\n  hint: did you mean 'shard'?"),
            ("a: {shard: 0}", ":1: a.shard: needs {axis, workers, replicated}, not '0'"),
            ("a: {shard: {workers: [0]}}", ":1: a.shard: needs an axis, or replicated: true"),
            ("a: {shard: {axis: x}}", ":1: a.shard.axis: needs an integer, not 'x'"),
            ("a: {shard: {axis: 0, workers: 2}}",
             ":1: a.shard.workers: needs a list of workers as [0, 1], not '2'"),
            ("a: {shard: {axis: 0, workers: []}}",
             ":1: a.shard.workers: needs a list of workers as [0, 1], not an empty one"),
            ("a:\n  shard:\n    axis: 0\n    workers:\n      - 0\n      - 0\n",
             ":6: a.shard.workers: worker 0 is listed twice"),
            ("a: {shard: {axis: 0, workers: [-1]}}",
             ":1: a.shard.workers: workers are numbered from 0 to 65535: -1"),
            ("a: {shard: {axis: 0, replicated: 1}}",
             ":1: a.shard.replicated: needs true or false, not '1'"),
            ("a: {backward: [b]}", ":1: a.backward: needs the name of a signal, not a list"),
            ("a: {backward: ''}", ":1: a.backward: the name of a signal is empty"),
            ("a: true\n", ":1: a: needs {compile, shard, backward}, not 'true'"),
            ("- a\n- b\n", ":1: needs a map from names of signals to settings, not a list"),
            ("hello", ":1: needs a map from names of signals to settings, not 'hello'"),
            ("a: {}\nb: {}\na: {}\n", ":3: a: duplicate key, first in line 1"),
            ("a: {compile: true, compile: false}",
             ":1: compile: duplicate key, first in line 1"),
            ("a: {}\n---\nb: {}\n", ":2: more than one document"),
            ("[a]: 1\n", ":1: a key must be text"),
            ("a: &x {compile: true, shard: *x}", ":1: an alias refers to a node that contains it"),
            ("a: !!binary x", ":1: tags (!) are not supported"),
            ("'': {}", ":1: : the name of a signal is empty"),
        ],
    )
    def test_errors_name_file_line_and_key(self, configure, tmp_path, text, error):
        with pytest.raises(ValueError) as caught:
            configure(text)
        lines = [line for line in str(caught.value).split("\n") if not line.startswith("  at ")]
        assert "\n".join(lines) == f"signal.load: {tmp_path}/config.yaml{error}"

    @pytest.mark.parametrize("text", ["a: {", "a: [1", "a: b: c", "\ta: 1", "a: *none", "a: 'x"])
    def test_what_is_not_yaml(self, configure, text):
        with pytest.raises(ValueError, match=r"config.yaml:\d+: not YAML: "):
            configure(text)

    def test_bytes_that_are_no_text(self, tmp_path):
        path = tmp_path / "config.yaml"
        for content in (b"a: {}\n\xff: 1", b"a: {}\n\0", b"a: {}\n\xc0\xaf", b"\n\xed\xa0\x80"):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"config.yaml:2: not text: byte 0x"):
                tn.signal.load(path)

    def test_bounds(self, configure):
        with pytest.raises(ValueError, match="config.yaml: 1048577 bytes, the maximum is 1048576"):
            configure("#" * ((1 << 20) + 1))
        with pytest.raises(ValueError, match=r":1: nested deeper than 32"):
            configure("a: " + "[" * 1000 + "]" * 1000)
        with pytest.raises(ValueError, match=r"nested deeper than 32"):
            configure("\n".join(" " * i + "a:" for i in range(1000)))
        with pytest.raises(ValueError, match=r"config.yaml"):
            configure("[" * (1 << 20))
        aliases = "a: &a {}\n" + "".join(f"b{i}: *a\n" for i in range(101))
        with pytest.raises(ValueError, match=r"more than 100 aliases"):
            configure(aliases)
        with pytest.raises(ValueError, match="a name has at most 200 bytes, not 300"):
            configure("a" * 300 + ": {}")

    def test_billion_laughs(self, configure):
        lines = ["a0: &a0 [lol, lol]"]
        lines += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 3) + "]" for i in range(1, 30)]
        with pytest.raises(ValueError, match="a0: needs {compile, shard, backward}, not a list"):
            configure("\n".join(lines))

    def test_files_that_are_not_there(self, tmp_path):
        with pytest.raises(ValueError, match=r"signal.load: .*none.yaml: "):
            tn.signal.load(tmp_path / "none.yaml")
        with pytest.raises(ValueError, match=r": not a file"):
            tn.signal.load(tmp_path)
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ValueError, match=r": not a file"):
            tn.signal.load(tmp_path / "fifo")
        with pytest.raises(TypeError):
            tn.signal.load(3)

    def test_shards_are_said_to_wait_for_workers_once(self, tmp_path):
        (tmp_path / "c.yaml").write_text("a: {shard: {axis: 0, workers: [0]}}")
        program = "import tenon as tn\nfor _ in range(2): tn.signal.load('c.yaml')\n"
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stderr.count("has no effect without workers") == 1


class TestContexts:
    def test_names_without_a_file_change_nothing(self):
        with tn.signal.context("anything", backward="else"):
            assert tn.sum(tn.ones(3)).item() == 3

    def test_misuse(self):
        for wrong in (3, None, b"x"):
            with pytest.raises(TypeError, match="a name is a str"):
                tn.signal.context(wrong)
        with pytest.raises(ValueError, match="the name of a signal is empty"):
            tn.signal.enter("")
        with pytest.raises(ValueError, match="at most 200 bytes"):
            tn.signal.enter("x" * 201)
        with pytest.raises(ValueError, match="'a' was not entered on this thread"):
            tn.signal.exit("a")
        tn.signal.enter("a")
        tn.signal.enter("b")
        with pytest.raises(ValueError, match="'b' was entered after 'a' and not left"):
            tn.signal.exit("a")
        tn.signal.exit("b")
        tn.signal.exit("a")
        with pytest.raises(TypeError, match="signal.tensor: needs a tensor, not int"):
            tn.signal.tensor(3, "a")
        assert tn._core._signal_entered() == []

    def test_exceptions_leave_no_region_open(self):
        with pytest.raises(RuntimeError), tn.signal.context("a"):
            tn.signal.enter("forgotten")
            raise RuntimeError
        assert tn._core._signal_entered() == []

    def test_decorator(self):
        @tn.signal.context("outer")
        def f(depth):
            assert tn._core._signal_entered() == ["outer"] * (3 - depth + 1)
            if depth > 1:
                f(depth - 1)

        f(3)
        assert tn._core._signal_entered() == []

    def test_threads_have_regions_of_their_own(self):
        seen = []
        with tn.signal.context("main"):
            thread = threading.Thread(target=lambda: seen.append(tn._core._signal_entered()))
            thread.start()
            thread.join()
            assert tn._core._signal_entered() == ["main"]
        assert seen == [[]]

    def test_tensor_is_the_tensor(self, configure):
        configure("batch: {shard: {axis: 0, workers: [0]}}")
        x = tn.ones(3)
        assert tn.signal.tensor(x, "batch").tolist() == [1, 1, 1]


class TestRegions:
    def test_a_region_is_one_plan(self, configure):
        configure("one: {compile: true}")
        x = tn.exp(tn.ones(5))
        with tn.signal.context("one"):
            y = tn.sin(x) * 3 + tn.cos(x)
        z = y - 1
        expected = np.sin(np.e) * 3 + np.cos(np.e) - 1
        np.testing.assert_allclose(np.array(z), np.full(5, expected), rtol=1e-5)
        (path,) = of_region("one")
        assert set(path.sequence.split(" -> ")) == {"sin", "multiply", "cos", "add"}
        assert (path.count, path.status) == (1, "trial")

    def test_bits_are_those_without(self, configure):
        x = tn.random.normal((64, 33), key=tn.random.key(3))

        def f():
            with tn.signal.context("bits"):
                y = tn.softmax(tn.exp(x * 0.1) @ x.T)
            return np.array(tn.sum(y * y, axis=1))

        before = f()
        configure("bits: {compile: true}")
        for _ in range(7):
            assert (f() == before).all()
        assert of_region("bits")[0].status == "kept"

    def test_passages_share_a_plan(self, configure):
        configure("layer: {compile: true}")
        x = tn.ones(7)
        for _ in range(6):
            with tn.signal.context("layer"):
                x = tn.tanh(x) * 2
        x.tolist()
        (path,) = of_region("layer")
        assert (path.count, path.status) == (6, "kept")

    def test_false_is_never(self, configure):
        configure("never: {compile: false}")
        with tn.set_auto_compile(True, threshold=1):
            for _ in range(4):
                with tn.signal.context("never"):
                    y = tn.arctan(tn.ones(3)) * 2
                z = tn.sinh(y)
                z.tolist()
        assert not any("arctan" in path.sequence for path in tn.hot_paths())
        assert any("sinh" in path.sequence for path in tn.hot_paths())

    def test_threshold_compiles_in_the_background(self, configure):
        configure("later: {compile: {threshold: 3}}")
        for _ in range(2):
            with tn.signal.context("later"):
                y = tn.log1p(tn.ones(3)) * 2
            y.tolist()
        assert of_region("later")[0].status == "cold"
        while of_region("later")[0].status not in ("kept", "dropped"):
            with tn.signal.context("later"):
                y = tn.log1p(tn.ones(3)) * 2
            y.tolist()

    def test_inner_regions_win(self, configure):
        configure("outer: {compile: true}\ninner: {compile: false}\nname: {}")
        with tn.signal.context("outer"):
            x = tn.sin(tn.ones(3))
            with tn.signal.context("inner"):
                y = tn.cos(x)
            with tn.signal.context("name"), tn.signal.context("unknown"):
                z = tn.tan(y)
        assert np.allclose(np.array(z), np.tan(np.cos(np.sin(1))), rtol=1e-5)
        names = [path.sequence for path in of_region("outer")]
        assert any("sin" in name for name in names) and any("tan" in name for name in names)
        assert not any("cos" in name for name in names) and not of_region("inner")

    def test_in_compiled_functions_it_is_a_name(self, configure):
        configure("traced: {compile: true}")

        @tn.compile
        def f(x):
            with tn.signal.context("traced"):
                return tn.sin(x) * 2

        assert np.allclose(np.array(f(tn.ones(3))), 2 * np.sin(1), rtol=1e-6)
        assert not of_region("traced")

    def test_transforms(self, configure):
        configure("loss: {compile: true}")

        def f(x):
            with tn.signal.context("loss"):
                return tn.sum(tn.sin(x) ** 2)

        x = np.linspace(0, 1, 4, dtype=np.float32)
        for transformed in (tn.grad(f), tn.compile(tn.grad(f))):
            got = np.array(transformed(tn.array(x)))
            np.testing.assert_allclose(got, np.sin(2 * x), rtol=1e-5, atol=1e-7)
        batched = np.array(tn.vmap(f)(tn.array(np.stack([x, x]))))
        np.testing.assert_allclose(batched, np.full(2, np.sum(np.sin(x) ** 2)), rtol=1e-5)

    def test_loading_again_makes_plans_anew(self, configure):
        for wanted in ("true", "{mode: reduce-overhead}", "false"):
            configure(f"anew: {{compile: {wanted}}}")
            with tn.signal.context("anew"):
                y = tn.expm1(tn.ones(3))
            y.tolist()
        assert len(of_region("anew")) == 2

    def test_many_passages(self, configure):
        configure("often: {compile: true}")
        x = tn.ones(2)
        for _ in range(20_000):
            with tn.signal.context("often"):
                y = x + 1
        assert y.tolist() == [2, 2]

    def test_threads_at_once(self, configure):
        configure("busy: {compile: true}\nidle: {compile: false}")
        faults = []

        def work(name, seed):
            x = tn.array(np.full(8, seed, np.float32))
            for _ in range(60):
                with tn.signal.context(name):
                    y = tn.sqrt(x) * x
                if not np.allclose(np.array(y + 1), seed**1.5 + 1, rtol=1e-5):
                    faults.append(seed)

        threads = [
            threading.Thread(target=work, args=(("busy", "idle", "unknown")[i % 3], i + 1))
            for i in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not faults
        assert all(path.sequence == "sqrt -> multiply" for path in of_region("busy"))


    def test_regions_are_compiled_however_many_there_are(self, configure):
        configure("many: {compile: true}")
        for i in range(70):
            with tn.signal.context("many"):
                y = tn.ones(3)
                for bit in range(7):
                    y = tn.negative(y) if i >> bit & 1 else tn.abs(y)
            y.tolist()
        assert len(of_region("many")) == 70
        assert {path.status for path in of_region("many")} == {"trial"}

    def test_signals_with_the_same_ops(self, configure):
        configure("".join(f"layer{i}: {{compile: true}}\n" for i in range(12)))
        for i in range(12):
            with tn.signal.context(f"layer{i}"):
                y = tn.tanh(tn.ones(3)) * 2
            y.tolist()
            assert [path.status for path in of_region(f"layer{i}")] == ["trial"]

    def test_children_of_fork_go_on(self, configure):
        configure("forked: {compile: true}")
        with tn.signal.context("forked"):
            y = tn.sqrt(tn.ones(3))
            child = os.fork()
            if child == 0:
                z = y + 1
                os._exit(0 if z.tolist() == [2, 2, 2] and of_region("forked") else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert y.tolist() == [1, 1, 1]


class TestDerivatives:
    def loss(self, w, region, **kwargs):
        with tn.signal.context(region, **kwargs):
            return tn.sum(tn.sin(w) * w)

    def check(self, w):
        values = np.array(w)
        expected = np.cos(values) * values + np.sin(values)
        np.testing.assert_allclose(np.array(w.grad), expected, rtol=1e-5)

    def variable(self):
        return tn.array(np.linspace(0.5, 2, 5, dtype=np.float32), requires_grad=True)

    def test_are_a_region_too(self, configure):
        configure("both: {compile: true}")
        w = self.variable()
        self.loss(w, "both").backward()
        self.check(w)
        forward, backward = sorted(of_region("both"), key=lambda path: "cos" in path.sequence)
        assert "sin" in forward.sequence and "cos" in backward.sequence
        assert "cos" not in forward.sequence

    @pytest.mark.parametrize("how", ["argument", "file", "name"])
    def test_have_the_signal_that_is_named(self, configure, how):
        name = {"argument": "grads1", "file": "grads2", "name": "backward"}[how]
        region = f"fwd_{how}"
        file = f"{region}: {{compile: true{', backward: grads2' if how == 'file' else ''}}}\n"
        configure(file + f"{name}: {{compile: true}}\n")
        w = self.variable()
        kwargs = {"backward": "grads1"} if how == "argument" else {}
        self.loss(w, region, **kwargs).backward()
        self.check(w)
        assert len(of_region(region)) == 1
        assert "cos" in of_region(name)[-1].sequence

    def test_only_they_may_be_compiled(self, configure):
        configure("only_grads: {compile: true}")
        w = self.variable()
        self.loss(w, "plain", backward="only_grads").backward()
        self.check(w)
        (path,) = of_region("only_grads")
        assert "cos" in path.sequence and not of_region("plain")

    def test_inside_the_region_they_are_part_of_it(self, configure):
        configure("step: {compile: true}")
        w = self.variable()
        with tn.signal.context("step"):
            loss = tn.sum(tn.sin(w) * w)
            loss.backward()
        self.check(w)
        (path,) = of_region("step")
        assert "cos" in path.sequence and "sin" in path.sequence
        assert loss.item() == pytest.approx(float(np.sum(np.sin(np.array(w)) * np.array(w))))


class TestEnvironment:
    def run(self, folder: Path, program: str, **variables: str) -> subprocess.CompletedProcess:
        env = environment(**variables)
        return subprocess.run(
            [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True
        )

    def test_config_is_read_at_first_use(self, tmp_path):
        (tmp_path / "c.yaml").write_text("a: {compile: true}")
        program = "import tenon as tn\nprint(tn.signal.config())"
        run = self.run(tmp_path, program, TENON_CONFIG="c.yaml")
        assert run.stdout == "{'a': {'compile': True}}\n", run.stderr

    def test_bad_files_are_errors_of_the_first_use(self, tmp_path):
        program = "import tenon as tn\nprint('in')\nwith tn.signal.context('a'): pass"
        run = self.run(tmp_path, program, TENON_CONFIG="none.yaml")
        assert run.stdout == "in\n" and "signal.load: none.yaml: " in run.stderr

    def test_debug_lines(self, tmp_path):
        (tmp_path / "c.yaml").write_text("a: {compile: true}")
        program = (
            "import tenon as tn\n"
            "for name in ('a', 'b', 'b'):\n"
            "    with tn.signal.context(name): y = tn.sin(tn.ones(2))\n"
            "    y.tolist()\n"
        )
        run = self.run(tmp_path, program, TENON_CONFIG="c.yaml", TENON_DEBUG_COMPILE="1")
        assert "of signal 'a'" in run.stderr
        line = "[COMPILE] signal 'b' is not in the configuration: it changes nothing"
        assert run.stderr.count(line) == 1


def test_doctests():
    result = doctest.testmod(tn.signal, extraglobs={"tn": tn})
    assert result.attempted > 5 and not result.failed
