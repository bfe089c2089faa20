"""Message history: where a message is or was, which purges affected it, and its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from django.db.models import BooleanField, Case, Value, When

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput
from chatstore.domain.messages import Message
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel
from chatstore.store import messages, withdrawn
from chatstore.store.locating import Located, locate_message
from moderation.domain.outcomes import PurgeOutcome
from moderation.domain.restoring import newest_complete_rows
from moderation.domain.states import WITHOUT_COPIES, PurgeState
from moderation.operations.access.visibility import (
    ADD_PURGE,
    VIEW_PURGES,
    Actor,
    channel_for,
    hidden_purges,
    may_in,
    require,
    visible_channels,
)
from moderation.operations.lookup.purge_index import PurgePart, find_parts
from moderation.operations.undo.requests import AlreadyRequested, UndoPart, can_be_undone
from moderation.store.quarantine import QuarantineKey, quarantine_attempts, quarantined_copies

MAX_CHANNELS_SEARCHED = 20_000
"""Maximum number of channels searched for a bare id; usually the deadline is reached first."""


LOCATE_SECONDS = 0.6
"""Deadline of the search for a bare id. Together with the manifests searched before, the result should take at most a
second.
"""


class MessageStatus(StrEnum):
    """Status of a message. GONE: a purge found it already gone, and the cause was not recorded."""

    LIVE = "live"
    DELETED = "deleted"
    WITHDRAWN = "withdrawn"
    GONE = "gone"
    NEVER_SEEN = "never_seen"


@dataclass(frozen=True, slots=True)
class MessageHistory:
    """History of one message. live: its current version, if it exists.

    parts: outcomes of each purge that included it, newest first. undoable_parts: purges that still delete it and can
    be undone, newest first.
    """

    channel: Channel
    message_id: int
    live: Message | None
    is_withdrawn: bool
    parts: Sequence[PurgePart]

    @property
    def status(self) -> MessageStatus:
        """Status of the message."""
        if self.live is not None:
            return MessageStatus.LIVE
        if self.deletion is not None and self.deletion.outcome is PurgeOutcome.DELETED:
            return MessageStatus.DELETED
        if self.is_withdrawn:
            return MessageStatus.WITHDRAWN
        return MessageStatus.GONE if self.parts else MessageStatus.NEVER_SEEN

    @property
    def is_deleted(self) -> bool:
        """True if the message was there and no longer is."""
        return self.status in (MessageStatus.DELETED, MessageStatus.WITHDRAWN, MessageStatus.GONE)

    @property
    def deletion(self) -> PurgePart | None:
        """The purge that deletes the message: the last that deleted it, else the last that found it already gone."""
        deleted = (part for part in self.parts_in_effect if part.outcome is PurgeOutcome.DELETED)
        return next(deleted, next(iter(self.parts_in_effect), None))

    @property
    def parts_in_effect(self) -> list[PurgePart]:
        """Purges because of which the message is deleted, newest first.

        It is restored when the last of them is undone.
        """
        return [part for part in self.parts if part.is_in_effect]

    @property
    def undoable_parts(self) -> list[PurgePart]:
        """Purges that still delete it and can be undone; none if that would not restore the message."""
        if self.live is not None or self.is_withdrawn:
            return []
        return [part for part in self.parts_in_effect if part.is_visible and can_be_undone(part.purge)]

    @property
    def is_past_undo(self) -> bool:
        """True if the message can no longer be restored: a purge that deletes it can no longer be undone."""
        if self.live is not None or self.is_withdrawn:
            return False
        return any(part.purge.state in (PurgeState.UNDO_EXPIRED, *WITHOUT_COPIES) for part in self.parts_in_effect)

    @property
    def erased(self) -> PurgePart | None:
        """The purge that deletes the message and whose copies were erased."""
        if self.live is not None or self.is_withdrawn:
            return None
        return next((part for part in self.parts_in_effect if part.purge.state in WITHOUT_COPIES), None)


def history_of_message(user: Actor, channel_id: int, message_id: int) -> MessageHistory:
    """Return the history of a message of a channel. Raises `NotFound` for the channel, `StoreUnavailable`."""
    channel = channel_for(user, channel_id)
    noted = withdrawn.read_withdrawal(channel_id, message_id)
    is_withdrawn = message_id in noted.certain
    live = messages.read_message(channel_id, message_id)
    parts = find_parts(message_id, channel_id=channel_id, withdrawn=is_withdrawn)
    if message_id in noted.claims:
        found = live or _read_quarantined(channel_id, message_id, parts)
        if found is not None and noted.has(message_id, author_id=found.author_id):
            is_withdrawn = True
            parts = find_parts(message_id, channel_id=channel_id, withdrawn=True)
    parts = _mark_visible(user, parts)
    return MessageHistory(channel=channel, message_id=message_id, live=live, is_withdrawn=is_withdrawn, parts=parts)


def _mark_visible(user: Actor, parts: list[PurgePart]) -> list[PurgePart]:
    """Return the parts with whether the user may see their purges, which may have channels elsewhere."""
    hidden = hidden_purges(user, {part.purge.pk for part in parts})
    return [replace(part, is_visible=part.purge.pk not in hidden) for part in parts]


def locate(user: Actor, message_id: int) -> Located:
    """Find the channel of a message by its id alone, among those that the user may open.

    Manifests come first: an id is never used twice, so a channel in which a purge included it is its channel. Raises
    `StoreUnavailable`.
    """
    require(user, "chatstore.view_channel")
    channels = visible_channels(user)
    chosen_in = [part.channel_id for part in find_parts(message_id)]
    known = channels.in_bulk(chosen_in)
    for channel_id in chosen_in:
        if channel_id in known:
            return Located(channel_id, 1, is_whole=True)
    # A channel's id contains its creation time: the newest channel of that time is the most likely,
    # and channels created later come last, because an import may have added older messages to them.
    existed_then = Case(When(pk__lte=message_id, then=Value(True)), default=Value(False), output_field=BooleanField())
    likeliest = channels.order_by(existed_then.desc(), "-pk").values_list("pk", flat=True)[:MAX_CHANNELS_SEARCHED]
    return locate_message(likeliest.iterator(), message_id, deadline_seconds=LOCATE_SECONDS)


def quarantined_copy(user: Actor, history: MessageHistory) -> Message | None:
    """Return the deleted message from the newest quarantine that has it; None if no copy is left.

    Raises `Forbidden` for users who may not see purges, `StoreUnavailable`.
    """
    require(user, VIEW_PURGES)
    if not may_in(user, VIEW_PURGES, history.channel):
        return None
    return _read_quarantined(history.channel.pk, history.message_id, history.parts)


def _read_quarantined(channel_id: int, message_id: int, parts: Sequence[PurgePart]) -> Message | None:
    """Return the newest complete copy in the quarantine of any of the purges."""
    bucket = bucket_of(message_id)
    keys = [
        QuarantineKey(part.purge.pk, channel_id, bucket, attempt)
        for part in parts
        if part.purge.state not in WITHOUT_COPIES
        for attempt in quarantine_attempts(part.purge.pk, channel_id, bucket)
    ]
    keys.sort(key=lambda key: key.attempt, reverse=True)
    copies = (quarantined_copies(key, message_id) for key in keys)
    for rows in newest_complete_rows(copies, wanted={message_id}):
        return messages.to_message(channel_id, rows[0])
    return None


def part_of_message(purge_id: int, *, user: Actor, channel_id: int, message_id: int) -> UndoPart:
    """Return the part of a purge that is one message.

    Raises `AlreadyRequested` if the message was restored, `BadInput` if it is not deleted by that purge.
    """
    channel_for(user, channel_id, ADD_PURGE)
    parts = [part for part in find_parts(message_id, channel_id=channel_id) if part.purge.pk == purge_id]
    if any(part.is_in_effect for part in parts):
        return UndoPart(channel_ids=(channel_id,), message_ids=(message_id,))
    if any(part.outcome is PurgeOutcome.DELETED for part in parts):
        raise AlreadyRequested(_("This message has been restored. Reload the page."))
    raise BadInput(_("This message is not deleted by that purge. Reload the page."))
