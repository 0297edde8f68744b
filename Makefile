# Everything a developer does. Needs python3 (3.11 or newer) and a package index, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help run demo test check check-long fmt bench lock pin-images migration

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: $(STAMP) ## API, worker, PostgreSQL and Valkey, from nothing (ARGS="--port 8750")
	$(BIN)/memobook up $(ARGS)

demo: $(STAMP) ## a companion conversation, its memo book and its context (ARGS=--once ends instead of serving)
	$(BIN)/memobook demo $(ARGS)

test: $(STAMP) ## the tests, against real PostgreSQL and Valkey
	$(BIN)/pytest -n $(WORKERS) $(ARGS)

check: $(STAMP) ## what has to pass: ruff, mypy, import contracts, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

# Each run uses a new seed and prints it; MEMOBOOK_SEED repeats a run (tests/oracle/README.md).
check-long: SEED := $(or $(MEMOBOOK_SEED),$(shell date +%s))
check-long: check ## check, then tests/oracle with 1024 examples each and a new seed (20 minutes more)
	@echo "MEMOBOOK_SEED=$(SEED)"
	MEMOBOOK_SEED=$(SEED) MEMOBOOK_EXAMPLES=1024 $(BIN)/pytest -n $(WORKERS) tests/oracle

fmt: $(STAMP) ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure: the tables of bench/RESULTS.md (LOCOMO=FILE adds what memos keep)
	$(BIN)/python -m bench $(ARGS)

lock: $(STAMP) ## renew both lock files from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra embedded --universal --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-dev.lock --constraint requirements.lock

pin-images: ## add the digests of all images to docker-compose.yml and Dockerfile (needs Docker and a registry)
	@$(PYTHON) deploy/pin_images.py

migration: $(STAMP) ## a new migration from the models (NAME=slug)
	$(BIN)/memobook migrate --new "$(NAME)"
