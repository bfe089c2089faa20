"""The Celery application. Tasks only carry ids; what is due stands in Postgres.

Sessions to Cassandra are kept for each process id by the store, so that a worker's
children make their own after the fork.
"""

import atexit
import gc
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")

app = Celery("chatstore")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Python's last collections would visit everything that was loaded, for seconds on a busy machine.
atexit.register(gc.freeze)
