"""Functions of Postgres that Django does not know."""

from __future__ import annotations

from django.db import models


class ClockTimestamp(models.Func):
    """Postgres's clock as it is now, not as it was when the transaction began."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()
