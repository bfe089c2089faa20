"""Data of a purge for pages and commands: preview, progress, totals."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from chatstore.domain.snowflakes import time_of
from moderation.domain.planner import BucketPlan, DeleteStrategy
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.steps.totals import PurgeTotals, totals_of


@dataclass(frozen=True, slots=True)
class BucketPreview:
    """One bucket of a preview. matched: ids to delete. survivors: messages that are kept; None: not counted."""

    channel_id: int
    bucket: int
    matched: int
    survivors: int | None
    plan: BucketPlan


@dataclass(frozen=True, slots=True)
class Preview:
    """Frozen preview of the messages that a purge would delete."""

    count: int
    manifest_hash_hex: str
    per_bucket: Sequence[BucketPreview]
    per_author: Sequence[tuple[int, int]]
    oldest: dt.datetime | None
    newest: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a purge. rate_per_second: verified messages per second of working time; None before the first.

    seconds_left: estimated working time, without messages that are deferred until they are over an hour old.
    pause: the entry of the audit log with who paused the purge, and when, if it is paused.
    """

    totals: PurgeTotals
    rate_per_second: float | None
    seconds_left: float | None
    pause: AuditEntry | None = None

    @property
    def done(self) -> int:
        """Number of messages with a verified outcome."""
        return self.totals.manifest - self.totals.left

    @property
    def is_final(self) -> bool:
        """True if nothing will change any more."""
        return self.seconds_left == 0


def preview_of(purge: Purge) -> Preview:
    """Return the frozen preview; raises nothing and does not read the store."""
    buckets = list(purge.manifest_buckets.order_by("channel_id", "-bucket"))
    authors: Counter[int] = Counter()
    for row in buckets:
        authors.update({int(author): count for author, count in row.authors.items()})
    per_bucket = [_preview_bucket(row.channel_id, row.bucket, row.count, row.survivors, row.plan) for row in buckets]
    ends = [row.first_id for row in buckets if row.first_id is not None]
    tops = [row.last_id for row in buckets if row.last_id is not None]
    return Preview(
        count=sum(bucket.matched for bucket in per_bucket),
        manifest_hash_hex=bytes(purge.manifest_hash).hex() if purge.manifest_hash else "",
        per_bucket=per_bucket,
        per_author=authors.most_common(),
        oldest=time_of(min(ends)) if ends else None,
        newest=time_of(max(tops)) if tops else None,
    )


def bucket_previews(purge: Purge, *, limit: int) -> list[BucketPreview]:
    """Return the first buckets of a preview, by channel, newest first."""
    # Without the counts by author, which may be thousands.
    named = ("channel_id", "bucket", "count", "survivors", "plan")
    rows = purge.manifest_buckets.order_by("channel_id", "-bucket").values_list(*named)
    return [_preview_bucket(*row) for row in rows[:limit]]


def _preview_bucket(
    channel_id: int, bucket: int, matched: int, survivors: int | None, plan: dict[str, Any]
) -> BucketPreview:
    return BucketPreview(channel_id, bucket, matched, survivors, BucketPlan.from_json(plan))


def describe_plan(preview: Preview) -> str:
    """Describe the plan for moderators; empty if nothing is deleted."""
    counts_by_strategy = Counter(dict.fromkeys(DeleteStrategy, 0))
    worst = 0
    for bucket in preview.per_bucket:
        for part in bucket.plan.parts:
            counts_by_strategy[part.strategy] += (
                part.count if part.strategy in (DeleteStrategy.ROWS, DeleteStrategy.LATER) else 1
            )
        worst = max(worst, bucket.plan.tombstones)
    rewritten = _format_count(sum(bucket.plan.rewritten for bucket in preview.per_bucket), "{} kept", "message")
    phrases = [
        _format_count(counts_by_strategy[DeleteStrategy.DROP], "{} deleted as a whole", "period"),
        _format_count(counts_by_strategy[DeleteStrategy.RANGES], "{} cleared by ranges", "period"),
        _format_count(counts_by_strategy[DeleteStrategy.REWRITE], f"{{}} rewritten ({rewritten})", "period"),
        _format_count(counts_by_strategy[DeleteStrategy.ROWS], "{} deleted individually, right away", "message"),
        _format_count(
            counts_by_strategy[DeleteStrategy.LATER],
            "{} of the last hour deleted once they are over an hour old",
            "message",
        ),
    ]
    plan = ", ".join(filter(None, phrases))
    channels = len({bucket.channel_id for bucket in preview.per_bucket})
    if channels > 1:
        plan = f"in {channels:,} channels, {plan}"
    return f"{plan}. Operators: at most {_format_count(worst, '{}', 'tombstone')} more per period." if plan else ""


def _format_count(count: int, phrase: str, noun: str) -> str:
    return phrase.format(f"{count:,} {noun}{'' if count == 1 else 's'}") if count else ""


def progress_of(purge: Purge, total: PurgeTotals | None = None) -> Progress:
    """Return the progress of a purge. total: its totals, if they are known already."""
    total = total or totals_of(purge)
    done = total.manifest - total.left
    entries = _pauses_of(purge) if purge.started_at or purge.state == PurgeState.PAUSED else []
    seconds = active_seconds_of(purge, entries)
    rate = done / seconds if seconds and done else None
    is_final = purge.state in FINAL_PURGES
    left = total.left - total.later
    return Progress(
        totals=total,
        rate_per_second=rate,
        seconds_left=0 if is_final else (left / rate if rate else None),
        pause=entries[-1]
        if purge.state == PurgeState.PAUSED and entries and entries[-1].action == PAUSED_ACTION
        else None,
    )


FINAL_PURGES = frozenset(
    {
        PurgeState.NOTHING_MATCHED,
        PurgeState.EXPIRED,
        PurgeState.CANCELLED,
        PurgeState.DONE,
        PurgeState.DONE_WITH_FAILURES,
        PurgeState.UNDONE,
        PurgeState.PARTLY_UNDONE,
        PurgeState.UNDO_EXPIRED,
        PurgeState.ERASING,
        PurgeState.ERASED,
    }
)


def seconds_of(purge: Purge) -> float | None:
    """Return the seconds from the confirmation to the end, or to now; None before the confirmation."""
    if purge.confirmed_at is None:
        return None
    return ((purge.finished_at or timezone.now()) - purge.confirmed_at).total_seconds()


PAUSED_ACTION = "purge_paused"
_PAUSING_ACTIONS = frozenset({PAUSED_ACTION, "purge_cancelled", "purge_finished"})
_RESUMING_ACTIONS = frozenset({"purge_resumed", "purge_finish_requested", "purge_retry_requested"})


def _pauses_of(purge: Purge) -> list[AuditEntry]:
    """Return the entries of the audit log that begin and end pauses, with their actors, in order."""
    entries = purge.audit.filter(action__in=_PAUSING_ACTIONS | _RESUMING_ACTIONS).select_related("actor")
    return list(entries.order_by("at", "id"))


def active_seconds_of(purge: Purge, entries: Sequence[AuditEntry] | None = None) -> float | None:
    """Return the seconds from the first step to the end, or to now, without pauses and the time after a cancel.

    entries: what begins and ends pauses, if it was read already.
    """
    if purge.started_at is None:
        return None
    end = purge.finished_at or timezone.now()
    paused, since = dt.timedelta(0), None
    for entry in _pauses_of(purge) if entries is None else entries:
        action, at = entry.action, entry.at
        if action in _PAUSING_ACTIONS:
            since = since or at
        elif since is not None:
            paused, since = paused + (at - since), None
    if since is not None and since < end:
        paused += end - since
    return (end - purge.started_at - paused).total_seconds()


@dataclass(frozen=True, slots=True)
class UndoProgress:
    """Progress of an undo. expected: number of requested messages; an upper bound for undos by author or channel.

    decided: number of messages with a known outcome. rate_per_second: of those; None before the first.
    """

    expected: int
    decided: int
    rate_per_second: float | None

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left; None while no rate is known."""
        return (self.expected - self.decided) / self.rate_per_second if self.rate_per_second else None


def undo_progress_of(purge: Purge) -> UndoProgress | None:
    """Return the progress of the running undo, or None."""
    undo = purge.undos.filter(finished_at=None).order_by("pk").last() if purge.state == PurgeState.UNDOING else None
    if undo is None:
        return None
    decided = undo.requested
    seconds = (timezone.now() - undo.requested_at).total_seconds()
    return UndoProgress(
        # One that was requested before it was counted shows how far it is, at least.
        expected=max(undo.expected or 0, decided),
        decided=decided,
        rate_per_second=decided / seconds if decided and seconds > 0 else None,
    )


def purge_as_json(purge: Purge) -> dict[str, object]:
    """Return the output of `manage.py purge --json`."""
    total = totals_of(purge)
    seconds = seconds_of(purge)
    return {
        "id": str(purge.id),
        "state": purge.state,
        "manifest_hash": bytes(purge.manifest_hash).hex() if purge.manifest_hash else None,
        "manifest": total.manifest,
        "deleted": total.deleted,
        "already_gone": total.already_gone,
        "held": total.held,
        "failed": total.failed,
        "left": total.left,
        "seconds": None if seconds is None else round(seconds, 3),
        "buckets": _buckets_by_strategy(purge) | {"later": total.later},
    }


def format_totals(purge: Purge) -> str:
    """Format the totals: "120 deleted, 0 already gone, 0 held, 0 failed, 0 left"."""
    counts = totals_of(purge).as_json()
    named = ("deleted", "already_gone", "held", "failed", "left")
    return ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in named)


def _buckets_by_strategy(purge: Purge) -> dict[str, int]:
    """Return the number of buckets by delete strategy; a bucket with two strategies counts in both."""
    counts_by_strategy = Counter(purge.steps.exclude(strategy="").values_list("strategy", flat=True))
    return {strategy: counts_by_strategy[strategy] for strategy in ("rows", "drop", "ranges", "rewrite")}
