"""The project's settings on the test servers, whatever stack the environment names.

It is here rather than in a conftest because pytest-django reads the settings before it
reads any conftest; subprocesses of a test inherit the variable.
"""

import os

os.environ["CHATSTORE_STACK"] = "test"
# Workers of tests watch nothing: what tests leave behind on purpose would be found.
os.environ["WATCH_SECONDS"] = "0"

from chatstore.settings import *  # noqa: F403
