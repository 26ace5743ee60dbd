#!/usr/bin/env bash
# run.sh [SECONDS]: lets libFuzzer look for files, texts and calls that do harm, so long for each
# kind. What it learns, and what it finds, stays in build/fuzz.
set -eu
cd "$(dirname "$0")/../.."
fuzz=build/fuzz

[ -f $fuzz/build.ninja ] || cmake -S tests/fuzz -B $fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" -DCMAKE_BUILD_TYPE=None >/dev/null
cmake --build $fuzz
for kind in tnx safetensors signals graph npy c_api; do
  mkdir -p $fuzz/corpus/$kind
  $fuzz/fuzz_$kind $fuzz/corpus/$kind -max_total_time="${1:-30}" -artifact_prefix=$fuzz/$kind- \
    -timeout=10 -rss_limit_mb=4096 -max_len=131072 -print_final_stats=1 -print_funcs=0 -verbosity=0
done
