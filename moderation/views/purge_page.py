"""What a purge's page shows at each point of its life."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.utils import timezone

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from moderation.domain.states import CAN_BE_UNDONE, PurgeState
from moderation.models import Purge
from moderation.operations.access.visibility import Actor, name_of
from moderation.operations.holds import hold_over_purge
from moderation.operations.preview.breakdown import standing_by_channel
from moderation.operations.preview.bucket_strip import map_purge
from moderation.operations.preview.purge_summary import progress_of, seconds_of, undo_progress_of
from moderation.operations.purging.controls import acts_on
from moderation.operations.purging.failures import Failure, failures_of
from moderation.operations.purging.wait_reasons import wait_of
from moderation.operations.selection.scope import channels_of
from moderation.operations.selection.summary import describe_purges
from moderation.operations.steps.totals import sum_of
from moderation.operations.undo.import_guard import imports_of
from moderation.operations.undo.requests import (
    UndoSum,
    can_be_undone,
    sum_of_undo,
    undo_until,
    unheld_until,
)
from moderation.views.purge_erasing import describe_erasing
from moderation.views.purge_preview import describe_preview

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


def describe_page(user: Actor, purge: Purge) -> dict[str, Any]:
    """The context of the whole page."""
    context = describe_live(user, purge)
    if purge.manifest or purge.state == PurgeState.READY:
        context |= describe_preview(purge, channels_of(user, purge))
    context["may_confirm"] = purge.state == PurgeState.READY and user.has_perm("moderation.add_purge")
    return context


def describe_live(user: Actor, purge: Purge) -> dict[str, Any]:
    """The context of the part that changes while something happens."""
    channels = channels_of(user, purge)
    erasing = describe_erasing(user, purge)
    channel = channels[0] if len(channels) == 1 else None
    state = PurgeState(purge.state)
    sentence = describe_purges(user, [purge])[0].sentence
    may_ask = user.has_perm("moderation.add_purge")
    undo = describe_undo(purge, may_ask=may_ask)
    undoing = undo_progress_of(purge)
    was = erasing.erasure.was if erasing.erasure else purge.state
    return {
        "purge": purge,
        "nav": "purges",
        "channel": channel,
        "polling": state in CHANGING or erasing.is_deleting,
        "heading": _say_heading(purge, was, undoing=undoing.expected if undoing else 0, back=undo.back),
        "sentence": sentence[:1].upper() + sentence[1:],
        "moderator": name_of(purge.moderator),
        "progress": progress_of(purge) if purge.confirmed_at else None,
        "wait": wait_of(user, purge),
        "failures": describe_failures(purge, channels),
        "seconds": seconds_of(purge) if purge.finished_at else None,
        "strip": map_purge(purge, [channel.pk for channel in channels]),
        # What the channels of a guild hold is not known before each was looked at.
        "has_scan_total": bool(purge.selection["channels"]),
        "found_in": len(channels) if state is PurgeState.SCANNING and purge.manifest else 0,
        "unticked": len(purge.selection["except"]),
        "acts": acts_on(purge) if may_ask else (),
        "undo": undo,
        "imported": imports_of(purge) if purge.confirmed_at else (),
        "undoing": undoing,
        "erasing": erasing,
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
    rows = [(one, names[one.channel_id], bucket_days(one.bucket)) for one in found.shown if one.channel_id in names]
    return FailuresView(rows, found.others)


@dataclass(frozen=True, slots=True)
class UndoView:
    """What the page says of taking a purge back. until: how long it is, or was, offered; or None.

    kept_until: of what no hold covers. is_held: a hold covers some of it, and `until` moves on with the time.
    only_held: the rest is over.

    sums: who took what back, and what came of it. back: how many messages stand there again.
    standing: how many the purge still stands for.
    """

    may_ask: bool
    until: datetime | None
    kept_until: datetime | None
    is_held: bool
    only_held: bool
    sums: Sequence[tuple[str, str, UndoSum]]
    back: int
    standing: int


def describe_undo(purge: Purge, *, may_ask: bool) -> UndoView:
    """The offer to take it back, and what earlier ones did."""
    undos = purge.undos.select_related("moderator").order_by("pk")
    sums = [(name_of(undo.moderator), _say_part(undo.part), sum_of_undo(undo)) for undo in undos]
    offered = can_be_undone(purge)
    kept_until = unheld_until(purge) if offered else None
    is_over = purge.state == PurgeState.UNDO_EXPIRED
    return UndoView(
        may_ask and offered,
        undo_until(purge) if offered or is_over else None,
        kept_until,
        offered and hold_over_purge(purge) is not None,
        kept_until is not None and kept_until <= timezone.now(),
        sums,
        back=sum(total.restored + total.already_live for *_, total in sums),
        standing=sum(standing_by_channel(purge).values()) if purge.state in CAN_BE_UNDONE or is_over else 0,
    )


def _say_part(part: dict[str, list[str]]) -> str:
    """What somebody took back: "it", "what Victor wrote", "3 messages"."""
    if part["messages"]:
        count = len(part["messages"])
        return f"{count:,} message{'' if count == 1 else 's'}"
    if part["authors"]:
        known = ChatUser.objects.in_bulk(map(int, part["authors"]))
        return f"what {' or '.join(str(known.get(int(i)) or f'user {i}') for i in part['authors'])} wrote"
    return "what it removed from one channel" if part["channels"] else "it"


def _say_heading(purge: Purge, state: str, *, undoing: int, back: int) -> str:
    """state: its own, or what it was before what it kept was erased. undoing: how many an undo is asked for.

    back: how many stand there again.
    """
    count = _say_messages(purge.manifest)
    if state in (PurgeState.QUEUED, PurgeState.WAITING) and purge.started_at is None:
        return f"About to remove {count}"
    if state in (PurgeState.DONE_WITH_FAILURES, PurgeState.UNDO_EXPIRED):
        deleted = sum_of(purge).deleted
        return f"Removed {count}" if deleted == purge.manifest else f"Removed {deleted:,} of {count}"
    return {
        PurgeState.SCANNING: "Looking for what matches",
        PurgeState.READY: f"Remove {count}?",
        PurgeState.NOTHING_MATCHED: "Nothing matched",
        PurgeState.EXPIRED: "An old preview",
        PurgeState.CANCELLED: f"Stopped removing {count}",
        PurgeState.DONE: f"Removed {count}",
        PurgeState.PAUSED: f"Paused removing {count}",
        PurgeState.UNDOING: f"Bringing back {_say_messages(undoing)}",
        PurgeState.UNDONE: f"Brought back {_say_messages(back)}",
        PurgeState.PARTLY_UNDONE: f"Brought back {back:,} of {count}",
    }.get(PurgeState(state), f"Removing {count}")


def _say_messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"
