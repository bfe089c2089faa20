"""The real beat records heartbeats."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
import redis
from django.conf import settings

from tests.brokers import broker_for


@pytest.mark.slow
def test_beat_records_heartbeats() -> None:
    broker = broker_for("beat")
    client = redis.Redis.from_url(broker)
    client.flushdb()
    command = [sys.executable, "-m", "celery", "--app=chatstore", "beat", "--pidfile=", "--loglevel=WARNING"]
    environ = {**os.environ, "REDIS_URL": broker, "DJANGO_SETTINGS_MODULE": "chatstore.settings"}
    beat = subprocess.Popen(command, env=environ, cwd=settings.BASE_DIR)
    try:
        first = wait_for_heartbeat(client, after=0)
        later = wait_for_heartbeat(client, after=first)
    finally:
        beat.kill()
        beat.wait()
        client.close()
    assert later > first


def wait_for_heartbeat(client: redis.Redis, *, after: float) -> float:
    """Wait for a heartbeat newer than `after` and return its time."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        heartbeat = float(client.get("seen:beat") or 0)
        if heartbeat > after:
            return heartbeat
        time.sleep(0.1)
    raise AssertionError("beat recorded no heartbeat")
