"""Context of a purge's page in each of its states."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext, ngettext

from chatstore.domain.buckets import bucket_days
from chatstore.models import Channel, ChatUser
from moderation.domain.selection import Selection
from moderation.domain.states import CAN_BE_UNDONE, PurgeState
from moderation.models import Purge, PurgeApproval, Undo
from moderation.operations.access.staff_names import distinct_name_of, mark_shared_names
from moderation.operations.access.visibility import (
    ADD_PURGE,
    VIEW_PURGES,
    Actor,
    may_over_visible,
    visible_channels,
)
from moderation.operations.holds import is_deleted_part_held
from moderation.operations.preview.bucket_strip import MAX_FULL_CHANNELS, MessageTotal, PurgeMap
from moderation.operations.preview.deleted_since import count_found, find_deleted_since
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.preview.purge_summary import progress_of, seconds_of, undo_progress_of
from moderation.operations.purging.approvals import open_approval
from moderation.operations.purging.controls import available_controls, held_messages
from moderation.operations.purging.failures import Failure, failures_of
from moderation.operations.purging.lifecycle import end_of_preview, replacement_of
from moderation.operations.purging.wait_reasons import wait_of
from moderation.operations.selection.summary import FindUsers, describe_purges
from moderation.operations.steps.totals import (
    CopyCounts,
    PurgeTotals,
    RestoredCounts,
    count_copies,
    split_restored,
    sum_up,
)
from moderation.operations.undo.import_guard import imports_of
from moderation.operations.undo.requests import (
    UndoPeriod,
    UndoTotals,
    undo_period_of,
)
from moderation.presentation.formats import format_number
from moderation.presentation.purge_heading import HeadingCounts, format_heading
from moderation.presentation.wording import name_authors
from moderation.views.purge_approval import describe_approval
from moderation.views.purge_erasing import describe_erasing
from moderation.views.purge_preview import describe_newest_matches, describe_preview
from moderation.views.purge_receipt import describe_receipt
from moderation.views.purge_times import Times, describe_times

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
"""States in which the page polls every second."""


POLL_REFRESH_SECONDS = 5
"""A page is rendered again this often even if the purge has not changed: reasons of waits and times do."""

APPROVAL_POLL_SECONDS = 3
"""A preview that waits for approval polls this often for the decision."""

PANEL_REFRESH_SECONDS = 15
"""The same for the panel, which is fetched every three seconds."""


def poll_version(user: Actor, purge_id: int) -> str:
    """Return what identifies the present contents of a purge's page.

    Signed for the user, who has seen the page if they know it: the answer to a poll needs no other check.
    """
    return _page_version(user, purge_id, *_stored_version(purge_id))


def panel_version(user: Actor, purge_id: int) -> str:
    """Return the same for the panel."""
    version, _ = _stored_version(purge_id)
    return _sign_version(user, purge_id, version, _count_periods(PANEL_REFRESH_SECONDS))


def _page_version(user: Actor, purge_id: int, version: int | None, state: str) -> str:
    # Nothing but the decision changes the page of a preview that waits for approval.
    period = 0 if state == PurgeState.READY else _count_periods(POLL_REFRESH_SECONDS)
    return _sign_version(user, purge_id, version, period)


def _stored_version(purge_id: int) -> tuple[int | None, str]:
    """Return the version and the state of a purge; None and "" if there is none."""
    return Purge.objects.filter(pk=purge_id).values_list("version", "state").first() or (None, "")


def _count_periods(seconds: int) -> int:
    return int(time.time()) // seconds


def _sign_version(user: Actor, purge_id: int, version: int | None, period: int) -> str:
    present = f"{user.pk} {purge_id} {version} {period}"
    return salted_hmac("chatstore.poll", present, algorithm="sha256").hexdigest()[:32]


class PurgeFacts:
    """Facts that several parts of the page show, each read once.

    version: of what is read after the purge, so that the next poll shows what changes meanwhile. manifest: the summary
    of the manifest. channels: those that the viewer may see, the largest if there are very many; if nothing was found,
    and while a scan of a few selected channels runs, those of the selection (has_all_selected). found_deleted: messages
    of a preview that other purges have deleted; None: too many to compare.
    """

    def __init__(self, user: Actor, purge: Purge) -> None:
        self._user, self._purge = user, purge
        self._found: dict[int, Channel | None] = {}
        self._users: dict[int, ChatUser | None] = {}
        self.version = _page_version(user, purge.pk, purge.version, purge.state)
        self.manifest = summary_of(purge)
        found = [one.channel_id for one in self.manifest.channels]
        selected = [int(text) for text in purge.selection["channels"]]
        # Which channels have matches is known when all of them were scanned. Of very many, the others are not drawn.
        self.has_all_selected = not found or (
            purge.state == PurgeState.SCANNING and 0 < len(selected) <= MAX_FULL_CHANNELS
        )
        self.channels = [*self.find_channels(selected if self.has_all_selected else found).values()]
        is_found = bool(found and self.channels) and not self.has_all_selected
        self.channel_count = self.manifest.channel_count if is_found else len(self.channels)
        self.found_deleted = find_deleted_since(purge)
        channel_ids = [channel.pk for channel in self.channels]
        self.map = PurgeMap(purge, self.manifest, channel_ids, deleted_since=self.found_deleted)

    def find_channels(self, channel_ids: Iterable[int]) -> dict[int, Channel]:
        """Return the channels that the viewer may see, with their guilds, in the order of the IDs; read once."""
        wanted = list(channel_ids)
        if new := set(wanted) - self._found.keys():
            self._found |= dict.fromkeys(new) | visible_channels(self._user).in_bulk(new)
        return {channel_id: channel for channel_id in wanted if (channel := self._found[channel_id]) is not None}

    def find_users(self, user_ids: Iterable[int]) -> dict[int, ChatUser]:
        """Return those of some chat users that are known, with their namesakes; read once."""
        wanted = list(user_ids)
        if new := set(wanted) - self._users.keys():
            self._users |= dict.fromkeys(new) | ChatUser.objects.with_namesakes().in_bulk(new)
        return {user_id: user for user_id in wanted if (user := self._users[user_id]) is not None}

    @cached_property
    def request(self) -> PurgeApproval | None:
        """Return the request for approval that waits for a decision."""
        return open_approval(self._purge) if self._purge.state == PurgeState.READY else None

    @cached_property
    def is_stopping(self) -> bool:
        """Return whether a paused purge still completes, and then counts, deletes that have begun."""
        return self._purge.state == PurgeState.PAUSED and self._purge.steps.partly_applied().exists()

    @cached_property
    def _sums(self) -> tuple[PurgeTotals, int]:
        return sum_up(self._purge)

    @property
    def totals(self) -> PurgeTotals:
        """Return the totals of the purge."""
        return self._sums[0]

    @property
    def deleted(self) -> int:
        """Return the number of messages that are still deleted."""
        return self._sums[1]

    @property
    def deleted_since(self) -> int | None:
        """Return how many messages of a preview other purges have deleted since its scan; None: not known."""
        return count_found(self.found_deleted)

    @property
    def to_delete(self) -> int:
        """Return the number of messages that a preview would delete now; at most, if that is not known."""
        return self._purge.manifest - (self.deleted_since or 0)

    @cached_property
    def undos(self) -> Sequence[Undo]:
        """Return the undos of the purge, oldest first, with their moderators."""
        return list(self._purge.undos.select_related("moderator").order_by("pk")) if self._purge.confirmed_at else ()

    @cached_property
    def undo_period(self) -> UndoPeriod:
        """Return until when the purge can be undone, with the hold that extends it."""
        return undo_period_of(self._purge)

    @property
    def copies(self) -> CopyCounts:
        """Return the number of copies."""
        return count_copies(self.totals, still_deleted=self.deleted, not_restored=self._not_restored)

    @property
    def restored(self) -> RestoredCounts:
        """Return how many messages are still deleted, and how many were restored."""
        return split_restored(
            still_deleted=self.deleted,
            undone=self.totals.deleted + self.totals.already_gone - self.deleted,
            by_undos=sum(undo.restored + undo.already_live for undo in self.undos),
            not_restored=self._not_restored,
        )

    @property
    def _not_restored(self) -> int:
        return sum(undo.withdrawn + undo.still_purged for undo in self.undos)


def describe_page(user: Actor, purge: Purge, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the context of the whole page. query: the zoom of the strips. Raises `BadInput`."""
    facts = PurgeFacts(user, purge)
    # Those that the purge names, and of whom messages were restored, are mostly among them.
    authors = facts.find_users(author_id for author_id, _ in facts.manifest.authors)
    context = _describe(user, purge, facts)
    # What a running scan has found so far is no preview.
    if purge.state != PurgeState.SCANNING and (purge.manifest or purge.state == PurgeState.READY):
        context |= describe_preview(
            user,
            purge,
            facts.manifest,
            facts.channels,
            find_channels=facts.find_channels,
            users=authors,
            undos=facts.undos,
            deleted=facts.deleted,
            held=facts.totals.held,
            deleted_since=facts.found_deleted or {},
            by_channel=context["undo"].may_undo,
        )
        context["times"] = describe_times(
            purge,
            facts.manifest,
            query,
            find_channels=facts.find_channels,
            entries=facts.map.entries,
            deleted_since=facts.found_deleted,
        )
    context["approval"] = approval = describe_approval(user, purge, facts.request)
    context["may_confirm"] = approval.may_confirm
    return context


def describe_zoom(user: Actor, purge: Purge, query: Mapping[str, str]) -> Times | None:
    """Return the strips over time alone. Raises `BadInput`."""
    find_channels, deleted_since = visible_channels(user).in_bulk, find_deleted_since(purge)
    return describe_times(purge, summary_of(purge), query, find_channels=find_channels, deleted_since=deleted_since)


def describe_live(user: Actor, purge: Purge) -> dict[str, Any]:
    """Return the context of the part that changes while a job runs."""
    return _describe(user, purge, PurgeFacts(user, purge))


def _describe(user: Actor, purge: Purge, facts: PurgeFacts) -> dict[str, Any]:
    progress = progress_of(purge, facts.totals) if purge.confirmed_at else None
    paused_by = progress.pause.actor if progress and progress.pause else None
    named = [purge.moderator, *(undo.moderator for undo in facts.undos), *([paused_by] if paused_by else [])]
    mark_shared_names(user, named, right=VIEW_PURGES)
    erasing = describe_erasing(user, purge, copies=lambda: facts.copies, blocking_hold=lambda: facts.undo_period.hold)
    (listed,) = describe_purges(user, [purge], find_channels=facts.find_channels, find_users=facts.find_users)
    may_purge = may_over_visible(user, ADD_PURGE, purge)
    undo, undoing = describe_undo(purge, facts, may_purge=may_purge), undo_progress_of(purge)
    preview_end = end_of_preview(purge) if purge.state == PurgeState.EXPIRED else None
    return {
        "purge": purge,
        "nav": "purges",
        "channel": facts.channels[0] if facts.channel_count == 1 else None,
        "version": facts.version,
        **_describe_polling(purge, facts, is_erasing=erasing.is_deleting),
        "heading": gettext("Discarded preview")
        if preview_end and preview_end.discarded_by
        else _format_heading(
            purge,
            erasing.erasure.previous_state if erasing.erasure else purge.state,
            facts,
            undoing=undoing.expected if undoing else 0,
            restored=undo.restored,
        ),
        "is_stopping": facts.is_stopping,
        "summary": listed.summary[:1].upper() + listed.summary[1:],
        "state_label": replace(listed, failed=facts.totals.failed, held=facts.totals.held).state_label,
        "moderator": purge.moderator,
        "preview_end": preview_end,
        "replacement": replacement_of(user, preview_end) if preview_end else None,
        "progress": progress,
        "receipt": describe_receipt(
            user,
            purge,
            manifest=facts.manifest,
            channels=facts.channels,
            totals=facts.totals,
            restored=facts.restored,
        )
        if purge.confirmed_at
        else None,
        "wait": wait_of(user, purge),
        "failures": describe_failures(purge, facts),
        "seconds": seconds_of(purge) if purge.finished_at else None,
        "strip": facts.map.draw(),
        "strip_is_whole": facts.map.is_whole,
        **(_describe_scan(user, purge, facts) if purge.state == PurgeState.SCANNING else {}),
        **_describe_manifest(purge, facts, may_purge=may_purge),
        **_describe_controls(purge, facts, may_purge=may_purge),
        "undo": undo,
        "imported": imports_of(purge) if purge.confirmed_at else (),
        "undoing": undoing,
        "erasing": erasing,
        "awaited_erasure": erasing.request.pk if erasing.request else "",
    }


def _format_heading(purge: Purge, state: str, facts: PurgeFacts, *, undoing: int, restored: int) -> str:
    """Return the page's heading.

    state: the purge's own, or the one before its copies were erased. undoing: messages that the running undo is to
    restore. restored: messages that are live again.
    """
    counts = HeadingCounts(
        found=purge.manifest,
        to_delete=facts.to_delete,
        is_exact=facts.deleted_since is not None,
        deleted=facts.totals.deleted,
        undoing=undoing,
        restored=restored,
    )
    return format_heading(state, counts, has_started=purge.started_at is not None, is_stopping=facts.is_stopping)


def _describe_polling(purge: Purge, facts: PurgeFacts, *, is_erasing: bool) -> dict[str, Any]:
    """Return whether and how often the page polls. awaited: the request for approval that it shows."""
    request = facts.request
    return {
        "polling": purge.state in CHANGING or facts.is_stopping or is_erasing or request is not None,
        "poll_seconds": 1 if request is None else APPROVAL_POLL_SECONDS,
        "awaited": request.pk if request else "",
    }


def _describe_scan(user: Actor, purge: Purge, facts: PurgeFacts) -> dict[str, Any]:
    """Return what a running scan has found so far. found_in: the number of channels."""
    return describe_newest_matches(user, purge, facts.manifest) | {
        "scan_total": _scan_total(purge, facts),
        "found_in": facts.manifest.channel_count if purge.manifest else 0,
    }


def _describe_manifest(purge: Purge, facts: PurgeFacts, *, may_purge: bool) -> dict[str, Any]:
    """Return what the manifest excludes, and of a preview how much of it is left. compose_url: where it is changed."""
    return {
        "excluded": len(purge.selection["except"]),
        "deleted_since": facts.deleted_since,
        "is_overtaken": facts.deleted_since is None,
        "kept_is_of_scan": bool(facts.found_deleted),
        "to_delete": facts.to_delete,
        **_conditions_on_times(purge),
        "compose_url": _compose_url(purge) if may_purge and purge.confirmed_at is None else "",
        "manifest_hash": bytes(purge.manifest_hash).hex() if purge.manifest_hash else "",
    }


def _describe_controls(purge: Purge, facts: PurgeFacts, *, may_purge: bool) -> dict[str, Any]:
    """Return the controls that would have an effect. held: what a retry would only hold again, if it could retry."""
    controls = available_controls(purge) if may_purge else ()
    held = held_messages(purge) if "retry" in controls and facts.totals.held else None
    if held is not None and held.are_all_held and not facts.totals.failed:
        controls = tuple(control for control in controls if control != "retry")
    return {"controls": controls, "held": held}


def _scan_total(purge: Purge, facts: PurgeFacts) -> MessageTotal | None:
    """Return the number of messages that a running scan reads at most; None if it is not known.

    That of a guild's channels is not known before each channel was scanned.
    """
    total = facts.map.total if facts.has_all_selected else None
    # More than that were scanned if members wrote, or the counts are out of date.
    return total if total and total.messages >= max(purge.scanned, 1) else None


def _conditions_on_times(purge: Purge) -> dict[str, bool]:
    """Return whether a preview has conditions on times that may be unknown."""
    if purge.confirmed_at is not None:
        return {}
    selection = Selection.from_json(purge.selection)
    return {
        "has_join_condition": selection.join_minutes > 0,
        "has_first_seen_condition": bool(selection.first_seen_hours),
    }


def _compose_url(purge: Purge) -> str:
    """Return the URL of the composer, whose preview will replace this one.

    It is filled in with the purge's selection, unless that is a whole channel or messages that were selected one by
    one: neither can be typed there.
    """
    selection = Selection.from_json(purge.selection)
    channel_id = selection.only_channel_id
    url = reverse("compose_everywhere") if channel_id is None else reverse("compose", args=[channel_id])
    return f"{url}?preview={purge.pk}"


@dataclass(frozen=True, slots=True)
class FailuresView:
    """Failed messages by bucket: (failure, channel name if there are several channels, first and last day)."""

    rows: Sequence[tuple[Failure, str, tuple[date, date]]]
    others: int


def describe_failures(purge: Purge, facts: PurgeFacts) -> FailuresView:
    """Return the failures in the channels that the user may see."""
    may_have_failed = (undo.failed or undo.finished_at is None for undo in facts.undos)
    if purge.confirmed_at is None or not (facts.totals.failed or any(may_have_failed)):
        return FailuresView((), 0)
    found = failures_of(purge)
    channels, is_single = facts.find_channels(one.channel_id for one in found.shown), facts.channel_count == 1
    rows = [
        (failure, "" if is_single else channels[failure.channel_id].full_name, bucket_days(failure.bucket))
        for failure in found.shown
        if failure.channel_id in channels
    ]
    return FailuresView(rows, found.others)


class UndoResult(NamedTuple):
    """An undo that was requested: who restored what, when, why, and its totals."""

    heading: str
    requested_at: datetime
    reason: str
    total: UndoTotals


@dataclass(frozen=True, slots=True)
class UndoView:
    """The offer to undo a purge. until: when it ends, or ended; or None. A hold in force moves it on.

    kept_until: the same for messages without a hold. pauses: a hold covers some that were deleted. only_held: the undo
    period of all others has expired. was_held: then, a hold that was lifted covered some that were deleted, and none
    pauses the period. results: of each undo that was requested. restored: messages that are live again. deleted:
    messages that the purge deleted and that are still deleted.
    """

    may_undo: bool
    until: datetime | None
    kept_until: datetime | None
    pauses: bool
    only_held: bool
    was_held: bool
    results: Sequence[UndoResult]
    restored: int
    deleted: int


def describe_undo(purge: Purge, facts: PurgeFacts, *, may_purge: bool) -> UndoView:
    """Return the offer to undo a purge, and the results of earlier undos."""
    results = [
        UndoResult(
            heading=_head_undo(distinct_name_of(undo.moderator), undo.part, facts.find_users),
            requested_at=undo.requested_at,
            reason=undo.reason,
            total=UndoTotals.of(undo),
        )
        for undo in facts.undos
    ]
    now = timezone.now()
    has_expired = purge.state == PurgeState.UNDO_EXPIRED
    is_undoable = purge.state in CAN_BE_UNDONE
    period = facts.undo_period if is_undoable or has_expired else UndoPeriod(None, None)
    offered = is_undoable and period.until is not None and now < period.until
    kept_until = period.without_holds if offered else None
    only_held = kept_until is not None and kept_until <= now
    pauses = offered and period.hold is not None and is_deleted_part_held(purge)
    return UndoView(
        may_undo=may_purge and offered,
        until=period.until if offered or has_expired else None,
        kept_until=kept_until,
        pauses=pauses,
        only_held=only_held,
        was_held=only_held and not pauses and is_deleted_part_held(purge, since=purge.quarantined_at),
        results=results,
        restored=sum(result.total.restored + result.total.already_live for result in results),
        deleted=facts.deleted if is_undoable or has_expired else 0,
    )


def _head_undo(name: str, part: dict[str, list[str]], find_users: FindUsers) -> str:
    """Return the heading of an undo: "Mona restored Victor’s messages"."""
    if part["messages"]:
        count = len(part["messages"])
        pattern = ngettext("%(name)s restored %(count)s message", "%(name)s restored %(count)s messages", count)
        return pattern % {"name": name, "count": format_number(count)}
    if part["authors"]:
        ids = [int(author) for author in part["authors"]]
        names = {author_id: author.distinct_name for author_id, author in find_users(ids).items()}
        if len(ids) == 1:
            pattern = gettext("%(name)s restored %(author)s’s messages")
            return pattern % {"name": name, "author": name_authors(ids, names)}
        return gettext("%(name)s restored messages by %(authors)s") % {
            "name": name,
            "authors": name_authors(ids, names),
        }
    if part["channels"]:
        return gettext("%(name)s restored one channel’s messages") % {"name": name}
    return gettext("%(name)s restored the messages of this purge") % {"name": name}
