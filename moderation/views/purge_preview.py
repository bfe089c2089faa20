"""Context of a purge's preview: counts by channel, author and bucket, the plan in words, samples."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy

from chatstore.domain.buckets import bucket_days
from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel, ChatUser
from chatstore.operations.gateway.timeline import name_users
from moderation.domain.planner import DeleteStrategy, PlannedPart
from moderation.domain.states import PurgeState
from moderation.models import Purge, Undo
from moderation.operations.access.visibility import Actor
from moderation.operations.lookup.chat_users import account_made_at
from moderation.operations.lookup.mentioned import name_mentioned
from moderation.operations.preview.breakdown import (
    deleted_in,
    held_authors,
    restored_authors,
    share_by_author,
    share_by_channel,
)
from moderation.operations.preview.deleted_since import DeletedSince, count_by_author, count_by_channel
from moderation.operations.preview.manifest_summary import Summary
from moderation.operations.preview.purge_summary import BucketPreview, bucket_previews
from moderation.operations.preview.samples import SampleWindow, newest_matches, sample_manifest
from moderation.operations.selection.summary import FindChannels
from moderation.presentation.formats import format_number
from moderation.presentation.texts import messages_not_shown
from moderation.views.rows import MessageRow, rows_of

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

AUTHORS_SHOWN = 12
AUTHORS_ON_PHONES = 6
SAMPLES_SHOWN = 10
"""Messages at each end that are not folded, at least; runs of consecutive messages stay whole."""
BUCKETS_SHOWN = 200
OLD_ACCOUNT = dt.timedelta(days=365)
"""Accounts older than this are rarely those of a raid: a preview with some may select too much."""

_PLAN = {
    DeleteStrategy.DROP: ngettext_lazy(
        "All messages of %(shown)s ten-day period are deleted, right away.",
        "All messages of %(shown)s ten-day periods are deleted, right away.",
        "count",
    ),
    DeleteStrategy.RANGES: ngettext_lazy(
        "Messages from %(shown)s ten-day period are deleted together, right away.",
        "Messages from %(shown)s ten-day periods are deleted together, right away.",
        "count",
    ),
    DeleteStrategy.REWRITE: ngettext_lazy(
        "%(shown)s ten-day period is rewritten with the messages to keep.",
        "%(shown)s ten-day periods are rewritten with the messages to keep.",
        "count",
    ),
    DeleteStrategy.ROWS: ngettext_lazy(
        "%(shown)s message is deleted individually, right away.",
        "%(shown)s messages are deleted individually, right away.",
        "count",
    ),
    DeleteStrategy.LATER: ngettext_lazy(
        "%(shown)s message from the last hour is deleted once that hour is over.",
        "%(shown)s messages from the last hour are deleted once that hour is over.",
        "count",
    ),
}
"""Sentences for a whole purge. Ranges and rewrites count buckets, the others messages."""

_PAST_PLAN = {
    DeleteStrategy.DROP: ngettext_lazy(
        "All messages of %(shown)s ten-day period were to be deleted, right away.",
        "All messages of %(shown)s ten-day periods were to be deleted, right away.",
        "count",
    ),
    DeleteStrategy.RANGES: ngettext_lazy(
        "Messages from %(shown)s ten-day period were to be deleted together, right away.",
        "Messages from %(shown)s ten-day periods were to be deleted together, right away.",
        "count",
    ),
    DeleteStrategy.REWRITE: ngettext_lazy(
        "%(shown)s ten-day period was to be rewritten with the messages to keep.",
        "%(shown)s ten-day periods were to be rewritten with the messages to keep.",
        "count",
    ),
    DeleteStrategy.ROWS: ngettext_lazy(
        "%(shown)s message was to be deleted individually, right away.",
        "%(shown)s messages were to be deleted individually, right away.",
        "count",
    ),
    DeleteStrategy.LATER: ngettext_lazy(
        "%(shown)s message from the last hour was to be deleted once that hour was over.",
        "%(shown)s messages from the last hour were to be deleted once that hour was over.",
        "count",
    ),
}
"""The same once the purge has ended: it may have been cancelled, or have kept messages."""

_RANGES = ngettext_lazy("%(shown)s range", "%(shown)s ranges", "count")
_REWRITTEN = ngettext_lazy("%(shown)s kept message rewritten", "%(shown)s kept messages rewritten", "count")
_ROWS = ngettext_lazy("%(shown)s individually, right away", "%(shown)s individually, right away", "count")
_LATER = ngettext_lazy("%(shown)s once their hour is over", "%(shown)s once their hour is over", "count")


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A row of the plan's table. channel: None if there is only one, or the viewer may not see it."""

    channel: Channel | None
    first_day: date
    last_day: date
    matched: int
    survivors: int | None
    methods: Sequence[str]
    tombstones: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A message of a sample. is_matched: it is in the manifest."""

    row: MessageRow
    is_matched: bool


@dataclass(frozen=True, slots=True)
class SampleGroup:
    """Consecutive messages of a channel."""

    channel: Channel
    rows: Sequence[SampleRow]


def describe_preview(
    user: Actor,
    purge: Purge,
    manifest: Summary,
    channels: Sequence[Channel],
    *,
    find_channels: FindChannels,
    users: Mapping[int, ChatUser],
    undos: Sequence[Undo],
    deleted: int,
    held: int,
    deleted_since: DeletedSince,
    by_channel: bool,
) -> dict[str, Any]:
    """Return the context. channels: those that the viewer may see; of others only counts are shown.

    users: the manifest's largest authors. undos: of the purge. deleted: number of messages that are still deleted.
    held: of those that holds kept. deleted_since: those of a preview that other purges have deleted. by_channel: show
    for each channel and author how many can be restored.
    """
    is_single = manifest.channel_count == 1
    channel_ids = [one.channel_id for one in manifest.channels]
    are_all = len(channel_ids) == manifest.channel_count
    deleted_there = deleted_in(purge, channel_ids, are_all=are_all) if by_channel and not is_single else {}
    visible = {channel.pk: channel for channel in channels}
    shares = share_by_channel(manifest, visible, deleted_there, count_by_channel(deleted_since))
    restored = restored_authors(undos)
    kept = held_authors(purge, manifest, held=held) if by_channel else ()
    gone = count_by_author(purge, deleted_since)
    authors = share_by_author(manifest, users, restored=restored, held=kept, deleted_since=gone or {})
    left_by_author = manifest.count - sum(author.count for author in authors if author.is_restored or author.is_held)
    # A fold of a single author would not be shorter.
    at_once = AUTHORS_ON_PHONES if len(authors) > AUTHORS_ON_PHONES + 1 else AUTHORS_SHOWN
    rows = bucket_previews(purge, limit=BUCKETS_SHOWN)
    known = {} if is_single else find_channels(row.channel_id for row in rows)
    describe = describe_plan if user.has_perm("chatstore.view_finding") else describe_delete_times
    context: dict[str, Any] = {
        "preview": manifest,
        "plan": describe(manifest.strategies),
        "channel_shares": () if is_single else shares,
        # Undone messages that their author withdrew, or that another purge deletes, are not counted by channel.
        "shows_restored": any(share.undone for share in shares)
        and not any(undo.withdrawn or undo.still_purged for undo in undos),
        "channel_count": manifest.channel_count,
        "other_channels": manifest.channel_count - len(shares),
        "authors": authors[:at_once],
        "is_left_by_author": bool(gone),
        "shown_in_all": manifest.count - (gone or Counter()).total(),
        "folded_authors": authors[at_once:AUTHORS_SHOWN],
        "more_authors": authors[AUTHORS_SHOWN:],
        "all_folded_authors": len(authors) - at_once,
        # Otherwise others failed, were held or were restored in another way, which is not counted by author.
        "is_exact_by_author": deleted == left_by_author and restored <= {author.user_id for author in authors},
        "other_authors": manifest.author_count - len(authors),
        "old_accounts": _count_old_accounts(manifest) if purge.state == PurgeState.READY else None,
        "bucket_rows": [_row_of(bucket, known) for bucket in rows],
        "other_buckets": manifest.bucket_count - len(rows),
        "undo_days": settings.QUARANTINE_DAYS,
    }
    return context | (_sample(user, purge, manifest) if purge.state == PurgeState.READY else {})


def _count_old_accounts(manifest: Summary) -> int | None:
    """Return how many authors have accounts over a year old; None if that is not known of all."""
    now = timezone.now()
    made = [account_made_at(author_id, now=now) for author_id, _ in manifest.authors]
    if None in made or manifest.author_count != len(made):
        return None
    return sum(now - at > OLD_ACCOUNT for at in made if at is not None)


def describe_newest_matches(user: Actor, purge: Purge, manifest: Summary) -> dict[str, Any]:
    """Return the context of the newest matches of a running scan."""
    try:
        windows = newest_matches(user, purge, manifest)
    except StoreUnavailable as error:
        return {"samples_error": messages_not_shown(error.text)}
    names = _name_in(user, windows)
    return {"newest_matches": [_group_of(window, names["users"]) for window in windows], **names}


def _sample(user: Actor, purge: Purge, manifest: Summary) -> dict[str, Any]:
    try:
        samples = sample_manifest(user, purge, manifest)
    except StoreUnavailable as error:
        return {"samples_error": messages_not_shown(error.text)}
    names = _name_in(user, [*samples.oldest, *samples.newest])
    oldest, newest = ([_group_of(window, names["users"]) for window in end] for end in (samples.oldest, samples.newest))
    first, last = _count_shown(oldest), len(newest) - _count_shown(reversed(newest))
    sampled = len({group.channel.pk for group in (*oldest, *newest)})
    return {
        "sample_is_whole": samples.is_whole,
        "sampled_channels": sampled if sampled < manifest.channel_count else 0,
        "sample_oldest": oldest[:first],
        "more_oldest": oldest[first:],
        "more_newest": newest[:last],
        "sample_newest": newest[last:],
        **names,
    }


def _name_in(user: Actor, windows: Iterable[SampleWindow]) -> dict[str, Any]:
    """Return the context that names the authors of samples, and what these mention."""
    windows = list(windows)
    messages = [message for window in windows for message in window.messages]
    channels = [window.channel for window in windows]
    return {"users": name_users(messages), "mentioned": name_mentioned(user, messages, channels=channels)}


def _count_shown(groups: Iterable[SampleGroup]) -> int:
    """Return how many of the groups have the messages that are not folded; of several channels, none is."""
    groups = list(groups)
    if len({group.channel.pk for group in groups}) > 1:
        return len(groups)
    shown = messages = 0
    for group in groups:
        if messages >= SAMPLES_SHOWN:
            break
        shown, messages = shown + 1, messages + len(group.rows)
    return shown


def _group_of(window: SampleWindow, users: dict[int, ChatUser]) -> SampleGroup:
    # Each line shows its own date: two runs may be days apart.
    rows = [replace(row, day=None) for row in rows_of(window.messages, users)]
    return SampleGroup(window.channel, [SampleRow(row, row.message.message_id in window.matched) for row in rows])


def _row_of(bucket: BucketPreview, channels: Mapping[int, Channel]) -> BucketRow:
    first, last = bucket_days(bucket.bucket)
    return BucketRow(
        channel=channels.get(bucket.channel_id),
        first_day=first,
        last_day=last,
        matched=bucket.matched,
        survivors=bucket.survivors,
        methods=[method for part in bucket.plan.parts for method in _describe_part(part)],
        tombstones=bucket.plan.tombstones,
    )


def describe_plan(strategies: Mapping[DeleteStrategy, tuple[int, int]], *, is_over: bool = False) -> list[str]:
    """Return how and when messages are deleted, a sentence for each delete strategy in use.

    is_over: the purge has ended.
    """
    return [
        _fill(pattern, strategies[strategy][strategy in (DeleteStrategy.ROWS, DeleteStrategy.LATER)])
        for strategy, pattern in (_PAST_PLAN if is_over else _PLAN).items()
        if strategy in strategies
    ]


def describe_delete_times(strategies: Mapping[DeleteStrategy, tuple[int, int]]) -> list[str]:
    """Return when messages are deleted, for those who know no buckets."""
    if DeleteStrategy.LATER not in strategies:
        return [gettext("All are deleted right away.")] if strategies else []
    later = describe_plan({DeleteStrategy.LATER: strategies[DeleteStrategy.LATER]})
    return [*later, gettext("The others are deleted right away.")] if len(strategies) > 1 else later


def _describe_part(part: PlannedPart) -> list[str]:
    """Return how a part of a bucket is deleted."""
    match part.strategy:
        case DeleteStrategy.DROP:
            return [gettext("as a whole")]
        case DeleteStrategy.RANGES:
            return [_fill(_RANGES, part.statements)]
        case DeleteStrategy.ROWS:
            return [_fill(_ROWS, part.count)]
        case DeleteStrategy.LATER:
            return [_fill(_LATER, part.count)]
        case DeleteStrategy.REWRITE:
            return [_fill(_RANGES, part.statements), _fill(_REWRITTEN, part.rewritten)]


def _fill(pattern: _StrPromise, count: int) -> str:
    return pattern % {"count": count, "shown": format_number(count)}
