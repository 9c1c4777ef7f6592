# Everything that one does here; `make help` lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO   := $(VENV)/.demo
PYTEST := $(BIN)/python -m pytest
# Twice quiet: of pip, only errors are worth a newcomer's eye.
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test quick lint format type bench test-newest clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evalkit needs Python >= 3.11, and $(PYTHON) is none; name one: make PYTHON=python3.12 ..." >&2; exit 3; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make $(VENV); on Debian and Ubuntu: apt install python3-venv" >&2; exit 3; }

$(DEMO): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing evalkit and what its reports need into $(VENV): once, a minute or two" >&2
	@$(INSTALL) -e '.[examples,report]'
	@touch $@

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing evalkit and what its development needs into $(VENV): once, a few minutes" >&2
	@$(INSTALL) -e '.[dev]'
	@touch $@ $(DEMO)

install: $(STAMP) ## make .venv with everything that development needs

demo: $(DEMO) ## run the travel agent and its planted mistakes, render their report
	@$(BIN)/evalkit demo

test: $(STAMP) lint type ## everything: lint, types, all tests, benchmarks at CI size
	$(PYTEST) -n $(WORKERS) -m 'not benchmark' --durations=10
	$(PYTEST) -m benchmark -p no:xdist --reruns 3 --reruns-delay 10

quick: $(STAMP) ## the tests of daily work, in about a minute
	$(PYTEST) -n $(WORKERS) -q -m 'not (benchmark or browser or notebook or install or public)'

lint: $(STAMP) ## ruff, check and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(STAMP) ## mypy, strict
	$(BIN)/mypy

test-newest: | $(VENV)/bin/python ## the wire formats against the newest SDKs, in an environment of their own
	$(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python -m pip install -qq --disable-pip-version-check --upgrade -e '.[dev]'
	.venv-newest/bin/python -m pytest -n $(WORKERS) tests/gateway tests/contract

bench: $(STAMP) ## every benchmark at full size (long)
	@for script in tests/benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script --full; done

clean: ## remove what is built; runs and reports stay
	rm -rf $(VENV) .peer dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
