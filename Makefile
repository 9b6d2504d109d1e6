# Everything a developer needs. `make demo` works on a machine that has only Python 3.11 to 3.13, make and a shell.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
# The newest interpreter that is supported and starts; override with PYTHON=...
PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3 python,$(if $(shell $(name) -c 'import sys; print((3, 11) <= sys.version_info[:2] <= (3, 13) or "")' 2>/dev/null),$(name))))
# UV= forces pip.
UV ?= $(shell uv --version >/dev/null 2>&1 && echo uv)
AIMOCK := .tools/node_modules/@copilotkit/aimock/dist/cli.js
AXE := .tools/node_modules/axe-core/axe.min.js
LLMOCK := .tools/llmock/bin/llmock
DEMO := demo
# Tests in this many processes, each with a Ray of its own; many wait more than they work.
JOBS ?= 3
FUZZ_INPUTS ?= 100000
RECORDED_TESTS := $(wildcard tests/actors/test_*recorded*.py) tests/actors/test_dialects_wire.py tests/actors/test_paused.py

# A local Ray must not probe or report anything; the driver sets the same for itself.
export RAY_USAGE_STATS_ENABLED := 0
export RAY_USAGE_STATS_REPORT_URL := http://127.0.0.1:9/
export RAY_ENABLE_UV_RUN_RUNTIME_ENV := 0
export NO_UPDATE_NOTIFIER := 1

.PHONY: help setup tools demo fuzz bench-verify test test-full test-wire wire-tools test-pythons replay real-model bench bench-scale lint format dist clean

help:
	@echo 'make demo            play the simulated sweep, sign, verify, audit and build a site (sets up first)'
	@echo 'make setup           a virtual environment in $(VENV) with everything pinned'
	@echo 'make test            the tests; make test-full adds the long ones; make lint the checks'
	@echo 'make test-wire       the providers against servers, packages and a model by others, which it installs (about 250 MB)'
	@echo 'make replay DATA=DIR play recorded games again and compare'
	@echo 'make real-model      play with a small language model on this machine (installs about 130 MB)'
	@echo 'make fuzz            100,000 spoilt attestations, trust files, catalogs and Arrow files against the verifier'
	@echo 'make bench-verify    verifying a run of 1,000,000 turns, beside hashing and reading it raw'
	@echo 'make bench | bench-scale | format | dist | tools | test-pythons | clean'

# ---- setup

setup: $(VENV)/.ready

$(VENV)/.ready: constraints.txt pyproject.toml publisher/pyproject.toml
	@if [ -z '$(PYTHON)' ]; then echo 'setup: no Python 3.11 to 3.13 found; install one, or say PYTHON=/path/to/python' >&2; exit 2; fi
ifneq ($(UV),)
	@[ -x $(BIN)/python ] || $(UV) venv -q --no-python-downloads --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	$(UV) pip install -q --python $(BIN)/python --require-hashes -r constraints.txt
	$(UV) pip install -q --python $(BIN)/python --offline --no-deps --no-build-isolation -e . -e ./publisher
else
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip -q
	$(BIN)/python -m pip install -q --require-hashes -r constraints.txt
	$(BIN)/python -m pip install -q --no-index --no-deps --no-build-isolation -e . -e ./publisher
endif
	@touch $@

# Servers and pages that the tests use; tests that miss them are skipped and say so.
tools: $(AIMOCK) $(LLMOCK) $(AXE)

$(AIMOCK):
	npm install --silent --no-audit --no-fund --prefix .tools @copilotkit/aimock@1.43.0

$(AXE):
	npm install --silent --no-audit --no-fund --prefix .tools axe-core@4.14.1 html-validate@10.17.0

# In an environment of its own: its requirements are none of ours.
$(LLMOCK): | $(VENV)/.ready
	$(BIN)/python -m venv --without-pip --clear .tools/llmock
	if [ -n '$(UV)' ]; then $(UV) pip install -q --python .tools/llmock/bin/python llmock==0.2.2; \
	else $(BIN)/python -m pip --python .tools/llmock/bin/python install -q llmock==0.2.2; fi

# ---- play

demo: setup
	@rm -rf $(DEMO)
	$(BIN)/deep20ray run --out $(DEMO)/sweep
	$(BIN)/deep20ray keys new demo --dir $(DEMO)/keys --throwaway
	@for run in $(DEMO)/sweep/runs/*/; do \
	  $(BIN)/deep20ray sign "$$run" --key $(DEMO)/keys/demo.key >/dev/null; \
	  $(BIN)/deep20ray verify "$$run" --trust $(DEMO)/keys/demo.pub; \
	  $(BIN)/deep20ray audit "$$run" --trust $(DEMO)/keys/demo.pub --private "$(DEMO)/sweep/private/$$(basename "$$run")" >/dev/null; \
	done
	$(BIN)/deep20ray-publisher build $(DEMO)/sweep/runs --trust $(DEMO)/keys/demo.pub --preview --out $(DEMO)/site
	@echo 'demo: verified and audited; open $(DEMO)/site/index.html'

# Spoilt attestations, trust files, catalogs and Arrow files; several minutes, in a process with little memory.
fuzz: setup
	$(BIN)/python -m tests.artifacts.fuzz --inputs $(FUZZ_INPUTS)

replay: setup
	@if [ -z '$(DATA)' ]; then echo 'replay: say which recordings, DATA=DIR' >&2; exit 2; fi
	$(BIN)/python -m tests.replay '$(DATA)'

real-model: setup
	$(BIN)/python tests/real_model/play.py

bench-site: setup
	$(BIN)/python -m benchmarks.site

bench: setup
	$(BIN)/python -m benchmarks.overhead --trials 100 --questions 10
	$(BIN)/python -m benchmarks.overhead --trials 60 --questions 20 --latency 0
	$(BIN)/python -m benchmarks.gates
	$(BIN)/python -m benchmarks.gates --rate 500 --ways told unknown

# Memory and cost against the number of trials; SIZES="10 100 1000 10000" takes longer.
SIZES ?= 10 100 1000
bench-scale: setup
	$(BIN)/python -m benchmarks.scale --sizes $(SIZES) --wide 1000

bench-verify: setup
	$(BIN)/python -m benchmarks.verify

# ---- check

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

test: setup
	$(BIN)/pytest -n $(JOBS) --dist worksteal

test-full: setup tools
	$(BIN)/pytest -m 'not full' -n $(JOBS) --dist worksteal
	$(BIN)/pytest -m full
	$(MAKE) test-pythons

# Everything that talks to servers by others, or replays what real ones said; -ra says what was skipped, and why.
test-wire: setup wire-tools
	$(BIN)/pytest -m 'full or not full' tests/wire $(RECORDED_TESTS)

# Each where it can be had; a test that misses its own is skipped.
wire-tools: setup
	@$(MAKE) --no-print-directory $(LLMOCK) || echo 'test-wire: llmock could not be installed; its tests are skipped' >&2
	@if ! command -v npm >/dev/null; then echo 'test-wire: no npm, so no aimock; its tests are skipped' >&2; \
	else $(MAKE) --no-print-directory $(AIMOCK) || echo 'test-wire: aimock could not be installed; its tests are skipped' >&2; fi
	@$(BIN)/python -c 'from tests.real_model.play import install; install()' \
	  || echo 'test-wire: the real model could not be installed; its tests are skipped' >&2
	@if command -v searx-run >/dev/null && [ -e /usr/share/wordnet/data.noun ]; then :; \
	elif [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	  echo 'test-wire: no searx, which Debian packages as searx and wordnet-base; its tests are skipped' >&2; \
	else apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends searx wordnet-base >/dev/null \
	  || echo 'test-wire: searx could not be installed; its tests are skipped' >&2; fi

# What needs no cluster, on every supported interpreter that is found.
test-pythons:
	@bash tests/packaging/pythons.sh

# Both wheels and sdists, built once and without a network.
dist: setup
	@rm -rf dist
	@for project in . publisher; do (cd "$$project" && '$(abspath $(BIN))/python' -m hatchling build -d '$(abspath dist)'); done

clean:
	rm -rf $(VENV) .tools dist demo replay real-model .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
