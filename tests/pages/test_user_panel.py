"""Beside a page: what a chat user posted last, and buttons that lead to a preview of it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client, override_settings

from chatstore.domain.buckets import bucket_days, bucket_of
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import make_snowflake, time_of
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import Purge, Step
from moderation.operations.lookup import recent_posts
from moderation.operations.notes import add_note
from moderation.operations.preview.scan import scan_purge
from moderation.presentation.formats import format_short_days
from tests.chatstore.reports import report
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel, now_ms, old_ids, purge_now, recent_ids, write

SignIn = Callable[[User], Client]

MESSAGE_PATH = "/channels/{channel}/{message}/"


def make_account(*, days: int) -> ChatUser:
    pk = make_snowflake(now_ms() - days * DAY_MS) | secrets.randbits(22)
    return ChatUser.objects.create(pk=pk, name=f"raider{pk}", display_name="Raider")


def panel_of(client: Client, account: ChatUser, channel: Channel | None = None) -> str:
    query = {} if channel is None else {"channel": str(channel.pk)}
    response = client.get(f"/users/{account.pk}/panel/", query)
    assert response.status_code == 200
    return squeeze(response.content.decode())


def squeeze(html: str) -> str:
    return re.sub(r"\s+", " ", html)


def test_messages_of_the_last_hour_and_day_are_counted_over_all_channels(mona: User, sign_in: SignIn) -> None:
    account, first, second = make_account(days=2), make_channel(), make_channel()
    write(first, recent_ids(7, minutes_ago=20), author=account.pk)
    write(first, recent_ids(3, minutes_ago=15))
    write(second, recent_ids(4, minutes_ago=600), author=account.pk)
    write(second, old_ids(30), author=account.pk)
    html = panel_of(sign_in(mona), account, first)
    assert "Messages, last hour</dt> <dd>7</dd>" in html
    assert "Messages, last day</dt> <dd>11</dd>" in html
    assert "7 in the last day" in html
    assert "new account" in html


def test_servers_and_channels_are_shown_with_the_numbers_of_messages(mona: User, sign_in: SignIn) -> None:
    account, word = make_account(days=2), secrets.token_hex(6)
    here, there = (make_channel(guild=f"{name} {word}") for name in ("Harbour", "Quay"))
    write(here, recent_ids(7), author=account.pk)
    write(there, old_ids(3), author=account.pk)
    servers, channels = panel_of(sign_in(mona), account).split('id="panel-servers"')[1].split('id="panel-channels"')
    assert re.findall(rf"(\w+) {word}</bdi> <span class=\"dotted quiet small\"> <span> (\d+) messages", servers) == [
        ("Harbour", "7"),
        ("Quay", "3"),
    ]
    assert re.search("7 messages </span> <span> 7 in the last day", channels)
    assert re.search("3 messages", channels)
    page = squeeze(sign_in(mona).get(f"/users/{account.pk}/").content.decode())
    assert re.findall(r"(\d+) messages <br>", page.split('id="user-channels"')[1]) == ["7", "3"]


def test_notes_and_earlier_purges_are_shown_with_the_ways_to_hold_and_to_note(mona: User, sign_in: SignIn) -> None:
    account, channel = make_account(days=2), make_channel()
    write(channel, old_ids(3), author=account.pk)
    add_note(account.pk, text="Warned about links", link="", actor=mona)
    purge = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((account.pk,))))
    html = panel_of(sign_in(mona), account, channel)
    notes, purges = html.split('id="panel-notes"')[1].split('id="panel-purges"')
    assert "Warned about links" in notes
    assert f"/purges/{purge.pk}/" in purges
    assert f'href="/holds/?user={account.pk}#place"' in html
    assert f'href="/users/{account.pk}/#notes"' in html


def test_the_newest_messages_are_shown_with_their_channels(mona: User, sign_in: SignIn) -> None:
    account, first, second = make_account(days=900), make_channel(), make_channel()
    write(first, old_ids(9, buckets_ago=2), author=account.pk, content="older")
    write(second, recent_ids(2), author=account.pk, content="newer")
    html = panel_of(sign_in(mona), account)
    assert len(re.findall("newer [0-9]+", html)) == 2
    assert len(re.findall("older [0-9]+", html)) == 3
    assert html.index("newer") < html.index("older")
    assert "new account" not in html


def test_counts_that_were_cut_off_are_shown_as_lower_bounds(mona: User, sign_in: SignIn) -> None:
    account, channel = make_account(days=2), make_channel()
    write(channel, recent_ids(3), author=account.pk)
    with override_settings(PAGE_DEADLINE_SECONDS=0):
        html = panel_of(sign_in(mona), account, channel)
    assert "Messages, last hour</dt> <dd>0 or more</dd>" in html
    assert "All messages</dt> <dd> 0 or more <" in html


def disabled(html: str) -> list[str]:
    """Return the times of a place that are not offered."""
    first = html.split('class="reach"')[1].split("</form>", maxsplit=1)[0]
    return [text.strip() for text in re.findall(r"<button[^>]* disabled>([^<]*)</button>", first)]


def test_a_time_that_is_known_to_have_no_messages_is_not_offered(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, channel, client = make_account(days=900), make_channel(), sign_in(mona)
    write(channel, old_ids(3), author=account.pk)
    monkeypatch.setattr(recent_posts, "COUNT_SECONDS", 60.0)
    with override_settings(PAGE_DEADLINE_SECONDS=60):
        assert disabled(panel_of(client, account, channel)) == ["Last hour", "Last day"]
        write(channel, recent_ids(1, minutes_ago=90), author=account.pk)
        assert disabled(panel_of(client, account, channel)) == ["Last hour"]
    with override_settings(PAGE_DEADLINE_SECONDS=0):
        assert disabled(panel_of(client, account, channel)) == []


def test_all_messages_in_channels_that_the_viewer_may_open_are_counted(
    sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, seen, hidden = make_account(days=900), make_channel(), make_channel()
    for channel in (seen, hidden):
        channel.guild = Guild.objects.create(pk=channel.pk - 1, name="Harbour")
        channel.save()
        for buckets_ago in (0, 3, 40):
            ids = old_ids(6, buckets_ago=buckets_ago) if buckets_ago else recent_ids(6)
            write(channel, ids[:4], author=account.pk)
            write(channel, ids[4:])
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=seen.guild_id)
    monkeypatch.setattr(recent_posts, "COUNT_SECONDS", 60.0)
    with override_settings(PAGE_DEADLINE_SECONDS=60):
        html = panel_of(sign_in(gus), account)
    assert "All messages</dt> <dd> 12 </dd>" in html
    monkeypatch.setattr(recent_posts, "COUNT_SECONDS", 0.0)
    with override_settings(PAGE_DEADLINE_SECONDS=60):
        html = panel_of(sign_in(gus), account)
    assert re.search(r"All messages</dt> <dd> \d+ or more <", html)
    assert "Messages, last day</dt> <dd>4</dd>" in html


def test_counts_that_were_not_exact_in_time_are_requested_once_more_and_are_exact(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, channel, client = make_account(days=900), make_channel(guild="Harbour"), sign_in(mona)
    for buckets_ago in (1, 3, 40):
        write(channel, old_ids(6, buckets_ago=buckets_ago), author=account.pk)
    monkeypatch.setattr(recent_posts, "COUNT_SECONDS", 0.0)
    monkeypatch.setattr(recent_posts, "NEWEST_SHOWN", 1)
    for url, part in ((f"/users/{account.pk}/panel/?channel={channel.pk}", "panel"), (f"/users/{account.pk}/", "user")):
        with override_settings(PAGE_DEADLINE_SECONDS=60):
            html = squeeze(client.get(url).content.decode())
            (again,) = re.findall(rf'<dl class="facts" id="{part}-facts" hx-get="([^"]+)"', html)
            counted = squeeze(client.get(unescape(again), headers={"HX-Request": "true"}).content.decode())
        assert re.search(r"All messages</dt> <dd> \d+ or more <", html)
        assert "counting …" in html
        assert "All messages</dt> <dd> 18 </dd>" in counted
        assert "counting …" not in counted
        assert f'<dl class="facts" id="{part}-facts" >' in counted
        for each in ("facts", "servers", "channels"):
            assert f'id="{part}-{each}"' in html
            assert f'id="{part}-{each}"' in counted
    # The caption and the ends of the bars are replaced with them.
    (activity,) = re.findall(r'<section class="card" id="user-channels".*?</section>', counted)
    assert "The tallest bar is" in activity
    assert "activity-ends" in activity


def test_each_button_leads_to_a_preview_of_that_place_and_time(mona: User, sign_in: SignIn) -> None:
    account, here, elsewhere = make_account(days=2), make_channel(guild=secrets.token_hex(6)), make_channel()
    beside = make_channel(guild=here.guild)
    write(here, recent_ids(2, minutes_ago=10), author=account.pk)
    write(here, old_ids(3), author=account.pk)
    write(here, recent_ids(5, minutes_ago=10))
    write(beside, recent_ids(1, minutes_ago=10), author=account.pk)
    write(elsewhere, recent_ids(4, minutes_ago=10), author=account.pk)
    client = sign_in(mona)
    html = panel_of(client, account, here)
    matched = {}
    for action, fields in re.findall(r'<form method="post" action="([^"]+)" class="reach"(.*?)</form>', html):
        hidden = dict(re.findall(r'type="hidden" name="(authors|guild)" value="([^"]*)"', fields))
        for after in re.findall(r'name="after" value="([^"]*)"', fields):
            response = client.post(action, {**hidden, "after": after})
            assert response.status_code == 302, (action, after)
            purge = Purge.objects.get(pk=response["Location"].rstrip("/").split("/")[-1])
            scan_purge(purge.pk)
            matched[action, hidden.get("guild", ""), after] = sum(
                Step.objects.filter(purge=purge).values_list("count", flat=True)
            )
    assert matched == {
        (f"/channels/{here.pk}/delete/", "", "last 1 hour"): 2,
        (f"/channels/{here.pk}/delete/", "", "last 1 day"): 2,
        (f"/channels/{here.pk}/delete/", "", ""): 5,
        ("/delete/", str(here.guild_id), "last 1 hour"): 3,
        ("/delete/", str(here.guild_id), "last 1 day"): 3,
        ("/delete/", str(here.guild_id), ""): 6,
        ("/delete/", "", "last 1 hour"): 7,
        ("/delete/", "", "last 1 day"): 7,
        ("/delete/", "", ""): 10,
    }


def test_where_the_viewer_may_not_delete_the_channel_and_its_server_are_not_offered(sign_in: SignIn) -> None:
    account, read, moderated = make_account(days=2), make_channel(guild="Harbour"), make_channel(guild="Quay")
    gus = make_user("gus", group=None)
    give(gus, Role.AUDITOR, guild_id=read.guild_id)
    give(gus, Role.MODERATOR, guild_id=moderated.guild_id)
    for channel in (read, moderated):
        write(channel, recent_ids(2), author=account.pk)
    client = sign_in(gus)
    assert places_of(panel_of(client, account, moderated)) == ["Here", "This server", "Everywhere"]
    assert places_of(panel_of(client, account, read)) == ["Everywhere"]


def places_of(html: str) -> list[str]:
    """Return the labels of the rows of buttons."""
    return re.findall(r'<span class="reach-place" id="reach-\d+"> ([\w ]+?) <', html)


@pytest.mark.parametrize("path", ["/channels/{channel}/", "/raids/{channel}/", "/reports/{case}/", MESSAGE_PATH])
def test_each_page_about_a_channel_has_it_for_the_panel(path: str, mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(guild="Harbour"), recent_ids(3)
    write(channel, ids)
    case = report(channel, ids[0])
    html = sign_in(mona).get(path.format(channel=channel.pk, case=case.pk, message=ids[0])).content.decode()
    assert re.search(rf'<aside class="panel"[^>]* data-channel="{channel.pk}"', html)


def test_a_channel_that_does_not_exist_is_not_found(mona: User, sign_in: SignIn) -> None:
    account = make_account(days=2)
    assert sign_in(mona).get(f"/users/{account.pk}/panel/?channel=1").status_code == 404
    assert sign_in(mona).get(f"/users/{account.pk}/panel/?channel=x").status_code == 400


def test_the_first_and_last_seen_are_shown(mona: User, sign_in: SignIn) -> None:
    account, channel = make_account(days=900), make_channel()
    html = panel_of(sign_in(mona), account)
    assert 'First seen</dt> <dd> <span class="quiet">unknown</span>' in html
    assert 'Last message</dt> <dd> <span class="quiet">unknown</span>' in html
    ids = old_ids(3, buckets_ago=2)
    write(channel, ids, author=account.pk)
    write(channel, recent_ids(1), author=account.pk)
    html = panel_of(sign_in(mona), account)
    assert f'First seen</dt> <dd> <time datetime="{time_of(min(ids)).isoformat()}"' in html
    purge_now(mona, Selection(channel_ids=(channel.pk,), message_ids=tuple(sorted(ids))))
    html = panel_of(sign_in(mona), account)
    first, last = bucket_days(bucket_of(min(ids)))
    assert f"First seen</dt> <dd> {squeeze(format_short_days(first, last))} </dd>" in html
    assert "Last message</dt> <dd> <time" in html
