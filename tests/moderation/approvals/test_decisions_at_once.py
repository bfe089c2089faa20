"""Of several decisions about one request at the same time one counts, and the purge starts at most once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from django.db import connections

from chatstore.domain.errors import BadInput
from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.purging.approvals import approve_purge, reject_approval, withdraw_approval
from moderation.operations.purging.lifecycle import discard_preview
from tests.moderation.channels import old_ids
from tests.moderation.limits import member, preview_some, request

ROUNDS = 5

DECISIONS = ("approval_given", "approval_rejected", "approval_withdrawn", "approval_closed", "approval_expired")


def at_once(acts: Sequence[Callable[[], object]]) -> list[bool]:
    """Act at the same time; return which acts were not refused."""
    barrier = Barrier(len(acts))

    def act(one: Callable[[], object]) -> bool:
        try:
            barrier.wait(timeout=60)
            one()
        except BadInput:
            return False
        else:
            return True
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def test_one_of_four_people_decides(mona: User, lena: User, channel: Channel) -> None:
    leo, lars = member("leo", Role.LEAD, channel), member("lars", Role.LEAD, channel)
    for _round in range(ROUNDS):
        purge = preview_some(mona, 20, channel)
        asked = request(mona, purge)
        acts = [
            lambda: approve_purge(purge.pk, asked.pk, approver=lena),  # noqa: B023
            lambda: reject_approval(purge.pk, asked.pk, approver=leo, reason="No spam"),  # noqa: B023
            lambda: reject_approval(purge.pk, asked.pk, approver=lars, reason="Too many"),  # noqa: B023
            lambda: withdraw_approval(purge.pk, asked.pk, moderator=mona),  # noqa: B023
        ]
        assert sum(at_once(acts)) == 1
        asked.refresh_from_db()
        purge.refresh_from_db()
        assert AuditEntry.objects.filter(purge=purge, action__in=DECISIONS).count() == 1
        has_started = asked.decision == ApprovalDecision.APPROVED
        assert (purge.state == PurgeState.QUEUED) is has_started
        assert AuditEntry.objects.filter(purge=purge, action="purge_confirmed").count() == has_started


def test_two_approvals_start_one_purge(mona: User, lena: User, channel: Channel) -> None:
    leo = member("leo", Role.LEAD, channel)
    purge = preview_some(mona, 20, channel)
    asked = request(mona, purge)
    at_once([partial(approve_purge, purge.pk, asked.pk, approver=one) for one in (lena, leo)])
    assert AuditEntry.objects.filter(purge=purge, action="approval_given").count() == 1
    assert AuditEntry.objects.filter(purge=purge, action="purge_confirmed").count() == 1


def exclude_one(purge: Purge, moderator: User) -> None:
    exclude_messages(purge.pk, old_ids(20)[:1], moderator=moderator, manifest_hash=bytes(purge.manifest_hash or b""))


def discard(purge: Purge, moderator: User) -> None:
    discard_preview(purge.pk, moderator=moderator)


@pytest.mark.parametrize("change", [exclude_one, discard])
def test_what_was_approved_is_what_is_deleted_while_the_preview_changes(
    change: Callable[[Purge, User], None], mona: User, lena: User, channel: Channel
) -> None:
    for _round in range(ROUNDS):
        purge = preview_some(mona, 20, channel)
        asked = request(mona, purge)
        acts = [
            lambda: approve_purge(purge.pk, asked.pk, approver=lena),  # noqa: B023
            lambda: change(purge, mona),  # noqa: B023
        ]
        at_once(acts)
        asked.refresh_from_db()
        purge.refresh_from_db()
        if asked.decision == ApprovalDecision.APPROVED:
            assert (purge.state, purge.manifest) == (PurgeState.QUEUED, 20)
            assert bytes(purge.manifest_hash or b"") == bytes(asked.manifest_hash)
        else:
            assert asked.decision == ApprovalDecision.CLOSED
            assert purge.state in (PurgeState.READY, PurgeState.EXPIRED)
            assert purge.confirmed_at is None
