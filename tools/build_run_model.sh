#!/usr/bin/env bash
# Compiles the examples that run any saved file, in C and C++, and saves one with code for CPUs and
# GPUs: run_model_c, run_model_cpp and model.tnx in a folder. tools/test_cuda.sh runs them.
#
#     tools/build_run_model.sh FOLDER PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 python=$2
link=(-I include -L build/release -ltenon_rt "-Wl,-rpath,$PWD/build/release")
cc -std=c99 -O2 examples/c/run_model.c "${link[@]}" -o "$out/run_model_c"
c++ -std=c++20 -O2 examples/cpp/run_model.cpp "${link[@]}" -o "$out/run_model_cpp"
PYTHONPATH=build/release/python "$python" - "$out/model.tnx" <<'EOF'
import sys

import tenon as tn

layers = tn.nn.Sequential(tn.nn.Linear(256, 1024), tn.gelu, tn.nn.Linear(1024, 10))
rows = tn.InputInfo(((1, 64, 256), 256), tn.float32)
model = tn.compile(lambda x: tn.softmax(layers(x), axis=-1), args=[rows])
model.save(sys.argv[1], targets=["x86-64-v2", "x86-64-v4", "sm_80", "sm_90", "ptx_80"])
EOF
