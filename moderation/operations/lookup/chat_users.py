"""Profile of a chat user: account, activity by channel and time, and the purges that included their messages.

Read from the author index and from manifests; no message is read.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import BigIntegerField, Count, F, Func, Q, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast
from django.utils import timezone

from chatstore.domain.buckets import bucket_at, bucket_days
from chatstore.domain.errors import NotFound
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import EPOCH_MS, ms_of, time_of, unix_ms
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, ChatUser, Guild, GuildMember
from chatstore.operations.gateway.timeline import last_day_of
from chatstore.operations.rights import VIEW_CHANNELS, guilds_for, scope_for
from chatstore.store.authors import author_buckets
from chatstore.store.ledger import LedgerRow, read_ledgers
from moderation.domain.state_labels import AWAITING_APPROVAL
from moderation.domain.states import ACTIVE_PURGES, PurgeState
from moderation.models import ManifestBucket
from moderation.operations.access.visibility import (
    ADD_PURGE,
    VIEW_PURGES,
    Actor,
    purges_within,
    require,
    visible_channels,
    visible_purges,
)
from moderation.operations.selection.shown_states import filter_by_shown_state
from moderation.operations.selection.summary import ListedPurge, describe_purges
from moderation.operations.undo.listed_purges import with_list_facts
from moderation.presentation.activity import ActivitySpan, ActivityStrips, draw_activity

CHANNELS_SHOWN = 12
PURGES_SHOWN = 20
GUILDS_SHOWN = 20

FIRST_PLAUSIBLE_MS = EPOCH_MS + DAY_MS
"""Smaller ids were assigned by another system and are not snowflakes of the first day of 2015."""

BUCKETS_PER_CHECK = 1_000


@dataclass(frozen=True, slots=True)
class ChannelActivity:
    """Activity of the user in a channel: number of ten-day periods, and the first and last day of the last one.

    periods, last_seen: without periods that have no live rows of any author; 0 and None if no other is left.
    purge_count: number of confirmed purges that included messages of the user there, also purges that the viewer may
    not see because they include channels elsewhere. matched: sum of these messages, of which several purges may include
    the same. is_restored: all of these purges were undone. is_pending: some of them have not ended.
    """

    channel: Channel
    periods: int
    last_seen: tuple[dt.date, dt.date] | None
    matched: int
    purge_count: int
    is_restored: bool
    is_pending: bool


@dataclass(frozen=True, slots=True)
class MatchedByPurge:
    """Purge, and the number of the user's messages that it includes.

    may_restore: whether all of them can be restored, by the viewer too.
    """

    listed: ListedPurge
    count: int
    may_restore: bool


@dataclass(frozen=True, slots=True)
class Profile:
    """Profile of a chat user. user: None if the user is not in the member list.

    made_at: when the account was created, if the id contains it. activity: the channels with the most periods
    first; more_channels: number of channels beyond those. searched_back_to: set if the deadline was reached before all
    activity was read. first_seen, last_seen: first and last day of the periods in which the user first and last posted
    where the viewer may look, without days before the account was created; None without any, and first_seen also if the
    deadline was reached. purge_count: number of confirmed purges that included messages of the user; purges: the last
    of them that the viewer may see. waiting: purges that include messages of the user, and wait for approval.
    hidden_matched: sum of the messages that other purges included, in channels of the viewer; hidden_purges: number of
    those purges, of which several may include the same message.
    memberships: what is known of the user in the guilds that the viewer may see, the latest joined first. guilds: those
    of all channels of the viewer in which the user posted, also of those beyond `activity`.
    """

    user_id: int
    user: ChatUser | None
    made_at: dt.datetime | None
    activity: Sequence[ChannelActivity]
    strips: ActivityStrips[ActivitySpan] | None
    more_channels: int
    first_seen: tuple[dt.date, dt.date] | None
    last_seen: tuple[dt.date, dt.date] | None
    searched_back_to: dt.date | None
    purges: Sequence[MatchedByPurge]
    purge_count: int
    waiting: Sequence[MatchedByPurge]
    hidden_matched: int
    hidden_purges: int
    memberships: Sequence[GuildMember]
    guilds: Collection[Guild]

    @property
    def listed_purges(self) -> Sequence[MatchedByPurge]:
        """Purges to list, those that wait for approval first."""
        return [*self.waiting, *self.purges]


def profile_of(user: Actor, user_id: int) -> Profile:
    """Return the profile. Raises `NotFound` if the id is unknown everywhere, `Forbidden`, `StoreUnavailable`."""
    require(user, "chatstore.view_chatuser")
    known = ChatUser.objects.with_namesakes().filter(pk=user_id).first()
    places, searched_back_to = _read_places(user_id)
    channels = visible_channels(user).in_bulk(places)
    visible = {channel_id: buckets for channel_id, buckets in places.items() if channel_id in channels}
    purges, waiting = _purges_of(user, user_id), _waiting_purges_of(user, user_id)
    if known is None and not visible and not purges and not waiting:
        raise NotFound(_("There is no user %(id)s.", id=str(user_id)))
    posted = [bucket for buckets in visible.values() for bucket in (buckets[0], buckets[-1])]
    busiest = sorted(visible, key=lambda channel_id: (-len(visible[channel_id]), -max(visible[channel_id]), channel_id))
    shown = busiest[:CHANNELS_SHOWN]
    nonempty = {channel_id: _nonempty(rows, visible[channel_id]) for channel_id, rows in read_ledgers(shown)}
    matched = _matched_by_channel(user_id, shown)
    hidden = {} if scope_for(user, VIEW_PURGES).is_everything else _matched_besides(purges, user_id, visible)
    made_at = account_made_at(user_id, now=timezone.now())
    return Profile(
        user_id=user_id,
        user=known,
        made_at=made_at,
        activity=[
            ChannelActivity(
                channels[i],
                len(nonempty[i]),
                _days_of(max(nonempty[i]), made_at) if nonempty[i] else None,
                *matched.get(i, (0, 0, False, False)),
            )
            for i in shown
        ],
        strips=draw_activity(
            nonempty,
            today=bucket_at(unix_ms(timezone.now())),
            since=made_at.astimezone(dt.UTC).date() if made_at else None,
        ),
        more_channels=len(busiest) - len(shown),
        first_seen=_days_of(min(posted), made_at) if posted and searched_back_to is None else None,
        last_seen=_days_of(max(posted), made_at) if posted else None,
        searched_back_to=None if searched_back_to is None else last_day_of(searched_back_to),
        purges=_describe(user, purges, limit=PURGES_SHOWN),
        purge_count=len(purges) + len(hidden),
        waiting=_describe(user, waiting, limit=PURGES_SHOWN),
        hidden_matched=sum(hidden.values()),
        hidden_purges=len(hidden),
        memberships=_memberships_of(user, user_id),
        guilds={channel.guild for channel in channels.values() if channel.guild is not None},
    )


def purges_of_author(user: Actor, author_id: int, *, limit: int) -> list[MatchedByPurge]:
    """Return the last confirmed purges that included a user's messages, and that the viewer may see."""
    return _describe(user, _purges_of(user, author_id), limit=limit)


def account_made_at(user_id: int, *, now: dt.datetime) -> dt.datetime | None:
    """Return when an account was created, from its id; None for ids that are clearly not snowflakes."""
    return time_of(user_id) if FIRST_PLAUSIBLE_MS <= ms_of(user_id) <= unix_ms(now) else None


def _read_places(author_id: int) -> tuple[dict[int, list[int]], int | None]:
    """Return the user's buckets by channel, newest first, and the last bucket read if the deadline was reached."""
    end = time.monotonic() + settings.PAGE_DEADLINE_SECONDS
    places: dict[int, list[int]] = {}
    for number, (bucket, channel_id) in enumerate(author_buckets(author_id), start=1):
        places.setdefault(channel_id, []).append(bucket)
        if number % BUCKETS_PER_CHECK == 0 and time.monotonic() > end:
            return places, bucket
    return places, None


def _days_of(bucket: int, made_at: dt.datetime | None) -> tuple[dt.date, dt.date]:
    """Return the first and last day on which a user may have posted in a bucket: until today, since the account was
    created.
    """
    first, last = bucket_days(bucket)[0], last_day_of(bucket)
    return (min(max(first, made_at.astimezone(dt.UTC).date()), last), last) if made_at else (first, last)


def _nonempty(ledger: Iterable[LedgerRow], buckets: Sequence[int]) -> list[int]:
    """Return the buckets that have, or may have, live rows."""
    empty = {bucket for bucket, live in ledger if live.is_empty}
    return [bucket for bucket in buckets if bucket not in empty]


def _memberships_of(user: Actor, user_id: int) -> list[GuildMember]:
    members = GuildMember.objects.filter(user_id=user_id, guild__in=guilds_for(user, VIEW_CHANNELS))
    known = members.filter(Q(joined_at__isnull=False) | Q(roles__isnull=False)).select_related("guild")
    return list(known.order_by(F("joined_at").desc(nulls_last=True), "guild_id")[:GUILDS_SHOWN])


def _matched_by_channel(author_id: int, channel_ids: Sequence[int]) -> dict[int, tuple[int, int, bool, bool]]:
    """Return the sum of the user's messages that confirmed purges included, by channel.

    With the number of these purges, and whether all of them were undone, and some have not ended.
    """
    matched = _matched_buckets(author_id).filter(channel_id__in=channel_ids).order_by().values("channel_id")
    is_left = ~Q(purge__state=PurgeState.UNDONE)
    is_pending = Q(purge__state__in=ACTIVE_PURGES - {PurgeState.UNDOING})
    counted = matched.annotate(
        matched=Sum(_count_of(author_id)),
        purges=Count("purge_id", distinct=True),
        left=Count("purge_id", filter=is_left, distinct=True),
        pending=Count("purge_id", filter=is_pending, distinct=True),
    )
    found = counted.values_list("channel_id", "matched", "purges", "left", "pending")
    return {channel_id: (count, purges, not left, bool(pending)) for channel_id, count, purges, left, pending in found}


def _matched_besides(purges: Collection[int], author_id: int, channel_ids: Collection[int]) -> dict[int, int]:
    """Return the number of the user's messages in some channels by other confirmed purges."""
    matched = _matched_buckets(author_id).filter(channel_id__in=channel_ids).order_by().values("purge_id")
    counts = matched.annotate(matched=Sum(_count_of(author_id))).values_list("purge_id", "matched")
    return {purge_id: count for purge_id, count in counts if purge_id not in purges}


def _purges_of(user: Actor, author_id: int) -> dict[int, int]:
    """Return the number of the user's messages by confirmed purge, the last confirmed first."""
    visible = _matched_buckets(author_id).filter(purge__in=visible_purges(user))
    matched = visible.values("purge_id").annotate(matched=Sum(_count_of(author_id)))
    return dict(matched.order_by("-purge__confirmed_at", "-purge_id").values_list("purge_id", "matched"))


def _waiting_purges_of(user: Actor, author_id: int) -> dict[int, int]:
    """Return the number of the user's messages by purge that waits for approval, the newest first."""
    waiting = filter_by_shown_state(visible_purges(user), AWAITING_APPROVAL)
    buckets = ManifestBucket.objects.filter(authors__has_key=str(author_id), purge__in=waiting)
    matched = buckets.values("purge_id").annotate(matched=Sum(_count_of(author_id)))
    return dict(matched.order_by("-purge_id").values_list("purge_id", "matched"))


def _matched_buckets(author_id: int) -> QuerySet[ManifestBucket]:
    return ManifestBucket.objects.filter(authors__has_key=str(author_id), purge__confirmed_at__isnull=False)


def _count_of(author_id: int) -> Cast:
    # Postgres' -> operator treats an all-digit key as an array index.
    count = Func(F("authors"), Value(str(author_id)), function="jsonb_extract_path_text", output_field=TextField())
    return Cast(count, BigIntegerField())


def _describe(user: Actor, counts: dict[int, int], *, limit: int) -> list[MatchedByPurge]:
    shown = list(counts)[:limit]
    found = visible_purges(user).defer("manifest_hash").in_bulk(shown)
    described = describe_purges(user, [found[purge_id] for purge_id in shown if purge_id in found])
    listed = with_list_facts(user, described)
    # Of others the user's messages may have been kept by a hold, or be restored already: their pages know of whom.
    all_deleted = [one.purge.pk for one in listed if one.undo_until is not None and one.purge.state == PurgeState.DONE]
    own = purges_within(user, ADD_PURGE, all_deleted)
    return [MatchedByPurge(entry, counts[entry.purge.pk], entry.purge.pk in own) for entry in listed]
