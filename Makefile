# Every target installs what it needs; Python 3.11 or newer is all that is asked.
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin

.PHONY: demo test test-all test-oldest bench studies lint clean

demo: $(VENV)/installed  ## a self-stopped model on real data: a table and a figure
	$(BIN)/python examples/plot_early_stopping.py --output output

test: lint  ## lint, all tests but the slow studies, doctests
	$(BIN)/python -m pytest -m "not slow"
	$(BIN)/python -m pytest --doctest-modules skacv

test-all: lint  ## the slow studies too
	$(BIN)/python -m pytest
	$(BIN)/python -m pytest --doctest-modules skacv

test-oldest: $(OLDEST)/installed  ## the tests against the oldest supported versions
	$(OLDEST)/bin/python -m pytest -m "not slow"

bench: $(VENV)/installed  ## speed and memory against each opponent, as ratios
	$(BIN)/python -m benchmarks

studies: $(VENV)/installed  ## accuracy over repeats, written to benchmarks/results
	$(BIN)/python -m benchmarks.studies

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(OLDEST)/installed: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) output build *.egg-info
