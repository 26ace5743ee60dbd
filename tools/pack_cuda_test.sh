#!/usr/bin/env bash
# Packs what tools/test_cuda.sh needs on a machine that has a GPU but no compiler: the built test
# program, the command, the Python module, this machine's Python with the packages that the tests
# import, and the tests. Writes build/cuda_test.tar.xz; unpacked, it is a folder cuda_test.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
base=$($python -c 'import sys; print(sys.base_prefix)')
version=$($python -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}")')
site=.venv/lib/$version/site-packages
out=build/cuda_test
packed=$out/packed
rm -rf $out
mkdir -p $packed/bin $packed/home/lib $packed/packages $out/bench $out/python
programs="tenon_tests tenon_bench"
[ -f build/release/cuda_tests ] && programs="cuda_tests tenon_bench"
for program in $programs; do
  [ -f build/release/$program ] && strip -o $packed/bin/$program build/release/$program
done
library=build/release/libtenon_rt.so
if [ -f $library ]; then
  cp -L $library $packed/bin/libtenon_rt.so.0.1
  tools/build_run_model.sh $packed/bin $python
fi
for library in libyaml-cpp.so.0.7 libmpfr.so.6 libgmp.so.10 libbenchmark.so.1debian; do
  found=$(ldconfig -p | sed -n "s/.*$library .*=> //p" | head -n 1)
  [ -n "$found" ] && cp -L "$found" $packed/bin/$library
done
# A private Python: its program, its library and the standard library.
cp -L "$base/bin/$version" $packed/bin/python
cp -L "$base"/lib/lib$version*.so.1.0 $packed/home/lib/ 2>/dev/null || true
tar -C "$base/lib" --exclude=site-packages --exclude=__pycache__ --exclude=test --exclude=tests \
  --exclude='config-*' --exclude=idlelib --exclude=tkinter --exclude=ensurepip --exclude=lib2to3 \
  -c $version | tar -C $packed/home/lib -x
packages="numpy numpy.libs pytest _pytest pluggy iniconfig packaging hypothesis sortedcontainers
  _hypothesis_ftz_detector.py _hypothesis_globals.py _hypothesis_pytestplugin.py yaml _yaml attr
  einops pygments py.py typing_extensions.py"
for package in $packages; do
  [ -e $site/$package ] || continue
  tar -C $site --exclude=__pycache__ --exclude=tests --exclude='*.pyi' --exclude='*.a' -c $package |
    tar -C $packed/packages -x
done
cp -rL python/tenon $out/python/tenon
for module in build/release/python/tenon/_core*.so; do
  strip -o $out/python/tenon/"$(basename "$module")" "$module"
done
mkdir -p $out/tests
cp -r tests/python tests/golden tests/data tests/cuda $out/tests/
cp -r bench/cuda bench/workloads bench/{workers,stored_memory,failures}.py $out/bench/
cp -r tools $out/tools
cp pyproject.toml $out/
find $out -name __pycache__ -prune -exec rm -rf {} +
# As an installed package has it: a first call is timed without compiling Python.
$python -m compileall -q --invalidation-mode unchecked-hash $out/python/tenon
# The programs share most of their code, which a large dictionary finds.
tar -C build -c cuda_test | xz --x86 --lzma2=preset="${1:-3}",dict=192MiB >build/cuda_test.tar.xz
ls -l build/cuda_test.tar.xz
