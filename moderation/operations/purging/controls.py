"""Controls of a confirmed purge: pause, resume, cancel, finish, retry.

Each takes effect at the next transition of every step: no further step is stamped, while stamped steps complete,
because their deletes may have been sent. The caller enqueues a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Min

from chatstore.domain.errors import BadInput
from chatstore.domain.texts import gettext_lazy as _
from chatstore.domain.texts import gettext_noop, ngettext_lazy
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation.domain.state_labels import STATE_LABELS
from moderation.domain.states import PURGE_MOVES, PurgeState
from moderation.models import Hold, Purge
from moderation.operations.access.audit import record_action
from moderation.operations.access.visibility import ADD_PURGE, purge_for, require, require_over_matches
from moderation.operations.holds import holds_covering
from moderation.operations.steps.claiming import brief_transaction, lock_purge
from moderation.operations.steps.in_parts import reopen_next_steps
from moderation.operations.steps.totals import totals_of
from moderation.operations.undo.requests import undo_until


def pause_purge(purge_id: int, *, moderator: User) -> Purge:
    """Pause a purge until it is resumed. Raises `BadInput` if it is not running."""
    return _change_state(
        purge_id,
        moderator,
        to=PurgeState.PAUSED,
        action="purge_paused",
        refusal=gettext_noop("This purge cannot be paused in its present state: %(state)s."),
    )


def resume_purge(purge_id: int, *, moderator: User) -> Purge:
    """Resume a paused purge. Raises `BadInput` if it is not paused."""
    return _change_state(
        purge_id,
        moderator,
        to=PurgeState.QUEUED,
        action="purge_resumed",
        refusal=gettext_noop("This purge cannot be resumed in its present state: %(state)s."),
        only=PurgeState.PAUSED,
    )


def cancel_purge(purge_id: int, *, moderator: User) -> Purge:
    """Cancel a purge: messages whose step is not stamped yet are kept. Raises `BadInput` if it cannot be cancelled."""
    return _change_state(
        purge_id,
        moderator,
        to=PurgeState.CANCELLING,
        action="purge_cancel_requested",
        refusal=gettext_noop("This purge cannot be cancelled in its present state: %(state)s."),
        prepare=_stop_reopening,
    )


def finish_purge(purge_id: int, *, moderator: User) -> Purge:
    """Continue a cancelled purge. Raises `BadInput` if it was not cancelled."""
    return _change_state(
        purge_id,
        moderator,
        to=PurgeState.QUEUED,
        action="purge_finish_requested",
        refusal=gettext_noop("This purge cannot be finished in its present state: %(state)s."),
        only=PurgeState.CANCELLED,
        prepare=reopen_next_steps,
    )


def retry_purge(purge_id: int, *, moderator: User) -> Purge:
    """Retry failed and held messages. Raises `BadInput` if there are none."""
    return _change_state(
        purge_id,
        moderator,
        to=PurgeState.QUEUED,
        action="purge_retry_requested",
        refusal=gettext_noop("This purge cannot be retried in its present state: %(state)s."),
        only=PurgeState.DONE_WITH_FAILURES,
        prepare=reopen_next_steps,
    )


CONTROLS: dict[str, Callable[..., Purge]] = {
    "pause": pause_purge,
    "resume": resume_purge,
    "cancel": cancel_purge,
    "finish": finish_purge,
    "retry": retry_purge,
}
"""Controls by the names used in URLs."""

_CONTINUING = frozenset({"resume", "finish", "retry"})
"""Controls after which more messages are deleted."""

_CONTROLS_IN: dict[PurgeState, tuple[str, ...]] = {
    PurgeState.QUEUED: ("pause", "cancel"),
    PurgeState.RUNNING: ("pause", "cancel"),
    PurgeState.WAITING: ("pause", "cancel"),
    PurgeState.PAUSED: ("resume", "cancel"),
    PurgeState.CANCELLED: ("finish",),
    PurgeState.DONE_WITH_FAILURES: ("retry",),
}


def available_controls(purge: Purge) -> tuple[str, ...]:
    """Return the names of the controls that are available now."""
    controls = _CONTROLS_IN.get(PurgeState(purge.state), ())
    if not _CONTINUING.isdisjoint(controls) and _is_too_late(purge):
        return tuple(action for action in controls if action not in _CONTINUING)
    return controls


@dataclass(frozen=True, slots=True)
class HeldMessages:
    """What holds the held messages of a purge.

    hold: the newest hold in force over the purge; None if there is none. may_have_some_free: a hold over the purge was
    lifted since the messages were held.
    """

    hold: Hold | None
    may_have_some_free: bool

    @property
    def are_all_held(self) -> bool:
        """True if a retry would only hold them again."""
        return self.hold is not None and not self.may_have_some_free


def held_messages(purge: Purge) -> HeldMessages:
    """Return what holds the held messages of a purge now."""
    steps = purge.steps.filter(held__gt=0).order_by()
    since = steps.aggregate(first=Min("counted_at"))["first"] or purge.created_at
    holds = holds_covering(purge, since=since)
    in_force = [hold for hold in holds if hold.lifted_at is None]
    return HeldMessages(next(iter(in_force), None), may_have_some_free=len(in_force) < len(holds))


def _is_too_late(purge: Purge) -> bool:
    """Return whether messages deleted now could not be restored: the undo period starts with the first delete."""
    until = undo_until(purge)
    return until is not None and until <= postgres_now()


def _change_state(
    purge_id: int,
    moderator: User,
    *,
    to: PurgeState,
    action: str,
    refusal: str,
    only: PurgeState | None = None,
    prepare: Callable[[Purge], object] | None = None,
) -> Purge:
    require(moderator, ADD_PURGE)
    with brief_transaction():
        purge_for(moderator, purge_id, ADD_PURGE)
        purge = lock_purge(purge_id)
        state = PurgeState(purge.state)
        if state == to or (to == PurgeState.CANCELLING and state == PurgeState.CANCELLED):
            return purge
        if to not in PURGE_MOVES.get(state, ()) or (only is not None and state != only):
            raise BadInput(_(refusal, state=STATE_LABELS[purge.state]))
        if to == PurgeState.QUEUED:
            require_over_matches(moderator, ADD_PURGE, purge)
        if to == PurgeState.QUEUED and _is_too_late(purge):
            raise BadInput(
                ngettext_lazy(
                    "This purge started over %(count)s day ago, so messages deleted now could not be restored. "
                    "Create a new purge for the remaining messages.",
                    "This purge started over %(count)s days ago, so messages deleted now could not be restored. "
                    "Create a new purge for the remaining messages.",
                    settings.QUARANTINE_DAYS,
                )
            )
        if prepare is not None:
            prepare(purge)
        Purge.objects.filter(id=purge_id).update(state=to, wait_reason="", wait_until=None, finished_at=None)
        record_action(action, actor=moderator, purge=purge, details=totals_of(purge).as_json())
        purge.refresh_from_db()
    return purge


def _stop_reopening(purge: Purge) -> None:
    Purge.objects.filter(id=purge.pk).update(reopened_to=None)
