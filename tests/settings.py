"""The project's settings on test servers, whatever stack the environment names.

It is here rather than in a conftest because pytest-django reads the settings before it
reads any conftest; subprocesses of a test inherit the variable.
"""

import os

from chatstore.local.layout import TEST_STACK_NAMES

# Of two workers that run the suite beside each other, each has a database, a keyspace and a broker of its own.
_WORKERS = dict(zip(("gw0", "gw1"), TEST_STACK_NAMES, strict=True))
_named = _WORKERS.get(os.environ.get("PYTEST_XDIST_WORKER", "")) or os.environ.get("CHATSTORE_STACK")
os.environ["CHATSTORE_STACK"] = _named if _named in TEST_STACK_NAMES else TEST_STACK_NAMES[0]
if "PYTEST_VERSION" in os.environ:
    # A busy machine passes the usual deadline, and cuts pages short; tests of deadlines set their own.
    os.environ["PAGE_DEADLINE_SECONDS"] = "60"
# Workers of tests watch nothing: what tests leave behind on purpose would be found.
os.environ["WATCH_SECONDS"] = "0"

from chatstore.settings import *  # noqa: E402, F403
