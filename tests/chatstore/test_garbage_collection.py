"""What a process loads once is not traversed by its garbage collections."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from celery.signals import worker_before_create_process

from chatstore.celery import app

LOADED = 100_000
"""Objects that the project and its libraries consist of at least."""

pytestmark = pytest.mark.unit


def test_workers_do_not_collect_what_was_loaded_before_the_fork() -> None:
    frozen = gc.get_freeze_count()
    try:
        worker_before_create_process.send(sender=app)
        assert gc.get_freeze_count() - frozen > LOADED
    finally:
        gc.unfreeze()


def test_the_web_does_not_collect_what_it_loaded_at_its_start() -> None:
    code = "import gc, chatstore.wsgi; print(gc.get_freeze_count())"
    web = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(web.stdout) > LOADED
