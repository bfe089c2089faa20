"""WSGI application for gunicorn."""

import atexit
import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")

application = get_wsgi_application()
# The final garbage collections would traverse everything that was loaded, for seconds on a busy machine.
atexit.register(gc.freeze)
