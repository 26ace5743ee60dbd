#!/usr/bin/env bash
# run.sh [SECONDS]: lets libFuzzer look for files that do harm. What it learns, and what it finds,
# stays in build/fuzz.
set -eu
cd "$(dirname "$0")/../.."
fuzz=build/fuzz

[ -f $fuzz/build.ninja ] || cmake -S tests/fuzz -B $fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" -DCMAKE_BUILD_TYPE=None >/dev/null
cmake --build $fuzz
mkdir -p $fuzz/corpus
$fuzz/tenon_fuzz $fuzz/corpus -max_total_time="${1:-60}" -artifact_prefix=$fuzz/ -timeout=10 \
  -rss_limit_mb=4096 -max_len=131072 -print_final_stats=1 -print_funcs=0 -verbosity=0
