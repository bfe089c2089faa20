"""Sharded ids made by Postgres itself (`next_id()`, see the first migration)."""

from __future__ import annotations

from django.db import models


class NextId(models.Func):
    """`next_id()` as a column default: 41 bits of ms since 2011, 13 of shard, 10 of sequence.

    Only for rows that are made one by one and saved with `insert_with_next_id`; after
    `bulk_create` the key would be an expression, not a number.
    """

    function = "next_id"
    template = "%(function)s()"
    output_field = models.BigIntegerField()
