# Needs Python 3.11 or newer and make. Everything else is installed into .venv on first use, and
# again whenever pyproject.toml changes.

PYTHON ?= python3
VENV ?= .venv
DEMO_ARGS ?=
BENCH_ARGS ?=
PYTEST_ARGS ?=

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test chaos bench lint types check format build install clean

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'Variables: PYTHON ($(PYTHON)), VENV ($(VENV)), DEMO_ARGS, BENCH_ARGS, PYTEST_ARGS'

demo: $(VENV)/.installed ## Run a shop, kill its process in the middle, watch it recover
	@$(BIN)/python -m activities.demo $(DEMO_ARGS)

test: $(VENV)/.installed-dev ## Run all tests on the services that this machine has
	$(BIN)/python -m pytest $(PYTEST_ARGS)

chaos: $(VENV)/.installed-dev ## Kill workers and restart servers under 500 workflows, at full size
	CHAOS_FULL=1 $(BIN)/python -m pytest tests/chaos $(PYTEST_ARGS)

bench: $(VENV)/.installed-dev ## Measure steps beside a bare Celery chain, on servers of its own
	$(BIN)/python -m benchmarks.steps $(BENCH_ARGS)

lint: $(VENV)/.installed-dev ## Check style, architecture and dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry .

types: $(VENV)/.installed-dev ## Check the types, also as users of the library see them
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

check: lint types test ## All of the above: what a change must pass

format: $(VENV)/.installed-dev ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: $(VENV)/.installed-dev ## Build the wheel and the source archive into dist/
	$(BIN)/python -m build --quiet

install: $(VENV)/.installed-dev ## Make the environment for development

clean: ## Remove the environment and everything that was made
	rm -rf $(VENV) build dist .demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo '$(PYTHON) is older than Python 3.11; choose another: make PYTHON=python3.12 …' >&2; exit 1; }
	@echo 'Making $(VENV) …' >&2
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo 'python -m venv failed (Debian: apt install python3-venv)' >&2; exit 1; }

# The demo needs the library alone: a newcomer waits for no linter.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo 'Installing the library into $(VENV) …' >&2
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo 'Installing the library and the tools of its developers into $(VENV) …' >&2
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/.installed
