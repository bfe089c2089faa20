"""Monitoring check of raids, and the findings that it opens.

A check costs three queries of Redis and two of Postgres while no channel is unusually busy. Only channels with many
posts in one of the last minutes are looked at: first their usual rate, then, if it is exceeded, their newest messages.
Those that grew most within the hour come first, so that a raid is found however many channels are always busy.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Mapping, Sequence

from django.db.models import BigIntegerField, Case, Exists, OuterRef, Q, QuerySet, When
from django.db.models.functions import Cast

from chatstore.domain.errors import NotFound, StoreUnavailable, TooManyTombstones
from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.runs import Severity
from chatstore.domain.snowflakes import first_id_at, ms_of, unix_ms
from chatstore.domain.texts import Duration, ngettext_lazy
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models import Channel, Finding
from chatstore.models.functions import ClockTimestamp
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.operations.findings.records import Problem, sync_findings
from chatstore.operations.rights import VIEW_CHANNELS, in_scope, scope_for
from chatstore.store.activity import SLOT_MINUTES, busy_channels, posts_of_hour
from moderation.domain.raids import PAUSE_MS, Assessment, Limits
from moderation.models import RaidSettings, Step
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import ADD_PURGE, Actor, channel_for, require
from moderation.operations.raids.reading import assess_channel, settings_of, usual_rate
from moderation.operations.steps.claiming import brief_transaction
from moderation.store.dismissed_raids import is_dismissed, record_dismissal

logger = logging.getLogger(__name__)

RAID = "raid"
"""Subject: "<channel>"."""

LOOK_BACK_MS = 30 * MINUTE_MS
"""A raid is reported for half an hour after its last message, unless it is purged: its messages are still there."""

MAX_EARLIER = 8
"""How many half hours before that are read to find the beginning of a raid."""

MAX_UNREADABLE = 20
"""Channels that could not be read in one check, after which no other is tried: each may take seconds."""

CHECK_SECONDS = 30.0
"""Time for one check. Channels that it does not reach are looked at in the next one, if they are still busy."""

MAX_NOTICES = 3

MAX_MARKED = 100
"""Channels with a raid that are marked in lists."""


def check_raids(now: dt.datetime) -> None:
    """Open findings for channels that seem to be raided; close those of raids that are over or were purged.

    The finding of a channel that cannot be read stays as it is, and the other channels are checked.
    """
    busy, reported = busy_channels(_least_rate()), _reported_raids()
    others = [channel_id for channel_id in order_by_growth(busy) if channel_id not in reported]
    found, unchecked = _check([*reported, *others], busy=busy, reported=reported, now=now)
    sync_findings(RAID, found, unchecked=unchecked)


def recheck_purged_raids(purge_id: int) -> None:
    """Check reported raids again of which a purge has deleted messages: until then their notice counts these."""
    if reported := _reported_raids():
        steps = Step.objects.filter(purge_id=purge_id, channel_id__in=reported)
        if purged := set(steps.values_list("channel_id", flat=True)):
            found, unchecked = _check(sorted(purged), busy={}, reported=reported, now=postgres_now())
            sync_findings(RAID, found, unchecked=unchecked, among=Q(subject__in=[str(one) for one in purged]))


def _reported_raids() -> dict[int, Finding]:
    return {int(finding.subject): finding for finding in Finding.objects.open().filter(kind=RAID)}


def order_by_growth(busy: Mapping[int, int]) -> list[int]:
    """Return busy channels, those first whose posts grew most within the hour. busy: with their posts in a minute."""
    hours = posts_of_hour(busy)

    def grew(channel_id: int) -> float:
        # A raid is in the newest parts only.
        earlier = hours.get(channel_id, ())[:-2]
        usual = sum(earlier) / (len(earlier) * SLOT_MINUTES) if earlier else 0
        return busy[channel_id] / max(usual, 1)

    return sorted(busy, key=grew, reverse=True)


def _check(
    channel_ids: Sequence[int], *, busy: Mapping[int, int], reported: Mapping[int, Finding], now: dt.datetime
) -> tuple[dict[str, Problem], list[str]]:
    """Return the raids of some channels, in this order, and the channels that could not be checked."""
    channels = Channel.objects.select_related("guild").in_bulk(channel_ids)
    settings = settings_of({channel.guild_id for channel in channels.values()})
    now_ms, until = unix_ms(now), time.monotonic() + CHECK_SECONDS
    found: dict[str, Problem] = {}
    unchecked: list[str] = []
    for channel_id in channel_ids:
        channel, known = channels.get(channel_id), reported.get(channel_id)
        if channel is None or not (own := settings[channel.guild_id]).is_enabled:
            continue
        if time.monotonic() > until or len(unchecked) >= MAX_UNREADABLE:
            unchecked.append(str(channel_id))
            continue
        try:
            if known is None and not _is_unusual(channel_id, busy[channel_id], own.limits, now_ms=now_ms):
                continue
            if is_dismissed(channel_id):
                continue
            since_ms = now_ms - LOOK_BACK_MS if known is None else known.details["since_ms"] - PAUSE_MS
            assessment = _assess(channel_id, own.limits, since_ms=since_ms, now_ms=now_ms)
        except (StoreUnavailable, TooManyTombstones) as error:
            logger.warning("could not check channel %s for a raid: %s", channel_id, error)
            unchecked.append(str(channel_id))
            continue
        if assessment.is_raid and ms_of(assessment.last_id) >= now_ms - LOOK_BACK_MS:
            found[str(channel_id)] = _describe_raid(channel, assessment, known=known)
    if unchecked:
        logger.warning("%s of %s channels could not be checked for raids", len(unchecked), len(channel_ids))
    return found, unchecked


def _assess(channel_id: int, limits: Limits, *, since_ms: int, now_ms: int) -> Assessment:
    """Assess the messages since a time, and earlier ones as long as the raid seems to have begun before."""
    for _earlier in range(MAX_EARLIER + 1):
        recent = assess_channel(channel_id, limits, first_id=first_id_at(since_ms), now_ms=now_ms)
        began_ms = ms_of(recent.assessment.first_id)
        if not (recent.is_complete and recent.assessment.is_raid) or began_ms >= since_ms + PAUSE_MS:
            break
        since_ms = began_ms - LOOK_BACK_MS
    return recent.assessment


def _least_rate() -> int:
    """Return the lowest number of messages per minute that any guild considers unusual."""
    lowest = RaidSettings.objects.filter(is_enabled=True).order_by("messages_per_minute")
    own = lowest.values_list("messages_per_minute", flat=True).first()
    default = Limits().messages_per_minute
    return default if own is None else min(own, default)


def _is_unusual(channel_id: int, rate: int, limits: Limits, *, now_ms: int) -> bool:
    # The usual rate costs a query, so it is asked last.
    return limits.is_unusual(rate, usual=0) and limits.is_unusual(rate, usual=usual_rate(channel_id, now_ms=now_ms))


def _describe_raid(channel: Channel, assessment: Assessment, *, known: Finding | None) -> Problem:
    accounts = len(assessment.participants)
    summary = _(
        "Possible raid in %(channel)s: %(messages)s by %(accounts)s in %(time)s",
        channel=channel.full_name,
        messages=ngettext_lazy("%(count)s message", "%(count)s messages", assessment.count),
        accounts=ngettext_lazy("%(count)s account", "%(count)s accounts", accounts),
        time=Duration(assessment.seconds),
    )
    since = ms_of(assessment.first_id)
    if known is not None:
        # Of a large raid only the newest messages are read.
        since = min(since, known.details["since_ms"])
    details: Mapping[str, object] = {
        "channel": str(channel.pk),
        "since_ms": since,
        "messages": assessment.count,
        "accounts": accounts,
    }
    return Problem(Severity.CRITICAL, summary, details)


def open_raid(channel_id: int) -> Finding | None:
    """Return the open finding about a raid in a channel, or None."""
    return Finding.objects.open().filter(kind=RAID, subject=str(channel_id)).first()


def raided_channels(user: Actor) -> set[int]:
    """Return the ids of the channels that a user may open with the newest open findings about raids."""
    raids = _open_raids(user, VIEW_CHANNELS).order_by("-opened_at")[:MAX_MARKED]
    return {int(subject) for subject in raids.values_list("subject", flat=True)}


def list_raids(user: Actor, *, except_in: int | None = None) -> list[Finding]:
    """Return the newest open findings about raids where a user may delete messages. except_in: not in this channel."""
    return list(_raids_to_clear(user, except_in).order_by("-opened_at")[:MAX_NOTICES])


def count_raids(user: Actor, *, except_in: int | None = None) -> int:
    """Return the number of all that `list_raids` returns the newest of."""
    return _raids_to_clear(user, except_in).count()


def _raids_to_clear(user: Actor, except_in: int | None) -> QuerySet[Finding]:
    if not user.has_perm(ADD_PURGE):
        return Finding.objects.none()
    raids = _open_raids(user, ADD_PURGE)
    return raids if except_in is None else raids.exclude(subject=str(except_in))


def _open_raids(user: Actor, right: str) -> QuerySet[Finding]:
    """Return the open findings about raids in channels in which a user has a right.

    The index of open findings has those of each kind, and the channel of each is found by its key.
    """
    raids, scope = Finding.objects.open().filter(kind=RAID), scope_for(user, right)
    if scope.is_everything:
        return raids
    # The subjects of other kinds are no numbers, and Postgres may compute them before it compares the kind.
    channel_id = Case(When(kind=RAID, then=Cast("subject", BigIntegerField())))
    there = Channel.objects.filter(in_scope(scope, guild="guild_id", channel="pk"), pk=OuterRef("raid_in"))
    return raids.alias(raid_in=channel_id).filter(Exists(there))


def dismiss_raid(channel_id: int, *, actor: User) -> None:
    """Close the finding about a raid, which is not opened again for an hour.

    Raises `Forbidden`, `NotFound`, `StoreUnavailable`.
    """
    require(actor, ADD_PURGE)
    channel_for(actor, channel_id, ADD_PURGE)
    with brief_transaction():
        raid = Finding.objects.open().select_for_update().filter(kind=RAID, subject=str(channel_id)).first()
        if raid is None:
            raise NotFound(_("No raid is reported in channel %(id)s.", id=str(channel_id)))
        record_dismissal(channel_id)
        details = raid.details | {"dismissed_by": actor.get_username()}
        Finding.objects.filter(pk=raid.pk).update(details=details, closed_at=ClockTimestamp())
        record_action("raid_dismissed", actor=actor, channel_id=channel_id, details={"summary": str(raid.summary)})
