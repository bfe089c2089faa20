"""Only the previewed manifest can be confirmed, with permission and with a reason."""

import datetime as dt

import pytest
from django.utils import timezone

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.models.users import User
from moderation.domain.states import PurgeState, StepState
from moderation.models import AuditEntry, Purge, ScanPart
from moderation.operations.preview.scan import scan_purge
from moderation.operations.purging.controls import cancel_purge
from moderation.operations.purging.lifecycle import confirm_purge, draft_purge, expire_previews
from moderation.operations.purging.worker import run_purge
from tests.moderation.channels import confirm, everything, make_channel, old_ids, preview, write


def ready_purge(mona: User, count: int = 120) -> Purge:
    channel = make_channel()
    write(channel, old_ids(count))
    return preview(mona, everything(channel))


def test_a_different_manifest_hash_is_refused(mona: User) -> None:
    purge = ready_purge(mona)
    with pytest.raises(BadInput, match="preview has changed"):
        confirm_purge(purge.id, moderator=mona, reason="spam", manifest_hash=b"0" * 32)
    purge.refresh_from_db()
    assert purge.state == PurgeState.READY


@pytest.mark.parametrize("reason", ["", "   ", "x" * 1001])
def test_a_reason_is_required_and_its_length_is_limited(mona: User, reason: str) -> None:
    purge = ready_purge(mona)
    with pytest.raises(BadInput, match="reason"):
        confirm_purge(purge.id, moderator=mona, reason=reason, manifest_hash=bytes(purge.manifest_hash or b""))


def test_confirming_twice_has_no_further_effect(mona: User) -> None:
    purge = confirm(mona, ready_purge(mona))
    confirm(mona, purge)
    assert AuditEntry.objects.filter(purge=purge, action="purge_confirmed").count() == 1


def test_an_old_preview_cannot_be_confirmed_and_expires(mona: User) -> None:
    purge = ready_purge(mona)
    Purge.objects.filter(id=purge.id).update(ready_at=timezone.now() - dt.timedelta(hours=25))
    with pytest.raises(BadInput, match="24 hours"):
        confirm(mona, purge)
    assert expire_previews() >= 1
    purge.refresh_from_db()
    assert purge.state == PurgeState.EXPIRED


def test_a_preview_that_could_not_be_scanned_within_a_day_expires_and_is_open_no_more(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(20))
    purge = draft_purge(moderator=mona, selection=everything(channel))
    ScanPart.objects.create(purge=purge, channel_id=channel.pk, bucket=1, buckets=[], is_split=False)
    expire_previews()
    purge.refresh_from_db()
    assert purge.state == PurgeState.SCANNING
    Purge.objects.filter(id=purge.id).update(created_at=timezone.now() - dt.timedelta(hours=25))
    assert expire_previews() >= 1
    scan_purge(purge.pk)
    purge.refresh_from_db()
    assert (purge.state, purge.manifest) == (PurgeState.EXPIRED, 0)
    assert not purge.scan_parts.exists()
    assert AuditEntry.objects.filter(purge=purge, action="preview_expired", actor=None).count() == 1


def test_staff_without_the_right_can_neither_draft_nor_confirm(mona: User, otto: User, tess: User) -> None:
    purge = ready_purge(mona)
    channel = make_channel()
    for user in (otto, tess):
        with pytest.raises(Forbidden):
            draft_purge(moderator=user, selection=everything(channel))
        with pytest.raises(Forbidden):
            confirm(user, purge)
        with pytest.raises(Forbidden):
            cancel_purge(purge.id, moderator=user)


def test_an_unknown_channel_or_purge_is_not_found(mona: User) -> None:
    channel = make_channel()
    channel.delete()
    channel.id = 12345
    with pytest.raises(NotFound):
        draft_purge(moderator=mona, selection=everything(channel))
    with pytest.raises(NotFound):
        confirm_purge(1, moderator=mona, reason="spam", manifest_hash=b"")


def test_a_cancelled_purge_deletes_nothing_more(mona: User) -> None:
    purge = confirm(mona, ready_purge(mona))
    cancel_purge(purge.id, moderator=mona)
    purge = run_purge(purge.id)
    assert purge.state == PurgeState.CANCELLED
    assert {step.state for step in purge.steps.all()} == {StepState.CANCELLED}


def test_a_purge_that_is_not_running_cannot_be_cancelled(mona: User) -> None:
    with pytest.raises(BadInput, match="cannot be cancelled"):
        cancel_purge(ready_purge(mona).id, moderator=mona)


def test_each_action_writes_one_audit_entry(mona: User) -> None:
    purge = run_purge(confirm(mona, ready_purge(mona)).id)
    actions = list(AuditEntry.objects.filter(purge=purge).order_by("id").values_list("action", "actor"))
    assert actions == [
        ("purge_drafted", mona.id),
        ("purge_confirmed", mona.id),
        ("channel_purged", None),
        ("purge_finished", None),
    ]
