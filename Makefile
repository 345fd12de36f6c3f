# Development and demonstration commands. Needs Python 3.11 or newer and make; everything else comes into .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
LLM := .venv-llm
LABEL_STUDIO := .venv-label-studio
LABEL_STUDIO_VERSION := 1.23.2
PYTEST := $(BIN)/python -m pytest
# As many processes as there are cores; PYTEST_ARGS="-n 0" takes one.
PARALLEL := -n auto --maxprocesses=8 --dist=worksteal
# Tests with browsers, servers and killed workers wait for these for a part of their time: one more than there are cores.
WAITING = -n $$($(BIN)/python -c "import os; print(min(8, os.cpu_count() + 1))") --dist=worksteal
# What has commands of its own, `make test-browser` and `make test-services`, killed workers among it.
WITH_SERVERS := tests/browser tests/client tests/services
WITHOUT_SERVERS := $(WITH_SERVERS:%=--ignore=%)
NOT_ALONE := not slow and not llm and not label_studio
# Whole runs, one after another: `make test-postgres` has them, as CI does, and `make test-sqlite`.
DEAR_RUNS := costly and database and not sqlite

# Options to pass on: make demo DEMO_ARGS=--exit, make test PYTEST_ARGS="-k queue", make serve SERVE_ARGS="..."
DEMO_ARGS ?=
PYTEST_ARGS ?=
SERVE_ARGS ?=
IMAGE_ARGS ?=
# The interpreter that .venv is made from; empty: the first of python3.11, python3, ... on PATH that is new enough.
PYTHON ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Python compiles what is imported when it is; to compile all that is installed takes as long as to install it.
PIP_QUICKLY := --quiet --no-compile
# Where it is set, each of the many processes that tests start compiles all of the code anew: most of their time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-llm demo demo-llm serve quick test test-long test-slow test-browser test-services test-sqlite test-postgres test-llm test-label-studio test-image coverage coverage-all lint format types check messages screenshots fuzz fuzz-api ci clean

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-14s %s\n' "$$name" "$$text"; done

# --- Environment ------------------------------------------------------------------------------------------------
# Each stamp is written last, so an interrupted set-up is taken up again by the next command, and is older than a
# requirements file that has changed since. The demo needs only what the application needs, so it has its own.

setup: $(VENV)/.installed-dev ## Make .venv with everything for development and tests

$(VENV)/.installed: requirements.txt
	@$(call ensure_venv)
	@echo "Installing the packages of requirements.txt into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python -m pip install $(PIP_QUICKLY) -r requirements.txt
	@touch $@

$(VENV)/.installed-dev: requirements.txt requirements-dev.txt
	@$(call ensure_venv)
	@echo "Installing the packages of requirements-dev.txt into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python -m pip install $(PIP_QUICKLY) -r requirements-dev.txt
	@touch $(VENV)/.installed $@

# The engine for `make demo-llm` and for the tests against a real server: some gigabytes, and one processor kind only.
setup-llm: $(LLM)/.installed ## Make .venv-llm with a CPU build of vLLM (Linux on x86-64)

$(LLM)/.installed: VENV := $(LLM)
$(LLM)/.installed: BIN := $(LLM)/bin
$(LLM)/.installed: requirements.txt requirements-llm-cpu.txt
	@if [ "$$(uname -s) $$(uname -m)" != "Linux x86_64" ]; then \
		echo "There is no CPU build of vLLM for $$(uname -s) on $$(uname -m): this needs Linux on x86-64." >&2; \
		exit 1; \
	fi
	@$(call ensure_venv)
	@if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 15))'; then \
		echo "There is no CPU build of vLLM for $$($(BIN)/python -V): name one from 3.11 to 3.14, as in" \
			"make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
		rm -rf $(LLM); \
		exit 1; \
	fi
	@echo "Installing the packages of requirements-llm-cpu.txt into $(LLM) (some minutes, 4 GB) ..."
	@$(call install_torch)
	@$(BIN)/python -m pip install $(PIP_QUICKLY) --no-deps -r requirements-llm-cpu.txt || { \
		echo "The CPU build of vLLM cannot be installed here; what pip says above tells why." >&2; \
		exit 1; \
	}
	@touch $@

$(LABEL_STUDIO)/.installed: $(VENV)/.installed
	@$(VENV)/bin/python -m venv $(LABEL_STUDIO)
	@echo "Installing label-studio $(LABEL_STUDIO_VERSION) into $(LABEL_STUDIO) (some minutes, 1 GB) ..."
	@$(LABEL_STUDIO)/bin/python -m pip install $(PIP_QUICKLY) label-studio==$(LABEL_STUDIO_VERSION)
	@touch $@

# PyPI has no CPU builds of PyTorch: where the indexes that pip is set up with lack it, its makers' own is asked.
define install_torch
torch=$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements-llm-cpu.txt); \
$(BIN)/python -m pip install $(PIP_QUICKLY) --no-deps "$$torch" 2>/dev/null || \
PIP_INDEX_URL=https://download.pytorch.org/whl/cpu $(BIN)/python -m pip install $(PIP_QUICKLY) --no-deps "$$torch"
endef

# Keeps an environment whose pip works, replaces any other. A candidate is tried, not only found: a version manager
# may put a name on PATH that it cannot run.
define ensure_venv
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'; \
if [ -x $(BIN)/python ] && $(BIN)/python -c "$$new_enough" && $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	exit 0; \
fi; \
chosen=; \
if [ -n "$(PYTHON)" ]; then \
	if "$(PYTHON)" -c "$$new_enough" 2>/dev/null; then chosen="$(PYTHON)"; fi; \
else \
	old_ifs=$$IFS; IFS=:; \
	for name in python3.11 python3 python3.12 python3.13 python3.14 python; do \
		for folder in $$PATH; do \
			if [ -z "$$chosen" ] && [ -x "$$folder/$$name" ] && "$$folder/$$name" -c "$$new_enough" 2>/dev/null; then \
				chosen="$$folder/$$name"; \
			fi; \
		done; \
	done; \
	IFS=$$old_ifs; \
fi; \
if [ -z "$$chosen" ]; then \
	echo "HyPAC needs Python 3.11 or newer, and $(if $(PYTHON),$(PYTHON) is not,none was found on PATH)." >&2; \
	echo "Install it, or name one: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1; \
fi; \
echo "Making $(VENV) with $$chosen ..."; \
"$$chosen" -m venv --clear $(VENV) || { \
	echo "$$chosen cannot make a virtual environment. On Debian or Ubuntu: apt install python3-venv" >&2; \
	exit 1; \
}
endef

# --- Run --------------------------------------------------------------------------------------------------------

demo: $(VENV)/.installed ## Run the whole way on real images, then leave the site running
	@$(BIN)/python manage.py demo $(DEMO_ARGS)

demo-llm: $(LLM)/.installed ## The same with two tiny language models behind real servers of vLLM
	@$(LLM)/bin/python manage.py demo --llm $(DEMO_ARGS)

serve: $(VENV)/.installed ## Start the web server, the worker and the reconciler
	@$(BIN)/python manage.py serve $(SERVE_ARGS)

# --- Tests ------------------------------------------------------------------------------------------------------

quick: setup ## Run what is fast, in a minute: no browser, no servers, nothing costly
	@$(PYTEST) $(PARALLEL) $(WITHOUT_SERVERS) -m "not costly and not long and $(NOT_ALONE)" -q $(PYTEST_ARGS)

test: setup ## Run the tests; those with browsers, servers and many whole runs have commands of their own
	@$(PYTEST) $(PARALLEL) $(WITHOUT_SERVERS) -m "$(NOT_ALONE) and not long and not ($(DEAR_RUNS))" $(PYTEST_ARGS)

test-long: setup ## Run what takes ten seconds a module, and needs nothing else
	@$(PYTEST) $(PARALLEL) $(WITHOUT_SERVERS) -m "long and not database and $(NOT_ALONE)" $(PYTEST_ARGS)

test-sqlite: setup ## Run the dear ones of the tests about the database, on SQLite
	@$(PYTEST) $(PARALLEL) $(WITHOUT_SERVERS) -m "$(NOT_ALONE) and $(DEAR_RUNS)" $(PYTEST_ARGS)

test-slow: setup ## Run the long simulations and load tests
	@$(PYTEST) $(WAITING) -m slow $(PYTEST_ARGS)

test-browser: setup ## Run the browser tests; a missing Chromium is a failure
	@HYPAC_TEST_REQUIRE=browser $(PYTEST) $(WAITING) tests/browser $(PYTEST_ARGS)

test-services: setup ## Run the tests with servers, then those about the database on a PostgreSQL of its own
	@HYPAC_TEST_REQUIRE=postgres,redis $(PYTEST) $(WAITING) tests/client tests/services $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-postgres

test-postgres: setup ## Run the tests about the database on a PostgreSQL of its own
	@$(BIN)/python -m testbed.servers postgres -- $(PYTEST) $(PARALLEL) -m "database and $(NOT_ALONE)" $(PYTEST_ARGS)

# HYPAC_TEST_FUZZ=45 asks about half as often.
fuzz-api: export HYPAC_TEST_FUZZ ?= 90
fuzz-api: setup ## Ask a server on SQLite and one on PostgreSQL what the API's schema allows, and what not, some 20,000 times each
	@$(PYTEST) -n 0 tests/services/test_api_fuzz.py $(PYTEST_ARGS)
	@$(BIN)/python -m testbed.servers postgres -- $(PYTEST) -n 0 tests/services/test_api_fuzz.py $(PYTEST_ARGS)

FUZZ_ARGS ?=
fuzz: setup ## Give each reader of foreign bytes hostile ones, two minutes each (FUZZ_ARGS="--seconds 600 import-csv")
	@$(BIN)/python -m testbed.fuzz $(FUZZ_ARGS)

test-llm: setup setup-llm ## Run the tests against real model servers (makes .venv-llm first)
	@HYPAC_TEST_REQUIRE=llm $(PYTEST) -m llm tests/services/test_real_servers.py $(PYTEST_ARGS)

test-label-studio: setup $(LABEL_STUDIO)/.installed ## Run the tests beside the real Label Studio (makes .venv-label-studio first)
	@HYPAC_TEST_REQUIRE=label_studio $(PYTEST) -n0 -s -m label_studio tests/services/test_label_studio.py $(PYTEST_ARGS)

test-image: setup ## Build the image of docs/compose, start it, go the whole way, back up, restore, upgrade (root, Podman)
	@nice $(BIN)/python -m testbed.image $(IMAGE_ARGS)

# Simulations run the lines of others again and again, and being measured doubles their time.
coverage: setup ## Run the tests of the statistical core; below 95 % of its branches is a failure
	@$(PYTEST) $(PARALLEL) tests/core -m "$(NOT_ALONE) and not no_cover" --cov=routing/core --cov-branch \
		--cov-report=term:skip-covered --cov-fail-under=95 $(PYTEST_ARGS)
	@$(PYTEST) $(PARALLEL) tests/core -m "$(NOT_ALONE) and no_cover" $(PYTEST_ARGS)

# Which test ran which line stands in .coverage-all, for benchmarks/mutants.py. What runs in processes of its own is
# not seen, so tests of browsers and servers would add little. No states are put back, so their own tests are left
# out. ROOT measures another checkout with its own tests.
ROOT ?= .
coverage-all: setup ## Measure the branches of all packages that the tests run, and which test runs which line
	@cd $(ROOT) && HYPAC_TEST_STATES=0 COVERAGE_FILE=.coverage-all $(CURDIR)/$(PYTEST) $(PARALLEL) --ignore=tests/browser \
		--ignore=tests/services --ignore=tests/test_states.py --cov=annotation --cov=routing --cov=hypac_site --cov-branch --cov-context=test \
		--cov-config=$(CURDIR)/pyproject.toml --cov-report=term:skip-covered $(PYTEST_ARGS)
	@cd $(ROOT) && COVERAGE_FILE=.coverage-all $(CURDIR)/$(BIN)/coverage json --quiet -o - \
		--rcfile=$(CURDIR)/pyproject.toml | $(CURDIR)/$(BIN)/python -c "import json, sys; t = json.load(sys.stdin)['totals']; \
		print('{covered_branches} of {num_branches} branches, {covered_lines} of {num_statements} lines'.format(**t))"

# --- Checks -----------------------------------------------------------------------------------------------------

lint: setup ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: setup ## Format the code and mend what can be mended by machine
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: setup ## Check types
	@$(BIN)/mypy
	@cd clients/python && ../../$(BIN)/mypy
	@cd clients/verify && ../../$(BIN)/mypy

check: setup ## Check import rules, migrations, what a change breaks in the API, and the settings for production
	@$(BIN)/lint-imports --no-logo --no-cache
	@state=$$(mktemp -d) && trap 'rm -rf "$$state"' EXIT && \
		HYPAC_VAR="$$state" $(BIN)/python manage.py makemigrations --check --dry-run && \
		HYPAC_VAR="$$state" HYPAC_HTTPS=1 DJANGO_DEBUG=0 DJANGO_ALLOWED_HOSTS=hypac.example.org \
		DJANGO_SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
		$(BIN)/python manage.py spectacular --validate --fail-on-warn --format openapi-json --file "$$state/schema.json" && \
		$(BIN)/python -m testbed.api_changes "$$state/schema.json" && \
		HYPAC_VAR="$$state" HYPAC_HTTPS=1 DJANGO_DEBUG=0 DJANGO_ALLOWED_HOSTS=hypac.example.org \
		DJANGO_SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
		$(BIN)/python manage.py check --deploy --fail-level WARNING

# The names of files stand beside the words, their lines do not: those would change with every other change.
messages: setup ## Gather what pages say into locale/ and compile the translations (needs GNU gettext)
	@$(BIN)/python -m tests.messages

screenshots: setup ## Picture every page in light, dark and phone width into var/screenshots
	@$(BIN)/python -m tests.browser.screenshots

ci: ## Run everything that continuous integration runs
	@.ci/run

clean: ## Remove the environments and tool caches; never var/, which holds data
	rm -rf $(VENV) $(LLM) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
