"""Heading of a purge's page in each of its states: "Deleted 804 messages"."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from moderation.domain.states import PurgeState
from moderation.presentation.formats import format_number


@dataclass(frozen=True, slots=True)
class HeadingCounts:
    """Numbers of messages that headings name.

    found: by the scan. to_delete: what a preview would delete now; at most, unless is_exact. deleted: by the purge,
    whatever was restored since. undoing: what the running undo is to restore. restored: live again.
    """

    found: int
    to_delete: int
    is_exact: bool
    deleted: int
    undoing: int
    restored: int


def format_heading(state: str, counts: HeadingCounts, *, has_started: bool, is_stopping: bool) -> str:
    """Return the heading.

    state: the purge's own, or the one before its copies were erased. has_started: it has begun to delete.
    is_stopping: it is paused, and completes what has begun.
    """
    of = counts.found
    if is_stopping:
        return gettext("Pausing")
    if state in (PurgeState.QUEUED, PurgeState.WAITING) and not has_started:
        return _count_of(ngettext("About to delete %(of)s message", "About to delete %(of)s messages", of), of=of)
    match PurgeState(state):
        case PurgeState.SCANNING:
            return gettext("Finding matching messages")
        case PurgeState.READY:
            return _head_preview(counts.to_delete, is_exact=counts.is_exact)
        case PurgeState.NOTHING_MATCHED:
            return gettext("No messages matched")
        case PurgeState.EXPIRED:
            return gettext("Expired preview")
        case PurgeState.UNDOING | PurgeState.UNDONE | PurgeState.PARTLY_UNDONE:
            return _head_restored(PurgeState(state), counts)
    return _head_deleted(PurgeState(state), of=of, deleted=counts.deleted)


def _head_preview(left: int, *, is_exact: bool) -> str:
    if not left:
        return gettext("Nothing is left to delete")
    if is_exact:
        pattern = ngettext("Delete %(count)s message?", "Delete %(count)s messages?", left)
    else:
        pattern = ngettext("Delete up to %(count)s message?", "Delete up to %(count)s messages?", left)
    return _count_of(pattern, count=left)


def _head_deleted(state: PurgeState, *, of: int, deleted: int) -> str:
    match state:
        case PurgeState.PAUSED if not deleted:
            pattern = ngettext("Paused before deleting %(of)s message", "Paused before deleting %(of)s messages", of)
        case PurgeState.CANCELLED if not deleted:
            pattern = ngettext(
                "Cancelled before deleting %(of)s message", "Cancelled before deleting %(of)s messages", of
            )
        case PurgeState.PAUSED:
            pattern = ngettext(
                "Paused after %(count)s of %(of)s message", "Paused after %(count)s of %(of)s messages", of
            )
        case PurgeState.CANCELLED:
            pattern = ngettext(
                "Cancelled after %(count)s of %(of)s message", "Cancelled after %(count)s of %(of)s messages", of
            )
        case PurgeState.DONE_WITH_FAILURES | PurgeState.UNDO_EXPIRED if deleted != of:
            pattern = ngettext("Deleted %(count)s of %(of)s message", "Deleted %(count)s of %(of)s messages", of)
        case PurgeState.DONE | PurgeState.DONE_WITH_FAILURES | PurgeState.UNDO_EXPIRED:
            pattern = ngettext("Deleted %(of)s message", "Deleted %(of)s messages", of)
        case _:
            pattern = ngettext("Deleting %(of)s message", "Deleting %(of)s messages", of)
    return _count_of(pattern, of=of, count=deleted)


def _head_restored(state: PurgeState, counts: HeadingCounts) -> str:
    of, undoing, restored = counts.found, counts.undoing, counts.restored
    if state is PurgeState.UNDOING and undoing != of:
        pattern = ngettext("Restoring %(count)s of %(of)s message", "Restoring %(count)s of %(of)s messages", of)
        return _count_of(pattern, of=of, count=undoing)
    if state is PurgeState.UNDOING:
        return _count_of(ngettext("Restoring %(of)s message", "Restoring %(of)s messages", of), of=of)
    if state is PurgeState.UNDONE:
        return _count_of(
            ngettext("Restored %(count)s message", "Restored %(count)s messages", restored), count=restored
        )
    pattern = ngettext(
        "Partly restored: %(count)s of %(of)s message", "Partly restored: %(count)s of %(of)s messages", of
    )
    return _count_of(pattern, of=of, count=restored)


def _count_of(pattern: str, **counts: int) -> str:
    return pattern % {name: format_number(count) for name, count in counts.items()}
