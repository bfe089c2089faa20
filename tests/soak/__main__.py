"""`python -m tests.soak [SEED]`, on the test servers: see `running.py`."""

import os
import sys
from importlib import import_module

import django

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    # What follows imports models, which Django allows only now.
    sys.exit(import_module("tests.soak.running").main(sys.argv[1:]))
