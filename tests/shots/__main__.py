"""`python -m tests.shots [--check] [--width=N …] [NAME …]`: take screenshots of all pages, or of those named NAME….

Each is checked, by axe-core too. With `--check` they are only checked, in one width.
"""

import os
import sys
from importlib import import_module

import django

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    # Models can be imported only after django.setup().
    sys.exit(import_module("tests.shots.screenshots").main(sys.argv[1:]))
