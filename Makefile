# The commands of the project. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
PY := .venv/bin/python
# A fresh seed for each run; `make test SEED=123` repeats one.
SEED := $(or $(SEED),$(shell od -An -N3 -tu4 /dev/urandom | tr -d ' '))
export CCACHE_COMPRESS ?= 1
CMAKE_FLAGS := $(if $(CI),-DGLAIVE_WERROR=ON)

# Inputs per fuzz target, and the length of the random tests.
FUZZ_RUNS ?= 20000

define configure
	cmake --preset $(1) $(CMAKE_FLAGS) >/dev/null
endef

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+( [a-z-]+)*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup setup-build
setup-build: ## Debian packages and .venv
	@tools/setup_debian.sh
	@tools/setup_python.sh --no-upstream
setup: ## the same, and .venv-upstream with the real pylance and lancedb
	@tools/setup_debian.sh
	@tools/setup_python.sh

.PHONY: build
build: setup-build ## the library, the command line tool and the Python package in .venv
	$(call configure,release)
	cmake --build build/release -j $(JOBS) --target glaive_archive glaive_cli _glaive first

.PHONY: build-all
build-all: setup-build
	$(call configure,release)
	cmake --build build/release -j $(JOBS)

.PHONY: test check cpptest pytest
test: setup build-all check cpptest pytest ## build everything and run every test in its short form
	@echo "all tests passed (seed $(SEED))"

check: ## include graph, formatting
	@python3 tools/check_includes.py
	@tools/check_format.sh

cpptest:
	@echo "seed $(SEED) (repeat with: make test SEED=$(SEED))"
	GLAIVE_TEST_SEED=$(SEED) ctest --test-dir build/release -j $(JOBS) --output-on-failure --timeout 900

pytest:
	PYTHONPATH=python GLAIVE_TEST_SEED=$(SEED) $(PY) -m pytest -q -p no:cacheprovider \
	  -n $(JOBS) --dist worksteal tests $(wildcard python/tests)

.PHONY: soak
soak: setup build-all ## the long forms of the proofs (hours)
	@echo "seed $(SEED) (repeat with: make soak SEED=$(SEED))"
	GLAIVE_SOAK=1 GLAIVE_TEST_SEED=$(SEED) ctest --test-dir build/release --output-on-failure --timeout 14400
	PYTHONPATH=python GLAIVE_SOAK=1 GLAIVE_TEST_SEED=$(SEED) $(PY) -m pytest -q -p no:cacheprovider \
	  -n $(JOBS) --dist worksteal tests $(wildcard python/tests)
	$(MAKE) fuzz FUZZ_RUNS=1000000

.PHONY: asan tsan
asan: setup-build ## the C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call configure,asan-ubsan)
	cmake --build build/asan-ubsan -j $(JOBS)
	UBSAN_OPTIONS=print_stacktrace=1 GLAIVE_TEST_SEED=$(SEED) \
	  ctest --test-dir build/asan-ubsan -j $(JOBS) --output-on-failure --timeout 3600
tsan: setup-build ## the C++ tests under ThreadSanitizer
	$(call configure,tsan)
	cmake --build build/tsan -j $(JOBS)
	GLAIVE_TEST_SEED=$(SEED) \
	  ctest --test-dir build/tsan -j $(JOBS) --output-on-failure --timeout 3600

.PHONY: fuzz
fuzz: setup-build ## the fuzz targets, FUZZ_RUNS inputs each (default 20000)
	$(call configure,fuzz)
	cmake --build build/fuzz -j $(JOBS)
	@tools/run_fuzz.sh build/fuzz/fuzz $(FUZZ_RUNS)

.PHONY: bench
bench: setup build ## workloads paired with the real packages: ours, theirs, ratio
	PYTHONPATH=python $(PY) bench/bench_tables.py

.PHONY: demo
demo: ## real text searched by meaning in tables that real pylance opens
	@tools/setup_debian.sh --index
	@tools/setup_python.sh
	$(call configure,release)
	cmake --build build/release -j $(JOBS) --target _glaive
	PYTHONPATH=python $(PY) examples/demo.py

.PHONY: wheel
wheel: setup-build ## the Python package as a wheel in dist/
	$(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist ./python

.PHONY: format clean
format: ## clang-format every C++ file
	@tools/check_format.sh --fix
clean: ## remove what was built
	rm -rf build dist python/glaive/_glaive*.so
