"""The only module that uses Redis (or Valkey): one client per process, errors as `StoreUnavailable`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from django.conf import settings
from redis.exceptions import RedisError

from chatstore.domain.errors import StoreUnavailable
from chatstore.domain.texts import gettext_lazy as _

TIMEOUT_SECONDS = 2.0
"""Nothing in Redis is worth a longer wait: all of it can be rebuilt."""


class Client(redis.Redis):
    """A client whose commands raise `StoreUnavailable` if the server is unavailable."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command; every method of the client calls this."""
        with _translated_errors():
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Return a pipeline with the same errors."""
        return Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class Pipeline(redis.client.Pipeline):
    """A pipeline with the errors of `Client`, through which its commands do not go."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the commands, and return their results."""
        with _translated_errors():
            return super().execute(raise_on_error)


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(_("Redis is unavailable: %(error)s.", error=type(error).__name__)) from error


class _Process:
    client: Client | None = None

    def forget(self) -> None:
        self.client = None


_process = _Process()
os.register_at_fork(after_in_child=_process.forget)


def redis_client() -> Client:
    """Return this process's client; strings are decoded."""
    if _process.client is None:
        pool = redis.ConnectionPool.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
        )
        _process.client = Client(connection_pool=pool)
    return _process.client
