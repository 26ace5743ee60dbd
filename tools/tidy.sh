#!/usr/bin/env bash
# tidy.sh [REGEX]: runs clang-tidy on the C++ sources whose paths match, one per CPU. The checks and
# the reasons for those left out are in .clang-tidy.
set -eu
cd "$(dirname "$0")/.."

[ -f build/tidy/compile_commands.json ] || cmake --preset tidy >/dev/null
files=${1:-'(src|python/src|tests|bench)/.*'}
# Every finding fails (WarningsAsErrors); -quiet leaves out the count of those in system headers.
run-clang-tidy-19 -quiet -p build/tidy "^$PWD/$files\$"
