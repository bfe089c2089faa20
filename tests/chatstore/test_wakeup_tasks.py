"""An unconsumed wake-up task expires; beat enqueues the work again by then."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import Any

import pytest

from chatstore.store.redis import redis_client
from chatstore.tasks import work_on_run
from moderation.tasks import run_purge, scan_purge


@pytest.mark.parametrize("task", [work_on_run, run_purge, scan_purge], ids=lambda task: task.name)
def test_a_wakeup_task_has_an_expiry(task: Any) -> None:
    queue = f"wakeups-{uuid.uuid4().hex}"
    began = dt.datetime.now(dt.UTC)
    task.apply_async((0,), queue=queue)
    client: Any = redis_client()
    try:
        (message,) = map(json.loads, client.lrange(queue, 0, -1))
    finally:
        client.delete(queue)
    until = dt.datetime.fromisoformat(message["headers"]["expires"])
    assert dt.timedelta(seconds=30) < until - began < dt.timedelta(minutes=5)
