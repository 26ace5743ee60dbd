#!/usr/bin/env python3
"""Call everything public in tenon with ordinary and hostile arguments.

    api.py [--calls 40000] [--seed 0] [--only REGEX] [--round N] [--show]

Calls run in worker processes under a watchdog. A call must give a result, or an exception of a kind
that callers expect. What fails: a signal, a hang, an internal error, an exception that says nothing
about the call, output on the terminal, memory that grows. A failure prints a program that repeats
it. `--only` with `--round` repeats one call, `--show` prints the programs without running them.
"""

import argparse
import collections
import contextlib
import gc
import json
import os
import pathlib
import random
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

HANG = 10.0  # seconds of a call: of the processor's time, or six times as many of a clock
PER_WORKER = 300  # calls of one process
MOST_BYTES = 256 << 20  # of tensors in a call
ADDRESSES = 12 << 30
GROWTH = 1 << 30  # of a worker, over all its calls
EXPECTED = (
    "TypeError",
    "ValueError",
    "LookupError",
    "OverflowError",
    "ZeroDivisionError",
    "OSError",
    "NotImplementedError",
    "ImportError",
    "StopIteration",
    "BufferError",
    "AttributeError",
)


class Unexpected(Exception):
    """A failure that is no exception of the program."""


def judge(error, tn):
    """What is wrong with an exception, or nothing."""
    import builtins

    if isinstance(error, Unexpected):
        return str(error)
    if isinstance(error, tn.InternalError):
        return "internal error"
    if isinstance(error, UnicodeError):
        return type(error).__name__
    if isinstance(error, tn.Error):
        return None if str(error) else "an error without a message"
    expected = tuple(getattr(builtins, name) for name in EXPECTED)
    return None if isinstance(error, expected) else type(error).__name__


def settle(value, tn, depth=0):
    """Uses a result as callers do: computes and prints it."""
    if isinstance(value, tn.Tensor):
        tn.eval(value)
    elif isinstance(value, (list, tuple)) and depth < 4:
        for part in value[:20]:
            settle(part, tn, depth + 1)
        return
    elif isinstance(value, dict) and depth < 4:
        for part in list(value.values())[:20]:
            settle(part, tn, depth + 1)
        return
    if type(value).__module__.split(".")[0] == "tenon":
        repr(value)
    if hasattr(value, "__enter__") and type(value).__module__.startswith("tenon"):
        with value:
            pass


class Worker:
    """Runs programs, and says which one it is at, and what it found, as lines on `out`."""

    def __init__(self, out):
        self.out = out
        from api_programs import Programs, targets

        import tenon as tn

        self.tn = tn
        self.programs, self.targets = Programs(), targets()

    def say(self, **what):
        os.write(self.out, json.dumps(what).encode() + b"\n")

    def run(self, calls, seed):
        self.results = 0
        self.printed = tempfile.TemporaryFile()
        os.dup2(self.printed.fileno(), 1)
        os.dup2(self.printed.fileno(), 2)
        by_name = {target.name: target for target in self.targets}
        first = resident()
        for name, round_ in calls:
            text = self.programs.program(by_name[name], seed, round_)
            self.say(name=name, round=round_, text=text, results=self.results)
            fault = self.fault_of(text)
            if fault is None and resident() - first > GROWTH:
                gc.collect()
                grown = resident() - first
                fault = (f"memory grew by {grown >> 20} MiB", "") if grown > GROWTH else None
            if fault:
                self.say(fault=fault[0], detail=fault[1])
            if fault and fault[0].startswith("memory"):
                break
        self.say(results=self.results)

    def fault_of(self, text):
        """(what, more) of a program that misbehaves."""
        import numpy as np

        tn = self.tn
        tn.memory.set_memory_limit(MOST_BYTES)
        space = {"tn": tn, "np": np}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, "<program>", "exec"), space)
                settle(space.get("r"), tn)
            self.results += 1
        except BaseException as error:
            wrong = judge(error, tn)
            if wrong:
                return wrong, traceback.format_exc()
        finally:
            del space
            with contextlib.suppress(Exception):
                tn.enable_compile()
        return self.output()

    def output(self):
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fstat(1).st_size == 0:
            return None
        self.printed.seek(0)
        text = self.printed.read()[:2000].decode(errors="replace")
        self.printed.seek(0)
        self.printed.truncate(0)
        return "output on the terminal", text


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def work(seed):
    """A worker's life: calls come as JSON on standard input, and its folder is its own."""
    calls = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = Worker(os.dup(1))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            worker.run(calls, seed)
        except BaseException:
            worker.say(fault="the fuzzer itself failed", detail=traceback.format_exc())
        os.chdir("/")
    os._exit(0)  # what calls left behind is not waited for


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watchdog:
    """Follows one worker to its end."""

    def __init__(self, calls, seed):
        command = [sys.executable, __file__, "--work", "--seed", str(seed)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdin.write(json.dumps(calls).encode())
        self.process.stdin.close()
        self.at, self.done, self.results, self.faults = None, 0, 0, []
        self.began = (0.0, 0.0)

    def times(self):
        return time.monotonic(), processor_seconds(self.process.pid)

    def is_hanging(self):
        wall, processor = (now - then for now, then in zip(self.times(), self.began))
        return wall > HANG and (processor > HANG or wall > 6 * HANG)

    def take(self, line):
        message = json.loads(line)
        if "name" in message:
            self.done += 1
            self.at, self.began, self.results = message, self.times(), message["results"]
        elif "fault" in message:
            self.faults.append((self.at, message["fault"], message["detail"]))
        else:
            self.results = message["results"]

    def follow(self):
        """Itself, with the number of calls that ran and what was found."""
        self.began = self.times()
        lines, rest = self.process.stdout, b""
        while True:
            if select.select([lines], [], [], 1.0)[0]:
                data = os.read(lines.fileno(), 1 << 16)
                if not data:
                    break
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    self.take(line)
            elif self.is_hanging():
                self.process.kill()
                self.process.wait()
                self.faults.append((self.at, f"hang above {HANG:.0f} s", ""))
                break
        code = self.process.wait()
        if code != 0 and not (self.faults and self.faults[-1][1].startswith("hang")):
            self.faults.append((self.at, f"the process ended with {code}", ""))
        lines.close()
        return self


def report(at, fault, detail, seed):
    from api_programs import HEAD

    print(f"\n== {at['name']}: {fault}" if at else f"\n== {fault}")
    if detail:
        print("\n".join(detail.rstrip().splitlines()[-12:]))
    if at:
        print(
            f"-- tests/fuzz/api.py --seed {seed} --only '^{re.escape(at['name'])}$' "
            f"--round {at['round']}\n{HEAD}{at['text']}print(r)",
            flush=True,
        )


def planned(options):
    """(name, round) of every call, in an order in which a short run sees all kinds."""
    from api_programs import targets

    names = [t.name for t in targets() if re.search(options.only, t.name)]
    if not names:
        sys.exit(f"api.py: nothing public matches {options.only}")
    if options.round is not None:
        return [(name, options.round) for name in names]
    random.Random(options.seed).shuffle(names)
    return [(names[i % len(names)], i // len(names)) for i in range(options.calls)]


def fuzz(options):
    calls, faults = collections.deque(planned(options)), []
    total, began, results = len(calls), time.monotonic(), 0
    while calls:
        batch = [calls[i] for i in range(min(PER_WORKER, len(calls)))]
        worker = Watchdog(batch, options.seed).follow()
        for fault in worker.faults:
            report(*fault, options.seed)
        faults += worker.faults
        results += worker.results
        for _ in range(max(worker.done, 1)):
            calls.popleft()
        if len(faults) >= options.most:
            break
    ran = total - len(calls)
    print(
        f"\napi: {ran} calls, {results} with a result, in {time.monotonic() - began:.0f} s, "
        f"seed {options.seed}: "
        f"{len(faults) or 'no'} fault{'s' * (len(faults) != 1)}"
    )
    sys.exit(bool(faults))


def show(options):
    from api_programs import Programs, targets

    by_name, programs = {target.name: target for target in targets()}, Programs()
    for name, round_ in planned(options):
        print(f"# {name} {round_}\n{programs.program(by_name[name], options.seed, round_)}")


def main():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names that match this")
    parser.add_argument("--round", type=int, help="this call of each name alone")
    parser.add_argument("--most", type=int, default=50, help="faults to stop at")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.seed)
    (show if options.show else fuzz)(options)


if __name__ == "__main__":
    main()
