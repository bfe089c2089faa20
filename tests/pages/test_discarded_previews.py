"""A moderator discards a preview, also during the scan."""

from __future__ import annotations

import datetime as dt

from django.test import Client
from django.utils import timezone

from chatstore.domain.roles import Role
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Purge
from moderation.operations.purging.lifecycle import draft_purge, end_of_preview, expire_previews, replacement_of
from tests.conftest import give, make_user
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


def test_the_page_says_who_discarded_a_preview_and_when(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    path = f"/purges/{preview(mona, everything(channel)).pk}/"
    page = " ".join(signed_in(mona).post(f"{path}discard/", follow=True).content.decode().split())
    assert "Discarded preview</h1>" in page
    assert '<span class="chip ">discarded</span>' in page
    name = mona.get_full_name() or mona.get_username()
    assert f'<bdi class="staff-name">{name}</bdi> discarded this preview' in page
    assert "24 hours" not in page


def test_the_page_of_a_preview_that_expired_says_why(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    purge = preview(mona, everything(channel))
    Purge.objects.filter(pk=purge.pk).update(ready_at=timezone.now() - dt.timedelta(hours=25))
    expire_previews()
    page = signed_in(mona).get(f"/purges/{purge.pk}/").content.decode()
    assert "Expired preview</h1>" in page
    assert "it was not confirmed within 24 hours" in page


def test_lists_and_the_panel_have_the_state_that_the_page_has(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    discarded, expired = (preview(mona, everything(channel)) for _ in range(2))
    client = signed_in(mona)
    client.post(f"/purges/{discarded.pk}/discard/")
    Purge.objects.filter(pk=expired.pk).update(ready_at=timezone.now() - dt.timedelta(hours=25))
    expire_previews()
    lines = client.get(f"/purges/?channel={channel.pk}").content.decode()
    for purge, state in ((discarded, "discarded"), (expired, "expired")):
        chip = f'<span class="chip ">{state}</span>'
        assert chip in lines.split(f'href="/purges/{purge.pk}/"')[1].split("</li>")[0]
        assert chip in client.get(f"/purges/{purge.pk}/").content.decode()
        assert chip in client.get(f"/purges/{purge.pk}/panel/").content.decode()


def test_a_stale_page_is_told_that_the_preview_was_discarded(mona: User) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    purge = preview(mona, everything(channel))
    client, path = signed_in(mona), f"/purges/{purge.pk}/"
    stale = {"manifest_hash": bytes(purge.manifest_hash or b"").hex(), "reason": "spam", "keep_author": "1"}
    client.post(f"{path}discard/")
    for action in ("confirm", "narrow"):
        response = client.post(f"{path}{action}/", stale)
        assert response.status_code == 400, action
        assert "This preview was discarded in the meantime. Nothing was deleted." in response.content.decode(), action


def test_the_shared_link_of_a_preview_leads_to_the_one_that_replaced_it(mona: User) -> None:
    channel, elsewhere = make_channel(), make_channel(guild="Elsewhere")
    write(channel, old_ids(3))
    first, client = preview(mona, everything(channel)), signed_in(mona)
    purges = [first.pk]
    for words in ("hello", "world"):
        sent = {"preview": purges[-1], "channels": channel.pk, "words": words}
        drafted = client.post(f"/channels/{channel.pk}/delete/", sent)
        purges.append(int(drafted["Location"].rstrip("/").rsplit("/", 1)[1]))
    colleague, gus = make_user("lena", group="leads"), make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=elsewhere.guild_id)
    page = " ".join(signed_in(colleague).get(f"/purges/{first.pk}/").content.decode().split())
    assert f'by <a href="/purges/{purges[-1]}/">another one</a>' in page
    end = end_of_preview(first)
    assert end is not None
    assert replacement_of(gus, end) is None
    entry = AuditEntry.objects.get(purge=first, action="preview_discarded")
    assert entry.details["replaced_by"] == str(purges[1])
