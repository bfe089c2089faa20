"""Holds in the browser: placed, shown where they matter, lifted by leads only."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from moderation.domain.packing import pack_ids, unpack_ids
from moderation.models import AuditEntry, Hold
from moderation.operations.holds import HoldRequest, lift_hold, place_hold
from moderation.operations.preview.bucket_strip import PurgeMap
from moderation.operations.preview.manifest_summary import summary_of
from moderation.operations.steps.totals import totals_of
from tests.moderation.channels import VICTOR, by_victor, confirm, make_channel, now_ms, preview, run_to_end
from tests.moderation.stored_sums import store_sums
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def _no_other_holds() -> Iterator[None]:
    """Remove holds before and after: one on a user's messages everywhere would affect other tests."""
    Hold.objects.all().delete()
    yield
    Hold.objects.all().delete()


def hold(page: Client, **named: object) -> Hold:
    saved = page.post("/holds/", {"reason": "case <b>71</b>", **named})
    assert saved.status_code == 302, saved.content.decode()
    return Hold.objects.get()


def make_user(name: str) -> ChatUser:
    pk = make_snowflake(now_ms()) | secrets.randbits(22)
    return ChatUser.objects.create(pk=pk, name=name, display_name=f"Display name of {name}")


def test_a_hold_is_placed_with_its_reason_and_listed(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    page = sign_in(mona)
    assert "No active holds" in page.get("/holds/").content.decode()
    hold(page, user=VICTOR, channel=previewed.channel.pk)
    html = page.get("/holds/").content.decode()
    assert "All messages by" in html
    assert "Victor 71" in html
    assert "“<bdi>case &lt;b&gt;71&lt;/b&gt;</bdi>”" in html
    assert "Lift" not in html


def test_a_held_user_has_an_avatar_a_handle_and_the_age_of_the_account(lena: User, sign_in: SignIn) -> None:
    user, page = make_user(f"wilma-{secrets.token_hex(4)}"), sign_in(lena)
    hold(page, user=user.pk)
    pattern = rf'class="avatar s tone\d".*@{user.name}</span>\n<span>account created '
    assert re.search(pattern, page.get("/holds/").content.decode(), re.DOTALL)


def test_errors_are_shown_and_form_input_is_preserved(mona: User, sign_in: SignIn) -> None:
    answer = sign_in(mona).post("/holds/", {"user": "no-such-user", "reason": "case 71"})
    html = answer.content.decode()
    assert answer.status_code == 400
    assert 'value="no-such-user"' in html
    assert "case 71</textarea>" in html
    assert 'role="alert"' in html
    assert not Hold.objects.exists()


def test_a_lead_lifts_it(previewed: PreviewedPurge, lena: User, sign_in: SignIn) -> None:
    page = sign_in(lena)
    placed = hold(page, channel=previewed.channel.pk)
    assert "Lift" in page.get("/holds/").content.decode()
    assert page.post(f"/holds/{placed.pk}/lift/", {"reason": "<i>closed</i>"}).status_code == 302
    html = page.get("/holds/").content.decode()
    assert "No active holds" in html
    assert "Lifted by" in html
    assert "“<bdi>&lt;i&gt;closed&lt;/i&gt;</bdi>”" in html
    assert AuditEntry.objects.filter(action="hold_lifted").latest("pk").details["reason"] == "<i>closed</i>"


def test_the_page_of_a_user_does_not_link_to_itself_from_their_hold(mona: User, sign_in: SignIn) -> None:
    user = ChatUser.objects.create(pk=make_snowflake(now_ms()) | secrets.randbits(22), name="zoe")
    page = sign_in(mona)
    hold(page, user=user.pk)
    assert "View user" in page.get("/holds/").content.decode()
    html = page.get(f"/users/{user.pk}/").content.decode()
    assert "case &lt;b&gt;71&lt;/b&gt;" in html
    assert "View user" not in html


def test_a_hold_is_not_lifted_without_a_reason(previewed: PreviewedPurge, lena: User, sign_in: SignIn) -> None:
    page = sign_in(lena)
    placed = hold(page, channel=previewed.channel.pk)
    for missing in ({}, {"reason": " "}, {"reason": "x" * 1_001}):
        answer = page.post(f"/holds/{placed.pk}/lift/", missing)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.content.decode()
    placed.refresh_from_db()
    assert placed.lifted_at is None


def test_a_user_page_shows_holds_and_links_to_the_form(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    page = sign_in(mona)
    html = page.get(f"/users/{VICTOR}/").content.decode()
    assert f"/holds/?user={VICTOR}#place" in html
    assert "Holds: purges keep these messages" not in html
    assert f'value="{VICTOR}"' in page.get(f"/holds/?user={VICTOR}").content.decode()
    hold(page, user=VICTOR)
    assert "Holds: purges keep these messages" in page.get(f"/users/{VICTOR}/").content.decode()


def test_a_preview_shows_how_many_matches_are_held(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    page = sign_in(mona)
    hold(page, message=f"https://chat.example/channels/{previewed.channel.pk}/{previewed.victor_ids[0]}")
    purge = preview(mona, by_victor(previewed.channel))
    html = page.get(f"/purges/{purge.pk}/").content.decode()
    assert "<b>1 more message</b> matches but is held, so it is kept." in html
    assert "Delete 5 messages" in html


def test_a_purge_limited_by_a_hold_shows_what_is_kept(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    page = sign_in(mona)
    purge = confirm(mona, previewed.purge)
    hold(page, message=f"https://chat.example/channels/{previewed.channel.pk}/{previewed.victor_ids[0]}")
    run_to_end(purge)
    html = page.get(f"/purges/{purge.pk}/").content.decode()
    assert "Deleted 5 of 6 messages" in html
    assert "Messages that a hold covered were not deleted. They are still in their channel." in html
    placed = Hold.objects.latest("pk")
    assert "To delete held messages, lift the hold first." in html
    assert f'href="/holds/#hold-{placed.pk}"' in html
    assert f'id="hold-{placed.pk}"' in page.get("/holds/").content.decode()
    assert "Retry" not in html
    (bar,) = [bar for bar in PurgeMap(purge, summary_of(purge), [previewed.channel.pk]).draw().bars if bar.highlighted]
    assert ", 5 deleted" in bar.title


def test_held_messages_are_retried_once_a_hold_was_lifted(
    previewed: PreviewedPurge, mona: User, lena: User, sign_in: SignIn
) -> None:
    page, path = sign_in(mona), f"/purges/{previewed.purge.pk}/"
    purge = confirm(mona, previewed.purge)
    first, second = (
        place_hold(
            HoldRequest(message=f"https://chat.example/channels/{previewed.channel.pk}/{one}"),
            reason="case",
            actor=mona,
        )
        for one in previewed.victor_ids[:2]
    )
    run_to_end(purge)
    assert "Retry" not in page.get(path).content.decode()
    lift_hold(first.pk, actor=lena, reason="The case is closed")
    html = page.get(path).content.decode()
    assert "A hold is still in force: a retry keeps the messages that it covers." in html
    assert "Retry 2 held messages" in html
    lift_hold(second.pk, actor=lena, reason="The case is closed")
    html = page.get(path).content.decode()
    assert "No hold covers the held messages any more: a retry deletes them." in html
    assert "Retry 2 held messages" in html
    page.post(f"{path}retry/")
    assert totals_of(run_to_end(purge)).held == 0


def test_failed_messages_are_retried_while_others_are_held(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    purge = confirm(mona, previewed.purge)
    place_hold(HoldRequest(channel=str(previewed.channel.pk)), reason="case", actor=mona)
    run_to_end(purge)
    step = purge.steps.filter(held__gt=1)[0]
    failed = {"failed": 1, "failed_ids": pack_ids(unpack_ids(step.ids)[:1])}
    purge.steps.filter(ordinal=step.ordinal).update(held=step.held - 1, **failed)
    store_sums()
    html = sign_in(mona).get(f"/purges/{purge.pk}/").content.decode()
    assert "To delete held messages, lift the hold first." in html
    assert "Retry 1 failed message" in html
    assert "held messages</button>" not in " ".join(html.split())


def test_a_purge_of_only_held_messages_states_it(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    page = sign_in(mona)
    hold(page, channel=previewed.channel.pk)
    purge = preview(mona, by_victor(previewed.channel))
    html = page.get(f"/purges/{purge.pk}/").content.decode()
    assert "6 messages matched, but all of them are held, so there is nothing to delete." in html


def test_a_hold_is_placed_by_the_names_of_a_user_and_a_channel(mona: User, sign_in: SignIn) -> None:
    channel, user = make_channel(), make_user(secrets.token_hex(8))
    Channel.objects.filter(pk=channel.pk).update(name=user.name)
    placed = hold(sign_in(mona), user=f"@{user.name}", channel=f"#{user.name}")
    assert (placed.author_id, placed.channel_id) == (user.pk, channel.pk)


def test_users_who_share_a_name_are_offered_as_buttons(mona: User, sign_in: SignIn) -> None:
    name = secrets.token_hex(8)
    one, other = make_user(name), make_user(name)
    page = sign_in(mona)
    answer = page.post("/holds/", {"user": name, "reason": "case 71"})
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "Which one do you mean?" in html
    for user in (one, other):
        assert f'name="user" value="{user.pk}"' in html
    # The button comes after the field, so both are sent.
    placed = hold(page, user=[name, str(other.pk)])
    assert placed.author_id == other.pk
