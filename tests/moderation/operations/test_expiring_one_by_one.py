"""What the poll ends because of its age, it ends one by one: one that fails hinders neither the others nor the poll."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatstore.models import Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from moderation import tasks
from moderation.domain.states import ApprovalDecision, PurgeState
from moderation.models import Purge, PurgeApproval
from moderation.operations.purging.approvals import expire_approvals
from moderation.operations.purging.lifecycle import EXPIRE_PREVIEW, draft_purge, expire_previews
from moderation.operations.purging.overdue import OVERDUE_PREVIEW, check_overdue
from moderation.store.failed_acts import FailedAct, failed_acts, record_failed_act
from tests.moderation.channels import everything, make_channel

DAY = dt.timedelta(hours=25)


def draft(moderator: User) -> Purge:
    return draft_purge(moderator=moderator, selection=everything(make_channel()))


def age(*purges: Purge) -> None:
    Purge.objects.filter(pk__in=[purge.pk for purge in purges]).update(created_at=timezone.now() - DAY)


def state_of(purge: Purge) -> str:
    return Purge.objects.values_list("state", flat=True).get(pk=purge.pk)


@pytest.fixture
def broken(mona: User) -> Iterator[Purge]:
    """A preview with a filter that this version cannot read, older than all others of the test."""
    purge = draft(mona)
    before = purge.selection
    Purge.objects.filter(pk=purge.pk).update(selection=before | {"where": {"unknown": "filter"}})
    yield purge
    Purge.objects.filter(pk=purge.pk).update(selection=before, state=PurgeState.EXPIRED)


def test_the_others_expire(mona: User, broken: Purge) -> None:
    others = [draft(mona), draft(mona)]
    age(broken, *others)
    assert expire_previews() >= 2
    assert [state_of(purge) for purge in (broken, *others)] == [
        PurgeState.SCANNING, PurgeState.EXPIRED, PurgeState.EXPIRED,
    ]  # fmt: skip


def test_the_other_requests_end(mona: User, broken: Purge) -> None:
    other = draft(mona)
    requests = [
        PurgeApproval.objects.create(purge=purge, requested_by=mona, reason="Spam", manifest_hash=b"0")
        for purge in (broken, other)
    ]
    asked = PurgeApproval.objects.filter(pk__in=[one.pk for one in requests])
    asked.update(requested_at=timezone.now() - DAY)
    try:
        assert expire_approvals() >= 1
        decisions = asked.order_by("purge_id").values_list("decision", flat=True)
        assert list(decisions) == [ApprovalDecision.NONE, ApprovalDecision.EXPIRED]
    finally:
        asked.update(decision=ApprovalDecision.EXPIRED)


def test_the_poll_enqueues_what_is_due(mona: User, broken: Purge, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(tasks.scan_purge, "delay", enqueued.append)
    age(broken)
    due = draft(mona)
    tasks.poll_due_purges()
    assert due.pk in enqueued


def attempts_at(purge: Purge, caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith(f"could not expire preview {purge.pk}") for record in caplog.records)


def let_pause_end(purge: Purge) -> None:
    failed = failed_acts(EXPIRE_PREVIEW)[purge.pk]
    record_failed_act(EXPIRE_PREVIEW, purge.pk, FailedAct(failed.attempts, time.time()))


def is_reported(purge: Purge) -> bool:
    check_overdue(postgres_now())
    return Finding.objects.open().filter(kind=OVERDUE_PREVIEW, subject=f"{purge.pk}:{EXPIRE_PREVIEW}").exists()


def test_one_that_fails_is_attempted_less_and_less_often(broken: Purge, caplog: pytest.LogCaptureFixture) -> None:
    age(broken)
    pauses = []
    for number in range(1, 10):
        for _poll in range(3):
            expire_previews()
        assert attempts_at(broken, caplog) == number
        pauses.append(round((failed_acts(EXPIRE_PREVIEW)[broken.pk].next_at - time.time()) / 60))
        let_pause_end(broken)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert "next attempt in 3600 s" in caplog.text


def test_one_that_still_fails_is_a_finding_until_it_is_expired(broken: Purge) -> None:
    age(broken)
    expire_previews()
    assert not is_reported(broken)
    let_pause_end(broken)
    expire_previews()
    assert is_reported(broken)
    Purge.objects.filter(pk=broken.pk).update(selection=everything(make_channel()).as_json())
    let_pause_end(broken)
    expire_previews()
    assert state_of(broken) == PurgeState.EXPIRED
    assert broken.pk not in failed_acts(EXPIRE_PREVIEW)
    assert not is_reported(broken)


def test_one_that_is_discarded_meanwhile_is_forgotten(broken: Purge) -> None:
    age(broken)
    expire_previews()
    Purge.objects.filter(pk=broken.pk).update(state=PurgeState.EXPIRED)
    expire_previews()
    assert broken.pk not in failed_acts(EXPIRE_PREVIEW)


def test_each_has_a_transaction_of_its_own(mona: User) -> None:
    previews = [draft(mona) for _ in range(3)]
    age(*previews)
    with CaptureQueriesContext(connection) as captured:
        expire_previews()
    sent = [query["sql"] for query in captured]
    entries = [n for n, sql in enumerate(sent) if "preview_expired" in sql]
    ends = [n for n, sql in enumerate(sent) if sql == "COMMIT"]
    assert len(entries) >= len(previews)
    assert all(any(one < end < following for end in ends) for one, following in pairwise(entries))
