"""Claims and resolutions of cases: one transaction with its audit entry for each.

A claim is a lease: it shows others who reads a case and keeps them from resolving it, and expires by itself. Resolving
needs no claim. A message is removed by a purge of its own, which is confirmed in the transaction that closes the case,
so it can be undone like any other; one that is deleted already, as after a raid, needs none.
"""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from chatstore.domain.errors import BadInput
from chatstore.domain.reports import Resolution
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import ReportCase
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.models import Purge
from moderation.operations.access.audit import record_action
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.visibility import name_of, require
from moderation.operations.lookup.message_history import history_of_message
from moderation.operations.preview.single_message import preview_message
from moderation.operations.purging.lifecycle import confirm_purge, discard_preview
from moderation.operations.reports.queue import RESOLVE_REPORTS, case_for

CLAIM_LEASE = dt.timedelta(minutes=10)
"""Long enough to read a case; an abandoned claim expires after it."""


def claim_case(case_id: int, *, actor: User) -> ReportCase:
    """Claim an open case, or renew one's own claim. Raises `Forbidden`, `NotFound`, `BadInput` if it is not free."""
    require(actor, RESOLVE_REPORTS)
    with transaction.atomic():
        case = _lock_open(case_id, actor)
        _claim(case, actor)
    return case


def release_case(case_id: int, *, actor: User) -> ReportCase:
    """End one's own claim. No effect without one. Raises `Forbidden`, `NotFound`."""
    require(actor, RESOLVE_REPORTS)
    case = case_for(actor, case_id, RESOLVE_REPORTS)
    with transaction.atomic():
        claimed = ReportCase.objects.open().filter(pk=case_id, claimed_by=actor)
        if claimed.update(claimed_by=None, claimed_until=None):
            _record(case, actor, action="report_released")
    return case


def resolve_case(case_id: int, *, actor: User, resolution: Resolution, reason: str) -> ReportCase:
    """Close a case; to remove the message, also confirm a purge of it, which the caller enqueues.

    If the message is deleted already, the case gets the purge that deletes it, if the moderator may see that.

    Raises `Forbidden`, `NotFound`, `StoreUnavailable`, and `BadInput` if another moderator has claimed or resolved it,
    if there is no reason to remove the message, or nothing to delete.
    """
    require(actor, RESOLVE_REPORTS)
    reason = check_reason(reason, missing="") if reason.strip() else ""
    _check_free(_check_open(case_for(actor, case_id, RESOLVE_REPORTS)), actor)
    if resolution is not Resolution.REMOVED:
        with transaction.atomic():
            case = _lock_open(case_id, actor)
            return _close(case, actor, resolution=resolution, reason=reason)
    shown = case_for(actor, case_id, RESOLVE_REPORTS)
    history = history_of_message(actor, shown.channel_id, shown.message_id)
    if history.is_deleted:
        earlier = history.deletion
        with transaction.atomic():
            case = _lock_open(case_id, actor)
            purge = earlier.purge if earlier is not None and earlier.is_visible else None
            return _close(case, actor, resolution=resolution, reason=reason, purge=purge)
    purge = preview_message(shown.channel_id, shown.message_id, moderator=actor)
    try:
        with transaction.atomic():
            case = _lock_open(case_id, actor)
            manifest_hash = bytes(purge.manifest_hash or b"")
            confirm_purge(purge.pk, moderator=actor, reason=reason, manifest_hash=manifest_hash)
            return _close(case, actor, resolution=resolution, reason=reason, purge=purge)
    except BadInput:
        discard_preview(purge.pk, moderator=actor)
        raise


def _close(
    case: ReportCase, actor: User, *, resolution: Resolution, reason: str, purge: Purge | None = None
) -> ReportCase:
    ReportCase.objects.filter(pk=case.pk).update(
        resolution=resolution,
        reason=reason,
        resolved_by=actor,
        resolved_at=ClockTimestamp(),
        purge_id=purge.pk if purge else None,
        claimed_by=None,
        claimed_until=None,
    )
    details = {"resolution": resolution.value, "reason": reason}
    _record(case, actor, action="report_resolved", purge=purge, **details)
    return case_for(actor, case.pk)


def _lock_open(case_id: int, actor: User) -> ReportCase:
    """Return an open case that no other moderator has claimed, with its row locked."""
    # Without a join: rows that are joined are read as they were before the wait for the lock.
    ReportCase.objects.select_for_update().filter(pk=case_id).first()
    case = case_for(actor, case_id, RESOLVE_REPORTS)
    _check_free(_check_open(case), actor)
    return case


def _check_open(case: ReportCase) -> ReportCase:
    if case.resolved_by is not None:
        raise BadInput(_("%(name)s has already resolved this report.", name=name_of(case.resolved_by)))
    return case


def _check_free(case: ReportCase, actor: User) -> None:
    claimed_by, until = case.claimed_by, case.claimed_until
    if claimed_by is None or until is None or claimed_by.pk == actor.pk or until < postgres_now():
        return
    text = _("%(name)s has claimed this report. It is free again at %(time)s.", name=name_of(claimed_by), time=until)
    raise BadInput(text)


def _claim(case: ReportCase, actor: User) -> None:
    """Claim a locked case. Renewing one's own claim is not recorded again."""
    is_renewed = case.claimed_by_id == actor.pk
    until = postgres_now() + CLAIM_LEASE
    ReportCase.objects.filter(pk=case.pk).update(claimed_by=actor, claimed_until=until)
    case.claimed_by, case.claimed_until = actor, until
    if not is_renewed:
        _record(case, actor, action="report_claimed")


def _record(case: ReportCase, actor: User, *, action: str, purge: Purge | None = None, **details: str) -> None:
    # Ids as strings, because JavaScript numbers cannot represent them.
    named = {"report": str(case.pk), "message": str(case.message_id), **details}
    record_action(
        action,
        actor=actor,
        purge=purge,
        channel_id=case.channel_id,
        chat_user_id=case.author_id,
        details=named,
    )
