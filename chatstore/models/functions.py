"""Postgres functions that Django does not provide."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class ClockTimestamp(models.Func):
    """Postgres's current clock, as opposed to the start of the transaction."""

    function = "clock_timestamp"
    template = "%(function)s()"
    output_field = models.DateTimeField()


class Trigrams(models.Func):
    """Every three consecutive characters of a text, in lower case: `trigrams()`, see the migrations of this app.

    For indexes that find a part of a name. Only functions of Postgres itself are used: the owner of the tables may not
    be allowed to create an extension such as pg_trgm.
    """

    function = "trigrams"
    output_field = ArrayField(models.TextField())


class NameTrigrams(Trigrams):
    """Trigrams of names with two spaces before each and one behind it: their beginnings and ends have their own."""

    template = "%(function)s('  ' || %(expressions)s || ' ')"
    arg_joiner = " || '   ' || "
