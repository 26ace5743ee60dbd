#!/usr/bin/env bash
# Installs what the build needs: Debian packages, and a Python environment in .venv.
# Says what it installs; does nothing when all is there.
set -eu
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build ccache mold git
  libfmt-dev doctest-dev libbenchmark-dev nlohmann-json3-dev libcli11-dev libxxhash-dev
  libzstd-dev libyaml-cpp-dev llvm-19-dev zlib1g-dev clang-19 clang-tidy-19 libclang-rt-19-dev
  libmpfr-dev libopenblas0-pthread python3-venv python3-dev openmpi-bin mpich iproute2
)

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

if command -v apt-get >/dev/null; then
  missing=()
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing Debian packages: ${missing[*]}"
    as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "${missing[@]}"
  fi
else
  echo "setup: no apt-get here; these Debian packages or their like are needed: ${packages[*]}"
fi

# The first Python of the path that can make environments and compile modules.
is_usable() {
  "$1" - 2>/dev/null <<'PYTHON'
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.version_info >= (3, 11) and os.path.exists(header)))
PYTHON
}
python=
for candidate in python3 /usr/bin/python3; do
  if is_usable "$candidate"; then python=$candidate && break; fi
done
[ -n "$python" ] || { echo "setup: no Python 3.11 or newer with venv and headers" >&2; exit 1; }

if ! .venv/bin/python -c '' 2>/dev/null; then
  echo "setup: making .venv with $("$python" -V)"
  rm -rf .venv
  "$python" -m venv .venv
fi

wanted=$(.venv/bin/python - <<'PYTHON'
import tomllib
with open("pyproject.toml", "rb") as f:
    project = tomllib.load(f)
extras = project["project"]["optional-dependencies"]
print(*project["build-system"]["requires"], *extras["dev"], *extras["demo"], *extras["docs"])
PYTHON
)
read -r -a wanted <<<"$wanted"
echo "setup: Python packages in .venv: ${wanted[*]}"
.venv/bin/python -m pip install -q --disable-pip-version-check "${wanted[@]}"

# `import tenon` finds the package in the build tree, as python/CMakeLists.txt lays it out.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/build/release/python" >"$site/tenon.pth"
touch .venv/.ready
