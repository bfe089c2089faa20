"""Labels of the states of a purge, for lists, filters, pages, and messages that name a state."""

from __future__ import annotations

from collections.abc import Mapping

from chatstore.domain.texts import pgettext_lazy
from moderation.domain.states import PurgeState

DISCARDED = "discarded"
"""State shown of a preview that expired because it was discarded."""

AWAITING_APPROVAL = "awaiting_approval"
"""State shown of a preview that another person must approve before it is a purge."""

STATE_LABELS: Mapping[str, str] = {
    PurgeState.DRAFT: pgettext_lazy("state of a purge", "draft"),
    PurgeState.SCANNING: pgettext_lazy("state of a purge", "scanning"),
    PurgeState.READY: pgettext_lazy("state of a purge", "waiting for confirmation"),
    AWAITING_APPROVAL: pgettext_lazy("state of a purge", "waiting for approval"),
    PurgeState.NOTHING_MATCHED: pgettext_lazy("state of a purge", "no matches"),
    PurgeState.EXPIRED: pgettext_lazy("state of a purge", "expired"),
    DISCARDED: pgettext_lazy("state of a purge", "discarded"),
    PurgeState.QUEUED: pgettext_lazy("state of a purge", "queued"),
    PurgeState.RUNNING: pgettext_lazy("state of a purge", "running"),
    PurgeState.WAITING: pgettext_lazy("state of a purge", "waiting"),
    PurgeState.PAUSED: pgettext_lazy("state of a purge", "paused"),
    PurgeState.UNDOING: pgettext_lazy("state of a purge", "restoring"),
    PurgeState.UNDONE: pgettext_lazy("state of a purge", "restored"),
    PurgeState.PARTLY_UNDONE: pgettext_lazy("state of a purge", "partly restored"),
    PurgeState.UNDO_EXPIRED: pgettext_lazy("state of a purge", "undo expired"),
    PurgeState.ERASING: pgettext_lazy("state of a purge", "being permanently deleted"),
    PurgeState.ERASED: pgettext_lazy("state of a purge", "permanently deleted"),
    PurgeState.CANCELLING: pgettext_lazy("state of a purge", "cancelling"),
    PurgeState.CANCELLED: pgettext_lazy("state of a purge", "cancelled"),
    PurgeState.DONE: pgettext_lazy("state of a purge", "done"),
    PurgeState.DONE_WITH_FAILURES: pgettext_lazy("state of a purge", "done, not all deleted"),
}
"""Labels by the state that is shown, which `shown_state` returns. Each is a filter of the lists of purges."""

_AWAITING_VIEWER = pgettext_lazy("state of a purge", "waiting for your approval")
"""Label of a purge that waits for approval for those who may approve it."""


def shown_state(state: str, *, is_discarded: bool = False, awaits_approval: bool = False) -> str:
    """Return the state that pages show: that of the purge, or what it does not say about a preview."""
    if state == PurgeState.EXPIRED and is_discarded:
        return DISCARDED
    if state == PurgeState.READY and awaits_approval:
        return AWAITING_APPROVAL
    return state


def label_of_state(shown: str, *, failed: int = 0, held: int = 0, awaits_viewer: bool = False) -> str:
    """Return the label of a state.

    failed, held: messages that a purge that is done did not delete, if counted. awaits_viewer: if it waits for
    approval, the viewer may approve it.
    """
    if shown == AWAITING_APPROVAL and awaits_viewer:
        return _AWAITING_VIEWER
    if shown != PurgeState.DONE_WITH_FAILURES or not (failed or held):
        return STATE_LABELS[shown]
    if not held:
        return pgettext_lazy("state of a purge", "done, %(failed)s failed", failed=failed)
    if not failed:
        return pgettext_lazy("state of a purge", "done, %(held)s held", held=held)
    return pgettext_lazy("state of a purge", "done, %(failed)s failed, %(held)s held", failed=failed, held=held)
