"""Deleting one message at once: a purge like any other, which is previewed and confirmed in one step."""

from __future__ import annotations

from chatstore.domain.errors import BadInput, StoreUnavailable, TooManyTombstones
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.lifecycle import confirm_purge, discard_preview, draft_purge


def delete_message(channel_id: int, message_id: int, *, moderator: User, reason: str) -> Purge:
    """Create and confirm a purge of one message; the caller enqueues it.

    Raises what `preview_message` does, and `BadInput` above a limit; then nothing is left to confirm.
    """
    purge = preview_message(channel_id, message_id, moderator=moderator)
    manifest_hash = bytes(purge.manifest_hash or b"")
    try:
        return confirm_purge(purge.pk, moderator=moderator, reason=reason, manifest_hash=manifest_hash)
    except BadInput:
        discard_preview(purge.pk, moderator=moderator)
        raise


def preview_message(channel_id: int, message_id: int, *, moderator: User) -> Purge:
    """Return the preview of a purge of one message.

    Raises `Forbidden`, `NotFound` for a channel that the moderator cannot see, `BadInput` for a message that is held or
    gone, and `StoreUnavailable`; then nothing is left to confirm.
    """
    selection = Selection(channel_ids=(channel_id,), message_ids=(message_id,))
    purge = draft_purge(moderator=moderator, selection=selection, confirmed_at_once=True)
    try:
        scan_purge(purge.pk)
    except (StoreUnavailable, TooManyTombstones) as error:
        discard_preview(purge.pk, moderator=moderator)
        raise StoreUnavailable(_("The message could not be read. Try again.")) from error
    purge.refresh_from_db()
    if purge.state == PurgeState.NOTHING_MATCHED:
        if purge.held_at_scan:
            raise BadInput(_("A legal hold covers this message, so it cannot be deleted."))
        raise BadInput(_("This message is no longer in the channel."))
    if purge.state != PurgeState.READY:
        # A worker has claimed the scan meanwhile.
        discard_preview(purge.pk, moderator=moderator)
        raise StoreUnavailable(_("The message could not be read. Try again."))
    return purge
