#!/usr/bin/env bash
# Installs the build tree $1 into a temporary folder, then builds and runs this project against it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$1" --prefix "$work/prefix" >/dev/null
cmake -S "$here" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/uses_tenon"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig"
  read -r -a flags <<<"$(pkg-config --cflags --libs tenon)"
  c++ "$here/main.cpp" "${flags[@]}" -o "$work/by_pkg_config"
  "$work/by_pkg_config" >/dev/null
fi
echo "install: find_package and the installed command work"
if [ -x "$work/prefix/bin/tenon" ]; then "$work/prefix/bin/tenon" --version; fi
