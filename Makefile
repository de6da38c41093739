# Three commands do everything on a fresh machine with Python 3.11+ and make:
#   make run    evaluate the embedded clinic and write a report (no key, no network after installation)
#   make shell  open a shell in which `agentclinic` is a command
#   make test   lint, type check and test
# Before a piece of work is called done: make test-full, which adds the slow tests, and make docs-test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Every process of the tests would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run shell test test-full docs-test lint types tests tests-full browser clean

run: $(VENV)/.installed
	$(BIN)/python agentclinic.py --config agentclinic.config.json --workers 4 --report
	@echo
	@echo "The command is $(BIN)/agentclinic; after make shell, or . $(BIN)/activate, it is agentclinic."

shell: $(VENV)/.installed
	@echo "agentclinic is a command in this shell; exit leaves it"
	@PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" "$${SHELL:-sh}"

# The type check uses one core and leaves time on the other: it runs while the tests do.
test:
	@$(MAKE) --no-print-directory -j 2 lint types tests

test-full:
	@$(MAKE) --no-print-directory -j 2 lint types tests-full

# Follow README and docs in a new environment made from a clean clone; stops at the first line that is not true.
# The README first, as a newcomer does, in a terminal and a browser; then every page.
docs-test: $(VENV)/.installed-dev browser
	@clone=$$(mktemp -d) && trap 'rm -rf "$$clone"' EXIT && \
	  git clone --quiet --depth 1 "file://$(CURDIR)" "$$clone/agentclinic" && cd "$$clone/agentclinic" && \
	  $(abspath $(BIN))/python tests/support/first_hour.py . && \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check '.[generate,gymnasium,pandas,ray]' && \
	  .venv/bin/python tests/support/docs_runner.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# A file stays with one worker, which makes its runs, servers and browsers once; conftest.py puts the longest first.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder

tests: $(VENV)/.installed-dev browser
	$(BIN)/pytest $(WORKERS) -m "not slow"

# With the libraries that are too heavy for every test run: Inspect, OpenEnv, TRL with PyTorch.
tests-full: $(VENV)/.installed-full browser
	$(BIN)/pytest $(WORKERS)

# Tests of pages need a browser. Without one, and without the right to install it, they are skipped and say so.
browser:
	@command -v chromium >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "installing chromium for the tests of pages"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	      >/dev/null || echo "chromium could not be installed: tests of pages are skipped"; \
	  else \
	    echo "no chromium, and no right to install it: tests of pages are skipped"; \
	  fi; }

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "AgentClinic needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-full: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,inspect,openenv,train]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
