"""The Redis client: returns text, one client per process, converted errors."""

import secrets
import socket

import pytest
import redis

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.redis import Client, redis_client


def test_a_stored_value_is_returned_as_text() -> None:
    key = f"test:{secrets.token_hex(8)}"
    redis_client().set(key, "é", ex=60)
    assert redis_client().get(key) == "é"
    assert redis_client() is redis_client()


def test_an_unresponsive_server_raises_store_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    pool = redis.ConnectionPool(host="127.0.0.1", port=port)
    with pytest.raises(StoreUnavailable, match="Redis is unavailable: ConnectionError"):
        Client(connection_pool=pool).get("x")
