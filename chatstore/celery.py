"""The Celery application. Tasks carry only ids; the state of the work is in Postgres.

The store keeps Cassandra sessions per process id, so that a worker's children open their own after the fork.
"""

import atexit
import gc
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")

app = Celery("chatstore")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# The final garbage collections would traverse everything that was loaded, for seconds on a busy machine.
atexit.register(gc.freeze)
