"""Undo requests: whole or in part, for 30 days. The caller enqueues the work after the commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add

from django.conf import settings
from django.db import connection
from django.db.models import BigIntegerField, Exists, F, Func, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models.users import User
from moderation.domain.packing import unpack_ids
from moderation.domain.selection import MAX_SELECTED_MESSAGES
from moderation.domain.sent_twice import SENT_TWICE_WITHIN
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import (
    CAN_BE_UNDONE,
    PurgeState,
    UndoStepState,
)
from moderation.models import Hold, Purge, Step, Undo, UndoStep
from moderation.operations.access.audit import record_action, record_purged, save_with_next_id
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.visibility import ADD_PURGE, purge_for, require, require_over_matches
from moderation.operations.holds import holds_covering, time_in_force
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.deleted_ids import is_any_deleted, largest_channels, sum_deleted
from moderation.operations.steps.in_parts import cancel_next_steps
from moderation.operations.steps.manifest_authors import count_by_author
from moderation.operations.steps.open_steps import IS_INCOMPLETE
from moderation.operations.steps.searching import steps_containing
from moderation.operations.steps.sums import RESTORED_COUNTS
from moderation.operations.steps.totals import count_still_deleted, totals_of

CHANNELS_NAMED = 5

_UNDO_STEPS = UndoStep._meta.db_table

MAX_STEPS_AT_ONCE = 2_000
"""Maximum number of steps that are created in one transaction: the request of an undo answers at once, and its workers
create the others."""


class AlreadyRequested(BadInput):
    """An earlier request restores the same messages, or has restored them. The later one changes nothing."""


@dataclass(frozen=True, slots=True)
class UndoPart:
    """Part of a purge to restore; all of it if nothing is named."""

    author_ids: tuple[int, ...] = ()
    channel_ids: tuple[int, ...] = ()
    message_ids: tuple[int, ...] = ()

    def as_json(self) -> dict[str, list[str]]:
        """Return ids as strings, because JavaScript numbers cannot represent them."""
        named = {"authors": self.author_ids, "channels": self.channel_ids, "messages": self.message_ids}
        return {key: [str(number) for number in ids] for key, ids in named.items()}

    @classmethod
    def from_json(cls, value: dict[str, list[str]]) -> UndoPart:
        """Restore a part from the value that `as_json` returned."""
        ids = {key: tuple(map(int, texts)) for key, texts in value.items()}
        return cls(ids["authors"], ids["channels"], ids["messages"])


@dataclass(frozen=True, slots=True)
class UndoOffer:
    """What the undo of a purge or a part of it would restore.

    count: number of messages. is_upper_bound: some of them may be restored already. is_whole: all messages of the
    manifest. channel_ids: those with most of the messages, at most `CHANNELS_NAMED` of `channel_count`.
    """

    count: int
    is_upper_bound: bool
    is_whole: bool
    channel_ids: Sequence[int]
    channel_count: int


@dataclass(frozen=True, slots=True)
class UndoTotals:
    """Totals of an undo: requested = restored + withdrawn + still_purged + already_live + no_copy + failed."""

    requested: int
    restored: int
    withdrawn: int
    still_purged: int
    already_live: int
    no_copy: int
    failed: int

    @classmethod
    def of(cls, undo: Undo) -> UndoTotals:
        """Return the sums of the counted steps of an undo, as it was read from Postgres."""
        return cls(**{name: getattr(undo, name) for name in RESTORED_COUNTS})

    @property
    def has_others(self) -> bool:
        """Return whether messages had another outcome than to be restored: only then is there a sum to show."""
        return any((self.withdrawn, self.still_purged, self.already_live, self.no_copy, self.failed))

    def as_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class UndoPeriod:
    """Time until which a purge can be undone; None if it has no copies.

    without_holds: the same for messages that no hold covers. hold: the newest one in force that covers some messages.
    """

    until: dt.datetime | None
    without_holds: dt.datetime | None
    hold: Hold | None = None

    def shown_until(self, now: dt.datetime) -> dt.datetime | None:
        """Return until when all messages can be restored or, after that, those that a hold covered.

        A hold in force moves `until` on, and may cover nothing that was deleted.
        """
        return self.until if self.without_holds is not None and self.without_holds <= now else self.without_holds


def undo_period_of(purge: Purge) -> UndoPeriod:
    """Return a purge's undo period: 30 days from its first chunk.

    It is suspended while a hold covers some of its messages; copies that no hold covers expire as usual.
    """
    without = undo_until_without_holds(purge)
    if without is None:
        return UndoPeriod(None, None)
    since = without - _undo_period()
    holds = holds_covering(purge, since=since)
    held = time_in_force(holds, since=since)
    return UndoPeriod(without + held, without, next((hold for hold in holds if hold.lifted_at is None), None))


def undo_until(purge: Purge) -> dt.datetime | None:
    """Return until when a purge can be undone; None if it has no copies."""
    return undo_period_of(purge).until


def undo_until_without_holds(purge: Purge) -> dt.datetime | None:
    """Return the same for messages that no hold covers."""
    return None if purge.quarantined_at is None else purge.quarantined_at + _undo_period()


def is_past_undo_period(purge: Purge, *, at: dt.datetime | None = None) -> bool:
    """Return whether the undo period has passed, holds aside: only held messages can still be restored. at: not now."""
    until = undo_until_without_holds(purge)
    return until is not None and until <= (at or timezone.now())


def _undo_period() -> dt.timedelta:
    return dt.timedelta(days=settings.QUARANTINE_DAYS)


def can_be_undone(purge: Purge) -> bool:
    """Return whether some messages of the purge can still be restored."""
    if purge.state not in CAN_BE_UNDONE:
        return False
    until = undo_until(purge)
    return until is not None and timezone.now() < until


def offer_undo(purge_id: int, *, moderator: User, part: UndoPart) -> UndoOffer:
    """Return what the undo of a purge or a part of it would restore now.

    Raises `AlreadyRequested`, and `BadInput` if there is nothing to restore or the undo period has passed.
    """
    require(moderator, ADD_PURGE)
    purge = purge_for(moderator, purge_id, ADD_PURGE)
    require_over_matches(moderator, ADD_PURGE, purge, channel_ids=part.channel_ids)
    _check_earlier_requests(purge, part, moderator)
    sources = _sources_of(purge, part)
    channel_ids, channel_count = largest_channels(sources, limit=CHANNELS_NAMED)
    is_complete = count_still_deleted(purge) == purge.manifest
    return UndoOffer(
        count=_count_requested(purge, part, sources),
        is_upper_bound=bool(part.author_ids) and not is_complete,
        is_whole=is_complete and part == UndoPart(),
        channel_ids=channel_ids,
        channel_count=channel_count,
    )


def request_undo(purge_id: int, *, moderator: User, part: UndoPart, reason: str) -> Undo:
    """Request the undo of a purge or a part of it: → *undoing*.

    Cancels a paused purge first. Raises `AlreadyRequested` if an earlier request restores the same, and `BadInput`
    without a reason, if there is nothing to restore, and if the undo period has passed.
    """
    require(moderator, ADD_PURGE)
    reason = check_reason(reason, missing=_("Enter a reason. Everyone who can view the purge will see it."))
    with brief_transaction():
        purge_for(moderator, purge_id, ADD_PURGE)
        purge = lock_purge(purge_id)
        require_over_matches(moderator, ADD_PURGE, purge, channel_ids=part.channel_ids)
        _check_earlier_requests(purge, part, moderator)
        sources = _sources_of(purge, part)
        is_paused = purge.state == PurgeState.PAUSED
        if is_paused:
            _cancel_rest(purge, moderator)
        undo = Undo(
            purge=purge,
            moderator=moderator,
            reason=reason,
            part=part.as_json(),
            expected=_count_requested(purge, part, sources),
            steps_created_to=0,
        )
        save_with_next_id(undo)
        if not is_paused or (_is_small(purge) and _end_paused(purge)):
            _create_steps(undo, sources)
        Purge.objects.filter(id=purge_id).update(
            state=PurgeState.UNDOING, reopened_to=None, wait_reason="", wait_until=None
        )
        details = {"undo": str(undo.pk), "part": undo.part, "reason": reason}
        record_action("undo_requested", actor=moderator, purge=purge, details=details)
    return undo


def _check_earlier_requests(purge: Purge, part: UndoPart, moderator: User) -> None:
    """Raise `AlreadyRequested` if an undo restores a part, or all of the purge, or has restored it."""
    has_ended = Q(requested=F("restored") + F("already_live"))
    sent_twice = has_ended & Q(moderator=moderator, requested_at__gt=Now() - SENT_TWICE_WITHIN)
    earlier = purge.undos.filter(Q(finished_at=None) | sent_twice).values_list("part", flat=True)
    if purge.state == PurgeState.UNDONE or any(UndoPart.from_json(one) in (part, UndoPart()) for one in earlier):
        raise AlreadyRequested(_("An earlier request restores these messages, or has restored them already."))


def _sources_of(purge: Purge, part: UndoPart) -> QuerySet[Step]:
    """Return the steps whose messages an undo restores; raise `BadInput` if it is not possible or there are none."""
    if len(part.message_ids) > MAX_SELECTED_MESSAGES:
        # Each is searched for, also in the transaction that locks the purge.
        raise BadInput(
            ngettext_lazy(
                "Select at most %(count)s message to restore, or restore an author, a channel or the whole purge.",
                "Select at most %(count)s messages to restore, or restore an author, a channel or the whole purge.",
                MAX_SELECTED_MESSAGES,
            )
        )
    has_expired = purge.state == PurgeState.UNDO_EXPIRED
    if purge.state not in CAN_BE_UNDONE and not has_expired:
        raise BadInput(
            _("This purge cannot be undone in its present state: %(state)s.", state=STATE_LABELS[purge.state])
        )
    if has_expired or (purge.quarantined_at is not None and not can_be_undone(purge)):
        raise BadInput(
            ngettext_lazy(
                "Deleted messages can be restored for %(count)s day. That period has passed.",
                "Deleted messages can be restored for %(count)s days. That period has passed.",
                settings.QUARANTINE_DAYS,
            )
        )
    sources = steps_to_undo(purge, part)
    if not sources.exists():
        raise BadInput(_("This purge did not delete any of the requested messages."))
    return sources


def undo_totals_of(undo: Undo) -> UndoTotals:
    """Return the present sums of the counted steps of one undo."""
    undo.refresh_from_db(fields=RESTORED_COUNTS)
    return UndoTotals.of(undo)


def create_next_steps(purge: Purge) -> bool:
    """Create the next steps of an undo that does not have all of them; return whether anything was left to do.

    Called with the purge's row locked.
    """
    for undo in purge.undos.filter(IS_INCOMPLETE).order_by("pk"):
        if undo.steps_created_to == 0 and not _end_paused(purge):
            return True
        sources = steps_to_undo(purge, UndoPart.from_json(undo.part), at=undo.requested_at)
        if _create_steps(undo, sources.filter(ordinal__gt=undo.steps_created_to)):
            return True
    return False


def steps_to_undo(purge: Purge, part: UndoPart, *, at: dt.datetime | None = None) -> QuerySet[Step]:
    """Return the steps that an undo requests. at: the time of the request."""
    counted = purge.steps.counted_deletes()
    if is_past_undo_period(purge, at=at):
        counted = counted.filter(renewed_at__isnull=False)
    if part.channel_ids:
        counted = counted.filter(channel_id__in=part.channel_ids)
    if part.author_ids:
        authors = [str(author) for author in part.author_ids]
        author_buckets = purge.manifest_buckets.filter(channel_id=OuterRef("channel_id"), bucket=OuterRef("bucket"))
        counted = counted.filter(Exists(author_buckets.filter(authors__has_any_keys=authors)))
    if part.message_ids:
        counted = counted.filter(ordinal__in=[step.ordinal for step in steps_containing(counted, part.message_ids)])
    return counted


class _CountOf(Func):
    """Number of messages by author of a manifest's bucket: (authors, author id as text)."""

    # Django takes a key of digits for the position in an array.
    template = "(%(expressions)s)::bigint"
    arg_joiner = " ->> "
    output_field = BigIntegerField()


def _count_requested(purge: Purge, part: UndoPart, sources: QuerySet[Step]) -> int:
    """Return the number of messages of some steps that an undo requests; an upper bound for authors."""
    if part.message_ids:
        wanted = frozenset(part.message_ids)
        return sum(len(wanted.intersection(unpack_ids(ids))) for ids in sources.values_list("ids", flat=True))
    if part.author_ids:
        if _is_anywhere(purge, part) and (listed := count_by_author(purge)) is not None:
            return sum(listed.get(author, 0) for author in part.author_ids)
        there = sources.filter(channel_id=OuterRef("channel_id"), bucket=OuterRef("bucket"))
        authors = [str(author) for author in part.author_ids]
        chosen = purge.manifest_buckets.filter(Exists(there), authors__has_any_keys=authors).order_by()
        counts = [Coalesce(_CountOf(F("authors"), Value(author)), 0) for author in authors]
        return int(chosen.aggregate(total=Sum(reduce(add, counts), default=0))["total"])
    if part.channel_ids or is_past_undo_period(purge):
        return sum_deleted(sources)
    return count_still_deleted(purge)


def _is_anywhere(purge: Purge, part: UndoPart) -> bool:
    """Return whether the part is in all buckets of the manifest, and all of it was deleted and can be restored."""
    total = totals_of(purge)
    was_deleted = total.deleted + total.already_gone == purge.manifest
    return was_deleted and not part.channel_ids and not is_past_undo_period(purge)


def _cancel_rest(purge: Purge, moderator: User) -> None:
    left = purge.steps.open()
    if left.in_progress().exists():
        raise BadInput(_("A worker is still completing a step of this purge. Try again in a moment."))
    record_action("purge_cancelled", actor=moderator, purge=purge)


def _is_small(purge: Purge) -> bool:
    """Return whether the request can process all steps of the purge; otherwise its workers do."""
    return not purge.steps.filter(ordinal__gt=MAX_STEPS_AT_ONCE).exists()


def _end_paused(purge: Purge) -> bool:
    """Cancel the next open steps of a purge that was paused, then record what it deleted; return whether all was."""
    # A worker that was suspended when the purge was paused may still renew its lease.
    return not cancel_next_steps(purge, claimed=True) and record_purged(purge)


def _create_steps(undo: Undo, sources: QuerySet[Step]) -> int:
    """Create a step for each of the first sources, and store how far that is; return their number."""
    columns = "purge_id", "ordinal", "channel_id", "bucket"
    first = sources.order_by("ordinal").values_list(*columns)[:MAX_STEPS_AT_ONCE]
    chosen, params = first.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH created AS (INSERT INTO {_UNDO_STEPS} "
            f"({', '.join(columns)}, undo_id, state, failed, wait_reason, error) "
            f"SELECT chosen.*, %s, %s, 0, '', '' FROM ({chosen}) AS chosen RETURNING ordinal) "
            "SELECT count(*), max(ordinal) FROM created",
            (undo.pk, UndoStepState.PENDING, *params),
        )
        count, last = cursor.fetchone() or (0, None)
    undo.steps_created_to = last if count == MAX_STEPS_AT_ONCE else None
    Undo.objects.filter(id=undo.pk).update(steps_created_to=undo.steps_created_to)
    return int(count)


def finish_undos(purge: Purge) -> PurgeState:
    """Finish the undos of a purge after all undo steps are counted; return the purge's new state.

    Called with the purge's row locked.
    """
    for undo in purge.undos.filter(finished_at=None):
        Undo.objects.filter(id=undo.pk).update(finished_at=Now())
        record_action("undo_finished", actor=None, purge=purge, details=UndoTotals.of(undo).as_json())
    # Not the stored sum: an error in it would decide the state.
    is_partial = is_any_deleted(purge.steps.counted_deletes())
    return PurgeState.PARTLY_UNDONE if is_partial else PurgeState.UNDONE
