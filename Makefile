# Thin: what is built and how is in CMakeLists.txt. Every target sets up what it needs.
PYTHON := .venv/bin/python
READY := .venv/.ready
RELEASE := build/release

.PHONY: all setup build checks test test-cuda bench-cuda lint tidy odr fuzz ulp demo bench docs gen format asan tsan wheel clean
all: build

setup: $(READY)
	@echo "setup: everything is installed"

$(READY): tools/setup.sh pyproject.toml
	@tools/setup.sh

build: $(READY)
	@test -f $(RELEASE)/build.ninja || cmake --preset release
	@cmake --build --preset release

# Test programs and benchmarks, which `make build` leaves out.
checks: build
	@cmake --build --preset release --target checks

test: checks
	@$(PYTHON) tools/run_tests.py

# Needs no build, but compares the stubs with the module where there is one.
lint: $(READY)
	@$(PYTHON) tools/lint.py

# FILES=src_mesh: a regular expression of paths, see tools/tidy.sh.
tidy: $(READY)
	@tools/tidy.sh '$(FILES)'

# The whole library in one link, so that the compiler sees every definition of a name.
odr: $(READY)
	@test -f build/odr/build.ninja || cmake --preset odr
	@cmake --build --preset odr --target tenon_cli

# Random graphs, GRAPHS=1 SEED=17 repeats one; then random programs on meshes, CASES of them; then
# random calls of the Python API, CALLS of them; then bad files, texts and calls of C, for so many
# SECONDS each.
fuzz: checks
	@TENON_FUZZ_GRAPHS=$(or $(GRAPHS),20000) TENON_FUZZ_SEED=$(or $(SEED),0) \
		$(RELEASE)/tenon_tests -tc='random graphs*'
	@$(PYTHON) tests/python/fuzz_mesh.py --cases $(or $(CASES),5000) --seed $(or $(SEED),0)
	@$(PYTHON) tests/fuzz/api.py --calls $(or $(CALLS),40000) --seed $(or $(SEED),0)
	@tests/fuzz/run.sh $(or $(SECONDS),600)

# FUNCTION=exp: that one only.
ulp: checks
	@$(if $(FUNCTION),TENON_MATH_FUNCTION=$(FUNCTION)) \
		$(RELEASE)/tenon_tests -tc='every f32 input*' --no-skip

# On a machine with a GPU. STEPS="cpp smoke": some of its parts.
test-cuda: checks
	@STEPS="$(or $(STEPS),doctor cpp gpu rt smoke python)" tools/test_cuda.sh
bench-cuda: build
	@STEPS=bench tools/test_cuda.sh

demo: build
	@$(PYTHON) examples/demo.py

# ONLY="gelu mlp": some workloads or sections. PEERS=1: with PyTorch, JAX and ONNX Runtime, in an
# environment of their own.
BENCH_PYTHON := $(if $(PEERS),build/peers/bin/python,$(PYTHON))
bench: checks $(if $(PEERS),build/peers/.ready)
	@PYTHONPATH=$(RELEASE)/python $(BENCH_PYTHON) \
	  $(if $(BEFORE),bench/before.py $(BEFORE),bench/run.py) $(ONLY)

build/peers/.ready: Makefile | $(READY)
	@echo "bench: installing torch, jax and onnxruntime in build/peers"
	@test -x build/peers/bin/python || $(PYTHON) -m venv build/peers
	@build/peers/bin/python -m pip install -q --disable-pip-version-check \
	  numpy scipy torch jax onnx onnxruntime
	@touch $@

docs: build
	@$(RELEASE)/tenon gen --check
	@$(PYTHON) tools/site/build.py

gen: build
	@$(RELEASE)/tenon gen

format: $(READY)
	@$(PYTHON) tools/format.py

asan: $(READY)
	@test -f build/asan/build.ninja || cmake --preset asan
	@cmake --build --preset asan --target all checks
	@$(PYTHON) tools/run_tests.py --asan

# Data races. Threads take part in these tests only, and the streams of devices.
tsan: $(READY)
	@test -f build/tsan/build.ninja || cmake --preset tsan
	@cmake --build --preset tsan --target tenon_tests
	@build/tsan/tenon_tests -tc='*thread*,hot paths*,*event*,eval*,devices*' \
		-tce='*child of fork*'  # which TSan cannot follow

wheel: $(READY)
	@tools/check_wheel.sh

clean:
	@rm -rf build dist
