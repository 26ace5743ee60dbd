#!/usr/bin/env bash
# Runs the tests and benchmarks of CUDA devices on a machine with a GPU: in a build of this machine,
# or in what tools/pack_cuda_test.sh packed elsewhere.
#
#     tools/test_cuda.sh [OUT]      logs go to OUT/*.log, build/cuda_logs by default
#     STEPS="cpp python bench"      which parts; all by default but sanitizer. STEPS=rt: libtenon_rt
#                                   alone. STEPS=sanitizer: compute-sanitizer, if it is installed
#     ROWS="gelu mlp" ROW_LIMIT=60  which rows of bench/cuda, and how many seconds each may take
#     TESTS="ops:6 nn" LIMIT=240    which files of tests/python, in how many processes, and how long
#                                   each may take
set -u
cd "$(dirname "$0")/.."
out=${1:-${OUT:-build/cuda_logs}}
mkdir -p "$out"
steps=${STEPS:-"doctor cpp gpu rt smoke python bench"}
tests=${TESTS:-"ops:6 derivatives:6 transforms control_flow_trees compile nn optim amp checkpoints
  executables random lazy"}
export TENON_CACHE_DIR=${TENON_CACHE_DIR:-/tmp/tenon-cache-$$}
mkdir -p -m 700 "$TENON_CACHE_DIR"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python=$scratch/python
# PyTorch is in another Python, which must not see what is packed.
cat >"$scratch/torch_python" <<EOF
#!/bin/bash
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
unset PYTHONHOME PYTHONPATH
exec python3 "\$@"
EOF
chmod +x "$scratch/torch_python"
export TORCH_PYTHON=${TORCH_PYTHON:-$scratch/torch_python}
if [ -d packed ]; then
  bin=$PWD/packed/bin
  cat >"$python" <<EOF
#!/bin/bash
export LD_LIBRARY_PATH=$PWD/packed/home/lib:\${LD_LIBRARY_PATH:-} PYTHONHOME=$PWD/packed/home
export PYTHONPATH=$PWD/python:$PWD/packed/packages PYTHONDONTWRITEBYTECODE=1
exec $bin/python "\$@"
EOF
  export LD_LIBRARY_PATH=$bin:${LD_LIBRARY_PATH:-}
else
  bin=$PWD/build/release
  cat >"$python" <<EOF
#!/bin/bash
export PYTHONPATH=$PWD/build/release/python
exec $PWD/.venv/bin/python "\$@"
EOF
fi
chmod +x "$python"
program=$bin/tenon_tests
[ -f "$bin/cuda_tests" ] && program=$bin/cuda_tests
wants() { [[ " $steps " == *" $1 "* ]]; }
# step LINES NAME SECONDS command...: its output goes to OUT/NAME.log, its last LINES to the
# terminal.
failed=""
step() {
  local lines=$1 name=$2 limit=$3 began=$SECONDS code
  shift 3
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1
  code=$?
  echo "== $name: exit $code, $((SECONDS - began)) s"
  tail -n "$lines" "$out/$name.log" | cut -c1-400
  [ $code -eq 0 ] || failed="$failed $name"
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null
wants doctor && step 30 doctor 60 "$python" -m tenon doctor
wants smoke && step 10 exact 200 "$python" tests/cuda/exact.py
wants smoke && step 20 attention 100 "$python" tests/cuda/attention.py
wants smoke && step 20 interpreted 150 "$python" tests/cuda/interpreted.py
wants smoke && step 12 products 60 "$python" tests/cuda/products.py
wants cpp && step 8 cpp 120 env TENON_CACHE=0 "$program" -tc='cuda:*'
wants gpu && step 40 gpu 200 env TENON_TEST_CUDA=1 TENON_CUDA_PRODUCTS=own "$program" -tc='gpu:*'
if wants rt; then
  step 12 rt 120 env TENON_TEST_CUDA=1 TENON_CUDA_PRODUCTS=own "$program" -tc='gpu: *runtime*'
  folder=$bin
  if [ ! -f "$bin/model.tnx" ]; then
    folder=$scratch
    step 4 rt_build 120 tools/build_run_model.sh "$scratch" "$python"
  fi
  for language in c cpp; do
    step 8 rt_$language 60 env TRUST=1 "$folder/run_model_$language" --device cuda \
      "$folder/model.tnx"
  done
fi
if wants sanitizer; then
  # Own kernels, generated and prebuilt. The test of lack of memory is left out: it makes calls of
  # the driver fail, which memcheck reports.
  sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
  for tool in memcheck racecheck; do
    step 12 sanitizer_$tool "${SANITIZER_LIMIT:-200}" env TENON_TEST_CUDA=1 \
      TENON_CUDA_PRODUCTS=own "${sanitizer:-compute-sanitizer}" --tool $tool --error-exitcode 9 \
      "$program" -tc='gpu: programs*'
  done
fi
wants smoke && step 70 smoke 150 env TENON_CUDA_PRODUCTS=own "$python" tests/cuda/smoke.py
if wants python; then
  parts=""
  for entry in $tests; do  # all at once
    name=${entry%:*} shares=1
    [[ $entry == *:* ]] && shares=${entry#*:}
    for share in $(seq "$shares"); do
      TENON_DEVICE=cuda TEST_SHARE=$share/$shares timeout --kill-after=5 "${LIMIT:-240}" "$python" \
        -m pytest -q --maxfail=60 -p no:cacheprovider --tb=line "tests/python/test_$name.py" \
        >"$scratch/test_$name.$share" 2>&1 &
      parts="$parts $name.$share"
    done
  done
  wait
  for part in $parts; do
    echo "== tests/python/test_$part"
    cat "$scratch/test_$part"
  done >"$out/python.log"
  for part in $parts; do
    last=$(tail -n 1 "$scratch/test_$part")
    echo "$part: $last"
    [[ "$last" == *passed* && "$last" != *failed* ]] || failed="$failed test_$part"
  done
fi
# shellcheck disable=SC2086
wants bench && step 60 bench "${BENCH_LIMIT:-900}" env OUT="$out" LIMIT="${ROW_LIMIT:-60}" \
  "$python" bench/cuda/run.py ${ROWS:-}
[ -z "$failed" ] && echo "all passed" || echo "FAILED:$failed"
[ -z "$failed" ]
