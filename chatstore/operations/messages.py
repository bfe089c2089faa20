"""Post, edit, withdraw, pin: what a chat's gateway calls. The public surface of the store.

Every act keeps one stamp over its retries and is given up as failed four seconds after
that stamp, so that no purge, whose stamps lie ten seconds back, can lose it in silence.
Before a message is written, its author's bucket and the bucket's ledger row are; one whose
id is older than 50 minutes clears what the ledger says of its bucket, before and after.
The `actor` is always the chat's own user id; the gateway vouches for it.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from chatstore.domain.buckets import bucket_of, is_late
from chatstore.domain.errors import BadInput, Forbidden, NotFound, StoreUnavailable
from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import MAX_ID, MIN_ID, ms_of
from chatstore.operations.clock import check_clock, wall_clock_us
from chatstore.operations.deletes import note_deletes
from chatstore.operations.snowflake_ids import new_message_id
from chatstore.store import authors, ledger, messages, pins, withdrawn

GIVE_UP_SECONDS = 4.0
"""Five seconds of skew and these four stay below the ten that a purge's stamps lie back."""

TRY_SECONDS = 2.0
"""What one try may take, so that a node which hangs leaves time for another."""

PAUSE_SECONDS = 0.1

FUTURE_MS = 60_000
"""A gateway's own ids may be this far ahead of this machine's clock."""

ON_ITS_WAY_MS = 60_000
"""So long a message that is not there may still arrive: its post is tried for four seconds, under an id of before."""


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
    off, `BadInput` for ids or texts that can't be stored.
    """
    check_clock()
    _check_ids(channel_id, author_id)
    _check_text(content)
    chosen = new_message_id() if message_id is None else _check_message_id(message_id)
    message = Message(channel_id, chosen, author_id, content, **columns)
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


def edit_message(
    channel_id: int, message_id: int, *, actor: int, content: str, edited_at: dt.datetime | None = None
) -> Message:
    """Change a message's text; only its author may. Gives the message as it is now.

    Raises `NotFound`, `Forbidden`, and what `post_message` raises.
    """
    check_clock()
    _check_text(content)
    message = _find_own(channel_id, message_id, actor=actor)
    moment = edited_at or dt.datetime.now(dt.UTC)
    began, stamp = _stamp_after(channel_id, message_id)
    values = {"content": content, "edited_at": moment}
    insist(
        lambda seconds: messages.update_columns(channel_id, message_id, values, stamp_us=stamp, timeout=seconds),
        began_us=began,
    )
    return replace(message, content=content, edited_at=moment)


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
    check_clock()
    _check_ids(actor)
    message = messages.read_message(channel_id, _check_message_id(message_id))
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


def pin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Pin a message; `actor` is whoever pins it. Pinning twice changes nothing."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=True)


def unpin_message(channel_id: int, message_id: int, *, actor: int) -> Message:
    """Take a pin off; `actor` is whoever does."""
    return _set_pinned(channel_id, message_id, actor=actor, pinned=False)


def _set_pinned(channel_id: int, message_id: int, *, actor: int, pinned: bool) -> Message:
    check_clock()
    _check_ids(actor)
    message = messages.read_message(channel_id, _check_message_id(message_id))
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
    message = messages.read_message(channel_id, _check_message_id(message_id))
    if message is None:
        raise NotFound(f"there is no message {message_id} in this channel")
    if message.author_id != actor:
        raise Forbidden("only its author can change a message")
    return message


def _check_ids(*ids: int) -> None:
    for value in ids:
        if not MIN_ID <= value <= MAX_ID:
            raise BadInput(f"{value} is not an id: it does not fit 64 bits")


def _check_message_id(message_id: int) -> int:
    _check_ids(message_id)
    if ms_of(message_id) > _now_ms() + FUTURE_MS:
        raise BadInput(f"message id {message_id} lies in the future")
    return message_id


def _check_text(content: str) -> None:
    try:
        content.encode()
    except UnicodeEncodeError:
        raise BadInput("the text holds half a character (a lone surrogate)") from None
