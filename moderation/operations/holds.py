"""Holds: placed with a reason, checked before any step is stamped, lifted by authorized users.

Placing a hold and the last check of a step before it is stamped are serialized by a Postgres advisory lock: messages
whose step is not stamped when the hold is placed are kept. Stamped steps complete and can be undone; while a hold
covers them, their 30-day undo period is suspended. Authors can still delete their own messages.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import ngettext_lazy
from chatstore.models import Channel, ChatUser
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import request_automatic_run
from moderation.domain.holds import HoldCoverage, total_time
from moderation.domain.links import find_message_link
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING
from moderation.models import Hold, Purge
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.visibility import Actor, channel_for, require, visible_channels

PLACE_HOLD = "moderation.add_hold"
LIFT_HOLD = "moderation.change_hold"
VIEW_HOLDS = "moderation.view_hold"

HOLDS_LOCK = 4_005_913
"""Postgres advisory lock that serializes placing holds and stamping steps; any number that nothing else uses."""

RENEWAL_JOB = "expire"
"""Job that renews held copies, see `moderation.operations.undo.expiry`."""

MAX_REASON_CHARACTERS = 1_000
MAX_LISTED_HOLDS = 200


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """Hold as typed: ids, or a message link. At least one field is filled in."""

    author: str = ""
    channel: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ListedHold:
    """Hold with the objects that it covers; None for unknown or invisible ones."""

    hold: Hold
    author: ChatUser | None
    channel: Channel | None


def place_hold(requested: HoldRequest, *, reason: str, actor: User) -> Hold:
    """Place a hold. Raises `Forbidden`, `NotFound` for the channel, `BadInput` for invalid input."""
    require(actor, PLACE_HOLD)
    reason = reason.strip()
    if not reason:
        raise BadInput(_("Enter a reason. Moderators whose purge is affected will see it."))
    if len(reason) > MAX_REASON_CHARACTERS:
        raise BadInput(
            ngettext_lazy(
                "The reason is too long. Use at most %(count)s character.",
                "The reason is too long. Use at most %(count)s characters.",
                MAX_REASON_CHARACTERS,
            )
        )
    hold = _read(requested, actor)
    hold.reason, hold.placed_by = reason, actor
    with transaction.atomic():
        _lock(shared=False)
        save_with_next_id(hold)
        details = {"hold": str(hold.pk), "reason": reason, **_names(hold)}
        record_action("hold_placed", actor=actor, channel_id=hold.channel_id, details=details)
    # Existing copies may expire within hours.
    request_automatic_run(RENEWAL_JOB, subject="")
    return hold


def _read(requested: HoldRequest, actor: User) -> Hold:
    author, channel, message = (text.strip() for text in (requested.author, requested.channel, requested.message))
    if message:
        if author or channel:
            raise BadInput(_("Enter only the message link, without a user or channel."))
        link = find_message_link(message)
        if link is None:
            raise BadInput(_("This is not a message link. Copy it from the message's page."))
        channel, message = link
    elif not author and not channel:
        raise BadInput(_("Enter a user, a channel or a message link."))
    hold = Hold(
        author_id=parse_snowflake(author) if author else None,
        channel_id=parse_snowflake(channel) if channel else None,
        message_id=parse_snowflake(message) if message else None,
    )
    if hold.channel_id is not None:
        channel_for(actor, hold.channel_id)
    return hold


def lift_hold(hold_id: int, *, actor: User) -> Hold:
    """Lift a hold. Idempotent. Raises `Forbidden`, `NotFound`."""
    require(actor, LIFT_HOLD)
    with transaction.atomic():
        hold = Hold.objects.select_for_update().filter(pk=hold_id).first()
        if hold is None:
            raise NotFound(_("There is no hold %(id)s.", id=str(hold_id)))
        if hold.lifted_at is None:
            Hold.objects.filter(pk=hold_id).update(lifted_at=ClockTimestamp(), lifted_by=actor)
            record_action(
                "hold_lifted",
                actor=actor,
                channel_id=hold.channel_id,
                details={"hold": str(hold.pk), **_names(hold)},
            )
            hold.refresh_from_db()
    return hold


def list_holds(user: Actor, *, in_force: bool) -> list[ListedHold]:
    """Return the newest holds, in force or lifted. Raises `Forbidden`."""
    require(user, VIEW_HOLDS)
    return _describe(user, Hold.objects.filter(lifted_at__isnull=in_force))


def holds_of_author(user: Actor, author_id: int) -> list[ListedHold]:
    """Return the holds in force on a user's messages, in any channel; none without permission to view holds."""
    if not user.has_perm(VIEW_HOLDS):
        return []
    return _describe(user, _in_force().filter(author_id=author_id))


def hold_coverage(channel_id: int) -> HoldCoverage:
    """Return the current coverage of holds in a channel."""
    return hold_coverage_in([channel_id])[channel_id]


def hold_coverage_in(channel_ids: Collection[int]) -> dict[int, HoldCoverage]:
    """Return the current coverage of holds in each of some channels."""
    holds = list(_in_force().filter(Q(channel_id=None) | Q(channel_id__in=channel_ids)))
    return {channel_id: coverage_of(holds, channel_id) for channel_id in channel_ids}


def block_new_holds() -> None:
    """Block the placing of holds until the transaction ends; a transaction that is about to place one waits."""
    _lock(shared=True)


def hold_over_purge(purge: Purge) -> Hold | None:
    """Return a hold in force that covers some of a purge's messages, or None."""
    return next(_holds_covering(purge, _in_force()), None)


def time_held(purge: Purge, *, since: dt.datetime) -> dt.timedelta:
    """Return the time since then during which holds covered some of the purge's messages."""
    now = postgres_now()
    return total_time(
        (max(since, hold.placed_at), hold.lifted_at or now) for hold in holds_covering(purge, since=since)
    )


def coverage_of(holds: Iterable[Hold], channel_id: int) -> HoldCoverage:
    """Return the coverage of some holds in a channel."""
    here = [hold for hold in holds if hold.channel_id in (None, channel_id)]
    return HoldCoverage(
        hold_ids=frozenset(hold.pk for hold in here),
        everything=any(hold.author_id is None and hold.message_id is None for hold in here),
        authors=frozenset(hold.author_id for hold in here if hold.author_id is not None),
        messages=frozenset(hold.message_id for hold in here if hold.message_id is not None),
    )


def holds_covering(purge: Purge, *, since: dt.datetime) -> list[Hold]:
    """Return the holds that have covered some of the purge's messages at any time since a moment."""
    return list(_holds_covering(purge, holds_in_force_since(since)))


def holds_in_force_since(moment: dt.datetime) -> QuerySet[Hold]:
    """Return the holds that are in force, or were at any time since a moment."""
    return Hold.objects.filter(Q(lifted_at=None) | Q(lifted_at__gt=moment))


def _holds_covering(purge: Purge, holds: QuerySet[Hold]) -> Iterator[Hold]:
    chosen = purge.manifest_buckets.order_by()
    there = list(holds.filter(Q(channel_id=None) | Q(channel_id__in=chosen.values("channel_id"))))
    if not there:
        return
    writers: dict[int, set[str]] = defaultdict(set)
    for channel_id, counts in chosen.values_list("channel_id", "authors").iterator():
        writers[channel_id].update(counts)
    yield from (hold for hold in there if _covers_some(hold, purge, writers))


def _covers_some(hold: Hold, purge: Purge, writers: Mapping[int, AbstractSet[str]]) -> bool:
    """Return whether the hold covers some of the purge's messages. writers: their authors, by channel."""
    if hold.message_id is not None:
        steps = purge.steps.filter(kind__in=DELETING, bucket=bucket_of(hold.message_id))
        return any(hold.message_id in unpack_ids(ids) for ids in steps.values_list("ids", flat=True))
    there = writers.values() if hold.channel_id is None else [writers[hold.channel_id]]
    return hold.author_id is None or any(str(hold.author_id) in authors for authors in there)


def _in_force() -> QuerySet[Hold]:
    return Hold.objects.filter(lifted_at=None)


def _describe(user: Actor, holds: QuerySet[Hold]) -> list[ListedHold]:
    found = list(holds.select_related("placed_by", "lifted_by")[:MAX_LISTED_HOLDS])
    users = ChatUser.objects.in_bulk([hold.author_id for hold in found if hold.author_id is not None])
    channels = visible_channels(user).in_bulk([hold.channel_id for hold in found if hold.channel_id is not None])
    return [
        ListedHold(
            hold,
            users.get(hold.author_id) if hold.author_id is not None else None,
            channels.get(hold.channel_id) if hold.channel_id is not None else None,
        )
        for hold in found
    ]


def _names(hold: Hold) -> dict[str, str]:
    """Return ids as strings, because JavaScript numbers cannot represent them."""
    named = {"author": hold.author_id, "channel": hold.channel_id, "message": hold.message_id}
    return {key: str(number) for key, number in named.items() if number is not None}


def _lock(*, shared: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)", (HOLDS_LOCK,))
