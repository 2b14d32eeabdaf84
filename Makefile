# `make audit` and `make test` are complete on a machine with Python 3.11+, git and make.
# Set-up happens once: a stamp in .venv is older than neither the lock nor pyproject.toml.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
	&& echo $$p && break; done)
NO_PYTHON := embaudit needs Python 3.11 to 3.14: none found. Install one, or name it: make PYTHON=/path/to/python3.12
BIN := .venv/bin
# One worker per core, with one thread each. A file stays with one worker, and so does everything that needs the Prefect
# server (tests/conftest.py), so that what is expensive is made once. Many tests start a process: compile modules once.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder --durations 10
CHECKPOINT ?= packaged:all-MiniLM-L6-v2
PROFILE ?= quick
# What `make test-lowest` runs: the tests that touch a library most. Flows on a server, the command line, pages and the
# other measures meet the same libraries in `make test` only, on the newest versions.
LOWEST := anatomy checkpoint concentration corpora geometry integrity length socm sticky/test_attention.py tables tempscale \
	vocabulary warehouse/test_publish.py warehouse/test_staging.py

NEWEST := $(filter-out warehouse/%,$(LOWEST)) warehouse sql steps stores/test_unread.py

.PHONY: help audit test test-all test-slow test-lowest test-newest coverage mutants check format docs site release bench lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# What each stamp stands for; the first is part of the others.
.venv/.audit: EXTRAS := packaged
.venv/.dev: EXTRAS := packaged,dev
.venv/.site: EXTRAS := packaged,site
.venv/.audit .venv/.dev .venv/.site: pyproject.toml requirements.lock
	@test -n "$(PYTHON)" || { echo "$(NO_PYTHON)" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Setting up .venv from requirements.lock: $(EXTRAS) (once, a few minutes) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[$(EXTRAS)]'
	@touch .venv/.audit $@

audit: .venv/.audit ## audit the packaged all-MiniLM-L6-v2 on the embedded sample
	@$(BIN)/embaudit audit $(CHECKPOINT) --profile $(PROFILE)

# Of one version of Python, the oldest: numpy 2.0 has no wheels for the newest.
.venv-lowest/.dev: pyproject.toml requirements-lowest.lock
	@rm -rf .venv-lowest; python3.11 -m venv .venv-lowest
	@echo "Setting up .venv-lowest from requirements-lowest.lock (once; with CUDA's libraries 3 GB, see CONTRIBUTING.md) ..."
	@.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c requirements-lowest.lock -e '.[packaged,test]'
	@touch $@

test: .venv/.dev ## the tests that a change must pass
	@$(PYTEST) -m "not slow"

test-slow: .venv/.dev ## faults, servers, lakes, runners, browsers, large grids (SLOW="tests/page …" for some)
	@$(PYTEST) -m slow $(SLOW)

test-lowest: ## what touches a library, with the lowest version of every one (needs python3.11)
	@if command -v python3.11 >/dev/null; then $(MAKE) --no-print-directory .venv-lowest/.dev && \
		$(subst $(BIN)/,.venv-lowest/bin/,$(PYTEST)) -m "not slow" $(LOWEST:%=tests/%); \
		else echo "Not tested with the lowest versions: there is no python3.11 here." >&2; fi

# Whatever pyproject.toml allows of these: what their next versions break is seen before anybody has them.
.venv-newest/.dev: pyproject.toml requirements.lock
	@rm -rf .venv-newest; $(PYTHON) -m venv .venv-newest
	@echo "Setting up .venv-newest: requirements.lock, and the newest DuckDB, Prefect and transformers (once) ..."
	@.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[packaged,dev]'
	@.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade duckdb prefect transformers
	@touch $@

test-newest: .venv-newest/.dev ## what touches a library, with versions of DuckDB, Prefect and transformers that are not allowed yet
	@$(subst $(BIN)/,.venv-newest/bin/,$(PYTEST)) -m "not slow" $(NEWEST:%=tests/%)

test-all: test-slow test-lowest ## the rest: both of these, before a release

coverage: .venv/.dev ## which lines and branches `make test` runs, in the processes that it starts, too
	@$(PYTEST) -m "not slow" --cov --cov-report=term:skip-covered

mutants: .venv/.dev ## count the small errors in the code that `make test` notices
	@$(BIN)/python tests/mutants.py

check: .venv/.dev ## what a reviewer would run: format, lint, types, import directions, CI's own script
	@bash -n .ci/run && bash -n .ci/release && bash -n action/run.sh
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@mkdir -p .types && ln -sfn ../flows .types/embaudit_flows && ln -sfn ../tasks .types/embaudit_tasks
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: .venv/.dev ## format and sort imports
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: .venv/.dev ## write the pages of tables, commands, settings and rules from what they describe
	@$(BIN)/python -m embaudit.warehouse.markdown > docs/tables.md.new && mv docs/tables.md.new docs/tables.md
	@$(BIN)/python -m embaudit.warehouse.markdown schema > sql/schema.sql.new && mv sql/schema.sql.new sql/schema.sql
	@$(BIN)/python -m embaudit.questions.passport.passport > docs/passport.schema.json.new && mv docs/passport.schema.json.new docs/passport.schema.json
	@for page in answers findings parity search switch vectors why; do \
		$(BIN)/python -m embaudit.cli.reference rules < docs/$$page.md > docs/$$page.md.new && mv docs/$$page.md.new docs/$$page.md; done
	@for page in commands settings; do \
		$(BIN)/python -m embaudit.cli.reference $$page > docs/$$page.md.new && mv docs/$$page.md.new docs/$$page.md; done

site: .venv/.site ## build docs/ as a site in build/site; any broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Built build/site. To read it, with its search: $(BIN)/python -m http.server -d build/site"

release: ## a commit's tests, wheel and sdist, and each in a fresh environment on two versions of Python
	@.ci/release

bench: .venv/.dev ## print the benchmark table (over an hour, most of it for the exhaustive search and the broken copies)
	@$(BIN)/python -m benchmarks

lock: ## resolve anew in a throw-away environment and rewrite both locks
	@$(PYTHON) -m venv --clear .venv-lock
	@.venv-lock/bin/python -m pip install --quiet ".[packaged,dev,site]"
	@{ sed -n "/^#/p" requirements.lock; .venv-lock/bin/python -m pip freeze --all --exclude embaudit --exclude pip | sed "s/+cpu$$//"; \
		echo "whenever==0.10.5; python_version >= '3.13'"; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock
	@# Of what is not asked for by name, the newest that fits: moto's cfn-lint must take the sympy that torch 2.6 pins.
	@.venv-lock/bin/python -m pip install --quiet uv
	@{ sed -n "/^#/p" requirements-lowest.lock; echo "cfn-lint<1.48" | .venv-lock/bin/uv pip compile --quiet \
		--no-annotate --no-header --resolution lowest-direct --python-version 3.11 --extra packaged --extra site --extra test \
		--constraint - pyproject.toml | sed -E "/^(nvidia-|triton)/d"; } > requirements-lowest.lock.new
	@mv requirements-lowest.lock.new requirements-lowest.lock; rm -rf .venv-lock

clean: ## remove the environment and what audits left in this folder
	rm -rf .venv .venv-lowest .types .embaudit mutants
