# Every target installs what it needs; Python 3.11 or newer is all that is asked.
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
PEERS := .venv-peers
EXTRAS := .venv-extras
DIST := .venv-dist
BIN := $(VENV)/bin
# As many test processes as cores, each with one thread for linear algebra.
PYTEST := python -m pytest -n auto

.PHONY: demo test test-all test-oldest test-extras bench-extras bench-device bench-dask docs links bench bench-peers studies lint dist clean

demo: $(VENV)/installed  ## a self-stopped model on real data: a table and a figure
	$(BIN)/python examples/plot_early_stopping.py --output output

test test-all test-oldest test-extras: export OMP_NUM_THREADS := 1

test: lint  ## lint, all tests but the slow studies, doctests
	$(BIN)/$(PYTEST) -m "not slow"
	$(BIN)/$(PYTEST) --doctest-modules skacv

test-all: lint  ## the slow studies too
	$(BIN)/$(PYTEST)
	$(BIN)/$(PYTEST) --doctest-modules skacv

test-oldest: $(OLDEST)/installed  ## the tests against the oldest supported versions
	$(OLDEST)/bin/$(PYTEST) -m "not slow"

test-extras: $(EXTRAS)/installed  ## tests and doctests of skacv.jax, .torch, .dask, of arrays on a device
	$(EXTRAS)/bin/$(PYTEST) tests/jax tests/torch tests/dask tests/test_public_api.py
	$(EXTRAS)/bin/$(PYTEST) tests/test_docs.py tests/test_examples.py -k "jax or torch or frozen_features"
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_docs.py -k arrays
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_array_api.py
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_common.py -k array_api
	$(EXTRAS)/bin/$(PYTEST) tests/test_docs.py -k workers
	$(EXTRAS)/bin/$(PYTEST) --doctest-modules skacv/jax skacv/torch skacv/dask skacv/_any_optimiser

docs: $(VENV)/installed-docs  ## the manual, every example run: docs/_build/html/index.html
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

links: $(VENV)/installed-docs  ## whether the manual's links to other sites answer
	$(BIN)/python -m sphinx -b linkcheck docs docs/_build/links

bench: $(VENV)/installed  ## speed and memory against each opponent, as ratios
	$(BIN)/python -m benchmarks --output benchmarks/results/bench.md
	$(BIN)/python -m benchmarks.comparison

bench-peers: $(PEERS)/installed  ## the same against what others have, where it installs
	$(PEERS)/bin/python -m benchmarks.peers --output benchmarks/results/peers.md
	$(PEERS)/bin/python -m benchmarks.comparison

bench-extras: $(EXTRAS)/installed  ## runs of any optimiser against refits
	$(EXTRAS)/bin/python -m benchmarks.any_optimiser --output benchmarks/results/any_optimiser.md

bench-dask: $(EXTRAS)/installed  ## fits of rows on workers beside those in memory
	$(EXTRAS)/bin/python -m benchmarks.dask_rounds --output benchmarks/results/dask.md

bench-device: $(EXTRAS)/installed  ## seconds with X on a device beside NumPy
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/python -m benchmarks.device --output benchmarks/results/device.md

studies: $(VENV)/installed  ## accuracy over repeats, written to benchmarks/results
	$(BIN)/python -m benchmarks.studies --output benchmarks/results/studies.md

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# A bare environment builds; another one has the wheel alone.
dist:  ## sdist and wheel in dist/, and the wheel tried from outside the repository
	rm -rf dist
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python -m pip install --quiet build
	$(DIST)/bin/python -m build
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python -m pip install --quiet dist/*.whl
	cd / && $(CURDIR)/$(DIST)/bin/python -I $(CURDIR)/tests/try_wheel.py $(CURDIR)/dist/*.whl

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# The reference has skacv.jax and skacv.torch; of torch see below.
$(VENV)/installed-docs: $(VENV)/installed tests/extras.txt
	$(BIN)/python -m pip install --quiet --constraint tests/extras.txt torch
	$(BIN)/python -m pip install --quiet --constraint tests/extras.txt --editable ".[docs,jax,torch]"
	touch $@

$(OLDEST)/installed: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test]"
	touch $@

# The pinned torch first: of others pip may fetch a build for GPUs.
$(EXTRAS)/installed: pyproject.toml tests/extras.txt
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install --quiet --upgrade pip
	$(EXTRAS)/bin/python -m pip install --quiet --constraint tests/extras.txt torch
	$(EXTRAS)/bin/python -m pip install --quiet --constraint tests/extras.txt --editable ".[test,jax,torch,dask]"
	touch $@

# All at once, so that their requirements are met together; else one by one, those that do.
$(PEERS)/installed: pyproject.toml benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade pip
	$(PEERS)/bin/python -m pip install --quiet --editable ".[test]" -r benchmarks/peers.txt || \
	  { $(PEERS)/bin/python -m pip install --quiet --editable ".[test]"; \
	    grep -v "^#" benchmarks/peers.txt | xargs -n 1 $(PEERS)/bin/python -m pip install --quiet || true; }
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(PEERS) $(EXTRAS) $(DIST) dist docs/_build docs/generated docs/examples output build *.egg-info
