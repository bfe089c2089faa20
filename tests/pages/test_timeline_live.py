"""A timeline that is open in a browser: new messages are polled, and one message is deleted from its row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.models import Channel, ChatUser, RoleGrant
from chatstore.models.users import User
from chatstore.operations.gateway.messages import post_message
from chatstore.store import activity
from moderation.domain.states import PurgeState
from moderation.models import Purge
from moderation.operations.access.roles import take_role
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.lookup import new_messages
from moderation.operations.purging.worker import run_purge
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.moderation.channels import VICTOR, choose, make_channel, old_ids, purge_now, write
from tests.pages.test_timeline import ids_shown
from tests.slowness import reference_seconds
from tests.waiting import wait_until

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_messages, "REFRESH_SECONDS", 10**9)
    monkeypatch.setattr(new_messages, "REFRESH_WITHOUT_REDIS_SECONDS", 10**9)


def test_a_post_is_in_the_next_poll_and_nothing_is_read_before_it(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    client = sign_in(mona)
    url = f"/channels/{channel.pk}/new/?newest={ids[-1]}"
    version = client.get(url)["X-Timeline-Version"]
    with CaptureQueriesContext(connection) as captured:
        assert client.get(f"{url}&version={version}").status_code == 204
    assert not [query for query in captured if "chatstore_channel" in query["sql"]]
    posted = post_message(channel.pk, author_id=VICTOR, content="good morning")
    wait_until(lambda: activity.latest_of(channel.pk).posted is not None)
    response = client.get(f"{url}&version={version}")
    assert ids_shown(response.content.decode())[-1] == posted.message_id
    version = response["X-Timeline-Version"]
    assert client.get(f"{url}&version={version}").status_code == 204


@pytest.mark.slow
@pytest.mark.alone
def test_a_poll_without_news_takes_at_most_five_milliseconds_of_the_processor(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    client, url = sign_in(mona), f"/channels/{channel.pk}/new/?newest={ids[-1]}"
    url += f"&version={client.get(url)['X-Timeline-Version']}"

    def poll() -> None:
        assert client.get(url).status_code == 204

    assert min(reference_seconds(poll) for _ in range(3)) <= 0.005


def test_a_message_under_an_earlier_id_is_polled_too(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    first, newest = (post_message(channel.pk, author_id=VICTOR, content="x").message_id for _ in range(2))
    html = sign_in(mona).get(f"/channels/{channel.pk}/new/?newest={newest}").content.decode()
    assert ids_shown(html) == [first, newest]


def test_more_rows_than_fit_are_fetched_by_further_polls(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_messages, "MAX_NEW", 4)
    channel, ids = make_channel(), old_ids(6)
    write(channel, ids)
    client = sign_in(mona)
    response = client.get(f"/channels/{channel.pk}/new/?newest={ids[0]}")
    shown = ids_shown(response.content.decode())
    assert "X-Timeline-Version" not in response
    response = client.get(f"/channels/{channel.pk}/new/?newest={shown[-1]}")
    assert "X-Timeline-Version" in response
    assert sorted({*shown, *ids_shown(response.content.decode())}) == ids


def test_a_purge_and_its_undo_change_the_version_and_the_removals(mona: User, sign_in: SignIn) -> None:
    channel, other, ids = make_channel(), make_channel(), old_ids(4)
    write(channel, ids)
    client = sign_in(mona)
    url, page = f"/channels/{channel.pk}/new/", client.get(f"/channels/{channel.pk}/").content.decode()
    assert 'data-removals=""' in page
    known = client.get(url)
    assert known["X-Timeline-Removals"] == ""
    elsewhere = client.get(f"/channels/{other.pk}/new/")["X-Timeline-Version"]
    purge = purge_now(mona, choose(channel.pk, message_ids=ids[1:3]))
    seen = {""}
    for _ in range(2):
        wait_until(lambda: activity.latest_of(channel.pk).removed not in {None, *seen})
        changed = client.get(f"{url}?past=1&version={known['X-Timeline-Version']}")
        assert changed.status_code == 200
        assert changed.content == b""
        assert changed["X-Timeline-Removals"] not in seen
        assert client.get(f"{url}?past=1&version={changed['X-Timeline-Version']}").status_code == 204
        seen.add(changed["X-Timeline-Removals"])
        known = changed
        if purge.state == PurgeState.DONE:
            request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Deleted by mistake")
            purge = run_purge(purge.pk)
    assert client.get(f"/channels/{other.pk}/new/?version={elsewhere}").status_code == 204


def test_a_version_of_another_account_or_channel_is_worth_nothing(mona: User, otto: User, sign_in: SignIn) -> None:
    channel, other = make_channel(), make_channel()
    version = sign_in(mona).get(f"/channels/{channel.pk}/new/")["X-Timeline-Version"]
    assert sign_in(otto).get(f"/channels/{channel.pk}/new/?version={version}").status_code == 200
    assert sign_in(mona).get(f"/channels/{other.pk}/new/?version={version}").status_code == 200


def test_a_known_version_is_no_answer_without_rights_or_after_the_role_was_taken(
    mona: User, tess: User, ada: User, sign_in: SignIn
) -> None:
    channel, client = make_channel(), sign_in(mona)
    url = f"/channels/{channel.pk}/new/?version="
    version = client.get(url)["X-Timeline-Version"]
    assert client.get(url + version).status_code == 204
    assert sign_in(tess).get(url + version).status_code == 403
    for grant in RoleGrant.objects.filter(account=mona):
        take_role(grant.pk, actor=ada)
    assert client.get(url + version).status_code == 302


def test_deleting_one_message_is_a_purge_that_can_be_undone(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    client = sign_in(mona)
    response = client.post(f"/channels/{channel.pk}/delete-message/", {"message_id": ids[1]})
    purge = Purge.objects.get(pk=int(response["Location"].split("/")[2]))
    assert (purge.manifest, purge.reason, purge.moderator) == (1, "Deleted in the timeline", mona)
    run_purge(purge.pk)
    assert ids_shown(client.get(f"/channels/{channel.pk}/").content.decode()) == [ids[0], ids[2]]
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Deleted by mistake")
    run_purge(purge.pk)
    assert ids_shown(client.get(f"/channels/{channel.pk}/").content.decode()) == ids


def test_the_script_gets_a_notice_with_the_undo(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(1)
    write(channel, ids)
    response = sign_in(mona).post(
        f"/channels/{channel.pk}/delete-message/", {"message_id": ids[0]}, headers={"HX-Request": "true"}
    )
    purge = Purge.objects.get(moderator=mona)
    assert f'action="/purges/{purge.pk}/undo/"' in response.content.decode()


def test_a_message_that_is_held_or_gone_is_not_deleted_and_leaves_no_preview(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(2)
    write(channel, ids[:1])
    place_hold(HoldRequest(channel=str(channel.pk)), reason="Court order", actor=mona)
    client = sign_in(mona)
    for message_id, text in ((ids[0], "A legal hold covers this message"), (ids[1], "no longer in the channel")):
        response = client.post(f"/channels/{channel.pk}/delete-message/", {"message_id": message_id})
        assert response.status_code == 400
        assert text in response.content.decode()
    states = set(Purge.objects.filter(moderator=mona).values_list("state", flat=True))
    assert states == {PurgeState.NOTHING_MATCHED}


def test_mentioned_channels_are_named_with_their_server_in_one_query(mona: User, sign_in: SignIn) -> None:
    channel, others = make_channel(), [make_channel() for _ in range(3)]
    Channel.objects.filter(pk=others[0].pk).update(name="pier")
    ChatUser.objects.update_or_create(pk=VICTOR, defaults={"name": "victor71", "display_name": "Victor 71"})
    write(channel, old_ids(4), content=" ".join(f"<#{other.pk}>" for other in others))
    with CaptureQueriesContext(connection) as captured:
        html = sign_in(mona).get(f"/channels/{channel.pk}/rows/?before={2**62}").content.decode()
    assert html.count(f'<a class="mention" href="/channels/{others[0].pk}/#end" title="#pier">') == 4
    channel_queries = [query for query in captured if 'FROM "chatstore_channel"' in query["sql"]]
    assert len(channel_queries) == 2
