"""What a purge's page shows at each point of its life."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings

from chatstore.domain.buckets import bucket_window
from chatstore.domain.errors import StoreUnavailable
from chatstore.models import Channel, ChatUser
from chatstore.operations.timeline import name_users
from moderation.domain.markup import show_controls
from moderation.domain.planner import PlannedPart, Way
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access import Actor
from moderation.operations.failures import Failure, failures_of
from moderation.operations.places import channels_of
from moderation.operations.purge_view import (
    BucketPreview,
    Preview,
    preview_of,
    progress_of,
    samples_of,
    say_plan,
    seconds_of,
)
from moderation.operations.sentences import sentence_of
from moderation.operations.steering import acts_on
from moderation.operations.strips import map_purge
from moderation.operations.undos import UndoSum, can_be_undone, sum_of_undo, undo_until
from moderation.operations.waiting import wait_of
from moderation.views.rows import rows_of

CHANGING = frozenset(
    {
        PurgeState.DRAFT,
        PurgeState.SCANNING,
        PurgeState.QUEUED,
        PurgeState.RUNNING,
        PurgeState.WAITING,
        PurgeState.CANCELLING,
        PurgeState.UNDOING,
    }
)
"""States in which the page asks again each second."""

AUTHORS_SHOWN = 12
SAMPLES = 15


@dataclass(frozen=True, slots=True)
class AuthorShare:
    """How many of the matched messages somebody wrote."""

    user_id: int
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A line of the plan's table."""

    first_day: date
    last_day: date
    matched: int
    survivors: int
    how: str
    tombstones: int


def describe_page(user: Actor, purge: Purge) -> dict[str, Any]:
    """The context of the whole page."""
    context = describe_live(user, purge)
    if purge.manifest or purge.state == PurgeState.READY:
        context |= describe_preview(purge)
    context["may_confirm"] = purge.state == PurgeState.READY and user.has_perm("moderation.add_purge")
    return context


def describe_live(user: Actor, purge: Purge) -> dict[str, Any]:
    """The context of the part that changes while something happens."""
    channels = channels_of(user, purge)
    channel = channels[0] if len(channels) == 1 else None
    state = PurgeState(purge.state)
    sentence = sentence_of(purge)
    return {
        "purge": purge,
        "nav": "purges",
        "channel": channel,
        "polling": state in CHANGING,
        "heading": _say_heading(purge),
        "sentence": sentence[:1].upper() + sentence[1:],
        "moderator": purge.moderator.get_full_name() or purge.moderator.get_username(),
        "progress": progress_of(purge) if purge.confirmed_at else None,
        "wait": wait_of(user, purge),
        "failures": describe_failures(purge, channels),
        "seconds": seconds_of(purge) if purge.finished_at else None,
        "strip": map_purge(purge, [channel.pk for channel in channels]),
        "acts": acts_on(purge) if user.has_perm("moderation.add_purge") else (),
        "undo": describe_undo(purge, may_ask=user.has_perm("moderation.add_purge")),
        "digest": bytes(purge.digest).hex() if purge.digest else "",
    }


@dataclass(frozen=True, slots=True)
class FailuresView:
    """What failed: each bucket with its channel's name, where there are several, and its days."""

    rows: Sequence[tuple[Failure, str, tuple[date, date]]]
    others: int


def describe_failures(purge: Purge, channels: Sequence[Channel]) -> FailuresView:
    """What failed in the channels that the user may see."""
    names = {channel.pk: str(channel) if len(channels) > 1 else "" for channel in channels}
    found = failures_of(purge)
    rows = [(one, names[one.channel_id], _days_of(one.bucket)) for one in found.shown if one.channel_id in names]
    return FailuresView(rows, found.others)


@dataclass(frozen=True, slots=True)
class UndoView:
    """What the page says of taking a purge back. until: how long it is offered, or None."""

    may_ask: bool
    until: datetime | None
    sums: Sequence[tuple[str, UndoSum]]


def describe_undo(purge: Purge, *, may_ask: bool) -> UndoView:
    """The offer to take it back, and what earlier ones did."""
    undos = purge.undos.select_related("moderator").order_by("pk")
    sums = [(undo.moderator.get_full_name() or undo.moderator.get_username(), sum_of_undo(undo)) for undo in undos]
    offered = can_be_undone(purge)
    return UndoView(may_ask and offered, undo_until(purge) if offered else None, sums)


def describe_preview(purge: Purge) -> dict[str, Any]:
    """Exactly what goes: counts, authors, the plan in words and by bucket, samples."""
    preview = preview_of(purge)
    context: dict[str, Any] = {
        "preview": preview,
        "place": preview.oldest,
        "plan_words": say_plan(preview),
        "authors": _share_by_author(preview),
        "other_authors": max(len(preview.per_author) - AUTHORS_SHOWN, 0),
        "survivors": sum(bucket.survivors for bucket in preview.per_bucket),
        "bucket_rows": [_row_of(bucket) for bucket in preview.per_bucket],
        "keep_days": settings.QUARANTINE_DAYS,
    }
    return context | (_sample(purge) if purge.state == PurgeState.READY else {})


def _sample(purge: Purge) -> dict[str, Any]:
    try:
        first, last = samples_of(purge, limit=SAMPLES)
    except StoreUnavailable as error:
        return {"samples_silent": f"The messages cannot be shown now: {error}"}
    users = name_users([*first, *last])
    return {"sample_rows": rows_of(first, users), "sample_tail": rows_of(last, users), "users": users}


def _say_heading(purge: Purge) -> str:
    count = f"{purge.manifest:,} message{'' if purge.manifest == 1 else 's'}"
    if purge.state in (PurgeState.QUEUED, PurgeState.WAITING) and purge.started_at is None:
        return f"About to remove {count}"
    return {
        PurgeState.SCANNING: "Looking for what matches",
        PurgeState.READY: f"Remove {count}?",
        PurgeState.NOTHING_MATCHED: "Nothing matched",
        PurgeState.EXPIRED: "An old preview",
        PurgeState.CANCELLED: f"Stopped removing {count}",
        PurgeState.DONE: f"Removed {count}",
        PurgeState.DONE_WITH_FAILURES: f"Removed most of {count}",
        PurgeState.PAUSED: f"Paused removing {count}",
        PurgeState.UNDOING: f"Bringing back {count}",
        PurgeState.UNDONE: f"Brought back {count}",
        PurgeState.PARTLY_UNDONE: f"Brought back a part of {count}",
    }.get(PurgeState(purge.state), f"Removing {count}")


def _share_by_author(preview: Preview) -> Sequence[AuthorShare]:
    shown = preview.per_author[:AUTHORS_SHOWN]
    users = ChatUser.objects.in_bulk([author for author, _ in shown])
    names = {author: show_controls(str(users.get(author) or f"user {author}")) for author, _ in shown}
    return [AuthorShare(author, names[author], count) for author, count in shown]


def _days_of(bucket: int) -> tuple[date, date]:
    first, end = bucket_window(bucket)
    return first.date(), end.date() - timedelta(days=1)


def _row_of(bucket: BucketPreview) -> BucketRow:
    first, last = _days_of(bucket.bucket)
    return BucketRow(
        first_day=first,
        last_day=last,
        matched=bucket.matched,
        survivors=bucket.survivors,
        how="; ".join(map(_say_part, bucket.plan.parts)),
        tombstones=bucket.plan.tombstones,
    )


def _say_part(part: PlannedPart) -> str:
    if part.way is Way.DROP:
        return "the ten days dropped whole"
    if part.way is Way.RANGES:
        return f"{part.statements:,} range{'' if part.statements == 1 else 's'}"
    if part.way is Way.ROWS:
        return f"{part.count:,} one by one, at once"
    if part.way is Way.LATER:
        return f"{part.count:,} when their hour is over"
    return f"{part.statements:,} span{'' if part.statements == 1 else 's'}, {part.rewritten:,} that stay written again"
