# Everything a contributor runs. Needs Python 3.11+ and make; the rest is installed into .venv.
#
#   make demo        what toolglot does, in half a minute, offline
#   make serve       the gateway on loopback
#   make test        every check and every test, but for the coding agents; what cannot run here is listed at the end
#   make test-agents the tests with seven coding agents, which are installed the first time (1.5 GB)
#   make agents-update
#                    move tests/agents to the newest versions of the coding agents on npm
#   make quick       a minute: formatting, lint, types, and the fast tests with a sample of their cases
#   make check       formatting, lint, strict types, import layers, generated docs
#   make bench       speed, as ratios measured in one run, and instructions against those of before
#   make performance measure the gateway again, and put it into docs/performance.md
#   make coverage    the tests again, with the branches that they take: at least 95 %
#   make soak        an hour: the property tests for longer, all handoffs between coding agents, the fuzzer, 10,000 idle
#                    connections, gateways, sessions and stores under faults and kills; one table of it at the end (docs/reliability.md)
#   make docs        write the generated pages of docs/
#   make clean       remove .venv and caches
#
# PYTHON=python3.12 make …        another Python (where .venv is there already: make clean first)
# SOAK_EXAMPLES=20000 make soak   how many examples each property gets: otherwise 5,000, and 200,000 those of rendering
# FUZZ_MINUTES=60 make soak       how long the fuzzer runs after that
# TYPES_MINUTES=60 make soak      how long the fuzz of types runs after that
# SOAK_MINUTES=60 make soak       how long the gateway is soaked after that
# STORES_MINUTES=20 SOAK_KILLS=9000 SOAK_SEED=7 make soak    gateways on Postgres and Redis, kills of sessions, other draws
# HOSTILE_KILLS=500 make soak     kills of a gateway in the long form of tests/hostile
# SOAK_REPORT=--docs make soak    writes the table into docs/reliability.md
# BENCH_PEERS=0 make bench        without the other translators, which are installed the first time

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
SERVING := $(VENV)/.serving
CLIENTS := tests/javascript/node_modules/.package-lock.json
AGENTS := tests/agents/node_modules/.package-lock.json
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))

# Where it is set, every process of the tests compiles the project and its libraries again: it doubles the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-agents agents-update quick check servers coverage bench performance soak docs clean

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

define PREPARED
@command -v $(PYTHON) >/dev/null || { \
  echo "There is no '$(PYTHON)' here. Name a Python 3.11 or later: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
  echo "toolglot needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
@echo "==> setting up $(VENV) (once)"
@$(PYTHON) -m venv $(VENV)
endef

$(READY): pyproject.toml Makefile
	$(PREPARED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ray]' \
	  || echo "==> Ray could not be installed: its tests are skipped"
	@touch $@ $(SERVING)

$(SERVING): pyproject.toml
	$(PREPARED)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gateway,simulator,cli,runtime,clients]'
	@touch $@

demo: $(SERVING)
	@$(BIN)/toolglot demo $(ARGS)

serve: $(SERVING)
	@exec $(BIN)/toolglot serve $(ARGS)

check: $(READY)
	@echo "==> ruff format"   && $(BIN)/ruff format --check --quiet .
	@echo "==> ruff lint"     && $(BIN)/ruff check --quiet .
	@echo "==> mypy --strict" && $(BIN)/mypy --no-error-summary
	@echo "==> import layers" && $(BIN)/lint-imports --no-logo | sed -n '/^Layers/,$$p'
	@echo "==> generated docs" && $(BIN)/python scripts/generate_docs.py --check

$(CLIENTS): tests/javascript/package.json tests/javascript/package-lock.json
	@if command -v npm >/dev/null; then \
	  echo "==> setting up tests/javascript (once)"; \
	  { cd tests/javascript && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
	    && touch node_modules/.package-lock.json; } \
	    || echo "==> the JavaScript SDKs could not be installed: their tests are skipped"; \
	else echo "==> there is no npm here: the tests with the JavaScript SDKs are skipped"; fi

# The programs of the agents lie in packages of their own, one for each kind of machine: no install script is needed.
# Not `npm ci`: it demands that the lock file names the packages for all kinds of machines, and registries may lack some.
$(AGENTS): tests/agents/package.json tests/agents/package-lock.json
	@if ! command -v npm >/dev/null; then \
	  echo "==> there is no npm here: the tests with the coding agents are skipped; install Node.js 20 or later"; \
	elif echo "==> setting up tests/agents (once, 1.5 GB)" && cd tests/agents \
	  && npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error; \
	  then touch node_modules/.package-lock.json; \
	else echo "==> the coding agents could not be installed: their tests are skipped"; fi

# RUNLEVEL=1 keeps the packages from starting servers of their own: the tests start theirs and end them.
servers:
	@if ! command -v redis-server >/dev/null || ! PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 \
	  || ! ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "==> setting up PostgreSQL, Redis, nginx and libfaketime (once)"; \
	    { apt-get update -q && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
	      apt-get install -y -q --no-install-recommends postgresql redis-server nginx-light libfaketime; } >.servers.log 2>&1 \
	      || echo "==> they could not be installed (see .servers.log): tests on them are skipped"; \
	  else echo "==> tests are skipped that need the packages postgresql, redis-server, nginx-light and libfaketime: install them"; fi; fi
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "==> setting up Chromium (once)"; \
	    { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	      apt-get install -y -q --no-install-recommends chromium chromium-driver fonts-dejavu-core; } >>.servers.log 2>&1 \
	      || echo "==> it could not be installed (see .servers.log): tests in a browser are skipped"; \
	  else echo "==> tests are skipped that need the packages chromium and chromium-driver: install them"; fi; fi

test: check servers $(CLIENTS)
	@echo "==> tests and laws"
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not agents"

test-agents: $(READY) $(AGENTS)
	@echo "==> tests with coding agents"
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -m agents tests/test_agents*.py

# The lock file names no registry: npm asks the one that is configured. The newest versions of some agents need Node.js 22:
# of these, npm chooses the newest that runs here. The newest Qwen Code is there too, with a Node of its own.
OLDER_NODE := @qwen-code/qwen-code @earendil-works/pi-coding-agent
agents-update:
	@cd tests/agents && npm install --package-lock-only --save-exact --omit-lockfile-registry-resolved --ignore-scripts \
	  --no-audit --no-fund --loglevel=error \
	  $$($(PYTHON) -c 'import json, sys; print(*(name if name in sys.argv else f"{name}@latest" for name, version in \
	    json.load(open("package.json"))["dependencies"].items() if version[0].isdigit()))' $(OLDER_NODE)) "qwen-code-newest@npm:@qwen-code/qwen-code@latest"
	@git diff --unified=0 -- tests/agents/package.json | grep '^[-+] ' || echo "==> these are the newest versions"

quick: $(READY)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy --no-error-summary
	@$(BIN)/pytest -n $(WORKERS) --hypothesis-profile=quick --quick

coverage: $(READY) servers $(CLIENTS)
	@$(BIN)/pytest -n auto -m "not law and not agents" --cov --cov-report=term

bench: $(READY)
	@failed=0; for bench in instructions ids wire render streams dialects transcripts store observing scheduler sessions agent_files gateway; do $(BIN)/python bench/$$bench.py || failed=1; echo; done; exit $$failed

# Also when a limit is broken: the page says so.
performance: $(READY)
	@$(BIN)/python bench/gateway.py --json build/gateway.json || echo "==> a limit is broken"
	@$(BIN)/python scripts/plot_performance.py build/gateway.json

# Each part leaves what it did in build/soak/parts; at the end one table is made of them. All parts run, also when one fails.
SEEDED := --seed $${SOAK_SEED:-1}
ATTACKS := HOSTILE_LONG=1 HOSTILE_KILLS=$${HOSTILE_KILLS:-50} HOSTILE_SEED=$${SOAK_SEED:-1}
LONG := tests/bulk/test_bulk_engine.py tests/bulk/test_bulk_ray.py tests/gateway/test_cached_sessions.py
HANDOFFS := tests/test_agents_handoff.py tests/test_agents_healing.py
soak: $(READY) $(AGENTS) servers
	@$(BIN)/python scripts/soak_report.py --clear
	@failed=0; \
	SOAK_PART="laws of the design" $(BIN)/pytest -n auto -m law --hypothesis-profile=soak --hypothesis-seed=$${SOAK_SEED:-1} || failed=1; \
	SOAK_PART="attacks" SOAK_COMMAND="$(ATTACKS) pytest tests/hostile" $(ATTACKS) $(BIN)/pytest tests/hostile || failed=1; \
	SOAK_PART="kills of bulk runs" SOAK_COMMAND="HOSTILE_LONG=1 pytest $(LONG)" HOSTILE_LONG=1 $(BIN)/pytest $(LONG) || failed=1; \
	SOAK_PART="handoffs between coding agents" SOAK_COMMAND="HOSTILE_LONG=1 pytest -m agents $(HANDOFFS)" HOSTILE_LONG=1 $(BIN)/pytest -n auto -m agents $(HANDOFFS) || failed=1; \
	$(BIN)/python scripts/fuzz.py --minutes $${FUZZ_MINUTES:-10} $(SEEDED) || failed=1; \
	$(BIN)/python scripts/fuzz_types.py --minutes $${TYPES_MINUTES:-6} $(SEEDED) || failed=1; \
	$(BIN)/python scripts/hold_connections.py || failed=1; \
	$(BIN)/python scripts/soak_sessions.py --kills $${SOAK_KILLS:-1000} $(SEEDED) || failed=1; \
	$(BIN)/python scripts/soak_stores.py --minutes $${STORES_MINUTES:-6} $(SEEDED) || failed=1; \
	$(BIN)/python scripts/soak_gateway.py --minutes $${SOAK_MINUTES:-15} $(SEEDED) || failed=1; \
	$(BIN)/python scripts/soak_report.py --parts 11 $(SOAK_REPORT) || failed=1; \
	exit $$failed

docs: $(READY)
	@$(BIN)/python scripts/generate_docs.py

clean:
	rm -rf $(VENV) .venv-peers .venv-fuzz build dist .coverage .coverage.* .mypy_cache .ruff_cache .hypothesis .import_linter_cache \
	  tests/javascript/node_modules tests/agents/node_modules
	find . -name __pycache__ -prune -exec rm -rf {} +
