"""`tenon launch`: what workers print, modules as programs, and processes that workers start."""

import os
import pty
import re
import resource
import select
import subprocess
import sys
import textwrap

LAUNCH = [sys.executable, "-m", "tenon", "launch"]


def written(tmp_path, program):
    path = tmp_path / "program.py"
    path.write_text("import os, sys\nrank = int(os.environ['TENON_RANK'])\n"
                    + textwrap.dedent(program))
    return str(path)


def launched(*words, **options):
    return subprocess.run([*LAUNCH, *words], stdout=subprocess.PIPE, text=True, timeout=120,
                          **options)


def test_lines_arrive_whole(tmp_path):
    program = """
    for i in range(300):
        for part in (f"{rank} ", "x" * 3000, f" {i}", "\\n"):
            os.write(1 + i % 2, part.encode())
    os.write(1, f"{rank} rest".encode())
    """
    done = launched("-n", "3", written(tmp_path, program), stderr=subprocess.STDOUT)
    assert done.returncode == 0
    lines = re.split(r"\n|(?<=rest)(?=\d)", done.stdout)
    for rank in range(3):
        own = [line for line in lines if line.startswith(f"{rank} ")]
        assert own == [f"{rank} {'x' * 3000} {i}" for i in range(300)] + [f"{rank} rest"]


def test_both_streams_have_their_targets(tmp_path):
    program = "print('out', rank)\nprint('err', rank, file=sys.stderr)\nsys.exit(3 * rank)"
    done = launched("-n", "2", written(tmp_path, program), stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert sorted(done.stdout.splitlines()) == ["out 0", "out 1"]
    lines = done.stderr.splitlines()
    end = "tenon: worker 1 ended with code 3"
    assert sorted(lines) == ["err 0", "err 1", end] and lines.index("err 1") < lines.index(end)


def test_a_prompt_arrives_before_its_answer(tmp_path):
    program = """
    if rank == 0:
        os.write(1, b"name? ")
        print("hello", sys.stdin.readline())
    """
    command = [*LAUNCH, "-n", "2", written(tmp_path, program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout.read(6) == b"name? "
        launcher.stdin.write(b"me\n")
        launcher.stdin.close()
        assert launcher.stdout.read() == b"hello me\n\n"
    assert launcher.returncode == 0


def test_a_reader_that_leaves_ends_the_workers(tmp_path):
    program = "while True:\n    os.write(1, b'line\\n')"
    command = [*LAUNCH, "-n", "2", written(tmp_path, program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as launcher:
        assert launcher.stdout.readline() == b"line\n"
        launcher.stdout.close()
        assert launcher.wait(60) != 0


def test_on_a_terminal_workers_print_to_terminals(tmp_path):
    program = "print(rank, sys.stdout.isatty(), sys.stderr.isatty(), os.get_terminal_size(1))"
    here, there = pty.openpty()
    command = [*LAUNCH, "-n", "2", written(tmp_path, program)]
    with subprocess.Popen(command, stdout=there, stderr=there) as launcher:
        os.close(there)
        text = b""
        while select.select([here], [], [], 60)[0]:
            try:
                text += os.read(here, 4096)
            except OSError:  # all have closed it
                break
    os.close(here)
    assert launcher.returncode == 0
    size = "os.terminal_size(columns=0, lines=0)"
    assert sorted(text.decode().split("\r\n")) == ["", f"0 True True {size}", f"1 True True {size}"]


def test_a_module_as_the_program(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "program.py").write_text(
        "import os, sys\nprint(__name__, os.environ['TENON_RANK'], sys.argv[1:])\n")
    for options in (["-n", "2"], ["-n2", "--threads=1"], ["--workers=2", "--threads", "1"]):
        done = launched(*options, "-m", "package.program", "-n", "7", "--help", "-m", cwd=tmp_path)
        assert done.returncode == 0
        words = ["-n", "7", "--help", "-m"]
        assert sorted(done.stdout.splitlines()) == [f"__main__ {r} {words}" for r in range(2)]


def test_what_a_worker_starts_is_no_worker(tmp_path):
    program = """
    import multiprocessing, subprocess
    import tenon as tn
    child = "import tenon as tn; w = tn.distributed.init(); print(w.rank(), w.size())"
    def spawned():
        world = tn.distributed.init()
        print("spawned", world.rank(), world.size(), tn.Mesh(data=3).shape)
    if __name__ == "__main__":
        options = {"check": True, "capture_output": True, "text": True}
        before = subprocess.run([sys.executable, "-c", child], **options).stdout
        world = tn.distributed.init()
        after = subprocess.run([sys.executable, "-c", child], env=dict(os.environ), **options)
        print(world.rank(), world.size(), before.strip(), after.stdout.strip())
        process = multiprocessing.get_context("spawn").Process(target=spawned)
        process.start(), process.join()
        tn.distributed.barrier()
    """
    done = launched("-n", "2", written(tmp_path, program))
    assert done.returncode == 0
    want = ["0 2 0 1 0 1", "1 2 0 1 0 1", *["spawned 0 1 {'data': 3}"] * 2]
    assert sorted(done.stdout.splitlines()) == want


def test_a_worker_can_launch_others(tmp_path):
    inner = tmp_path / "inner.py"
    inner.write_text("import tenon as tn\nprint(tn.distributed.init())\n")
    program = f"""
    import subprocess
    import tenon as tn
    if tn.distributed.init().rank() == 0:
        subprocess.run({[*LAUNCH, "-n", "2", str(inner)]}, check=True)
    """
    done = launched("-n", "2", written(tmp_path, program))
    assert done.returncode == 0
    want = [f"<workers 'world': rank {rank} of 2>" for rank in range(2)]
    assert sorted(done.stdout.splitlines()) == want


def test_a_lack_of_files_is_told(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("pass\n")
    most = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    done = subprocess.run([sys.executable, "-m", "tenon", "launch", "-n", "16", str(program)],
                          capture_output=True, text=True, preexec_fn=most, timeout=60)
    assert done.returncode != 0 and "launch: cannot make a pipe: Too many open" in done.stderr
