"""Holds: placed with a reason, checked before any step is stamped, lifted by authorized users.

Placing a hold and the last check of a step before it is stamped are serialized by a Postgres advisory lock: messages
whose step is not stamped when the hold is placed are kept. Stamped steps complete and can be undone; while a hold
covers them, their 30-day undo period is suspended. Authors can still delete their own messages.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from chatstore.domain.buckets import bucket_of
from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.jobs.runs import request_automatic_run
from chatstore.operations.rights import scope_for
from moderation.domain.holds import HoldCoverage, total_time
from moderation.domain.links import find_message_link
from moderation.domain.packing import unpack_ids
from moderation.domain.states import DELETING, StepKind
from moderation.models import Hold, ManifestBucket, Purge, Step
from moderation.operations.access.audit import record_action, save_with_next_id
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.staff_names import mark_shared_names
from moderation.operations.access.visibility import Actor, channel_for, require, visible_channels
from moderation.operations.steps.manifest_authors import authors_by_purge
from moderation.operations.steps.searching import steps_containing

PLACE_HOLD = "moderation.add_hold"
LIFT_HOLD = "moderation.change_hold"
VIEW_HOLDS = "moderation.view_hold"

HOLDS_LOCK = 4_005_913
"""Postgres advisory lock that serializes placing holds and stamping steps; any number that nothing else uses."""

RENEWAL_JOB = "expire"
"""Job that renews held copies, see `moderation.operations.undo.expiry`."""

MAX_LISTED_HOLDS = 200

_MANIFEST, _HOLDS = ManifestBucket._meta.db_table, Hold._meta.db_table


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


class _HoldKey(NamedTuple):
    pk: int
    channel_id: int | None
    author_id: int | None
    message_id: int | None


def place_hold(requested: HoldRequest, *, reason: str, actor: User) -> Hold:
    """Place a hold, or return the one in force that the actor has placed on the same, with the same reason.

    So a form that is sent twice places one; those of other people and for other reasons are lifted on their own. Raises
    `Forbidden`, `NotFound` for the channel, `BadInput` for invalid input.
    """
    require(actor, PLACE_HOLD)
    reason = check_reason(reason, missing=_("Enter a reason. Moderators whose purge is affected will see it."))
    hold = _read(requested, actor)
    hold.reason, hold.placed_by = reason, actor
    with transaction.atomic():
        _lock(shared=False)
        if (same := _same_hold(hold)) is not None:
            return same
        save_with_next_id(hold)
        details = {"hold": str(hold.pk), "reason": reason, **_names(hold)}
        record_action(
            "hold_placed", actor=actor, channel_id=hold.channel_id, chat_user_id=hold.author_id, details=details
        )
    # Existing copies may expire within hours.
    request_automatic_run(RENEWAL_JOB, subject="")
    return hold


def _same_hold(hold: Hold) -> Hold | None:
    same = {name: getattr(hold, name) for name in ("author_id", "channel_id", "message_id", "reason", "placed_by")}
    return _in_force().filter(**same).first()


def _read(requested: HoldRequest, actor: User) -> Hold:
    author, channel, message = (text.strip() for text in (requested.author, requested.channel, requested.message))
    if message:
        if author or channel:
            raise BadInput(_("Enter only the message link, without a user or channel."))
        link = find_message_link(message)
        if link is None:
            raise BadInput(_("This is not a message link. Copy it from the message’s page."))
        channel, message = link
    elif not author and not channel:
        raise BadInput(_("Enter a user, a channel or a message link."))
    hold = Hold(
        author_id=parse_snowflake(author) if author else None,
        channel_id=parse_snowflake(channel) if channel else None,
        message_id=parse_snowflake(message) if message else None,
    )
    _check_place(hold, actor, PLACE_HOLD)
    return hold


def _check_place(hold: Hold, actor: User, right: str) -> None:
    """Raise `NotFound`, or `Forbidden` unless the actor has the right in the channel, or in all of them."""
    if hold.channel_id is not None:
        channel_for(actor, hold.channel_id, right)
    elif not scope_for(actor, right).every_guild:
        raise Forbidden(_("A hold without a channel covers every server, which your roles do not. Enter a channel."))


def lift_hold(hold_id: int, *, actor: User, reason: str) -> Hold:
    """Lift a hold. Idempotent. Raises `Forbidden`, `NotFound`, and `BadInput` without a reason."""
    require(actor, LIFT_HOLD)
    with transaction.atomic():
        hold = Hold.objects.select_for_update().filter(pk=hold_id).first()
        if hold is None or not _visible_holds(actor).filter(pk=hold_id).exists():
            raise NotFound(_("There is no hold %(id)s.", id=str(hold_id)))
        _check_place(hold, actor, LIFT_HOLD)
        reason = check_reason(reason, missing=_("Enter a reason. It is stored with the hold."))
        if hold.lifted_at is None:
            Hold.objects.filter(pk=hold_id).update(lifted_at=ClockTimestamp(), lifted_by=actor, lift_reason=reason)
            record_action(
                "hold_lifted",
                actor=actor,
                channel_id=hold.channel_id,
                chat_user_id=hold.author_id,
                details={"hold": str(hold.pk), "reason": reason, **_names(hold)},
            )
            hold.refresh_from_db()
    return hold


def list_holds(user: Actor) -> tuple[list[ListedHold], list[ListedHold]]:
    """Return the newest holds in force, and the newest lifted ones, described together. Raises `Forbidden`."""
    require(user, VIEW_HOLDS)
    holds = _visible_holds(user)
    found = [*_newest(holds.filter(lifted_at=None)), *_newest(holds.filter(lifted_at__isnull=False))]
    listed = _describe(user, found)
    in_force = [one for one in listed if one.hold.lifted_at is None]
    return in_force, listed[len(in_force) :]


def holds_of_author(user: Actor, author_id: int) -> list[ListedHold]:
    """Return the holds in force on a user's messages, in any channel; none without permission to view holds."""
    if not user.has_perm(VIEW_HOLDS):
        return []
    return _describe(user, _newest(_visible_holds(user).filter(lifted_at=None, author_id=author_id)))


def _visible_holds(user: Actor) -> QuerySet[Hold]:
    """Return the holds in channels that a user may see, and those of every channel: they stop purges there too."""
    if scope_for(user, VIEW_HOLDS).is_everything:
        return Hold.objects.all()
    # Not a foreign key: a hold may name a channel that is not known.
    channels = visible_channels(user, VIEW_HOLDS).order_by().values("pk")
    return Hold.objects.filter(Q(channel_id=None) | Q(channel_id__in=channels))


def hold_coverage_in(
    channel_ids: Collection[int], *, authors: Collection[int] | None = None
) -> dict[int, HoldCoverage]:
    """Return the current coverage of holds in each of some channels.

    authors: only of these users' messages, if they are known; tens of thousands of users may be held everywhere.
    """
    everywhere = Q(channel_id=None) if authors is None else Q(channel_id=None, author_id__in=authors)
    # Columns, not objects, and those of every channel only once.
    rows = list(
        _in_force()
        .filter(everywhere | Q(channel_id__in=channel_ids))
        .order_by()
        .values_list("id", "channel_id", "author_id", "message_id")
    )
    holds = [_HoldKey(*row) for row in rows]
    common = [hold for hold in holds if hold.channel_id is None]
    by_channel: dict[int, list[_HoldKey]] = defaultdict(list)
    for hold in holds:
        if hold.channel_id is not None:
            by_channel[hold.channel_id].append(hold)
    everywhere_covered = _coverage(common)
    return {
        channel_id: _coverage([*common, *by_channel[channel_id]]) if by_channel[channel_id] else everywhere_covered
        for channel_id in channel_ids
    }


def hold_coverage_of_steps(steps: Collection[Step]) -> dict[int, HoldCoverage]:
    """Return the current coverage of holds in each channel of some steps of a purge, as far as it concerns them."""
    return hold_coverage_in({step.channel_id for step in steps}, authors=_authors_of(steps))


def _authors_of(steps: Collection[Step]) -> set[int] | None:
    """Return the authors of the messages of some steps of a purge, from its manifest; None if it lacks any of them."""
    # A rewrite deletes no messages.
    keys = {(step.channel_id, step.bucket) for step in steps if step.kind != StepKind.REWRITE}
    if not keys:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT manifest.channel_id, manifest.bucket, count, authors "
            f"FROM unnest(%s::bigint[], %s::int[]) AS wanted (channel_id, bucket) JOIN {_MANIFEST} AS manifest "
            "ON manifest.purge_id = %s AND manifest.channel_id = wanted.channel_id "
            "AND manifest.bucket = wanted.bucket",
            ([key[0] for key in keys], [key[1] for key in keys], next(iter(steps)).purge_id),
        )
        found = cursor.fetchall()
    authors: set[int] = set()
    for channel_id, bucket, count, counts in found:
        by_author = json.loads(counts)
        keys.discard((channel_id, bucket))
        if sum(by_author.values()) < count:
            return None
        authors.update(map(int, by_author))
    return None if keys else authors


def block_new_holds() -> None:
    """Block the placing of holds until the transaction ends; a transaction that is about to place one waits."""
    _lock(shared=True)


def hold_over_purge(purge: Purge) -> Hold | None:
    """Return a hold in force that covers some of a purge's messages, or None."""
    return next(iter(_holds_by_purge([purge], since=None).get(purge.pk, ())), None)


def times_held(since: Mapping[Purge, dt.datetime]) -> dict[int, dt.timedelta]:
    """Return the time since then during which holds covered some of each purge's messages, by purge id."""
    if not since:
        return {}
    found = _holds_by_purge(list(since), since=min(since.values()))
    now = postgres_now() if found else None
    held = {}
    for purge, time in since.items():
        holds = (hold for hold in found.get(purge.pk, ()) if hold.lifted_at is None or hold.lifted_at > time)
        held[purge.pk] = time_in_force(holds, since=time, now=now)
    return held


def time_in_force(holds: Iterable[Hold], *, since: dt.datetime, now: dt.datetime | None = None) -> dt.timedelta:
    """Return the time since then during which at least one of the holds was in force. now: Postgres's, if known."""
    found = list(holds)
    if not found:
        return dt.timedelta()
    now = now or postgres_now()
    return total_time((max(since, hold.placed_at), hold.lifted_at or now) for hold in found)


def coverage_of(holds: Iterable[Hold], channel_id: int) -> HoldCoverage:
    """Return the coverage of some holds in a channel."""
    return _coverage(
        [
            _HoldKey(hold.pk, hold.channel_id, hold.author_id, hold.message_id)
            for hold in holds
            if hold.channel_id in (None, channel_id)
        ]
    )


def _coverage(here: Collection[_HoldKey]) -> HoldCoverage:
    return HoldCoverage(
        hold_ids=frozenset(hold.pk for hold in here),
        everything=any(hold.author_id is None and hold.message_id is None for hold in here),
        authors=frozenset(hold.author_id for hold in here if hold.author_id is not None),
        messages=frozenset(hold.message_id for hold in here if hold.message_id is not None),
    )


def holds_covering(purge: Purge, *, since: dt.datetime) -> list[Hold]:
    """Return the holds that have covered some of the purge's messages at any time since the given one."""
    return _holds_by_purge([purge], since=since).get(purge.pk, [])


def is_deleted_part_held(purge: Purge, *, since: dt.datetime | None = None) -> bool:
    """Return whether a hold may cover messages that the purge deleted, not only such as it kept.

    since: one that was in force at any time since then; None: one that is in force. A hold kept what it covers in steps
    that had no copies yet when it was placed.
    """
    holds = _holds_by_purge([purge], since=since).get(purge.pk, [])
    return any(_may_cover_deleted(hold, purge) for hold in holds)


def _may_cover_deleted(hold: Hold, purge: Purge) -> bool:
    steps = purge.steps.counted_deletes().filter(deleted__gt=0, quarantined_at__lt=hold.placed_at)
    if hold.channel_id is not None:
        steps = steps.filter(channel_id=hold.channel_id)
    if hold.message_id is not None:
        return any(True for _ in steps_containing(steps, [hold.message_id]))
    if hold.author_id is not None:
        of_step = {name: OuterRef(name) for name in ("purge_id", "channel_id", "bucket")}
        steps = steps.filter(Exists(ManifestBucket.objects.filter(**of_step, authors__has_key=str(hold.author_id))))
    return steps.exists()


def holds_in_force_since(time: dt.datetime) -> QuerySet[Hold]:
    """Return the holds that are in force, or were at any time since the given one."""
    return Hold.objects.filter(Q(lifted_at=None) | Q(lifted_at__gt=time))


def _holds_by_purge(purges: Sequence[Purge], *, since: dt.datetime | None) -> dict[int, list[Hold]]:
    """Return the holds that cover some of each purge's messages, the newest first, by purge id.

    since: those that were in force at any time since then; None: those in force. As many statements for many purges as
    for one.
    """
    by_id = {purge.pk: purge for purge in purges}
    listed = authors_by_purge(by_id)
    pairs = _holds_of_authors(listed, since)
    if unlisted := [purge_id for purge_id in by_id if purge_id not in listed]:
        pairs |= _covering_pairs(_HOLDS_OF_MANIFEST_AUTHORS, [unlisted], since)
    pairs |= _covering_pairs(_HOLDS_IN_CHANNELS, [list(by_id)], since)
    holds = Hold.objects.in_bulk({hold_id for _, hold_id in pairs}) if pairs else {}
    found: defaultdict[int, list[Hold]] = defaultdict(list)
    for purge_id, hold_id in sorted(pairs, reverse=True):
        hold = holds[hold_id]
        if hold.message_id is None or _covers_message(hold, by_id[purge_id]):
            found[purge_id].append(hold)
    return dict(found)


def _holds_of_authors(listed: Mapping[int, Collection[int]], since: dt.datetime | None) -> set[tuple[int, int]]:
    keys = [(purge_id, author_id) for purge_id, authors in listed.items() for author_id in authors]
    purge_ids, author_ids = [key[0] for key in keys], [key[1] for key in keys]
    return _covering_pairs(_HOLDS_OF_AUTHORS, [purge_ids, author_ids], since) if keys else set()


def _look_up(place: str) -> str:
    """Return SQL of the holds of one place, found by an index of it: not pulled up, they cannot be joined by a scan."""
    columns = f"SELECT id, author_id, message_id FROM {_HOLDS} WHERE {place} AND lifted_at"
    return f"LATERAL ({columns} IS NULL UNION ALL {columns} > %s::timestamptz OFFSET 0) AS hold"


_OF_AUTHOR = "author_id = covered.author_id AND channel_id IS NULL"

_HOLDS_OF_AUTHORS = f"""SELECT covered.purge_id, hold.id
    FROM unnest(%s::bigint[], %s::bigint[]) AS covered (purge_id, author_id), {_look_up(_OF_AUTHOR)}"""

_HOLDS_OF_MANIFEST_AUTHORS = f"""SELECT covered.purge_id, hold.id
    FROM (SELECT DISTINCT purge_id, jsonb_object_keys(authors)::bigint AS author_id FROM {_MANIFEST}
        WHERE purge_id = ANY(%s)) AS covered, {_look_up(_OF_AUTHOR)}"""

# Previews of older versions have no first and last id.
_HOLDS_IN_CHANNELS = f"""SELECT covered.purge_id, hold.id
    FROM (SELECT DISTINCT purge_id, channel_id FROM {_MANIFEST} WHERE purge_id = ANY(%s)) AS covered,
    {_look_up("channel_id = covered.channel_id")},
    LATERAL (SELECT FROM {_MANIFEST} AS bucket
        WHERE bucket.purge_id = covered.purge_id AND bucket.channel_id = covered.channel_id AND CASE
            WHEN hold.author_id IS NOT NULL THEN jsonb_exists(bucket.authors, hold.author_id::text)
            WHEN hold.message_id IS NOT NULL
                THEN bucket.first_id IS NULL OR hold.message_id BETWEEN bucket.first_id AND bucket.last_id
            ELSE true END
        LIMIT 1) AS matched"""


def _covering_pairs(sql: str, values: Sequence[list[int]], since: dt.datetime | None) -> set[tuple[int, int]]:
    """Return (purge id, hold id) of the holds that may cover some of the purges' messages."""
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, since])
        return {(purge_id, hold_id) for purge_id, hold_id in cursor.fetchall()}


def _covers_message(hold: Hold, purge: Purge) -> bool:
    if hold.message_id is None or hold.channel_id is None:
        return False
    steps = purge.steps.filter(kind__in=DELETING, channel_id=hold.channel_id, bucket=bucket_of(hold.message_id))
    return any(hold.message_id in unpack_ids(ids) for ids in steps.values_list("ids", flat=True))


def _in_force() -> QuerySet[Hold]:
    return Hold.objects.filter(lifted_at=None)


def _newest(holds: QuerySet[Hold]) -> list[Hold]:
    return list(holds.select_related("placed_by", "lifted_by")[:MAX_LISTED_HOLDS])


def _describe(user: Actor, found: Sequence[Hold]) -> list[ListedHold]:
    users = ChatUser.objects.with_namesakes().in_bulk([hold.author_id for hold in found if hold.author_id is not None])
    mark_shared_names(user, (one for hold in found for one in (hold.placed_by, hold.lifted_by)), right=VIEW_HOLDS)
    in_channels = [hold.channel_id for hold in found if hold.channel_id is not None]
    channels = visible_channels(user).select_related("guild").in_bulk(in_channels)
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
