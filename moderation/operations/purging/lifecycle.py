"""Lifecycle of a purge for users: draft, confirm, discard. The caller enqueues the work after the commit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import Text, as_json, from_json
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from moderation.domain.selection import Selection
from moderation.domain.sent_twice import SENT_TWICE_WITHIN
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgeApproval, ScanPart
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.visibility import (
    ADD_PURGE,
    Actor,
    purge_for,
    require,
    require_over_matches,
    visible_purges,
)
from moderation.operations.purging.closing import close_approval
from moderation.operations.purging.limits import check_confirmation, check_open_previews
from moderation.operations.selection.scope import (
    check_scope,
    guilds_and_channels,
    only_guild_id,
    scope_of_moderator,
)
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.one_by_one import act_one_by_one

PREVIEW_LIFE = dt.timedelta(hours=24)
"""An older preview may be outdated; it expires unconfirmed."""

MAX_REPLACED = 20
"""Previews that are followed, each of which replaced the one before."""

EXPIRE_PREVIEW = "expire preview"
"""Name of the act of the poll, for the log and the finding of one that fails."""


class AlreadyDrafted(BadInput):
    """A form is sent again, unchanged, soon after it has drafted a preview, which is still open. purge_id: of it."""

    def __init__(self, purge_id: int) -> None:
        super().__init__(_("This form has drafted a preview already."))
        self.purge_id = purge_id


def draft_purge(
    *,
    moderator: User,
    selection: Selection,
    replaces: int | None = None,
    confirmed_at_once: bool = False,
    sent_form: UUID | None = None,
) -> Purge:
    """Create a purge to be scanned.

    replaces: a preview that the caller discards then. confirmed_at_once: no preview is left open. sent_form: identifies
    the form and what is filled in; None if it is not a page's. Raises `AlreadyDrafted`, `Forbidden`, `NotFound` for
    channels that the moderator cannot see, and `BadInput` above their limit of open previews.
    """
    require(moderator, ADD_PURGE)
    check_scope(selection, moderator)
    selection = selection.limited_to(scope_of_moderator(selection, moderator))
    guild_ids, channel_ids = guilds_and_channels(selection)
    purge = Purge(
        state=PurgeState.SCANNING,
        selection=selection.as_json(),
        moderator=moderator,
        guild_id=only_guild_id(selection) or 0,
        guild_ids=guild_ids,
        channel_ids=channel_ids,
        sent_form=sent_form,
    )
    with transaction.atomic():
        if sent_form is not None:
            _check_not_sent_twice(sent_form, moderator)
        if not confirmed_at_once:
            check_open_previews(moderator, guild_ids, life=PREVIEW_LIFE, replaced=replaces)
        save_with_next_id(purge)
        record_action(
            "purge_drafted",
            actor=moderator,
            purge=purge,
            channel_id=selection.only_channel_id,
            details={"selection": purge.selection},
        )
    return purge


def _check_not_sent_twice(sent_form: UUID, moderator: User) -> None:
    # The second of two requests at the same time waits for the first.
    lock_account(moderator)
    drafts = Purge.objects.filter(sent_form=sent_form, moderator=moderator, created_at__gt=Now() - SENT_TWICE_WITHIN)
    # One that found nothing is outdated as soon as anything has changed, and another one costs nothing.
    draft = drafts.filter(state__in=(PurgeState.SCANNING, PurgeState.READY)).order_by("pk").first()
    if draft is not None:
        raise AlreadyDrafted(draft.pk)


def confirm_purge(purge_id: int, *, moderator: User, reason: str, manifest_hash: bytes) -> Purge:
    """Confirm exactly the manifest with this hash: *ready* → *queued*. Idempotent.

    Raises `BadInput` without a reason, for another hash, for an empty or expired preview, and above a limit.
    """
    require(moderator, ADD_PURGE)
    reason = check_reason(reason, missing=_("Enter a reason. Everyone who can view the purge will see it."))
    with brief_transaction():
        purge = lock_preview(purge_id, moderator=moderator, manifest_hash=manifest_hash)
        if purge.confirmed_at is None:
            check_confirmation(purge, moderator)
            queue_purge(purge, moderator=moderator, reason=reason, details={})
            purge.refresh_from_db()
    return purge


def lock_preview(purge_id: int, *, moderator: User, manifest_hash: bytes) -> Purge:
    """Lock a preview that can be confirmed, or that was: the caller looks at `confirmed_at`.

    Raises `Forbidden`, `NotFound`, and `BadInput`.
    """
    purge_for(moderator, purge_id, ADD_PURGE)
    purge = lock_purge(purge_id)
    require_over_matches(moderator, ADD_PURGE, purge)
    if purge.manifest_hash is None or bytes(purge.manifest_hash) != manifest_hash:
        raise BadInput(_("The preview has changed since you opened it. Reload it, then confirm."))
    if purge.confirmed_at is not None:
        return purge
    refuse_ended(purge)
    if purge.state != PurgeState.READY:
        raise BadInput(
            _("This purge cannot be confirmed in its present state: %(state)s.", state=STATE_LABELS[purge.state])
        )
    expired = Purge.objects.filter(id=purge_id, ready_at__lt=ClockTimestamp() - PREVIEW_LIFE)
    if expired.exists():
        raise BadInput(_("This preview is over 24 hours old. Create a new one."))
    return purge


def queue_purge(purge: Purge, *, moderator: User, reason: str, details: Mapping[str, str]) -> None:
    """Confirm a locked preview: → *queued*. details: of the audit entry, besides the manifest and the reason."""
    Purge.objects.filter(id=purge.pk).update(
        state=PurgeState.QUEUED, reason=reason, confirmed_at=ClockTimestamp(), moderator=moderator
    )
    close_approval(purge, actor=moderator, cause=_("The purge was confirmed without it."))
    manifest_hash = bytes(purge.manifest_hash or b"").hex()
    confirmed = {"reason": reason, "manifest_hash": manifest_hash, "manifest": purge.manifest}
    record_action("purge_confirmed", actor=moderator, purge=purge, details={**confirmed, **details})


def discard_preview(purge_id: int, *, moderator: User, replaced_by: int | None = None) -> None:
    """Discard a preview, also while it is scanned: → *expired*. No effect on a purge in another state.

    replaced_by: the preview that takes its place.
    The workers that scan it stop when they store the next buckets, because they have lost the scan.
    """
    require(moderator, ADD_PURGE)
    with brief_transaction():
        purge = purge_for(moderator, purge_id, ADD_PURGE)
        previews = Purge.objects.filter(id=purge_id, state__in=(PurgeState.SCANNING, PurgeState.READY))
        if previews.update(state=PurgeState.EXPIRED, scan_token=None, scan_lease_until=None, wait_reason=""):
            ScanPart.objects.filter(purge_id=purge_id).delete()
            close_approval(purge, actor=moderator, cause=_("The preview was discarded."))
            details = {} if replaced_by is None else {"replaced_by": str(replaced_by)}
            record_action("preview_discarded", actor=moderator, purge=purge, details=details)


@dataclass(frozen=True, slots=True)
class PreviewEnd:
    """How a preview ended that was not confirmed.

    discarded_by: None if it expired. cause: if it did so early. replaced_by: the preview that took its place.
    """

    at: dt.datetime
    discarded_by: User | None
    cause: str
    replaced_by: int | None


def end_of_preview(purge: Purge) -> PreviewEnd | None:
    """Return how a preview ended, by the audit log; None if it has not."""
    ends = purge.audit.filter(action__in=("preview_discarded", "preview_expired"))
    entry = ends.select_related("actor").first()
    if entry is None:
        return None
    replaced_by = entry.details.get("replaced_by")
    return PreviewEnd(
        entry.at,
        entry.actor,
        from_json(entry.details.get("cause", "")),
        None if replaced_by is None else int(replaced_by),
    )


def replacement_of(user: Actor, end: PreviewEnd) -> Purge | None:
    """Return the preview or purge that has the place of one that was replaced, maybe several times.

    None if there is none, and if the user cannot see it.
    """
    found = None
    for _hop in range(MAX_REPLACED):
        if end.replaced_by is None:
            break
        found = visible_purges(user).filter(pk=end.replaced_by).first()
        next_end = end_of_preview(found) if found is not None and found.state == PurgeState.EXPIRED else None
        if next_end is None:
            break
        end = next_end
    return found


def refuse_ended(purge: Purge) -> None:
    """Raise `BadInput` for a preview that was discarded or has expired."""
    if purge.state == PurgeState.EXPIRED:
        end = end_of_preview(purge)
        if end is not None and end.discarded_by is not None:
            raise BadInput(_("This preview was discarded in the meantime. Nothing was deleted."))
        raise BadInput(_("This preview has expired. Nothing was deleted."))


def expire_previews() -> int:
    """Expire previews that were not confirmed within a day, and await no approval; return their number.

    Also those that were not scanned within a day, because each attempt fails: they count as open previews.
    """
    awaiting = PurgeApproval.objects.undecided().filter(purge=OuterRef("pk"))
    before = ClockTimestamp() - PREVIEW_LIFE
    is_old = Q(state=PurgeState.READY, ready_at__lt=before) | Q(state=PurgeState.SCANNING, created_at__lt=before)
    old = Purge.objects.filter(is_old, ~Exists(awaiting))

    def expire(purge_id: int) -> bool:
        purge = old.select_for_update(skip_locked=True).filter(pk=purge_id).first()
        if purge is not None:
            _expire(purge)
        return purge is not None

    return act_one_by_one(old.order_by("pk"), expire, name=EXPIRE_PREVIEW)


def expire_scan(purge_id: int, *, cause: Text) -> None:
    """Expire a preview while it is scanned; its workers stop as if it was discarded. cause: for the audit log."""
    with brief_transaction():
        purge = lock_purge(purge_id)
        if purge.state == PurgeState.SCANNING:
            _expire(purge, cause=as_json(cause))


def _expire(purge: Purge, **details: object) -> None:
    Purge.objects.filter(pk=purge.pk).update(
        state=PurgeState.EXPIRED, scan_token=None, scan_lease_until=None, wait_reason=""
    )
    ScanPart.objects.filter(purge_id=purge.pk).delete()
    record_action("preview_expired", actor=None, purge=purge, details=details)
