# Two commands do everything on a fresh machine with Python 3.11, make, git and gcc:
#   make demo   and   make test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --no-compile --disable-pip-version-check
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
CPP := $(wildcard $(foreach room,core learn/engines learn/sample,$(addprefix src/islab/$(room)/native/*.,h cpp)))

# Tests compare with laplace-torch. It asks for torchvision, which it does not need and which must
# not be of another build than torch: hence without its dependencies, and those it needs by name.
ORACLE := laplace-torch asdfghjkl backpack-for-pytorch curvlinops-for-pytorch einconv einops \
  linear_operator opt_einsum torchmetrics lightning-utilities unfoldNd

.PHONY: setup demo test test-slow test-floors test-newest test-optional fuzz lint format bench reproduce docs notebooks wheel package \
  release sanitized sanitize clean

setup: $(DEVELOPED)

# What a user needs: the package with its compiled modules. Pictures of matplotlib come with setup.
$(INSTALLED): pyproject.toml setup.py constraints.txt $(CPP)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	ISLAB_REQUIRE_KERNEL=1 $(BIN)/python $(PIP) -c constraints.txt -e .
	touch $@

# What tests, lint, pages and benchmarks need besides.
$(DEVELOPED): $(INSTALLED)
	$(BIN)/python $(PIP) -c constraints.txt torch==2.13.0
	ISLAB_REQUIRE_KERNEL=1 $(BIN)/python $(PIP) -c constraints.txt -e '.[dev,docs]'
	$(BIN)/python $(PIP) -c constraints.txt --no-deps $(ORACLE)
	touch $@

demo: $(INSTALLED)
	$(BIN)/islab demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow -n 2

# The run-time dependencies at the lowest versions that pyproject.toml names, and at the newest there
# are. Without torch: files of tests that need it are left out, which the first lines say. Old
# releases warn of what newer ones of their own dependencies deprecate.
ROOMS := $(addprefix tests/,core estimators io tables cli explain evaluate report plots export)
TESTERS := pytest pytest-xdist hypothesis

test-floors: constraints-floors.txt
	$(PYTHON) -m venv --clear build/floors
	ISLAB_REQUIRE_KERNEL=1 build/floors/bin/python $(PIP) -c constraints-floors.txt '.[plots]' $(TESTERS)
	OMP_NUM_THREADS=1 build/floors/bin/python -m pytest -n 2 -W ignore::DeprecationWarning $(ROOMS)

test-newest:
	$(PYTHON) -m venv --clear build/newest
	ISLAB_REQUIRE_KERNEL=1 build/newest/bin/python $(PIP) --upgrade '.[plots]' $(TESTERS)
	OMP_NUM_THREADS=1 build/newest/bin/python -m pytest -n 2 $(ROOMS)

# Fits, restarts and comparisons on Ray and Spark, which needs Java.
test-optional:
	$(PYTHON) -m venv --clear build/optional
	ISLAB_REQUIRE_KERNEL=1 build/optional/bin/python $(PIP) . $(TESTERS) ray==2.60.0 pyspark==4.3.0 \
	  joblibspark==0.6.0 pyarrow==26.0.1
	OMP_NUM_THREADS=1 build/optional/bin/python -m pytest tests/optional

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/oxlint --quiet src/islab/report
	$(BIN)/clang-format --dry-run --Werror $(CPP)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.steps
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.shrinking
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.chains
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.fits
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.native_limit
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.images
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.predictions
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.startup
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.many_rows cost
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.wide fit --sizes 42x6830
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.beyond_memory
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.benchmarks.growth --picture docs/images/growth.svg

# make reproduce NAME=wbc ARGS='--method islab --seeds 3'
NAME ?= wbc
RESULTS ?= results
JOBS ?= 1

reproduce: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.paper $(NAME) --jobs $(JOBS) --results $(RESULTS) $(ARGS)

docs: setup
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict --quiet

# The notebooks, run by the kernel that people run them with.
notebooks: $(INSTALLED)
	ISLAB_REQUIRE_KERNEL=1 $(BIN)/python $(PIP) -c constraints.txt -e '.[plots]' nbclient ipykernel
	OMP_NUM_THREADS=1 $(BIN)/python docs/make_notebooks.py --run

wheel: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# sdist and, from it, the wheel; both checked, and the wheel tried where no compiler can be found.
package:
	rm -rf dist && $(PYTHON) -m venv --clear build/package
	build/package/bin/python $(PIP) build twine
	ISLAB_REQUIRE_KERNEL=1 build/package/bin/python -m build
	build/package/bin/twine check --strict dist/*
	$(PYTHON) -m venv --clear build/empty
	CC=false CXX=false build/empty/bin/python $(PIP) dist/*.whl
	cd build/empty && bin/islab demo

# make release VERSION=0.2.0
release:
	$(PYTHON) release.py $(VERSION)

# The compiled modules under AddressSanitizer and UBSan, built apart from the installed one.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1
LIBRARY = $(shell gcc -print-file-name=$(1))

UNDER_SANITIZERS = \
	LD_PRELOAD="$(call LIBRARY,libasan.so) $(call LIBRARY,libubsan.so) $(call LIBRARY,libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
	PYTHONPATH=build/sanitize/lib:. OMP_NUM_THREADS=1 $(BIN)/python

sanitized: setup
	ISLAB_REQUIRE_KERNEL=1 CFLAGS="$(SANITIZE)" CXXFLAGS="$(SANITIZE)" LDFLAGS="-fsanitize=address,undefined" \
	  $(BIN)/python setup.py -q build --build-base build/sanitize --build-lib build/sanitize/lib

sanitize: sanitized
	$(UNDER_SANITIZERS) -m pytest -q -x -s -p no:cacheprovider \
	  tests/learn/engines/test_native*.py tests/core/test_drawn.py tests/core/test_mixtures.py

# Random damage and random accidents at full length; the last table counts all of it. A section that a
# sanitizer ends is missing there, which is a failure.
OUTCOMES := build/fuzz.jsonl

fuzz: sanitized
	rm -f $(OUTCOMES)
	-$(UNDER_SANITIZERS) -m tests.fuzz chains --jobs 1 --outcomes $(OUTCOMES)
	-$(UNDER_SANITIZERS) -m tests.fuzz kernel --jobs 1 --outcomes $(OUTCOMES)
	-$(UNDER_SANITIZERS) -m tests.fuzz networks --jobs 1 --outcomes $(OUTCOMES)
	-OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz files kills interrupts --outcomes $(OUTCOMES)
	@$(BIN)/python -m tests.fuzz --table $(OUTCOMES)

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
