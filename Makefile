# What one does with a clone. Each target sets up what it needs the first time.

VENV := .venv
INSTALLED := $(VENV)/installed
LOCKS := requirements.lock requirements.core.lock deploy/bootstrap.lock

# Where a shell sets it, as most container images do, every process compiles again all that it imports: 3 s of CPU each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-browser picture check format lint types layers locks bench bench-full bench-failover bench-attack soak soak-hour lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s%s\n", $$1, $$2 }' Makefile

run: $(INSTALLED) ## run everything on this machine: http://127.0.0.1:8080 (PORT=... chooses another)
	@exec $(VENV)/bin/python -m deploy.local --with-parent

test: $(INSTALLED) ## run the tests (ARGS=... are pytest's)
	@$(VENV)/bin/python -m pytest -n 3 --dist loadgroup --durations 15 $(ARGS)

test-browser: $(INSTALLED) ## run the tests of the page in Chromium; its pictures: build/screenshots
	@$(VENV)/bin/python -m pytest -n 2 tests/browser $(ARGS)

picture: $(INSTALLED) ## take the README's picture of the page anew
	@$(VENV)/bin/python -m pytest tests/browser/test_picture.py
	@cp build/screenshots/talk.png app/pages/talk.png

check: format lint types layers locks ## format, lint, types, layers of imports, lock files

format: $(INSTALLED)
	@$(VENV)/bin/ruff format --check .

lint: $(INSTALLED)
	@$(VENV)/bin/ruff check .

types: $(INSTALLED)
	@$(VENV)/bin/python -m mypy

layers: $(INSTALLED)
	@$(VENV)/bin/lint-imports

locks:
	@! grep -n '://' $(LOCKS)

bench: $(INSTALLED) ## measure it beside the barest relay: CPU, latency, memory (how to read it: bench/report.md)
	@$(VENV)/bin/python -m bench.versus

bench-full: $(INSTALLED) ## the same in the numbers that count, into bench/report.md (a quarter of an hour)
	@$(VENV)/bin/python -m bench.versus --full --report bench/report.md

bench-failover: $(INSTALLED) ## play every fault of a vendor at every stage (what came of each: bench/failover.md)
	@$(VENV)/bin/python -m bench.failover

bench-attack: $(INSTALLED) ## attack a server of its own (half an hour; what is sent and judged: bench/report.md)
	@$(VENV)/bin/python -m bench.attack --spawn $(ARGS)

soak: $(INSTALLED) ## run the tests that take great numbers and minutes
	@$(VENV)/bin/python -m pytest -m soak --timeout 3600 $(ARGS)

soak-hour: $(INSTALLED) ## an hour of 300 streams at a time, stores going away (ARGS="--report bench/report.md")
	@$(VENV)/bin/python -m bench.soak --minutes 60 $(ARGS)

lock: $(INSTALLED) ## write the lock files from pyproject.toml (UPGRADE=--upgrade takes the newest)
	@$(VENV)/bin/uv lock --quiet $(UPGRADE)
	@$(VENV)/bin/uv export --quiet --all-extras --no-emit-project --no-header --no-annotate -o requirements.lock
	@$(VENV)/bin/uv export --quiet --no-emit-project --no-header --no-annotate -o requirements.core.lock
	@printf 'setuptools>=80\nuv\n' | $(VENV)/bin/uv pip compile --quiet $(UPGRADE) --universal --generate-hashes \
		--no-header --no-annotate -o deploy/bootstrap.lock -
	@$(MAKE) --no-print-directory locks

clean: ## remove the virtual environment and all caches; the data in .parley stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(INSTALLED): requirements.lock deploy/bootstrap.lock deploy/setup pyproject.toml
	@deploy/setup $(VENV)
	@touch $@
