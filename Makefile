# Two commands: `make run` shows the point, `make test` checks everything. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
CHECKS := $(VENV)/.checks

.PHONY: run test test-cluster test-golden chaos lint bench bench-elastic clean

run: $(RUNS)
	$(BIN)/muster demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# The same end-to-end tests against a real cluster: MUSTER_TEST_KUBECONFIG=FILE make test-cluster
test-cluster: $(CHECKS)
	test -n "$$MUSTER_TEST_KUBECONFIG" || { echo "set MUSTER_TEST_KUBECONFIG to the cluster's kubeconfig"; exit 2; }
	$(BIN)/python -m pytest tests/cluster

# Every comparison with published results, the long ones too. Needs the traces: see tests/sim/traces.py.
test-golden: $(CHECKS)
	$(BIN)/python -m pytest -n 2 -m 'slow or not slow' tests/sim/test_golden.py

# Processes killed again and again: too long for every day.
chaos: $(CHECKS)
	$(BIN)/python -m pytest -m chaos
	MUSTER_KILLS=50 $(BIN)/python -m pytest tests/control/test_killed.py

lint: $(CHECKS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(CHECKS)
	$(BIN)/python -m bench $(ONLY)

bench-elastic: $(CHECKS)
	$(BIN)/python -m bench.elastic

# What it takes to run the scheduler; the checks need torch besides, and the tools.
$(RUNS): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[scheduler]'
	touch $@

$(CHECKS): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[scheduler,elastic,test]'
	touch $@ $(RUNS)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build out
