"""A moderator discards a preview, also during the scan."""

from __future__ import annotations

from django.test import Client

from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.operations.purging.lifecycle import draft_purge
from tests.moderation.channels import everything, make_channel, old_ids, preview, write


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_a_scan_can_be_stopped(mona: User) -> None:
    purge = draft_purge(moderator=mona, selection=everything(make_channel()))
    client, path = signed_in(mona), f"/purges/{purge.pk}/"
    assert "Stop and discard" in client.get(path).content.decode()
    response = client.post(f"{path}discard/", follow=True)
    purge.refresh_from_db()
    assert purge.state == PurgeState.EXPIRED
    assert "Nothing was deleted" in response.content.decode()


def test_a_preview_can_be_discarded_but_no_purge(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    purge = preview(mona, everything(channel))
    client, path = signed_in(mona), f"/purges/{purge.pk}/"
    assert "Discard the preview" in client.get(path).content.decode()
    client.post(f"{path}confirm/", {"reason": "spam", "manifest_hash": bytes(purge.manifest_hash or b"").hex()})
    client.post(f"{path}discard/")
    purge.refresh_from_db()
    assert purge.state in (PurgeState.QUEUED, PurgeState.RUNNING, PurgeState.DONE)
