#!/usr/bin/env bash
# tidy.sh [REGEX]: runs clang-tidy on the C++ sources, one process per CPU. The checks and the
# reasons for those left out are in .clang-tidy. Sources of one folder are read together, in the
# groups of cmake/groups.cmake (unity_src_mesh_0): a third of the time. REGEX chooses by a part of
# the path: src_mesh, python/src/trees, test_mesh. The sources of tenon_rt_small are those of tenon.
set -eu
cd "$(dirname "$0")/.."

[ -f build/tidy/compile_commands.json ] || cmake --preset tidy >/dev/null
# Every finding fails (WarningsAsErrors); -quiet leaves out the count of those in system headers.
sources="$PWD/(build/tidy/(?!.*tenon_rt_small).*unity_|src|python/src|tests|bench)"
run-clang-tidy-19 -quiet -p build/tidy "^$sources.*${1:-}"
