#!/usr/bin/env bash
# Prints the sizes of the libraries, and of a program that trains and predicts (examples/template)
# with either of them, stripped. Fails where one is above its goal.
#
#     bench/sizes.sh [BUILD]                    builds the programs; BUILD is build/release
#     bench/sizes.sh LIBRARIES STATIC SHARED    the folder of the libraries, and two built programs
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 3 ]; then
  libraries=$1 static=$2 shared=$3
else
  cmake --install "${1:-$here/../build/release}" --prefix "$work/prefix" >"$work/log"
  for kind in OFF ON; do
    cmake -S "$here/../examples/template" -B "$work/$kind" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$work/prefix" -DBUILD_SHARED_LIBS=$kind >"$work/log"
    cmake --build "$work/$kind" >"$work/log" || { cat "$work/log"; exit 1; }
  done
  libraries=$work/prefix/lib static=$work/OFF/my_program shared=$work/ON/my_program
fi
strip -o "$work/static_program" "$static"
strip -o "$work/shared_program" "$shared"

missed=0
row() { # name, file, goal in kB (none: no goal)
  local size verdict=
  size=$(($(stat -L -c %s "$2") / 1000))
  if [ $# -eq 3 ]; then
    verdict="   <= $3 kB   yes"
    if [ "$size" -gt "$3" ]; then verdict="   <= $3 kB   NO" missed=1; fi
  fi
  printf '%-36s%9d kB%s\n' "$1" "$size" "$verdict"
}
row "program with libtenon.a, stripped" "$work/static_program" 38000
row "program with libtenon.so, stripped" "$work/shared_program" 200
row "libtenon_rt.so" "$libraries/libtenon_rt.so" 3000
row "libtenon.so" "$libraries/libtenon.so"
row "libtenon.a" "$libraries/libtenon.a"
exit $missed
