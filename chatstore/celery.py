"""The Celery application. Tasks carry only ids; the state of the work is in Postgres.

The store keeps Cassandra sessions per process id, so that a worker's children open their own after the fork.
"""

import atexit
import gc
import os

from celery import Celery
from celery.signals import worker_before_create_process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")

app = Celery("chatstore")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_before_create_process.connect  # type: ignore[untyped-decorator]
def freeze_loaded_objects(**_: object) -> None:
    """Keep everything that was loaded before the fork out of garbage collections.

    A full collection took up to a second on a busy machine, also in the middle of a transaction, and half of the
    processor time of a scan.
    """
    gc.freeze()


# The final garbage collections would traverse everything that was loaded, for seconds on a busy machine.
atexit.register(gc.freeze)
