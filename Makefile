# Every target installs what it needs; Python 3.11 or newer is all that is asked.
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
PEERS := .venv-peers
EXTRAS := .venv-extras
DIST := .venv-dist
BIN := $(VENV)/bin
# As many test processes as cores, each with one thread for linear algebra: products
# are small, and threads of several processes would wait for each other.
PYTEST := python -m pytest -n auto
# The processors of most laptops and servers, as OpenBLAS calls them: each adds up in
# another order. And NumPy's own loops that need AVX2 or more, as NumPy 2.4 calls them
# and as it did before.
PROCESSORS := Prescott Sandybridge Haswell
LOOPS := X86_V3 X86_V4 AVX512_ICL AVX2 FMA3 AVX512F AVX512CD AVX512_SKX
# Of the other tests, those of texts and tables, refusals, messages, pickles and limits of
# time do not add up in another order.
NUMERICAL := tests/converged tests/inspection/test_shap_values.py tests/kernel tests/linear_model tests/optim tests/risk tests/testing \
  $(addprefix tests/model_selection/,blend early_stopping portfolio defaults/test_growing_steps.py test_class_weight.py test_quantiles.py \
    test_estimates.py test_fitted_once_leave_one_out.py test_groups.py test_optimism.py test_race.py test_small_training_sets.py test_targets.py) \
  $(addprefix tests/test_,conditioning.py extending.py repeated_rows.py sparse_entries.py warm_start.py)
# Errors of pip alone: --editable has setuptools remark on folders of the same name.
PIP := -m pip install --quiet --quiet

.PHONY: demo quick test test-slow test-all test-processors test-oldest test-extras bench-extras bench-device bench-dask bench-trainers docs links bench bench-peers bench-unseen bench-small bench-regressions bench-seconds bench-boosters bench-ranking bench-claims bench-texts bench-quantiles bench-members bench-sizes studies study-coefficients lint dist clean

demo: $(VENV)/installed-demo  ## models that stop themselves beside a grid and others: tables and a figure
	@$(BIN)/python examples/plot_early_stopping.py --output output

demo quick test test-slow test-all test-processors test-oldest test-extras: export OMP_NUM_THREADS := 1

quick: $(VENV)/installed  ## imports, public names, a fit of every class, the code of README: a minute
	$(BIN)/$(PYTEST) -q -m "not slow" tests/test_imports.py tests/test_public_api.py tests/test_docstrings.py tests/test_docs.py -k "not test_docs.py or README"

test: lint  ## lint, a case of every kind of all tests, doctests
	$(BIN)/$(PYTEST) -m "not slow"
	$(BIN)/$(PYTEST) --doctest-modules skacv

test-slow: $(VENV)/installed  ## more cases of every test, and the slow studies
	$(BIN)/$(PYTEST) -m slow

test-all: test test-slow  ## all cases of every test

test-processors: $(VENV)/installed  ## the numerical tests with the kernels of other processors
	@for processor in $(PROCESSORS); do \
	  echo "OPENBLAS_CORETYPE=$$processor"; \
	  OPENBLAS_CORETYPE=$$processor NPY_DISABLE_CPU_FEATURES="$(LOOPS)" \
	    $(BIN)/$(PYTEST) -q -m "not slow" $(NUMERICAL) || exit 1; \
	done

test-oldest: $(OLDEST)/installed  ## the tests against the oldest supported versions
	$(OLDEST)/bin/$(PYTEST) -m "not slow"

test-extras: $(EXTRAS)/installed  ## tests and doctests of skacv.jax, .torch, .dask, boosters, arrays on a device
	$(EXTRAS)/bin/$(PYTEST) tests/any_optimiser tests/jax tests/torch tests/dask tests/test_public_api.py tests/model_selection/test_tuning.py
	$(EXTRAS)/bin/$(PYTEST) tests/linear_model/test_survival.py tests/staged/boosters tests/staged/test_objectives.py tests/tables tests/model_selection/defaults/test_boosters.py
	$(EXTRAS)/bin/$(PYTEST) tests/test_docs.py tests/test_examples.py -k "jax or torch or lightgbm or optuna or sksurv or frozen_features or skorch or lightning or transformers or keras"
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_docs.py -k scale
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_array_api.py
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/$(PYTEST) tests/test_common.py -k array_api
	$(EXTRAS)/bin/$(PYTEST) --doctest-modules skacv/jax skacv/torch skacv/dask skacv/_any_optimiser

docs: $(VENV)/installed-docs  ## the manual, every example run: docs/_build/html/index.html
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

links: $(VENV)/installed-docs  ## whether the manual's links to other sites answer
	$(BIN)/python -m sphinx -b linkcheck docs docs/_build/links

bench: $(VENV)/installed  ## speed and memory against each opponent, as ratios
	$(BIN)/python -m benchmarks.speed --output benchmarks/results/bench.md

bench-peers: $(PEERS)/installed  ## the same against what others have, where it installs
	$(PEERS)/bin/python -m benchmarks.peers --output benchmarks/results/peers.md

bench-unseen: $(PEERS)/installed  ## the default on tables nobody tuned to: the folder that SKACV_TABLES names
	OMP_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks.unseen --output benchmarks/results/unseen.md

bench-small: $(VENV)/installed  ## the default on an outside benchmark of small tables: hours; SKACV_SMALL names its clone
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.small --output benchmarks/results/small.md

bench-regressions: $(EXTRAS)/installed  ## the default on 56 outside regressions beside tuned peers: hours; SKACV_TABLES as above
	OMP_NUM_THREADS=1 $(EXTRAS)/bin/python -m benchmarks.regressions --output benchmarks/results/regressions.md

bench-seconds: $(PEERS)/installed  ## seconds of the default beside those of all peers: SKACV_TABLES as above
	OMP_NUM_THREADS=1 $(PEERS)/bin/python -m benchmarks.seconds --output benchmarks/results/seconds.md

bench-boosters: $(EXTRAS)/installed  ## own boosters beside their library's cross-validation and a refit
	OMP_NUM_THREADS=1 $(EXTRAS)/bin/python -m benchmarks.boosters --output benchmarks/results/boosters.md

bench-ranking: $(EXTRAS)/installed  ## stopped rankers beside those of a held-out part of the queries: CLONES=FOLDER
	OMP_NUM_THREADS=1 $(EXTRAS)/bin/python -m benchmarks.ranking --clones $(CLONES) --output benchmarks/results/ranking.md

bench-claims: $(EXTRAS)/installed  ## claim frequencies beside generalised linear models and boosters: CLONES=FOLDER
	$(EXTRAS)/bin/python $(PIP) rdata
	OMP_NUM_THREADS=1 $(EXTRAS)/bin/python -m benchmarks.claims --clones $(CLONES) --output benchmarks/results/claims.md

bench-texts: $(VENV)/installed  ## tables with a column of texts: the default with and without it: CLONES=FOLDER
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.texts --clones $(CLONES) --output benchmarks/results/texts.md

bench-quantiles: $(VENV)/installed  ## quantiles beside a grid search at every level: SKACV_TABLES as above
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.quantiles --output benchmarks/results/quantiles.md

bench-members: $(VENV)/installed  ## the default beside a blend with a Gaussian process and an SVM: SKACV_TABLES as above
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.members --output benchmarks/results/members.md

bench-sizes: $(PEERS)/installed  ## the default beside boosters, 500 rows to a million: hours; SKACV_TABLES as above
	$(PEERS)/bin/python -m benchmarks.sizes --output benchmarks/results/sizes.md

bench-extras: $(EXTRAS)/installed  ## runs of any optimiser against refits
	$(EXTRAS)/bin/python -m benchmarks.any_optimiser --output benchmarks/results/any_optimiser.md

bench-trainers: $(EXTRAS)/installed  ## folds beside Lightning's trainer against trainers in turn
	OMP_NUM_THREADS=1 $(EXTRAS)/bin/python -m benchmarks.trainers --output benchmarks/results/trainers.md

bench-dask: $(EXTRAS)/installed  ## fits of rows on workers beside those in memory
	$(EXTRAS)/bin/python -m benchmarks.dask_rounds --output benchmarks/results/dask.md

bench-device: $(EXTRAS)/installed  ## seconds with X on a device beside NumPy
	SCIPY_ARRAY_API=1 $(EXTRAS)/bin/python -m benchmarks.device --output benchmarks/results/device.md

studies: $(VENV)/installed  ## accuracy over repeats, written to benchmarks/results
	$(BIN)/python -m benchmarks.studies --output benchmarks/results/studies.md

study-coefficients: $(VENV)/installed  ## whether intervals of coefficients cover, column by column
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.studies coefficients --output benchmarks/results/studies.md

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy  # the packages that pyproject.toml names

# A bare environment builds; another one has the wheel alone, then pytest for the sdist.
dist:  ## sdist and wheel in dist/, both tried from outside the repository
	rm -rf dist
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python $(PIP) build cffconvert
	$(DIST)/bin/cffconvert --validate
	$(DIST)/bin/python -m build
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python $(PIP) dist/*.whl
	cd / && $(CURDIR)/$(DIST)/bin/python -I -W error $(CURDIR)/tests/try_wheel.py $(CURDIR)/dist/*.whl
	$(DIST)/bin/python $(PIP) pytest
	mkdir $(DIST)/sdist
	tar -x --strip-components=1 -C $(DIST)/sdist -f dist/*.tar.gz
	cd $(DIST)/sdist && ../bin/python -m pytest -q tests/test_packaging.py tests/test_common.py -k "packaging or Lasso"

# What the demo needs comes first, so that it need not wait for the rest.
$(VENV)/installed-demo: pyproject.toml
	@echo "Installing skacv into $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --upgrade pip
	@$(BIN)/python $(PIP) --editable ".[demo]"
	@touch $@

$(VENV)/installed: $(VENV)/installed-demo
	@echo "Installing what the tests need"
	@$(BIN)/python $(PIP) --editable ".[dev]"
	@touch $@

# The reference has skacv.jax and skacv.torch; of torch see below.
$(VENV)/installed-docs: $(VENV)/installed tests/extras.txt
	$(BIN)/python $(PIP) --constraint tests/extras.txt torch
	$(BIN)/python $(PIP) --constraint tests/extras.txt --editable ".[docs,jax,torch]" skorch lightning transformers accelerate keras
	touch $@

$(OLDEST)/installed: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) --upgrade pip
	$(OLDEST)/bin/python $(PIP) --constraint tests/oldest.txt --editable ".[test]"
	touch $@

# The pinned torch first: of others pip may fetch a build for GPUs. And xgboost-cpu: with
# xgboost come hundreds of megabytes for them.
$(EXTRAS)/installed: pyproject.toml tests/extras.txt
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python $(PIP) --upgrade pip
	$(EXTRAS)/bin/python $(PIP) --constraint tests/extras.txt torch
	$(EXTRAS)/bin/python $(PIP) --constraint tests/extras.txt --editable ".[test,jax,torch,dask]" xgboost-cpu lightgbm catboost scikit-survival imbalanced-learn skorch lightning transformers accelerate keras optuna
	touch $@

# All at once, so that their requirements are met together; else one by one, those that do.
$(PEERS)/installed: pyproject.toml benchmarks/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP) --upgrade pip
	$(PEERS)/bin/python $(PIP) --editable ".[test]" -r benchmarks/peers.txt || \
	  { $(PEERS)/bin/python $(PIP) --editable ".[test]"; \
	    grep -v "^#" benchmarks/peers.txt | xargs -n 1 $(PEERS)/bin/python $(PIP) || true; }
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(PEERS) $(EXTRAS) $(DIST) dist docs/_build docs/generated docs/examples output build *.egg-info
