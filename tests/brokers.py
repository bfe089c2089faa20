"""Brokers for workers started by tests: databases of the test Valkey without workers of other tests."""

from django.conf import settings

from chatstore.local.layout import TEST_STACK_NAMES

_PURPOSES = ("suite", "beat", "pages", "incident", "faults")
"""Each has three of Valkey's sixteen numbers, one for each database of the suite."""


def broker_for(purpose: str) -> str:
    """Return the broker URL for one of `_PURPOSES`."""
    number = len(TEST_STACK_NAMES) * _PURPOSES.index(purpose) + settings.STACK.valkey_database
    return f"{settings.REDIS_URL.rsplit('/', 1)[0]}/{number}"
