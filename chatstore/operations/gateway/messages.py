"""Post, edit, withdraw and pin messages: the API for a chat's gateway.

Every write keeps one stamp over its retries and is abandoned four seconds after that stamp, so that a purge,
whose stamps are backdated by ten seconds, cannot silently delete over it. The author's bucket and the bucket's
ledger row are written before the message. A message whose id is older than 50 minutes clears the ledger row of
its bucket, before and after.
`actor` is always the chat's own user id; the gateway is responsible for authenticating it.

Arguments are validated before anything is read or written. Apart from `BadInput`, only the errors that each
function documents are raised, never one of a driver.
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
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.snowflakes import ms_of
from chatstore.operations.coordination.clock import check_clock, wall_clock_us
from chatstore.operations.coordination.snowflake_ids import new_message_id
from chatstore.operations.ledger.delete_log import note_deletes
from chatstore.store import activity, authors, ledger, messages, pins, withdrawn
from chatstore.store.driver_errors import is_refusal

WRITE_DEADLINE_SECONDS = 4.0
"""Five seconds of skew plus these four stay below the ten by which a purge backdates its stamps."""

ATTEMPT_TIMEOUT_SECONDS = 2.0
"""Timeout of one attempt; leaves time for another one if a node hangs."""

RETRY_DELAY_SECONDS = 0.1

MAX_FUTURE_MS = MINUTE_MS
"""Maximum lead of a gateway's own ids over this machine's clock."""

IN_FLIGHT_MS = MINUTE_MS
"""A missing message younger than this may still arrive: its post is retried for four seconds, under an id made
earlier.
"""


P = ParamSpec("P")
T = TypeVar("T")


def translate_errors(call: Callable[P, T]) -> Callable[P, T]:
    """Translate driver errors into our own, whose class determines whether to retry."""

    @functools.wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except PostgresError as error:
            raise StoreUnavailable(f"Postgres is unavailable: {type(error).__name__}.") from error
        except Exception as error:
            if is_refusal(error):
                raise WriteRefused(f"Cassandra refused the write: {error}") from error
            raise

    return guarded


class PostColumns(TypedDict, total=False):
    """Optional columns of a post besides author and content, as in `Message`."""

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


@translate_errors
def post_message(
    channel_id: int,
    *,
    author_id: int,
    content: str,
    message_id: int | None = None,
    **columns: Unpack[PostColumns],
) -> Message:
    """Store a message, under the gateway's own id or a new one.

    Posting the same id again changes nothing else. Raises `StoreUnavailable` if the write was abandoned (post it
    again with the same id), `WriteRefused` if this process's clock is off, `BadInput` for values that cannot be
    stored or exceed the limits in settings.
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
        retry_until_deadline(
            lambda seconds: messages.insert_message(message, stamp_us=stamp, timeout=seconds), began_us=stamp
        )
    finally:
        # Check again: a process that was suspended in between may be late by now. Also after a failure, because an
        # abandoned write may have been applied.
        if began_late or is_late(chosen, now_ms=_now_ms()):
            ledger.clear_live(channel_id, message.bucket)
    activity.note_post(channel_id)
    return message


@translate_errors
def edit_message(
    channel_id: int, message_id: int, *, actor: int, content: str, edited_at: dt.datetime | None = None
) -> Message:
    """Change the text of a message, as its author; return the message with the change.

    Raises `NotFound`, `Forbidden`, and what `post_message` raises.
    """
    check_key(channel_id, message_id, actor=actor)
    check_content(content, _limits())
    edited_at = dt.datetime.now(dt.UTC) if edited_at is None else _check_datetime(edited_at)
    check_clock()
    message = _find_own(channel_id, message_id, actor=actor)
    began, stamp = _stamp_after(channel_id, message_id)
    values = {"content": content, "edited_at": edited_at}
    retry_until_deadline(
        lambda seconds: messages.update_columns(channel_id, message_id, values, stamp_us=stamp, timeout=seconds),
        began_us=began,
    )
    return replace(message, content=content, edited_at=edited_at)


@translate_errors
def withdraw_message(channel_id: int, message_id: int, *, actor: int) -> bool:
    """Delete a message at its author's request; return whether it existed.

    The withdrawal is recorded first, also for a message that no longer exists: a message that a purge deleted and
    its author withdrew must not be restored by an undo. The author of such a message is unknown here, so the
    claim is recorded with the actor and honoured where the author is known: for an undo by the quarantined
    copy, for an import by its file. If this raises, the message was not deleted and should be shown as such;
    calling again retries with a new stamp.

    Raises `Forbidden` if the message exists and the actor is not its author, and what `post_message` raises.
    """
    check_key(channel_id, message_id, actor=actor)
    check_clock()
    message = messages.read_message(channel_id, message_id)
    if message is None:
        withdrawn.note_claim(channel_id, message_id, actor=actor)
        # Read again: an undo that checked for claims before this one was recorded has written the message by now.
        message = messages.read_message(channel_id, message_id)
    if message is not None:
        if message.author_id != actor:
            raise Forbidden("only its author can withdraw a message")
        withdrawn.note_withdrawn(channel_id, message_id, author_id=actor)
    elif ms_of(message_id) < _now_ms() - IN_FLIGHT_MS:
        # A delete at the current stamp could hit a row that an undo is about to write, regardless of the actor.
        return False
    note_deletes(channel_id, bucket_of(message_id), 1)
    began, stamp = _stamp_after(channel_id, message_id)
    retry_until_deadline(
        lambda seconds: messages.delete_row(channel_id, message_id, stamp_us=stamp, timeout=seconds), began_us=began
    )
    return message is not None


@translate_errors
def pin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Pin a message. `actor` is the user who pins it. Idempotent."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=True)


@translate_errors
def unpin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Unpin a message. `actor` is the user who unpins it."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=False)


def _set_pinned(channel_id: int, message_id: int, *, actor: int, pinned: bool) -> Message:
    check_key(channel_id, message_id, actor=actor)
    check_clock()
    message = messages.read_message(channel_id, message_id)
    if message is None:
        raise NotFound(f"message {message_id} does not exist in this channel")
    began, stamp = _stamp_after(channel_id, message_id)
    note = pins.note_pin if pinned else pins.drop_pin
    retry_until_deadline(lambda seconds: note(channel_id, message_id, stamp_us=stamp, timeout=seconds), began_us=began)
    retry_until_deadline(
        lambda seconds: messages.update_columns(
            channel_id, message_id, {"pinned": pinned}, stamp_us=stamp, timeout=seconds
        ),
        began_us=began,
    )
    return replace(message, pinned=pinned)


# --- Stamps and retries -----------------------------------------------------------------


def _stamp_after(channel_id: int, message_id: int) -> tuple[int, int]:
    """Return (now, max(now, newest WRITETIME of the row + 1)) in µs: later than the row, whichever clock wrote it."""
    newest = messages.newest_writetime(channel_id, message_id)
    now = wall_clock_us()
    return now, now if newest is None else max(now, newest + 1)


def retry_until_deadline(write: Callable[[float], None], *, began_us: int) -> None:
    """Retry a write until it succeeds or four seconds have passed since its stamp, which stays the same.

    began_us: this process's clock when the stamp was taken. A write that succeeds later than that also counts as
    abandoned: the process may have been suspended before sending it, and a purge may have deleted over it in the
    meantime. Raises `StoreUnavailable`; calling again takes a new stamp.
    """
    began = time.monotonic()

    def age() -> float:
        # The wall clock includes suspension of the machine; the monotonic clock is never set back.
        return max((wall_clock_us() - began_us) / 1_000_000, time.monotonic() - began)

    while True:
        left = WRITE_DEADLINE_SECONDS - age()
        try:
            if left > 0:
                write(min(ATTEMPT_TIMEOUT_SECONDS, left))
        except StoreUnavailable as error:
            if age() + RETRY_DELAY_SECONDS >= WRITE_DEADLINE_SECONDS:
                raise StoreUnavailable(f"{error} The write was abandoned; try again.") from error
            time.sleep(RETRY_DELAY_SECONDS)
        else:
            if age() > WRITE_DEADLINE_SECONDS:
                raise StoreUnavailable(
                    f"The write took longer than {WRITE_DEADLINE_SECONDS:.0f} s and was abandoned; try again."
                )
            return


def _now_ms() -> int:
    return wall_clock_us() // 1000


# --- Validation ------------------------------------------------------------------------


def _find_own(channel_id: int, message_id: int, *, actor: int) -> Message:
    message = messages.read_message(channel_id, message_id)
    if message is None:
        raise NotFound(f"message {message_id} does not exist in this channel")
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


def check_key(channel_id: int, message_id: int, *, actor: int) -> None:
    """Raise `BadInput` unless these are ids, and the message's is not in the future."""
    check_id(channel_id, what="channel id")
    check_id(actor, what="actor's id")
    _check_message_id(message_id)


def _check_message_id(message_id: int) -> int:
    check_id(message_id, what="message id")
    if ms_of(message_id) > _now_ms() + MAX_FUTURE_MS:
        raise BadInput(f"message id {message_id} is in the future")
    return message_id


def _check_datetime(value: object) -> dt.datetime:
    """Return the datetime in UTC. Raises `BadInput` if it is naive or out of range."""
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise BadInput("edited_at must be a datetime with a time zone")
    try:
        return value.astimezone(dt.UTC)
    except (OverflowError, ValueError):
        raise BadInput("edited_at is out of range") from None
