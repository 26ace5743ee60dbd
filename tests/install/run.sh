#!/usr/bin/env bash
# Installs the build tree $1 into a temporary folder, then builds and runs this project and the
# examples against it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$1" --prefix "$work/prefix" >/dev/null
# $1: the folder of the sources, $2: that of the build
build() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  cmake --build "$2" >"$work/log" || { cat "$work/log"; exit 1; }
}
build "$here" "$work/build"
"$work/build/uses_tenon" "$work/model.tnx"

# Saved executables need nothing of the environment; without a home the caller says that it trusts.
for language in c cpp; do
  build "$here/../../examples/$language" "$work/$language"
  (cd / && env -i TRUST=1 "$work/$language/run_model" "$work/model.tnx")
done
(cd "$work" && "$work/cpp/train")
(cd / && env -i TRUST=1 "$work/cpp/run_model" "$work/spiral.tnx")

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
  read -r -a flags <<<"$(pkg-config --cflags --libs tenon)"
  c++ "$here/main.cpp" "${flags[@]}" -o "$work/by_pkg_config"
  "$work/by_pkg_config" >/dev/null
  read -r -a flags <<<"$(pkg-config --cflags --libs tenon_rt)"
  cc "$here/../../examples/c/run_model.c" "${flags[@]}" -o "$work/run_model"
  env -i TRUST=1 LD_LIBRARY_PATH="$work/prefix/lib" "$work/run_model" "$work/model.tnx" >/dev/null
fi
echo "install: find_package and the installed command work"
if [ -x "$work/prefix/bin/tenon" ]; then "$work/prefix/bin/tenon" --version; fi
