# Everything a developer does. Needs python3 (3.11 or newer) and a package index, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2

# Keep compiled modules: the tests start the service and its commands many times, and compiling takes 2 s each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo test types check check-long check-upgrade soak fmt bench lock pin-images migration

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv installs the packages in a fraction of pip's time. It does not read pip's configuration, so where that names the
# package index, pip installs them.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || $(PIP) $(1)

$(STAMP): requirements-dev.lock requirements-local-embeddings.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/# via/p' requirements-dev.lock > $(VENV)/uv.lock
	$(PIP) --require-hashes -r $(VENV)/uv.lock
	$(call install,--require-hashes -r requirements-dev.lock)
	$(call install,--require-hashes --no-deps -r requirements-local-embeddings.lock)
	$(call install,--no-deps --no-build-isolation --editable .)
	@touch $@

run: $(STAMP) ## API, worker, PostgreSQL and Valkey, from nothing (ARGS="--port 8750")
	$(BIN)/memobook up $(ARGS)

demo: $(STAMP) ## a companion conversation, its memo book and its context (ARGS=--once ends instead of serving)
	$(BIN)/memobook demo $(ARGS)

# Memory in large pages: where a virtual machine has to be given each page by its host, the tests need half of the time.
test types check-long: export PYTHONMALLOC := malloc
test types check-long: export GLIBC_TUNABLES := glibc.malloc.hugetlb=1

# The tests of a file run in one process, so that its fixtures are made once. tests/run_order.py orders the files.
TOGETHER := --dist loadfile --no-loadscope-reorder

test: $(STAMP) ## the tests, against real PostgreSQL and Valkey
	$(BIN)/pytest -n $(WORKERS) $(TOGETHER) $(ARGS)

types: $(STAMP) ## mypy
	$(BIN)/mypy

# The minutes after which check begins no test that tests/run_order.py may leave out. Two usual cores end long before.
CHECK_MINUTES ?= 40

# mypy uses one core for minutes, so the tests begin beside it.
check: export TESTS_UNTIL = $(if $(CHECK_MINUTES),$(shell expr $$(date +%s) + 60 \* $(CHECK_MINUTES)),inf)
check: $(STAMP) ## what has to pass: ruff, mypy, import contracts, tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(MAKE) -j 2 types test

# Each run uses a new seed and prints it; TESTS_SEED repeats a run (tests/oracle/README.md). check alone has none.
check-long: override CHECK_MINUTES :=
check-long: SEED := $(or $(TESTS_SEED),$(shell date +%s))
check-long: export TESTS_SEED := $(SEED)
check-long: check ## check with new examples, tests/oracle with 1024 examples each and a new seed, the soak, and the OpenAPI document (an hour or more, on an idle machine)
	@echo "TESTS_SEED=$(SEED)"
	TESTS_EXAMPLES=1024 $(BIN)/pytest -n $(WORKERS) $(LONGER)
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES) --seed $(SEED)
	$(BIN)/pytest tests/conformance/operations.py

# The tests that try more in check-long.
LONGER := tests/oracle tests/api/test_bad_input.py tests/api/test_etags.py tests/facts/test_plans.py \
	tests/blocks/test_plans.py tests/knowledge/test_plans.py tests/chats/test_rename_sessions.py \
	tests/scenes/test_changing_story.py tests/local/test_conversion.py tests/vault/test_damaged_values.py \
	tests/house/test_linear_parsing.py

# The minutes of the soak in check-long.
SOAK_MINUTES ?= 5
MINUTES ?= 30

soak: $(STAMP) ## inject faults into the running service, and check what it promises after each (MINUTES=30, SEED=number)
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

check-upgrade: $(STAMP) ## the release of tests/upgrade/FORMER_RELEASE beside this one, on the new schema (1 minute)
	$(BIN)/pytest -p no:xdist tests/upgrade/check_former_release.py

fmt: $(STAMP) ## put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure: the tables of bench/RESULTS.md (LOCOMO=FILE adds what memos keep)
	$(BIN)/python -m bench $(ARGS)

lock: $(STAMP) ## renew the lock files from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra embedded --universal --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra embedded --extra dev --universal --generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements-dev.lock --constraint requirements.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["local-embeddings"])' \
		| $(BIN)/uv pip compile - --no-deps --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements-local-embeddings.lock

pin-images: ## add the digests of all images to docker-compose.yml and Dockerfile (needs Docker and a registry)
	@$(PYTHON) deploy/pin_images.py

migration: $(STAMP) ## a new migration from the models (NAME=slug)
	$(BIN)/memobook migrate --new "$(NAME)"
