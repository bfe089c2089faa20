"""Poll tasks of beat expire when no worker takes them before the next poll."""

import datetime as dt
import json
import uuid
from typing import Any

import pytest
from django.conf import settings
from django_celery_beat.models import PeriodicTask

from chatstore.beat import Scheduler
from chatstore.celery import app
from chatstore.store.redis import redis_client


@pytest.mark.parametrize("name", settings.CELERY_BEAT_SCHEDULE)
def test_a_poll_task_has_an_expiry(name: str) -> None:
    PeriodicTask.objects.filter(name=name).delete()
    entry = Scheduler(app=app).schedule[name]
    queue, client = f"polls-{uuid.uuid4().hex}", redis_client()
    began = dt.datetime.now(dt.UTC)
    app.send_task(entry.task, **{**entry.options, "queue": queue})
    try:
        (message,) = map(json.loads, client.lrange(queue, 0, -1))
    finally:
        client.delete(queue)
    until = dt.datetime.fromisoformat(message["headers"]["expires"])
    assert dt.timedelta(0) < until - began < dt.timedelta(seconds=3 * settings.BEAT_POLL_SECONDS)


def test_a_poll_entry_stored_without_an_expiry_gets_one() -> None:
    name = "poll due purges"
    Scheduler(app=app).sync()
    PeriodicTask.objects.filter(name=name).update(expire_seconds=None)
    entry: Any = Scheduler(app=app).schedule[name]
    assert entry.options["expires"] == settings.BEAT_POLL_SECONDS
