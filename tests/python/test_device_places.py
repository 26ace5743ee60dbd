"""Where values are, on two emulated devices: numbers, lists, derivatives, traces, keys, copies."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import tenon as tn

pytestmark = pytest.mark.host  # the default device matters here

A, B = "emu:0", "emu:1"


class TestMadeFromNothing:
    def test_equal_programs_on_several_devices(self):
        for device in (A, "cpu", B, "cpu", A):
            x = tn.ones((3,), device=device)
            tn.eval(x)
            assert x.device == device and x.tolist() == [1, 1, 1]

    def test_what_a_trace_makes(self):
        f = tn.compile(lambda x: tn.arange(3.0))
        c = tn.zeros(3)
        assert f(c).device == "cpu"
        with tn.device(A):
            assert f(c).device == A
        assert f(c).device == "cpu" and f.stats().traces == 2
        assert "the default device was cpu, now emu:0" in f.why_recompiled()[1]

    def test_what_an_executable_makes(self):
        f = tn.compile(lambda s: tn.ones(3) * s, args=[tn.InputInfo((), tn.float32)])
        s = tn.array(2.0, device="cpu")
        for device in ("cpu", A, "cpu", B):
            with tn.device(device):
                assert f(s).device == device

    def test_a_trace_for_another_device_says_so(self):
        f = tn.compile(lambda x: x + 1)
        f(tn.ones(3)), f(tn.ones(3, device=A))
        assert "x.device was cpu, now emu:0" in f.why_recompiled()[1]
        assert "1 device" in str(f.stats())


class TestMixed:
    def test_values_that_others_do_not_need(self):
        y = tn.ones(2, device=A).eval()
        n = tn.array(0) + 1
        tn.eval(y, n)
        assert n.item() == 1 and y.tolist() == [1, 1]
        assert tn.compile(lambda a, b: b * 2)(y, tn.ones(2)).tolist() == [2, 2]

    def test_branches_with_operands_elsewhere(self):
        x, c = tn.ones((2, 3), device=A), tn.ones(3)
        chosen = tn.cond((x.sum() > 0).eval(), lambda c: c + 1, lambda c: c, c)
        assert chosen.tolist() == [2, 2, 2] and chosen.device == "cpu"
        f = tn.compile(lambda i, c: tn.switch(i, [lambda c: c, lambda c: c * 2], c))
        assert f(tn.array(1, device=A), c).tolist() == [2, 2, 2]

    def test_numbers_into_parts(self):
        for device, default in [(A, "cpu"), ("cpu", A)]:
            with tn.device(default):
                y = tn.zeros((3, 2), device=device)
                y[0] = 5
                y[1, 0] = 7
                y[[2]] = [8, 9]
                assert y.tolist() == [[5, 5], [7, 0], [8, 9]] and y.device == device
                y[:] = 1
                assert y.device == device and y.at[0].add(1).tolist()[0] == [2, 2]
                assert y[[0, 2]].shape == (2, 2)
                assert y[np.array([True, False, True])].device == device
                assert y[:, [1]].device == device

    def test_lists_and_arrays_beside_tensors(self):
        x = tn.arange(3.0, device=A)
        for made in (x + [1, 2, 3], [1, 2, 3] + x, x * np.ones(3, np.float32),
                     tn.where([True, False, True], x, 0), tn.percentile(x, [25, 50]),
                     tn.stack([x, [1.0, 2.0, 3.0]]), tn.isin(x, [1, 2])):
            assert made.device == A
        assert (x + [1, 2, 3]).tolist() == [1, 3, 5]
        assert tn.asarray([1, 2]).device == "cpu"

    def test_draws_are_where_operands_are(self):
        key, p = tn.random.key(0), tn.full((4,), 0.5, device=A)
        drawn = tn.random.bernoulli(p, key=key)
        assert drawn.device == A
        assert drawn.tolist() == tn.random.bernoulli(p.to("cpu"), key=key).tolist()
        assert tn.random.permutation(p).device == tn.random.categorical(p).device == A
        assert tn.random.uniform(shape=(2,), key=key).device == "cpu"

    def test_copies_that_were_forbidden(self):
        x = tn.ones(2, device=A)
        for call in (lambda: x.__dlpack__(copy=False),
                     lambda: tn.asarray(x, device="cpu", copy=False),
                     lambda: tn.asarray(np.ones(2), device=A, copy=False)):
            with pytest.raises(ValueError, match="copy=False forbids a copy"):
                call()


class TestDerivatives:
    def test_of_what_is_not_used(self):
        x = tn.ones(3, device=A)
        assert tn.grad(lambda x: tn.zeros((), device=A))(x).device == A
        assert tn.hessian(lambda v: (v * 2).sum())(x).device == A
        assert tn.jvp(lambda x: tn.ones(2, device=A), [x], [x])[1].device == A

    def test_of_numbers_that_travel(self):
        x, y, s = tn.ones(3, device=A), tn.ones(3, device=B), tn.array(2.0)
        assert tn.grad(lambda s: (x * s).sum())(s).device == "cpu"
        both = tn.grad(lambda s: (x * s).sum().to("cpu") + (y * s).sum().to("cpu"))(s)
        assert both.device == "cpu" and both.item() == 6
        mapped = tn.vmap(lambda s: x * s)(tn.arange(2.0))
        assert mapped.device == A and mapped.tolist() == [[0, 0, 0], [1, 1, 1]]

    def test_of_rules_that_forget_the_device(self):
        @tn.custom_function
        def rounded(x):
            return tn.round(x.to("cpu"))

        @rounded.vjp
        def _(x, ct, out):
            return ct

        x = tn.ones(3, device=A)
        assert tn.grad(lambda x: rounded(x).sum())(x).device == A
        w = tn.ones(3, device=A, requires_grad=True)
        w.grad = tn.ones(3)
        assert w.grad.device == A


class TestWorkDoneLater:
    def test_memory_that_the_user_writes_again(self):
        ring, seen = np.zeros(1 << 16, np.float32), []
        for step in range(20):
            ring[:] = step
            y = tn.asarray(ring, copy=False).to(A) * 1.0
            tn.eval(y)
            seen.append(y)
        assert [y[0].item() for y in seen] == list(range(20))

    def test_errors_that_nobody_read(self):
        bad = tn.take(tn.arange(4.0, device=A), tn.array([9], device=A))
        tn.async_eval(bad)
        with pytest.raises(IndexError, match="9 is out of bounds"):
            tn.synchronize()
        tn.synchronize()

    def test_a_loop_that_asks_for_nothing_stays_small(self):
        x = tn.ones(1 << 18, device=A)
        tn.reset_peak_memory()
        for _ in range(300):
            x = tn.sin(x) * 1.0001
            tn.async_eval(x)
        tn.synchronize()
        assert tn.peak_memory() < 150 << 20

    def test_what_is_given_away_is_used(self):
        @tn.compile(donate_argnums=0)
        def step(x):
            return x * 0.5

        x = tn.ones(1 << 20, device=A)
        tn.eval(x)
        tn.synchronize()
        tn.reset_peak_memory()
        before = tn.active_memory()
        for _ in range(4):
            x = step(x)
            tn.synchronize()
        assert tn.peak_memory() < before + (3 << 20) and x[0].item() == 1 / 16

    def test_a_child_may_use_what_its_parent_did_not(self):
        code = """
import os, tenon as tn
tn.synchronize(), tn.devices()
child = os.fork()
if child == 0:
    os._exit(0 if tn.ones(2, device="emu:0").tolist() == [1, 1] else 1)
print(os.waitpid(child, 0)[1])
"""
        env = os.environ | {"TENON_EMULATED_DEVICES": "2"}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert done.stdout == "0\n", done.stderr

    def test_an_interrupt_while_async_eval_waits_for_room(self):
        code = """
import os, signal, threading, time, tenon as tn
x = tn.ones(4, device="emu:0")
def work():
    return tn.while_loop(lambda s: s[0] < 10**9, lambda s: (s[0] + 1, s[1] * 0.5),
                         (tn.array(0, device="emu:0"), x))[1]
threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    for _ in range(10**6):
        tn.async_eval(work())
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""
        env = os.environ | {"TENON_EMULATED_DEVICES": "2"}
        child = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        try:
            assert child.communicate(timeout=60)[0] == b"interrupted\n"
        finally:
            child.send_signal(signal.SIGKILL)

    def test_an_interrupted_program_ends(self):
        code = """
import os, signal, threading, tenon as tn
threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
with tn.device("emu:0"):
    try:
        tn.while_loop(lambda s: s[0] < 10**9, lambda s: (s[0] + 1, s[1] * 0.5),
                      (tn.array(0), tn.ones(1000)))[1].tolist()
    except KeyboardInterrupt:
        print("interrupted")
"""
        env = os.environ | {"TENON_EMULATED_DEVICES": "2"}
        child = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE)
        try:
            assert child.communicate(timeout=60)[0] == b"interrupted\n"
        finally:
            child.send_signal(signal.SIGKILL)


class TestLinesOfSharedPlans:
    """Programs that record the same ops share a plan, and errors name the lines of the program
    that runs."""

    def place_of_error(self, call, *args):
        with pytest.raises(IndexError, match="is out of bounds for axis 0 of extent 4") as error:
            call(*args).tolist()
        return str(error.value)

    @pytest.mark.parametrize("device", [A, "cpu"])
    def test_flushes(self, device):
        x, i = tn.arange(4.0, device=device), tn.array([3], device=device)

        def first(i):
            return tn.take(x, i + 5) * 3.0

        def second(i):
            moved = i + 5
            return tn.take(x, moved) * 3.0

        for f, line in ((first, 1), (second, 2), (first, 1)):
            line += f.__code__.co_firstlineno
            assert f"{__file__}:{line}, in {f.__name__}" in self.place_of_error(f, i)

    def test_a_loop_and_the_same_written_out(self):
        x = tn.arange(4.0, device=A)

        def looped(i):
            total = tn.zeros(1, device=A)
            for k in range(3):
                total = total + tn.take(x, i + k)
            return total

        def written_out(i):
            total = tn.zeros(1, device=A)
            total = total + tn.take(x, i + 0)
            total = total + tn.take(x, i + 1)
            total = total + tn.take(x, i + 2)
            return total

        assert looped(tn.array([1], device=A)).tolist() == [6]
        for start, line in ((2, 4), (3, 3), (4, 2)):
            at = written_out.__code__.co_firstlineno + line
            text = self.place_of_error(written_out, tn.array([start], device=A))
            assert f"{__file__}:{at}, in written_out" in text
        at = looped.__code__.co_firstlineno + 3
        text = self.place_of_error(looped, tn.array([2], device=A))
        assert f"{__file__}:{at}, in looped" in text

    def test_plans_that_are_compiled_because_they_are_hot(self):
        x = tn.arange(4.0, device=A)

        def first(i):
            return tn.take(x, i + 7) - 3.0

        def second(i):
            return tn.take(x, i + 7) - 3.0

        with tn.set_auto_compile(True, threshold=1):
            for _ in range(8):
                assert first(tn.array([-7], device=A)).tolist() == [-3]
            for f in (second, first):
                at = f"{__file__}:{f.__code__.co_firstlineno + 1}, in {f.__name__}"
                assert at in self.place_of_error(f, tn.array([3], device=A))

    def test_compiled_functions(self):
        def first(x, i):
            return tn.take(x, i * 3) + 9.0

        def second(x, i):
            return tn.take(x, i * 3) + 9.0

        x, i = tn.arange(4.0, device=A), tn.array([3], device=A)
        with tn.debug_indices():
            for f in (first, second):
                text = self.place_of_error(tn.compile(f), x, i)
                assert f"{__file__}:{f.__code__.co_firstlineno + 1}, in {f.__name__}" in text


class TestBytesThatTravel:
    """One number of a large tensor takes its own bytes to a device, not those behind it."""

    def extra(self, call):
        tn.synchronize()
        tn.reset_peak_memory()
        before = tn.active_memory()
        call()
        tn.synchronize()
        return tn.peak_memory() - before

    def test_numbers_and_constants(self):
        big = tn.ones(1 << 22)
        x = tn.ones(4, device=A)
        number = big[7]
        tn.eval(big, x, number)
        given = tn.compile(lambda x, s: x * s)
        held = tn.compile(lambda x: x * number)
        infos = [tn.InputInfo((4,), tn.float32), tn.InputInfo((), tn.float32)]
        saved = tn.compile(lambda x, s: x * s, args=infos)
        for f, args in ((given, (x, number)), (held, (x,)), (saved, (x, number))):
            assert self.extra(lambda f=f, args=args: tn.eval(f(*args))) < 1 << 20

    def test_copies_are_part_of_the_plan(self):
        f = tn.compile(lambda x: (tn.sort(x * 2)).to(B) + 1)
        f(tn.ones(3, device=A))
        copies = [line for line in f.show("plan").splitlines() if line.startswith("copy ")]
        assert copies == ["copy v2 from emu:0 to cpu, 12 bytes",
                          "copy v3 from cpu to emu:1, 12 bytes"]
