# Needs Python 3.11 or newer, make and git. Everything else is put into .venv-* directories here; `make clean` removes them.
SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# where a machine sets it, every start of a command compiles all it imports: that is most of the time that tests take
unexport PYTHONDONTWRITEBYTECODE

BIN     := .venv/bin
READY   := .venv/.ready
CHECKED := $(wildcard src tests benchmarks)
WORKERS ?= 3
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help setup system agents llama clients demo test slow check format catalogue nightly pythons crash bench docs lock clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | awk -F '\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: $(READY) ## make .venv from uv.lock

system: ## system packages that tests use: installed by root on a Debian-like machine, else named
	@tools/system-packages

agents: ## the real agent CLIs that some tests drive, into .agents (1.2 GB)
	tools/agents

llama: ## a real llama-server with a tiny model, into .llama; from Debian's unstable packages
	tools/llama

clients: ## real MCP clients that some tests drive, into .mcp-clients
	tools/mcp-clients

demo: $(READY) ## see it work: killed half way, nothing done twice
	$(BIN)/bailiwick demo

test: system $(READY) ## all tests but those of `make slow`, `make nightly` and `make check`
	$(PYTEST) -m "not nightly and not slow" --ignore tests/architecture tests

slow: system $(READY) ## whole stories with gates, real projects and kills, which take many seconds each
	$(PYTEST) -m "slow and not nightly" tests

check: $(READY) ## style, format, types, import contracts, sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/lint-imports --no-logo
	$(PYTEST) -q tests/architecture

format: $(READY) ## bring the code into the one format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

catalogue: system $(READY) ## every cheat and every honest change that we know, through the real gate
	$(PYTEST) -q -k "a_cheat_is_not_green or an_honest_change_is_not_refused or the_honest_product" tests/security/test_cheats.py tests/security/test_honest.py

nightly: system $(READY) ## the tests that take minutes, the rest with more examples, every crash point, all Pythons
	$(PYTEST) --hypothesis-profile nightly -m nightly tests
	$(PYTEST) --hypothesis-profile nightly -m "not nightly" tests
	$(MAKE) --no-print-directory crash pythons

pythons: system $(READY) ## all tests of `make test` on Python 3.12 and 3.13, where they are
	@for version in 3.12 3.13; do \
	  python=$$(tools/find-python $$version) || { echo "NOT TESTED: there is no Python $$version here"; continue; }; \
	  tools/environment .venv-$$version --python $$python && .venv-$$version/bin/python -m pytest -n $(WORKERS) \
	    --dist worksteal -q -m "not nightly and not slow" --ignore tests/architecture tests || exit 1; \
	done

crash: system $(READY) ## kill the process at every point there is
	$(PYTEST) --all-points tests/crash

bench: .venv-bench/.ready ## figures side by side with other engines
	.venv-bench/bin/python -m benchmarks.run $(BENCH)

docs: $(READY) ## write the generated pages of docs/
	$(BIN)/python docs/generate.py

lock: $(READY) ## bring uv.lock up to date with pyproject.toml
	.venv-tools/bin/uv lock

clean: ## remove environments, caches and builds
	rm -rf .venv .venv-* dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests tools docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): uv.lock pyproject.toml tools/environment tools/find-python
	tools/environment .venv
	@touch $@

.venv-bench/.ready: uv.lock pyproject.toml tools/environment tools/find-python
	tools/environment .venv-bench --no-default-groups --group bench
	@touch $@
