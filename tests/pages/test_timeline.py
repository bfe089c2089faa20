"""A channel in the browser: jump targets, paging in both directions, gaps left by purges."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from django.test import Client

from chatstore.domain.messages import Message
from chatstore.domain.snowflakes import time_of
from chatstore.models import ChatUser
from chatstore.models.users import User
from chatstore.store import messages as message_store
from tests.moderation.channels import VICTOR, by_victor, choose, confirm, make_channel, old_ids, purge_now, write
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]


def ids_shown(html: str) -> list[int]:
    return [int(found) for found in re.findall(r'<article [^>]*id="m(-?\d+)"', html)]


def links_to_more(html: str) -> dict[str, str]:
    found = re.findall(r'data-more="(\w+)"[^>]*hx-get="([^"]*)"', html)
    return dict(found)


def test_the_newest_messages_are_shown_in_posting_order(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/channels/{previewed.channel.pk}/").content.decode()
    assert ids_shown(html) == previewed.ids


def test_scrolling_in_both_directions_shows_each_message_once(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(230)
    write(channel, ids)
    client = sign_in(mona)
    html = client.get(f"/channels/{channel.pk}/?around={ids[120]}").content.decode()
    shown, more = ids_shown(html), links_to_more(html)
    assert ids[120] in shown
    assert set(more) == {"older", "newer"}
    while more:
        direction, url = more.popitem()
        rows = client.get(url, headers={"HX-Request": "true"}).content.decode()
        shown = ids_shown(rows) + shown if direction == "older" else shown + ids_shown(rows)
        more |= links_to_more(rows)
    assert shown == ids


def test_a_date_shows_what_was_posted_from_then_on(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    day = time_of(previewed.ids[4]).date()
    html = sign_in(mona).get(f"/channels/{previewed.channel.pk}/?at={day.isoformat()}").content.decode()
    start = dt.datetime.combine(day, dt.time(), dt.UTC)
    assert ids_shown(html) == [i for i in previewed.ids if time_of(i) >= start]


def test_a_date_without_later_messages_shows_earlier_ones(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    html = (
        sign_in(mona).get(f"/channels/{previewed.channel.pk}/?at={dt.datetime.now(dt.UTC):%Y-%m-%d}").content.decode()
    )
    assert "No messages on or after" in html
    assert ids_shown(html) == previewed.ids


def test_a_copied_link_leads_to_its_message(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    link = f"/channels/{previewed.channel.pk}/{previewed.ids[3]}/"
    assert link in client.get(f"/channels/{previewed.channel.pk}/").content.decode()
    there = f"/channels/{previewed.channel.pk}/?around={previewed.ids[3]}#m{previewed.ids[3]}"
    assert f'href="{there}"' in client.get(link).content.decode()
    page = client.get(there).content.decode()
    assert re.search(rf'class="msg[^"]* focus"\s+id="m{previewed.ids[3]}"', page)


def test_a_deleted_message_is_shown_as_deleted(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/channels/{previewed.channel.pk}/?around={previewed.ids[3] + 1}").content.decode()
    assert "no longer here" in html
    assert ids_shown(html) == previewed.ids


def test_the_search_box_finds_links_ids_names_and_people(
    previewed: PreviewedPurge, mona: User, sign_in: SignIn
) -> None:
    client, channel, message_id = sign_in(mona), previewed.channel, previewed.ids[5]
    target = f"/channels/{channel.pk}/{message_id}/"
    for query in (
        f"https://discord.example/channels/{channel.guild_id}/{channel.pk}/{message_id}",
        f"http://testserver{target}",
    ):
        assert client.get("/find/", {"q": query})["Location"] == target
    assert client.get("/find/", {"q": str(channel.pk)})["Location"] == f"/channels/{channel.pk}/"
    person = ChatUser.objects.create(pk=channel.pk + 5, name=f"zoe{channel.pk}", display_name="Zoë")
    page = client.get("/find/", {"q": f"zoe{channel.pk}"}).content.decode()
    assert str(person.pk) in page
    assert "Has not posted" in page


def test_purged_messages_are_marked_in_place(previewed: PreviewedPurge, mona: User, sign_in: SignIn) -> None:
    confirm(mona, previewed.purge)
    channel, ids = make_channel(), old_ids(30)
    write(channel, ids[:10], author=VICTOR + 1)
    write(channel, ids[10:25])
    write(channel, ids[25:], author=VICTOR + 1)
    purge = purge_now(mona, by_victor(channel))
    client = sign_in(mona)
    html = client.get(f"/channels/{channel.pk}/").content.decode()
    assert ids_shown(html) == ids[:10] + ids[25:]
    before, after = html.split("15 messages deleted", 1)
    assert ids_shown(before) == ids[:10]
    assert ids_shown(after) == ids[25:]
    assert f"/purges/{purge.pk}/" in after


def test_what_was_deleted_between_two_days_is_above_the_heading_of_the_later_one(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(60)
    days = [time_of(message_id).date() for message_id in ids]
    last_of_day = next(index for index in range(20, 60) if days[index + 1] != days[index])
    write(channel, ids)
    purge_now(mona, choose(channel.pk, message_ids=[ids[last_of_day]]))
    html = sign_in(mona).get(f"/channels/{channel.pk}/?around={ids[last_of_day + 1]}").content.decode()
    parts = (f'id="m{ids[last_of_day - 1]}"', "1 message deleted", f'data-day="{days[last_of_day + 1]}"')
    assert sorted(html.index(part) for part in parts) == [html.index(part) for part in parts]


def test_an_emptied_channel_shows_who_emptied_it(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(40))
    purge_now(mona, by_victor(channel))
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    assert ids_shown(html) == []
    assert "40 messages deleted" in html
    assert "No other messages in" in html


def test_a_reply_shows_its_target_and_that_it_is_deleted(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids[:1], content="the question")
    replies = [
        Message(channel.pk, ids[1], VICTOR, "an answer", type=19, reference=(channel.pk, ids[0])),
        Message(channel.pk, ids[2], VICTOR, "another", type=19, reference=(channel.pk, ids[0] + 1)),
    ]
    message_store.insert_messages(replies, stamp_us=message_store.posted_stamp)
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    assert html.count("the question") == 2
    assert "a message that no longer exists" in html


def test_only_users_who_may_purge_see_checkboxes(
    previewed: PreviewedPurge, mona: User, otto: User, sign_in: SignIn
) -> None:
    path = f"/channels/{previewed.channel.pk}/"
    assert 'class="select-input"' in sign_in(mona).get(path).content.decode()
    page = sign_in(otto).get(path).content.decode()
    assert 'class="select-input"' not in page
    assert "Delete messages …" not in page
