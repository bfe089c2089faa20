"""`python -m tests.scale.large_purge [--channels N] [--messages N] [--phases PHASE …]`: see `running.py`."""

import os
import sys
from importlib import import_module

import django

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    # Models can be imported only after django.setup().
    sys.exit(import_module("tests.scale.large_purge.running").main(sys.argv[1:]))
