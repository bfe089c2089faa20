"""A channel in the browser: jump targets, paging in both directions, gaps left by purges."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.buckets import bucket_of
from chatstore.domain.messages import Message
from chatstore.domain.milliseconds import DAY_MS
from chatstore.domain.snowflakes import make_snowflake, time_of, unix_ms
from chatstore.gateway import MemberRole, post_message, save_member
from chatstore.models import ChatUser
from chatstore.models.users import User
from chatstore.store import ledger
from chatstore.store import messages as message_store
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import PurgePeriod
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.presentation.excerpts import COVERED
from moderation.presentation.formats import format_short_day
from tests.moderation.channels import (
    VICTOR,
    WILMA,
    by_victor,
    choose,
    confirm,
    make_channel,
    name_authors,
    now_ms,
    old_ids,
    purge_now,
    run_to_end,
    write,
)
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


def test_the_history_of_a_channel_that_was_never_counted_says_what_counts_it(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, [*old_ids(3), *old_ids(2, buckets_ago=4)])
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    foot = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.split('<div class="strip-foot">')[1].split("<details")[0]))
    assert "not counted yet A preview or a purge counts the messages of each period that it reads." in foot


def test_a_channel_of_one_period_has_no_history_to_choose_from(mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    client, heading = sign_in(mona), "History of the channel"
    write(channel, [make_snowflake(now_ms())])
    assert heading not in client.get(f"/channels/{channel.pk}/").content.decode()
    write(channel, old_ids(2))
    assert heading in client.get(f"/channels/{channel.pk}/").content.decode()


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
    assert f'name="at" value="{format_short_day(day)}"' in " ".join(html.split())
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


def test_a_line_has_the_number_of_the_whole_purge_where_that_deleted_more(mona: User, sign_in: SignIn) -> None:
    here, there, ids = make_channel(), make_channel(), old_ids(20)
    for channel in (here, there):
        write(channel, ids[::2], author=VICTOR + 1)
        write(channel, ids[1::2])
    client = sign_in(mona)
    purge = purge_now(mona, Selection(channel_ids=(here.pk, there.pk), where=Author((VICTOR,))))
    page = client.get(f"/channels/{here.pk}/").content.decode()
    assert "10 messages deleted" in page
    assert "20 in the whole purge" in page
    restored = UndoPart(message_ids=tuple(ids[1:7:2]))
    request_undo(purge.pk, moderator=mona, part=restored, reason="Appeal")
    run_to_end(purge)
    for pattern in ("/channels/{}/", f"/channels/{{}}/{ids[11]}/"):
        page = client.get(pattern.format(here.pk)).content.decode()
        assert "14 in the whole purge" in page
    # Which of the restored ones were already gone is not counted.
    assert PurgePeriod.objects.filter(purge=purge).update(already_gone=1)
    assert "in the whole purge" not in client.get(f"/channels/{here.pk}/").content.decode()


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


def test_a_quote_covers_spoilers_and_names_users_and_channels(mona: User, sign_in: SignIn) -> None:
    name_authors()
    channel, other, ids = make_channel(), make_channel(name="pier"), old_ids(2)
    quoted = f"**ask** <@{WILMA}> in <#{other.pk}>: ||secret||"
    rows = [
        Message(channel.pk, ids[0], VICTOR, quoted, mentions=(WILMA,)),
        Message(channel.pk, ids[1], VICTOR, "an answer", type=19, reference=(channel.pk, ids[0])),
    ]
    ledger.ensure_row(channel.pk, bucket_of(ids[0]))
    message_store.insert_messages(rows, stamp_us=message_store.posted_stamp)
    # Alone on its page, so that only the quote mentions the channel.
    html = sign_in(mona).get(f"/channels/{channel.pk}/?after={ids[0]}").content.decode()
    assert f"<bdi>ask @Wilma 72 in #pier: {COVERED}</bdi>" in html
    assert "secret" not in html


def test_a_mention_of_a_role_has_its_name(mona: User, sign_in: SignIn) -> None:
    channel = make_channel(guild="Harbour")
    crew, unknown = channel.pk + 1, channel.pk + 2
    assert channel.guild_id is not None
    save_member(channel.guild_id, WILMA, roles=[MemberRole("<Crew>", role_id=crew)])
    post_message(channel.pk, author_id=WILMA, content=f"Ask <@&{crew}> or <@&{unknown}>")
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    assert '<bdi class="mention">@&lt;Crew&gt;</bdi>' in html
    assert f'<bdi class="mention">@role {unknown}</bdi>' in html


def test_a_row_shows_all_of_a_message(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(1)
    bot = make_snowflake(now_ms() - 90 * DAY_MS) | secrets.randbits(22)
    ChatUser.objects.create(pk=bot, name=f"tides{bot}", display_name="Tide clock", is_bot=True)
    message = Message(
        channel.pk,
        ids[0],
        bot,
        "High water at noon",
        edited_at=time_of(ids[0]) + dt.timedelta(minutes=2),
        reactions={"🌊": 3, "wave:5": 1},
        stickers=('{"name": "Buoy"}',),
    )
    ledger.ensure_row(channel.pk, bucket_of(ids[0]))
    message_store.insert_messages([message], stamp_us=message_store.posted_stamp)
    html = re.sub(r"\s+", " ", sign_in(mona).get(f"/channels/{channel.pk}/").content.decode())
    row = html[html.index(f'id="m{ids[0]}"') :].split("</article>")[0]
    assert f'title="@tides{bot} · bot · account created {format_short_day(time_of(bot))} · {bot}"' in row
    assert re.search(r'<span class="avatar tone\d+" aria-hidden="true">TC</span>', row)
    assert '<span class="tag">bot</span>' in row
    assert "edited <time" in row
    assert "Buoy" in row
    assert re.search(r"🌊.{0,40}3", row)
    assert re.search(r":wave:.{0,40}1", row)


def test_the_ids_of_channel_and_server_can_be_copied(mona: User, sign_in: SignIn) -> None:
    channel = make_channel(guild=f"Harbour {secrets.token_hex(4)}")
    html = sign_in(mona).get(f"/channels/{channel.pk}/").content.decode()
    for number in (channel.pk, channel.guild_id):
        assert f'data-copy-id="{number}"' in html


def test_rows_up_to_an_id_are_those_of_the_range_with_its_gaps(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(120)
    write(channel, ids)
    purge_now(mona, choose(channel.pk, message_ids=[*ids[20:30], *ids[60:70], *ids[100:]]))
    client, url, found = sign_in(mona), f"/channels/{channel.pk}/rows/?after={ids[9]}&until={ids[89]}", []
    html = client.get(url).content.decode()
    found += ids_shown(html)
    assert "/rows/" in html
    url = f"/channels/{channel.pk}/rows/?after={found[-1]}&until={ids[89]}"
    last = client.get(url).content.decode()
    assert "/rows/" not in last
    assert found + ids_shown(last) == [*ids[10:20], *ids[30:60], *ids[70:90]]
    assert "10 messages deleted here" in html


def test_only_users_who_may_purge_see_checkboxes(
    previewed: PreviewedPurge, mona: User, otto: User, sign_in: SignIn
) -> None:
    path = f"/channels/{previewed.channel.pk}/"
    assert 'class="select-input"' in sign_in(mona).get(path).content.decode()
    page = sign_in(otto).get(path).content.decode()
    assert 'class="select-input"' not in page
    assert "Delete messages …" not in page


@pytest.mark.parametrize("typed", ["11 March 2026", "11 March 2026, 00:00", "2026-03-11"])
def test_the_date_to_go_to_is_typed_as_pages_write_it(typed: str, mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    day = dt.datetime(2026, 3, 11, tzinfo=dt.UTC)
    early, late = (make_snowflake(unix_ms(day + dt.timedelta(hours=hours))) for hours in (-1, 1))
    write(channel, [early, late])
    assert ids_shown(sign_in(mona).get(f"/channels/{channel.pk}/", {"at": typed}).content.decode()) == [late]


def test_a_date_that_is_none_stays_in_its_field_above_the_newest_messages(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), old_ids(3)
    write(channel, ids)
    response = sign_in(mona).get(f"/channels/{channel.pk}/", {"at": "some “day”"})
    page = response.content.decode()
    assert response.status_code == 400
    assert 'value="some “day”"' in page
    assert "is not a valid date" in page
    assert ids_shown(page) == ids
