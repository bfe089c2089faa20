#!/usr/bin/env python
"""Django's command line."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatstore.settings")
    if sys.argv[1:2] == ["migrate"] or (sys.argv[1:2] == ["audit_archive"] and "--delete" in sys.argv):
        # The one changes tables, the other deletes from the audit log; all else is the application to Postgres.
        os.environ.setdefault("CHATSTORE_POSTGRES_ROLE", "owner")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
