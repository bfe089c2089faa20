"""WSGI application for gunicorn."""

import atexit
import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")

application = get_wsgi_application()
# Load all pages now instead of at the first request, then keep everything that was loaded out of garbage collections,
# which would traverse it during requests.
list(get_resolver().url_patterns)
gc.freeze()
# The final garbage collections would traverse everything that was loaded, for seconds on a busy machine.
atexit.register(gc.freeze)
