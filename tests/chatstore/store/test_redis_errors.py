"""Without Redis its client raises the error that pages expect, also for a pipeline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chatstore.domain.errors import StoreUnavailable
from chatstore.store.redis import Client


def read_one(client: Client) -> None:
    client.get("some")


def read_several(client: Client) -> None:
    with client.pipeline(transaction=False) as pipeline:
        pipeline.get("some")
        pipeline.execute()


@pytest.mark.unit
@pytest.mark.parametrize("read", [read_one, read_several])
def test_a_server_that_does_not_answer_is_unavailable(read: Callable[[Client], None]) -> None:
    # Nothing listens on this port.
    client = Client(host="127.0.0.1", port=1, socket_connect_timeout=2)
    with pytest.raises(StoreUnavailable, match="Redis is unavailable"):
        read(client)
