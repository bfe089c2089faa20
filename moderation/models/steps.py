"""Steps of purges and of undos: what workers claim in the queue.

`moderation.domain.states` defines the states; each transition is a conditional update.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import RawSQL

from chatstore.domain.buckets import BucketKey
from chatstore.models.functions import ClockTimestamp
from chatstore.models.texts import TemplateTextField
from moderation.domain.states import (
    DELETING,
    STEP_STATES,
    UNDO_STEP_STATES,
    StateGroups,
    StepKind,
    StepState,
    UndoStepState,
)
from moderation.models.purges import Purge, Undo

DUE = Q(due_at__isnull=True) | Q(due_at__lte=ClockTimestamp())
FREE = Q(lease_until__isnull=True) | Q(lease_until__lt=ClockTimestamp())
LEASED = Q(lease_until__gte=ClockTimestamp())

StepT = TypeVar("StepT", bound="AbstractStep")


class AbstractStepQuerySet(models.QuerySet[StepT]):
    """Steps by what can be done with them."""

    def open(self) -> Self:
        """Steps that are not in a final state."""
        return self.exclude(state__in=self.model.STATES.final)

    def due(self) -> Self:
        """Steps whose time has come, or that need not wait."""
        return self.filter(DUE)

    def in_buckets(self, keys: Collection[BucketKey]) -> Self:
        """Steps in any of some buckets."""
        # Two parameters, whatever the number of buckets.
        table = self.model._meta.db_table
        sql = f"({table}.channel_id, {table}.bucket) IN (SELECT * FROM unnest(%s::bigint[], %s::int[]))"
        params = ([channel_id for channel_id, _ in keys], [bucket for _, bucket in keys])
        return self.filter(RawSQL(sql, params, output_field=models.BooleanField()))  # noqa: S611  values are parameters

    def with_keys(self, keys: Collection[tuple[int, int]]) -> Self:
        """Steps with any of some primary keys. Postgres plans `pk__in` as one index scan for each of them."""
        purge_name, ordinal_name = (field.attname for field in self.model._meta.pk_fields)
        ordinals: dict[int, list[int]] = {}
        for purge_id, ordinal in keys:
            ordinals.setdefault(purge_id, []).append(ordinal)
        of_purges = (Q(**{purge_name: purge_id, f"{ordinal_name}__in": own}) for purge_id, own in ordinals.items())
        return self.filter(reduce(or_, of_purges, Q(pk__in=())))

    def free(self) -> Self:
        """Steps that no worker has under lease."""
        return self.filter(FREE)

    def leased(self) -> Self:
        """Steps that a worker has under lease."""
        return self.filter(LEASED)

    def claimed(self) -> Self:
        """Steps that a worker has claimed, even if its lease has expired."""
        return self.filter(lease_until__isnull=False)

    def partly_applied(self) -> Self:
        """Steps between *stamped* and *counted*, whose statements may have been sent."""
        return self.filter(self._is_partly_applied())

    def in_progress(self) -> Self:
        """Steps under lease, or between *stamped* and *counted*."""
        return self.filter(LEASED | self._is_partly_applied())

    def in_progress_or_due(self) -> Self:
        """Steps that keep their channel locked while a worker processes the purge."""
        return self.filter(LEASED | self._is_partly_applied() | DUE)

    def _is_partly_applied(self) -> Q:
        return Q(state__in=self.model.STATES.partly_applied)


def _queue_indexes(name: str, states: StateGroups) -> tuple[models.Index, ...]:
    """Return the indexes of what workers search for: open, claimed and partly applied steps, few of all steps.

    Their conditions are those of the query sets: Postgres uses a partial index if the query implies its condition.
    """
    is_open = ~Q(state__in=states.final)
    return (
        models.Index("purge_id", F("due_at").asc(nulls_first=True), "ordinal", condition=is_open, name=f"{name}_open"),
        models.Index(fields=("channel_id", "purge_id"), condition=is_open, name=f"{name}_open_in_channel"),
        models.Index(
            fields=("purge_id", "lease_until", "token"), condition=Q(lease_until__isnull=False), name=f"{name}_claimed"
        ),
        models.Index(fields=("purge_id",), condition=Q(state__in=states.partly_applied), name=f"{name}_applied"),
    )


class AbstractStep(models.Model):
    """Part of a purge or of an undo in one bucket, processed as a unit by one worker at a time.

    A step is claimed by its token until its lease expires. due_at: not before this time; None: at any time.
    wait_reason: reason for the delay. A subclass has a `purge`, and an `ordinal` that orders its claims.
    """

    STATES: ClassVar[StateGroups]
    state: Any

    ordinal = models.IntegerField()
    channel_id = models.BigIntegerField()
    bucket = models.IntegerField()
    due_at = models.DateTimeField(null=True)
    token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    failed = models.IntegerField(default=0)
    wait_reason = TemplateTextField(blank=True)
    error = TemplateTextField(blank=True)
    counted_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        default_permissions = ()
        indexes: ClassVar[list[models.Index] | tuple[models.Index, ...]] = (
            models.Index(fields=("channel_id", "bucket"), name="%(class)s_by_bucket"),
        )

    @property
    def state_to_resume_in(self) -> str:
        """State from which another worker continues the step: before *stamped* it starts over."""
        return self.STATES.pending if self.state in self.STATES.before_stamped else self.state


class StepQuerySet(AbstractStepQuerySet["Step"]):
    """Steps of purges."""

    def counted_deletes(self) -> Self:
        """Counted steps that delete messages; rewrites delete none."""
        return self.filter(kind__in=DELETING, state=StepState.COUNTED)


class Step(AbstractStep):
    """Part of a purge in one bucket: deletes its ids, or rewrites the bucket.

    ids, survivors, gone_ids, failed_ids: packed ids. ranges: [[first, last], …], both inclusive, stored once at
    *stamped*. Stamps are µs. strategy: the one that was used: rows, drop, ranges or rewrite.

    first_id, last_id, sketch: of the ids that a deleting step was created with, so that a single id is found without
    unpacking all of them (`moderation.domain.sketches`); None: not recorded.

    renewed_at: time of the last renewal of its own copies that holds cover.
    copies_stored_at: time at which an undo of another purge last stored copies with this step's purge.

    undone_ids: ids that the step no longer deletes.
    """

    STATES = STEP_STATES

    pk = models.CompositePrimaryKey("purge_id", "ordinal")
    # The primary key's index begins with it.
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="steps", db_index=False)
    kind = models.CharField(max_length=10, choices=StepKind.choices())
    state = models.CharField(max_length=12, choices=StepState.choices(), default=StepState.PENDING)
    ids = models.BinaryField()
    count = models.IntegerField()
    first_id = models.BigIntegerField(null=True)
    last_id = models.BigIntegerField(null=True)
    sketch = models.BinaryField(null=True)
    read_stamp = models.BigIntegerField(null=True)
    delete_stamp = models.BigIntegerField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    renewed_at = models.DateTimeField(null=True)
    copies_stored_at = models.DateTimeField(null=True)
    strategy = models.CharField(max_length=10, blank=True)
    ranges = models.JSONField(null=True)
    survivors = models.BinaryField(null=True)
    gone_ids = models.BinaryField(null=True)
    failed_ids = models.BinaryField(null=True)
    undone_ids = models.BinaryField(null=True)
    deleted = models.IntegerField(default=0)
    already_gone = models.IntegerField(default=0)
    held = models.IntegerField(default=0)
    tombstones = models.IntegerField(null=True)

    objects = StepQuerySet.as_manager()

    class Meta(AbstractStep.Meta):
        indexes = (
            *AbstractStep.Meta.indexes,
            *_queue_indexes("step", STEP_STATES),
            models.Index(fields=("bucket", "first_id", "last_id"), name="step_by_ids"),
            # Few steps have any of these, so that pages can add them up.
            models.Index(fields=("purge_id", "bucket"), include=("held",), condition=Q(held__gt=0), name="step_held"),
            models.Index(fields=("purge_id", "channel_id", "bucket"), condition=Q(failed__gt=0), name="step_failed"),
            models.Index(
                fields=("purge_id",),
                include=("count",),
                condition=Q(kind=StepKind.LATER.value) & ~Q(state__in=STEP_STATES.final),
                name="step_deferred",
            ),
        )

    def __str__(self) -> str:
        return f"step {self.ordinal} of purge {self.purge_id}"


class UndoStepQuerySet(AbstractStepQuerySet["UndoStep"]):
    """Steps of undos."""


class UndoStep(AbstractStep):
    """Part of an undo: restores what one step of the purge deleted. It has the purge and the ordinal of that step.

    restore_ids, skipped_ids, failed_ids: packed ids. Those to restore; those that were withdrawn, that other purges
    delete or that are live already; and those of the first that could not be restored. restore_stamp: the stamp (µs)
    from which on the messages are written. It is stored at *stamped*, with the ids.

    requested = restored + withdrawn + still_purged + already_live + no_copy + failed.
    """

    STATES = UNDO_STEP_STATES

    pk = models.CompositePrimaryKey("undo_id", "ordinal")
    # The primary key's index begins with it.
    undo = models.ForeignKey(Undo, on_delete=models.PROTECT, related_name="steps", db_index=False)
    purge = models.ForeignKey(Purge, on_delete=models.PROTECT, related_name="undo_steps")
    state = models.CharField(max_length=12, choices=UndoStepState.choices(), default=UndoStepState.PENDING)
    restore_stamp = models.BigIntegerField(null=True)
    restore_ids = models.BinaryField(null=True)
    skipped_ids = models.BinaryField(null=True)
    failed_ids = models.BinaryField(null=True)
    requested = models.IntegerField(db_default=0, default=0)
    restored = models.IntegerField(db_default=0, default=0)
    withdrawn = models.IntegerField(db_default=0, default=0)
    still_purged = models.IntegerField(db_default=0, default=0)
    already_live = models.IntegerField(db_default=0, default=0)
    no_copy = models.IntegerField(db_default=0, default=0)

    objects = UndoStepQuerySet.as_manager()

    class Meta(AbstractStep.Meta):
        indexes = (
            *AbstractStep.Meta.indexes,
            *_queue_indexes("undostep", UNDO_STEP_STATES),
            models.Index(
                fields=("purge_id", "channel_id", "bucket"), condition=Q(failed__gt=0), name="undostep_failed"
            ),
        )

    def __str__(self) -> str:
        return f"step {self.ordinal} of undo {self.undo_id} of purge {self.purge_id}"


AnyStep = Step | UndoStep
