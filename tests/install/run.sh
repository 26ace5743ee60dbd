#!/usr/bin/env bash
# Installs the build tree $1 into a temporary folder, then builds and runs programs against it in
# every way that docs/tutorial/27-building-with-cmake.md describes. Leaves nothing behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tree=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed: $*"; exit 1; }; }
# $1: the folder of the sources, $2: that of the build; then options
configure() {
  quietly cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" "${@:3}"
}
build() {
  configure "$1" "$2" -G Ninja "${@:3}"
  quietly cmake --build "$2"
}

prefix=$work/prefix
quietly cmake --install "$tree" --prefix "$prefix"
abi=$(readelf -d "$prefix/lib/libtenon.so" | sed -n 's/.*soname: \[libtenon.so.\(.*\)\]/\1/p')
python3 "$here/check_exports.py" "$prefix/lib/libtenon.so" "$prefix/include/tenon" "TENON_$abi"

# find_package, with the shared library and with the static one.
build "$here" "$work/build"
"$work/build/uses_tenon" "$work/model.tnx"
build "$root/examples/template" "$work/template"
"$work/template/my_program"
if cmake -S "$root/examples/template" -B "$work/both" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_PROJECT_INCLUDE="$here/other_library.cmake" >"$work/log" 2>&1; then
  echo "find_package gave both libraries to one project" && exit 1
fi
grep -q "with the other library" "$work/log"
if cmake -S "$root/examples/template" -B "$work/tree" -DCMAKE_PREFIX_PATH="$tree" \
  >"$work/log" 2>&1; then
  echo "find_package found a library in a build folder" && exit 1
fi
grep -q "is a build folder" "$work/log"

# Saved executables need nothing of the environment; without a home the caller says that it trusts.
for language in c cpp; do
  build "$root/examples/$language" "$work/$language" -DBUILD_SHARED_LIBS=ON
  (cd / && env -i TRUST=1 "$work/$language/run_model" "$work/model.tnx")
done
(cd "$work" && "$work/cpp/train")
(cd / && env -i TRUST=1 "$work/cpp/run_model" "$work/spiral.tnx")

# The sources as a part of the project. The library is the one of the build tree: with the target
# /fast, make builds the program and takes what it depends on as it is.
embed() { # the way, whether with the shared library, where CMake would build Tenon
  configure "$root/examples/template" "$work/$1" -G "Unix Makefiles" -DTENON_FROM="$1" \
    -DTENON_FOLDER="$root" -DBUILD_SHARED_LIBS="$2"
  ln -s "$tree"/libtenon.* "$work/$1/$3"
  quietly cmake --build "$work/$1" --target my_program/fast
  "$work/$1/my_program" >/dev/null
}
embed subdirectory OFF tenon
embed fetch ON _deps/tenon-build
"$root/bench/sizes.sh" "$prefix/lib" "$work/template/my_program" "$work/fetch/my_program"

# Headers of one version do not link with the library of another.
mkdir -p "$work/other/tenon"
sed 's/abi_tag("[^"]*")/abi_tag("v99_9")/' "$prefix/include/tenon/tensor.h" \
  >"$work/other/tenon/tensor.h"
c++ -std=c++20 -c -I "$work/other" -I "$prefix/include" "$here/main.cpp" -o "$work/other.o"
if c++ "$work/other.o" -L "$prefix/lib" -ltenon -o "$work/other_program" 2>"$work/log"; then
  echo "headers with another ABI link with the library" && exit 1
fi
grep -q 'undefined reference.*\[abi:v99_9\]' "$work/log"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
  flags() { read -r -a flags <<<"$(pkg-config --cflags --libs "$@")"; }
  flags tenon
  c++ -c "$root/examples/template/main.cpp" "${flags[@]}" -o "$work/main.o"
  c++ "$work/main.o" "${flags[@]}" -o "$work/by_pkg_config"
  LD_LIBRARY_PATH="$prefix/lib" "$work/by_pkg_config" >/dev/null
  flags tenon_static
  c++ "$work/main.o" "${flags[@]}" -o "$work/by_pkg_config"
  "$work/by_pkg_config" >/dev/null
  flags tenon_rt
  cc "$root/examples/c/run_model.c" "${flags[@]}" -o "$work/run_model"
  env -i TRUST=1 LD_LIBRARY_PATH="$prefix/lib" "$work/run_model" "$work/model.tnx" >/dev/null
fi
echo "install: find_package, add_subdirectory, FetchContent and pkg-config work"
if command -v dpkg-deb >/dev/null && [ -e /var/lib/dpkg/status ]; then
  "$here/debian.sh" "$tree" "$work"
fi
