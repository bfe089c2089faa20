"""Brokers for workers that a test starts: databases of the test Valkey in which no other test's workers listen."""

from django.conf import settings

_PURPOSES = ("suite", "beat", "pages", "incident", "faults")
"""Two numbers each, of Valkey's sixteen: for each of the two databases that the suite runs on."""


def broker_for(purpose: str) -> str:
    """Return the address of the broker for a purpose, of `_PURPOSES`."""
    number = 2 * _PURPOSES.index(purpose) + settings.STACK.valkey_database
    return f"{settings.REDIS_URL.rsplit('/', 1)[0]}/{number}"
