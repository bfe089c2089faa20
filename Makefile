# The commands of the project; `make help` lists them. `make run` and `make test` need Python 3.11 or newer, JDK 17 and
# Maven. They install or start everything else themselves.

PYTHON ?= python3
BIN := .venv/bin
SIZE ?= 1000000
OUT ?= bench.json
WORKERS ?= 3

# The minimum settings of a production installation. The checks connect to no server.
PRODUCTION := env BASE_URL=https://chat.example SECRET_KEY="$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(40))')" \
	DATABASE_URL=postgres://chatstore:x@db.example/chatstore REDIS_URL=rediss://:x@redis.example/0 \
	CASSANDRA_CONTACT_POINTS=cassandra.example CASSANDRA_DATACENTER=dc1

# Where it is set, as in many images, each of the many processes would compile everything that it imports: two thirds of
# the processor time of its start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-unit test-slow soak check check-pages docs shots bench lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: .venv/installed ## Start Cassandra, Postgres, Valkey, web, workers and demo data; Ctrl-C stops all of it
	@$(BIN)/python -m devstack run

test-unit: .venv/installed ## Run the tests that need no server (under a minute)
	@$(BIN)/python -m pytest -m unit --numprocesses $(WORKERS) $(TESTS)

# TESTS="tests/local -x" selects tests; WORKERS=1 runs one test at a time.
test: .venv/installed ## Run all tests except the slow tier (under ten minutes)
	@$(BIN)/python -m tests --workers $(WORKERS) -m "not slow" $(TESTS)

# Raids, memory, mutants, killed and paused workers, the browser at scale, and every property with 500 examples.
test-slow: .venv/installed ## Run the slow tier
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m tests --workers $(WORKERS) -m "slow or hypothesis" $(TESTS)

# Takes ten minutes, at most twenty. SEED=… repeats the run whose output named that seed; ARGS="--size 40000 --kills 24"
# makes it smaller.
soak: .venv/installed ## Kill workers and restart servers during one purge (about ten minutes)
	@$(BIN)/python -m devstack exec --fresh bench $(BIN)/python -m tests.soak $(SEED) $(ARGS)

# RuntimeWarning is ignored: makemigrations has no database to compare the migrations with.
check: .venv/installed docs ## Run linters, type checker, import contracts, Django's checks, audit of dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/djhtml --check --tabwidth 2 templates
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check
	@$(BIN)/python -m devstack.dependency_audit
	@echo "check --deploy with production settings"
	@$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

# Warnings are errors, broken links among them. Uses no network.
docs: .venv/installed ## Check and build the documentation into docs/_build
	$(BIN)/python -I docs/checks.py
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs docs/_build

# ARGS="--width=1280 raid" checks other widths, and only pages whose names begin with raid.
check-pages: .venv/installed ## Check every page in a browser for violations found by axe-core (five minutes)
	@$(BIN)/python -m devstack exec test $(BIN)/python -m tests.shots --check $(ARGS)

shots: .venv/installed ## Take screenshots of all pages
	@$(BIN)/python -m devstack exec test $(BIN)/python -m tests.shots

# ARGS="--only purge undo --runs 1" selects parts.
bench: .venv/installed ## Measure on fresh servers against bare prepared statements (SIZE=…, OUT=…)
	@$(BIN)/python -m devstack exec --fresh bench $(BIN)/python -m tests.bench --size $(SIZE) --out $(OUT) $(ARGS)

# Updates the environment when a lock file changes.
.venv/installed: requirements.lock requirements-uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON." if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -I devstack/environment.py
	@touch $@

# The locks contain hashes and name no package index. A warning says that a version was yanked.
lock: ## Resolve the dependencies of pyproject.toml into the lock files
	@uv=$$($(PYTHON) -I devstack/environment.py uv) && \
		lock="$$uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate" && \
		$$lock pyproject.toml --group dev -o requirements.lock > /dev/null && \
		echo uv | $$lock - -o requirements-uv.lock > /dev/null
