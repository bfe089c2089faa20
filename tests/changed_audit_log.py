"""Changes to the audit log, which the application and the owner of the tables cannot make: a superuser can."""

from __future__ import annotations

import os

import psycopg
from django.conf import settings
from django.db import connection

from chatstore.local.layout import POSTGRES_SUPERUSER, read_stack
from chatstore.local.secrets import read_or_make_secret


def change_audit_log(sql: str, *params: object) -> None:
    """Run a statement in a transaction of its own, without triggers; on an external server as the usual role.

    Deleted entries do not wait for a link afterwards, so that other tests find the log complete.
    """
    parameters = connection.get_connection_params()
    options = {key: parameters[key] for key in ("host", "port", "dbname", "user", "password") if key in parameters}
    if settings.LOCAL_POSTGRES:
        password = read_or_make_secret(read_stack(os.environ), "postgres_password")
        options |= {"user": POSTGRES_SUPERUSER, "password": password}
    with psycopg.connect(**options) as own:
        own.execute("SET session_replication_role = replica")
        own.execute(sql, params or None)
        own.execute(
            "DELETE FROM moderation_unlinkedentry "
            "WHERE NOT EXISTS (SELECT FROM moderation_auditentry WHERE id = entry_id)"
        )
