"""Search for the steps that contain some ids. Ids are packed, so they are unpacked only where they may be."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import BooleanField, F, Func, Q, QuerySet

from chatstore.domain.buckets import bucket_of
from moderation.domain.packing import unpack_ids
from moderation.domain.sketches import bit_of
from moderation.domain.states import DELETING
from moderation.models import Step

STEPS_AT_ONCE = 50
"""Steps whose packed ids are in memory at a time: 5 MB each if each has a million ids."""

IDS_AT_ONCE = 100
"""Ids per query."""


class SketchContains(Func):
    """Test of a step's sketch for an id. Postgres fetches one byte of it.

    True for a step without a sketch; False for an empty sketch.
    """

    output_field = BooleanField()
    template = (
        "COALESCE(get_bit(substring(%(expressions)s from "
        "((%(byte)s * NULLIF(octet_length(%(expressions)s), 0)) >> 32)::int + 1 for 1), %(bit)s) = 1, "
        "%(expressions)s IS NULL)"
    )

    def __init__(self, message_id: int) -> None:
        byte, bit = bit_of(message_id)
        super().__init__(F("sketch"), byte=f"{byte}::bigint", bit=bit)


def may_be_in_step(message_id: int) -> Q:
    """Return a condition for steps that may contain an id, by first and last id and by sketch."""
    return Q(Q(first_id=None) | Q(first_id__lte=message_id, last_id__gte=message_id), SketchContains(message_id))


def steps_containing(steps: QuerySet[Step], ids: Collection[int]) -> Iterator[Step]:
    """Yield the deleting steps among some whose ids include one of these; only keys and buckets are loaded.

    A bucket number may be in 50,000 channels: steps that cannot contain an id are skipped by their first and last id
    and their sketch; the others are unpacked one after the other.
    """
    wanted = sorted(ids)
    for start in range(0, len(wanted), IDS_AT_ONCE):
        some = frozenset(wanted[start : start + IDS_AT_ONCE])
        may_contain = Q()
        for message_id in some:
            may_contain |= Q(may_be_in_step(message_id), bucket=bucket_of(message_id))
        found = steps.filter(may_contain, kind__in=DELETING).order_by("channel_id", "bucket")
        for step in found.only("purge_id", "ordinal", "channel_id", "bucket", "ids").iterator(STEPS_AT_ONCE):
            if not some.isdisjoint(unpack_ids(step.ids)):
                yield step
