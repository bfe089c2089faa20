"""Labels of the states of a purge, for pages and for messages that name a state."""

from __future__ import annotations

from collections.abc import Mapping

from chatstore.domain.texts import pgettext_lazy
from moderation.domain.states import PurgeState

STATE_LABELS: Mapping[str, str] = {
    PurgeState.DRAFT: pgettext_lazy("state of a purge", "draft"),
    PurgeState.SCANNING: pgettext_lazy("state of a purge", "scanning"),
    PurgeState.READY: pgettext_lazy("state of a purge", "waiting for confirmation"),
    PurgeState.NOTHING_MATCHED: pgettext_lazy("state of a purge", "no matches"),
    PurgeState.EXPIRED: pgettext_lazy("state of a purge", "expired"),
    PurgeState.QUEUED: pgettext_lazy("state of a purge", "queued"),
    PurgeState.RUNNING: pgettext_lazy("state of a purge", "running"),
    PurgeState.WAITING: pgettext_lazy("state of a purge", "waiting"),
    PurgeState.PAUSED: pgettext_lazy("state of a purge", "paused"),
    PurgeState.UNDOING: pgettext_lazy("state of a purge", "restoring"),
    PurgeState.UNDONE: pgettext_lazy("state of a purge", "restored"),
    PurgeState.PARTLY_UNDONE: pgettext_lazy("state of a purge", "partly restored"),
    PurgeState.UNDO_EXPIRED: pgettext_lazy("state of a purge", "undo expired"),
    PurgeState.ERASING: pgettext_lazy("state of a purge", "erasing"),
    PurgeState.ERASED: pgettext_lazy("state of a purge", "erased"),
    PurgeState.CANCELLING: pgettext_lazy("state of a purge", "cancelling"),
    PurgeState.CANCELLED: pgettext_lazy("state of a purge", "cancelled"),
    PurgeState.DONE: pgettext_lazy("state of a purge", "done"),
    PurgeState.DONE_WITH_FAILURES: pgettext_lazy("state of a purge", "done, not all deleted"),
}

DISCARDED_LABEL = pgettext_lazy("state of a purge", "discarded")
"""Of a preview that expired because it was discarded."""

AWAITING_APPROVAL_LABEL = pgettext_lazy("state of a purge", "waiting for approval")
"""Of a preview that another person must approve before it is a purge."""
