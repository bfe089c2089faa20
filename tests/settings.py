"""The project's settings on test servers, whatever stack the environment names.

This is not in a conftest because pytest-django reads the settings before any conftest; subprocesses of a test inherit
the variable.
"""

import os

from django.conf import global_settings

from chatstore.local.layout import BENCH_STACK_NAME, TEST_STACK_NAMES

# When workers share the suite, each has its own database, keyspace and broker.
_WORKERS = {f"gw{number}": name for number, name in enumerate(TEST_STACK_NAMES)}
_named = _WORKERS.get(os.environ.get("PYTEST_XDIST_WORKER", "")) or os.environ.get("CHATSTORE_STACK")
os.environ["CHATSTORE_STACK"] = _named if _named in (*TEST_STACK_NAMES, BENCH_STACK_NAME) else TEST_STACK_NAMES[0]
if "PYTEST_VERSION" in os.environ:
    # On a busy machine the usual deadline would cut pages short; tests of deadlines set their own.
    os.environ["PAGE_DEADLINE_SECONDS"] = "60"
# The monitor is off in tests: it would find what tests leave behind on purpose.
os.environ["MONITOR_INTERVAL_SECONDS"] = "0"
# Tests sign in from a few addresses; those of this limit set it and have their own.
os.environ["SIGN_IN_ATTEMPTS_PER_ADDRESS"] = "0"

from chatstore.settings import *  # noqa: E402, F403

# A password takes a third of a second of processor time to check, and hundreds are checked.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *global_settings.PASSWORD_HASHERS]
