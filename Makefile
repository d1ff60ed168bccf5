# Commands for a clone of the repository. Each target installs what it needs when it is first used.

VENV := .venv
# `make run` needs fewer packages than the tests and checks.
RUNNABLE := $(VENV)/installed-run
INSTALLED := $(VENV)/installed
LOCKS := deploy/locks
# The tests of areas whose effects on PostgreSQL differ: sign-in, turns, payments, assets, jobs, emails.
POOLED := $(addprefix tests/app/,accounts/email accounts/sessions accounts/sign_in admin ai/conversations ai/readers \
	assets leaderboards mail payments withdrawals work) tests/deploy/processes/test_worker.py tests/deploy/poolers
# The tests of areas that store files.
STORING := $(addprefix tests/app/,accounts/leaving ai/conversations ai/images ai/inputs ai/pronunciation ai/readers \
	ai/speech ai/stores leaderboards pages/test_files.py predictions work) tests/deploy/processes/test_worker.py \
	tests/storage/objects
# The tests of everything that is kept in Valkey.
CLUSTERED := $(addprefix tests/,actors/synthesis app storage)
# The TypeScript client: what it is built from, and what says that it is built.
TYPESCRIPT := clients/typescript
TYPESCRIPT_PACKAGES := $(TYPESCRIPT)/node_modules/.package-lock.json
TYPESCRIPT_BUILT := $(TYPESCRIPT)/dist/.built
# The same client as one module, which the pages of the server load.
PAGES_CLIENT := app/pages/static/client/parley-client.js
RUN_LOCKS := $(LOCKS)/local.lock $(LOCKS)/embedded.lock $(LOCKS)/turns.lock

# If it is set, as in most container images, every process compiles all imported modules again, which takes 3 s of CPU.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help clients rooms paths reference run test test-cluster test-dates test-browser test-busy test-pooler test-s3 picture check format lint types layers locks collected bench bench-full bench-failover bench-attack soak soak-hour soak-json lock release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s%s\n", $$1, $$2 }' Makefile

run: $(RUNNABLE) ## run everything on this machine: http://127.0.0.1:8080 (PORT=... chooses another)
	@exec $(VENV)/bin/python -m deploy.local --with-parent

test: $(INSTALLED) ## run the tests (ARGS=... are pytest's)
	@$(VENV)/bin/python -m pytest -n 6 --dist loadgroup --no-loadscope-reorder --durations=20 $(ARGS)

test-cluster: $(INSTALLED) ## run the tests of what is kept in Valkey with a cluster
	@$(VENV)/bin/python -m pytest -n 6 --dist loadgroup --no-loadscope-reorder --valkey-cluster $(or $(ARGS),--all-scripts $(CLUSTERED))

test-dates: $(INSTALLED) ## run the tests that the date can influence at twelve dates (ARGS="--at 2028-02-29")
	@$(VENV)/bin/python -m tests.calendar.dates $(ARGS)

test-browser: $(INSTALLED) ## run the tests of the pages in Chromium (screenshots: build/screenshots)
	@$(VENV)/bin/python -m pytest -n 4 --ignore tests/browser/test_picture.py tests/browser $(ARGS)

test-busy: $(INSTALLED) ## run the tests RUNS times (5) with one core kept busy, and count the failures of each
	@$(VENV)/bin/python -m tests.chance.busy --runs $(or $(RUNS),5) --arguments='$(subst ','\'',$(ARGS))' test

test-pooler: $(INSTALLED) ## run the tests of areas whose servers reach PostgreSQL through PgBouncer (Debian's pgbouncer)
	@$(VENV)/bin/python -m pytest -n 6 --dist loadgroup --no-loadscope-reorder --pooler $(or $(ARGS),$(POOLED))

test-s3: $(INSTALLED) ## run the tests of areas whose servers store files in S3 (ARGS="--pooler --valkey-cluster ..." with others)
	@$(VENV)/bin/python -m pytest -n 6 --dist loadgroup --no-loadscope-reorder --s3 $(or $(ARGS),$(STORING))

picture: $(INSTALLED) ## update the README's picture of the talk page
	@$(VENV)/bin/python -m pytest tests/browser/test_picture.py
	@cp build/screenshots/talk.png app/pages/talk.png

check: format lint types layers locks ## check format, lint, types, import layers and lock files

paths: $(INSTALLED) ## list the files that a login, a conversation, an order, its webhook, a score and an email run through
	@$(VENV)/bin/python -m pytest -q -s -p no:randomly tests/app/test_request_paths.py

reference: $(INSTALLED) ## write docs/reference from the models, errors and settings of the code
	@$(VENV)/bin/python -m deploy.reference

format: $(INSTALLED)
	@$(VENV)/bin/ruff format --check .

lint: $(INSTALLED)
	@$(VENV)/bin/ruff check .

types: $(INSTALLED)
	@$(VENV)/bin/python -m mypy

layers: $(INSTALLED)
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/python -m bench.rooms --check

rooms: $(INSTALLED) ## count the modules of each folder, and the imports between its parts
	@$(VENV)/bin/python -m bench.rooms

collected: $(INSTALLED) ## import all tests, in one process: six workers that start at once then find them compiled
	@found=$$($(VENV)/bin/python -m pytest -n 0 --collect-only) || { echo "$$found"; exit 1; }

locks:
	@! grep -n '://' $(LOCKS)/*.lock

bench: $(INSTALLED) ## compare CPU, latency and memory with a minimal relay (explained in bench/report.md)
	@$(VENV)/bin/python -m bench.versus

bench-full: $(INSTALLED) ## the same at full length, written to bench/report.md (15 minutes)
	@$(VENV)/bin/python -m bench.versus --full --report bench/report.md

bench-failover: $(INSTALLED) ## run every vendor fault at every stage (writes build/failover.md)
	@$(VENV)/bin/python -m bench.failover

bench-attack: $(INSTALLED) ## attack a server that it starts (half an hour; explained in bench/report.md)
	@$(VENV)/bin/python -m bench.attack --spawn $(ARGS)

soak: $(INSTALLED) ## run the long tests: many streams, many examples of properties
	@$(VENV)/bin/python -m pytest -m soak --timeout 3600 $(ARGS)
	@$(VENV)/bin/python -m pytest -m soak --timeout 3600 tests/browser $(ARGS)

soak-hour: $(INSTALLED) ## run 300 streams for an hour while stores become unavailable (ARGS="--report bench/report.md")
	@$(VENV)/bin/python -m bench.soak --minutes 60 $(ARGS)

soak-json: $(INSTALLED) ## read random JSON as events of vendors for an hour (ARGS="--minutes 10")
	@$(VENV)/bin/python -m bench.random_json --minutes 60 $(ARGS)

clients: $(TYPESCRIPT_BUILT) $(PAGES_CLIENT) ## build the TypeScript client, also for the pages of the server (needs Node 20 and npm)

lock: $(INSTALLED) ## write the lock files from pyproject.toml (UPGRADE=--upgrade for the newest versions)
	@$(VENV)/bin/uv lock --quiet $(UPGRADE)
	@$(VENV)/bin/uv export --quiet --all-extras --no-emit-project --no-header --no-annotate -o $(LOCKS)/all.lock
	@$(VENV)/bin/uv export --quiet --no-emit-project --no-header --no-annotate -o $(LOCKS)/core.lock
	@for extra in local embedded otel turns; do $(VENV)/bin/uv export --quiet --extra $$extra --no-emit-project --no-header \
		--no-annotate -o $(LOCKS)/$$extra.lock || exit 1; done
	@printf 'setuptools>=80\nuv\n' | $(VENV)/bin/uv pip compile --quiet $(UPGRADE) --universal --generate-hashes \
		--no-header --no-annotate -o $(LOCKS)/bootstrap.lock -
	@$(MAKE) --no-print-directory locks

release: $(INSTALLED) ## make the release VERSION: changelog, wheel, image, tag (ARGS=--notes prints its changelog only)
	@$(VENV)/bin/python -m deploy.release $(if $(VERSION),'$(subst ','\'',$(VERSION))',--help) $(ARGS)

clean: ## remove the virtual environment and all caches; the data in .parley stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(TYPESCRIPT_PACKAGES): $(TYPESCRIPT)/package-lock.json
	@cd $(TYPESCRIPT) && npm ci --silent --no-audit --no-fund
	@touch $@

$(TYPESCRIPT_BUILT): $(TYPESCRIPT_PACKAGES) $(TYPESCRIPT)/package.json $(TYPESCRIPT)/tsconfig.json \
		$(wildcard $(TYPESCRIPT)/src/*.ts $(TYPESCRIPT)/src/*/*)
	@rm -rf $(TYPESCRIPT)/dist
	@cd $(TYPESCRIPT) && npm run --silent build
	@touch $@

$(PAGES_CLIENT): $(TYPESCRIPT_BUILT) $(TYPESCRIPT)/pages.ts
	@cd $(TYPESCRIPT) && npm run --silent pages -- --outfile=$(abspath $@)
	@cp $(addprefix $(TYPESCRIPT)/dist/audio/,worklet.js silero.bin silero.LICENSE.txt) $(@D)

$(RUNNABLE): $(RUN_LOCKS) $(LOCKS)/bootstrap.lock deploy/setup pyproject.toml
	@deploy/setup $(VENV)
	@touch $@

$(INSTALLED): $(LOCKS)/all.lock $(LOCKS)/bootstrap.lock deploy/setup pyproject.toml
	@deploy/setup $(VENV) all
	@touch $@ $(RUNNABLE)
