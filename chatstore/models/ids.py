"""Ids made by Postgres that carry time and shard; `chatstore.domain.row_ids` says how."""

from __future__ import annotations

from django.db import models


class NextId(models.Func):
    """`next_id(shard)`, or `next_id()` for shard 0, as a column's default or as the value of one row.

    Only for rows that are created one at a time: after `bulk_create` the key would be an expression, not a number. An
    id may be taken, see `chatstore.operations.row_ids`.
    """

    function = "next_id"
    output_field = models.BigIntegerField()
