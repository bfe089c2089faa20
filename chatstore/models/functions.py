"""Postgres functions that Django does not provide."""

from __future__ import annotations

from django.db import models


class ClockTimestamp(models.Func):
    """Postgres's current clock, as opposed to the start of the transaction."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()
