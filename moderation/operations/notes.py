"""Notes about chat users: written by moderators, listed on the user's page, deleted by their author only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models import Channel
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from chatstore.operations.rights import scope_for
from moderation.domain.links import find_message_link, find_purge_link
from moderation.domain.sent_twice import SENT_TWICE_WITHIN
from moderation.models import Note
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.visibility import (
    Actor,
    channel_for,
    purge_for,
    require,
    visible_channels,
    visible_purges,
)

ADD_NOTE = "moderation.add_note"
VIEW_NOTES = "moderation.view_note"

MAX_NOTE_CHARACTERS = 2_000
NOTES_PER_PAGE = 10


@dataclass(frozen=True, slots=True)
class ListedNote:
    """A note. channel: that of the message it refers to; None for none, or for one that the user may not open."""

    note: Note
    channel: Channel | None
    may_delete: bool


@dataclass(frozen=True, slots=True)
class NotePage:
    """Page of notes, newest first. older: exclusive cursor of the next page, or None."""

    notes: Sequence[ListedNote] = ()
    older: int | None = None


def add_note(user_id: int, *, text: str, link: str, actor: User) -> Note:
    """Add a note about a chat user, or return the same one if the actor has just added it.

    So a form that is sent twice adds one; sent later, the same text is meant. link: of a message or a purge, or empty.
    Raises `Forbidden`, `NotFound` for what the link names, `BadInput` for invalid input.
    """
    require(actor, ADD_NOTE)
    note = Note(user_id=user_id, text=_check_text(text), written_by=actor)
    if link.strip():
        _set_link(note, link, actor)
    with transaction.atomic():
        lock_account(actor)
        if (same := _same_note(note)) is not None:
            return same
        save_with_next_id(note)
        record_action(
            "note_added",
            actor=actor,
            purge=note.purge,
            channel_id=note.channel_id,
            chat_user_id=note.user_id,
            details=_details(note),
        )
    return note


def _same_note(note: Note) -> Note | None:
    fields = ("user_id", "text", "written_by", "channel_id", "message_id", "purge")
    same = {name: getattr(note, name) for name in fields}
    return Note.objects.filter(**same, written_at__gt=ClockTimestamp() - SENT_TWICE_WITHIN).first()


def delete_note(note_id: int, *, actor: User) -> Note:
    """Delete one's own note; its text stays in the audit log. Raises `Forbidden`, `NotFound`."""
    require(actor, ADD_NOTE)
    with transaction.atomic():
        note = Note.objects.select_for_update().filter(pk=note_id).first()
        if note is None or not _visible_notes(actor).filter(pk=note_id).exists():
            raise NotFound(_("There is no note %(id)s.", id=str(note_id)))
        if note.written_by_id != actor.pk:
            raise Forbidden(_("Only its author can delete a note."))
        details = _details(note)
        note.delete()
        record_action(
            "note_deleted",
            actor=actor,
            channel_id=note.channel_id,
            chat_user_id=note.user_id,
            details=details,
        )
    return note


def list_notes(user: Actor, user_id: int, *, before: int | None = None, limit: int = NOTES_PER_PAGE) -> NotePage:
    """Return a page of the notes about a chat user; none without the permission."""
    if not user.has_perm(VIEW_NOTES):
        return NotePage()
    notes = _visible_notes(user).filter(user_id=user_id).select_related("written_by").order_by("-id")
    if before is not None:
        notes = notes.filter(pk__lt=before)
    found = list(notes[: limit + 1])
    shown = found[:limit]
    channels = visible_channels(user).in_bulk({note.channel_id for note in shown if note.channel_id is not None})
    may_delete = user.has_perm(ADD_NOTE)
    return NotePage(
        [
            ListedNote(
                note,
                channels.get(note.channel_id) if note.channel_id is not None else None,
                may_delete=may_delete and note.written_by_id == user.pk,
            )
            for note in shown
        ],
        older=shown[-1].pk if len(found) > limit else None,
    )


def _visible_notes(user: Actor) -> QuerySet[Note]:
    """Return the notes that a user may see: not those with a link to a message or a purge that they may not see."""
    if scope_for(user, VIEW_NOTES).is_everything:
        return Note.objects.all()
    channels = visible_channels(user, VIEW_NOTES).order_by().values("pk")
    return Note.objects.filter(
        Q(channel_id=None) | Q(channel_id__in=channels),
        Q(purge=None) | Q(purge__in=visible_purges(user).order_by().values("pk")),
    )


def _check_text(text: str) -> str:
    text = text.strip()
    if not text:
        raise BadInput(_("Enter a note. Other moderators will read it."))
    if "\x00" in text:
        raise BadInput(_("A note cannot contain a NUL character. Remove it."))
    if len(text) > MAX_NOTE_CHARACTERS:
        raise BadInput(
            ngettext_lazy(
                "The note is too long. Use at most %(count)s character.",
                "The note is too long. Use at most %(count)s characters.",
                MAX_NOTE_CHARACTERS,
            )
        )
    return text


def _set_link(note: Note, link: str, actor: User) -> None:
    if purge_id := find_purge_link(link):
        note.purge = purge_for(actor, parse_snowflake(purge_id))
    elif found := find_message_link(link):
        note.channel_id, note.message_id = map(parse_snowflake, found)
        channel_for(actor, note.channel_id, ADD_NOTE)
    else:
        raise BadInput(_("This is not the link of a message or a purge. Copy it from the page’s address."))


def _details(note: Note) -> dict[str, str]:
    """Return ids as strings, because JavaScript numbers cannot represent them."""
    named = {"note": note.pk, "user": note.user_id, "message": note.message_id, "text": note.text}
    return {key: str(value) for key, value in named.items() if value is not None}
