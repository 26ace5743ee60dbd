#!/usr/bin/env bash
# Times `make build` from nothing, the test programs after it, and the rebuild after a change of one
# op file, on 2 cores without ccache, in a temporary folder.
#
#     bench/build.sh            all goals
#     bench/build.sh --json     the figures as one JSON object
set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
[ -x "$python" ] || python=python3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z | xargs -0 tar cf - | tar xf - -C "$work"
cd "$work"
export CCACHE_DISABLE=1

two_cores=()
if command -v taskset >/dev/null; then two_cores=(taskset -c "$(taskset -cp $$ |
  "$python" -c 'import re, sys
cpus = [c for a, b in re.findall(r"(\d+)(?:-(\d+))?", sys.stdin.read().split(":")[-1])
        for c in range(int(a), int(b or a) + 1)]
print(",".join(map(str, cpus[:2])))')"); fi

seconds() { # the wall time of a command, whose output is shown only when it fails
  local began ended
  began=$(date +%s.%N)
  "$@" >log 2>&1 || { tail -n 40 log >&2; exit 1; }
  ended=$(date +%s.%N)
  "$python" -c "print(f'{$ended - $began:.1f}')"
}

build() { "${two_cores[@]}" cmake --build --preset release -j2 --target "$@"; }
configure() { cmake --preset release -DPython_EXECUTABLE="$python"; }

configured=$(seconds configure)
clean=$(seconds build all)
checks=$(seconds build checks)
echo "// a change" >>src/ops/rounding.cpp
one_op=$(seconds build tenon_module)
PYTHONPATH=build/release/python "$python" -c "import tenon" 2>/dev/null

"$python" - "$configured" "$clean" "$checks" "$one_op" "${1:-}" <<'PYTHON'
import json, sys
configured, clean, checks, one_op = map(float, sys.argv[1:5])
rows = [("configure and clean build", configured + clean, 480.0),
        ("test programs and benchmarks after it", checks, 300.0),
        ("a changed op file to a loadable module", one_op, 25.0)]
if sys.argv[5] == "--json":
    print(json.dumps([{"name": n, "seconds": s, "goal": g, "met": s <= g} for n, s, g in rows]))
else:
    print("on 2 cores, without ccache")
    for name, taken, goal in rows:
        print(f"{name:42}{taken:8.1f} s   <= {goal:g} s   {'yes' if taken <= goal else 'NO'}")
PYTHON
