"""Brokers for workers started by tests: databases of the test Valkey without workers of other tests."""

from django.conf import settings

_PURPOSES = ("suite", "beat", "pages", "incident", "faults")
"""Each has two of Valkey's sixteen numbers, one for each of the suite's two databases."""


def broker_for(purpose: str) -> str:
    """Return the broker URL for one of `_PURPOSES`."""
    number = 2 * _PURPOSES.index(purpose) + settings.STACK.valkey_database
    return f"{settings.REDIS_URL.rsplit('/', 1)[0]}/{number}"
