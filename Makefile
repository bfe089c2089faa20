# The commands of the project. `make run` and `make test` need Python 3.11, a JDK 17 and
# Maven on the machine; everything else they fetch or start themselves.

PYTHON ?= python3
BIN := .venv/bin
SIZE ?= 1000000
OUT ?= bench.json
WORKERS ?= 2

# What a real installation sets at least; no server is reached by the checks.
PRODUCTION := env BASE_URL=https://chat.example SECRET_KEY="$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(40))')" \
	DATABASE_URL=postgres://chatstore:x@db.example/chatstore REDIS_URL=rediss://:x@redis.example/0 \
	CASSANDRA_CONTACT_POINTS=cassandra.example CASSANDRA_DATACENTER=dc1

.PHONY: run test test-unit test-slow soak check shots bench lock

run: .venv/installed
	@$(BIN)/python -m devstack run

# What needs no server: domains, planner, forms, parsing.
test-unit: .venv/installed
	@$(BIN)/python -m pytest -m unit $(TESTS)

# All but the slow tier. TESTS="tests/local -x" narrows it down; WORKERS=1 runs one test after the other.
test: .venv/installed
	@$(BIN)/python -m tests --workers $(WORKERS) -m "not slow" $(TESTS)

# Raid, memory, mutants, kills, sleeping workers, the browser at scale, and every property with 500 examples.
test-slow: .venv/installed
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m tests --workers $(WORKERS) -m "slow or hypothesis" $(TESTS)

# Ten minutes, twenty at most. The seed it prints repeats it: SEED=….
soak: .venv/installed
	@$(BIN)/python -m devstack exec test $(BIN)/python -m tests.soak $(SEED)

# The one RuntimeWarning is that no database was there to compare the migrations with.
check: .venv/installed
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check
	@echo "check --deploy in production's environment"
	@$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

shots: .venv/installed
	@$(BIN)/python -m devstack exec test $(BIN)/python -m tests.shots

# ARGS="--only purge undo --runs 1" narrows it down.
bench: .venv/installed
	@$(BIN)/python -m devstack exec test $(BIN)/python -m tests.bench --size $(SIZE) --out $(OUT) $(ARGS)

# The environment is brought up to date when a lock changes.
.venv/installed: requirements.lock requirements-uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON." if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -I devstack/environment.py
	@touch $@

# Reads the dependencies of pyproject.toml; the locks hold hashes and name no index.
lock:
	@uv=$$($(PYTHON) -I devstack/environment.py uv) && \
		lock="$$uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate" && \
		$$lock pyproject.toml --group dev -o requirements.lock && \
		echo uv | $$lock - -o requirements-uv.lock
