"""Post, edit, withdraw, pin: what a chat's gateway calls. The public surface of the store.

Every act keeps one stamp over its retries and is given up as failed four seconds after
that stamp, so that no purge, whose stamps lie ten seconds back, can lose it in silence.
Before a message is written, its author's bucket and the bucket's ledger row are; one whose
id is older than 50 minutes clears what the ledger says of its bucket, before and after.
The `actor` is always the chat's own user id; the gateway vouches for it.

What is given is checked before anything is asked or written; beyond `BadInput`, only the errors that
each function names leave this module, never one of a driver.
"""

from __future__ import annotations

import datetime as dt
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ParamSpec, TypedDict, TypeVar, Unpack

from django.conf import settings
from django.db import Error as PostgresError

from chatstore.domain.buckets import bucket_of, is_late
from chatstore.domain.errors import BadInput, Forbidden, NotFound, StoreUnavailable, WriteRefused
from chatstore.domain.message_limits import MessageLimits, check_content, check_id, check_message
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import ms_of
from chatstore.operations.coordination.clock import check_clock, wall_clock_us
from chatstore.operations.coordination.snowflake_ids import new_message_id
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import authors, ledger, messages, pins, withdrawn
from chatstore.store.driver_errors import is_refusal

GIVE_UP_SECONDS = 4.0
"""Five seconds of skew and these four stay below the ten that a purge's stamps lie back."""

TRY_SECONDS = 2.0
"""What one try may take, so that a node which hangs leaves time for another."""

PAUSE_SECONDS = 0.1

FUTURE_MS = 60_000
"""A gateway's own ids may be this far ahead of this machine's clock."""

ON_ITS_WAY_MS = 60_000
"""So long a message that is not there may still arrive: its post is tried for four seconds, under an id of before."""


P = ParamSpec("P")
T = TypeVar("T")


def own_errors(call: Callable[P, T]) -> Callable[P, T]:
    """Let no driver's error out: the class of ours says whether to try again."""

    @functools.wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except PostgresError as error:
            raise StoreUnavailable(f"Postgres can't be used: {type(error).__name__}.") from error
        except Exception as error:
            if is_refusal(error):
                raise WriteRefused(f"Cassandra refused it: {error}") from error
            raise

    return guarded


class PostColumns(TypedDict, total=False):
    """What a post may carry besides its author and content, as in `Message`."""

    type: int
    flags: int
    webhook_id: int | None
    author_name: str | None
    attachments: Sequence[str]
    embeds: Sequence[str]
    stickers: Sequence[str]
    reactions: Mapping[str, int]
    mentions: Sequence[int]
    reference: tuple[int, int | None] | None


@own_errors
def post_message(
    channel_id: int,
    *,
    author_id: int,
    content: str,
    message_id: int | None = None,
    **columns: Unpack[PostColumns],
) -> Message:
    """Store a message, under the gateway's own id or a new one.

    Posting the same id again changes nothing else. Raises `StoreUnavailable` when it was
    given up (post it again with the same id), `WriteRefused` when this process's clock is
    off, `BadInput` for what can't be stored or is larger than the settings allow.
    """
    if unknown := columns.keys() - PostColumns.__annotations__.keys():
        raise BadInput(f"a post has no {', '.join(sorted(unknown))}")
    given = 0 if message_id is None else _check_message_id(message_id)
    message = Message(channel_id, given, author_id, content, **columns)
    check_message(message, _limits())
    check_clock()
    if message_id is None:
        message = replace(message, message_id=new_message_id())
    chosen = message.message_id
    authors.ensure_author_bucket(author_id, channel_id, message.bucket)
    ledger.ensure_row(channel_id, message.bucket)
    began_late = is_late(chosen, now_ms=_now_ms())
    if began_late:
        ledger.clear_live(channel_id, message.bucket)
    stamp = wall_clock_us()
    try:
        insist(lambda seconds: messages.insert_message(message, stamp_us=stamp, timeout=seconds), began_us=stamp)
    finally:
        # Asked again: a process that stood still in between may have come too late by now. Also
        # after a failure, since what was given up may stand all the same.
        if began_late or is_late(chosen, now_ms=_now_ms()):
            ledger.clear_live(channel_id, message.bucket)
    return message


@own_errors
def edit_message(
    channel_id: int, message_id: int, *, actor: int, content: str, edited_at: dt.datetime | None = None
) -> Message:
    """Change a message's text; only its author may. Gives the message as it is now.

    Raises `NotFound`, `Forbidden`, and what `post_message` raises.
    """
    _check_key(channel_id, message_id, actor=actor)
    check_content(content, _limits())
    moment = dt.datetime.now(dt.UTC) if edited_at is None else _check_moment(edited_at)
    check_clock()
    message = _find_own(channel_id, message_id, actor=actor)
    began, stamp = _stamp_after(channel_id, message_id)
    values = {"content": content, "edited_at": moment}
    insist(
        lambda seconds: messages.update_columns(channel_id, message_id, values, stamp_us=stamp, timeout=seconds),
        began_us=began,
    )
    return replace(message, content=content, edited_at=moment)


@own_errors
def withdraw_message(channel_id: int, message_id: int, *, actor: int) -> bool:
    """Delete a message at its author's wish; whether there was one to delete.

    The wish is noted first, also for a message that is gone already: what a purge removed
    and its author withdrew must not come back by undo. Who wrote that one is not known here, so
    the wish is noted with who had it, and counts where the author is known: for an undo, by
    what the purge keeps, for an import, by its file. When this raises, the message was not
    deleted and is to be shown so; calling again tries anew with a new stamp.

    Raises `Forbidden` for anybody but the author of a message that is there, and what
    `post_message` raises.
    """
    _check_key(channel_id, message_id, actor=actor)
    check_clock()
    message = messages.read_message(channel_id, message_id)
    if message is None:
        withdrawn.note_claim(channel_id, message_id, actor=actor)
        # Asked again: an undo that looked for claims before this one has written the message by now.
        message = messages.read_message(channel_id, message_id)
    if message is not None:
        if message.author_id != actor:
            raise Forbidden("only its author can withdraw a message")
        withdrawn.note_withdrawn(channel_id, message_id, author_id=actor)
    elif ms_of(message_id) < _now_ms() - ON_ITS_WAY_MS:
        # A delete at this moment's stamp would hit what an undo is about to write, whoever asks for it.
        return False
    note_deletes(channel_id, bucket_of(message_id), 1)
    began, stamp = _stamp_after(channel_id, message_id)
    insist(lambda seconds: messages.delete_row(channel_id, message_id, stamp_us=stamp, timeout=seconds), began_us=began)
    return message is not None


@own_errors
def pin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Pin a message; `actor` is whoever pins it. Pinning twice changes nothing."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=True)


@own_errors
def unpin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Take a pin off; `actor` is whoever does."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=False)


def _set_pinned(channel_id: int, message_id: int, *, actor: int, pinned: bool) -> Message:
    _check_key(channel_id, message_id, actor=actor)
    check_clock()
    message = messages.read_message(channel_id, message_id)
    if message is None:
        raise NotFound(f"there is no message {message_id} in this channel")
    began, stamp = _stamp_after(channel_id, message_id)
    note = pins.note_pin if pinned else pins.drop_pin
    insist(lambda seconds: note(channel_id, message_id, stamp_us=stamp, timeout=seconds), began_us=began)
    insist(
        lambda seconds: messages.update_columns(
            channel_id, message_id, {"pinned": pinned}, stamp_us=stamp, timeout=seconds
        ),
        began_us=began,
    )
    return replace(message, pinned=pinned)


# --- Stamps and retries -----------------------------------------------------------------


def _stamp_after(channel_id: int, message_id: int) -> tuple[int, int]:
    """(now, max(now, the row's newest WRITETIME + 1)), in µs: whatever clock wrote it, the stamp comes after."""
    newest = messages.newest_writetime(channel_id, message_id)
    now = wall_clock_us()
    return now, now if newest is None else max(now, newest + 1)


def insist(write: Callable[[float], None], *, began_us: int) -> None:
    """Try a write until it succeeds or four seconds have passed since its stamp, which stays the same.

    began_us: this process's clock when the stamp was taken. A write that was answered later than
    that counts as given up too: the process may have stood still before it was sent, and a purge
    may have deleted over it meanwhile. Raises `StoreUnavailable`; a repeat has a new stamp.
    """
    began = time.monotonic()

    def age() -> float:
        # The wall clock goes on while the whole machine sleeps; the other one is never put back.
        return max((wall_clock_us() - began_us) / 1_000_000, time.monotonic() - began)

    while True:
        left = GIVE_UP_SECONDS - age()
        try:
            if left > 0:
                write(min(TRY_SECONDS, left))
        except StoreUnavailable as error:
            if age() + PAUSE_SECONDS >= GIVE_UP_SECONDS:
                raise StoreUnavailable(f"{error} It was given up and may be tried again.") from error
            time.sleep(PAUSE_SECONDS)
        else:
            if age() > GIVE_UP_SECONDS:
                raise StoreUnavailable(
                    f"The write took longer than {GIVE_UP_SECONDS:.0f} s. It was given up and may be tried again."
                )
            return


def _now_ms() -> int:
    return wall_clock_us() // 1000


# --- What is refused --------------------------------------------------------------------


def _find_own(channel_id: int, message_id: int, *, actor: int) -> Message:
    message = messages.read_message(channel_id, message_id)
    if message is None:
        raise NotFound(f"there is no message {message_id} in this channel")
    if message.author_id != actor:
        raise Forbidden("only its author can change a message")
    return message


def _limits() -> MessageLimits:
    return MessageLimits(
        characters=settings.MESSAGE_MAX_CHARACTERS,
        name_characters=settings.MESSAGE_MAX_NAME_CHARACTERS,
        embeds=settings.MESSAGE_MAX_EMBEDS,
        embed_characters=settings.MESSAGE_MAX_EMBED_CHARACTERS,
        total_bytes=settings.MESSAGE_MAX_BYTES,
    )


def _check_key(channel_id: int, message_id: int, *, actor: int) -> None:
    check_id(channel_id, what="channel id")
    check_id(actor, what="actor's id")
    _check_message_id(message_id)


def _check_message_id(message_id: int) -> int:
    check_id(message_id, what="message id")
    if ms_of(message_id) > _now_ms() + FUTURE_MS:
        raise BadInput(f"message id {message_id} lies in the future")
    return message_id


def _check_moment(moment: object) -> dt.datetime:
    """The moment in UTC. Raises `BadInput` for one without a time zone, and beyond the calendar."""
    if not isinstance(moment, dt.datetime) or moment.tzinfo is None:
        raise BadInput("edited_at must be a datetime with its time zone")
    try:
        return moment.astimezone(dt.UTC)
    except (OverflowError, ValueError):
        raise BadInput("edited_at lies beyond the calendar") from None
