"""The page of a chat user shows name, channels and activity, and the purges that included their messages."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client, override_settings

from chatstore.domain.buckets import bucket_at, bucket_days, bucket_of
from chatstore.domain.milliseconds import YEAR_MS
from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import make_snowflake, time_of, unix_ms
from chatstore.models import ChatUser
from chatstore.models.users import User
from chatstore.operations.gateway.timeline import last_day_of
from chatstore.store import authors
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgeApproval
from moderation.operations.lookup import recent_posts
from moderation.operations.lookup.chat_users import BUCKETS_PER_CHECK
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.presentation import activity
from moderation.presentation.formats import format_days, format_short_day, format_short_days
from tests.conftest import give, make_user
from tests.moderation.channels import (
    choose,
    confirm,
    make_channel,
    now_ms,
    old_ids,
    preview,
    purge_now,
    recent_ids,
    run_to_end,
    write,
)
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]


def make_chat_user(*, name: str = "zoe", shown: str = "Zoë", is_bot: bool = False) -> ChatUser:
    pk = make_snowflake(now_ms() - 2 * YEAR_MS) | secrets.randbits(22)
    return ChatUser.objects.create(pk=pk, name=name, display_name=shown, is_bot=is_bot)


def page_of(client: Client, user_id: int) -> str:
    response = client.get(f"/users/{user_id}/")
    assert response.status_code == 200
    return response.content.decode()


def squeeze(html: str) -> str:
    """Return a page without the space between its tags."""
    return re.sub(r">\s+", ">", re.sub(r"\s+<", "<", html))


def test_name_id_age_and_channels_are_shown(mona: User, sign_in: SignIn) -> None:
    person, channel, other = make_chat_user(is_bot=True), make_channel(), make_channel()
    for ago in (9, 8, 2):
        write(channel, old_ids(1, buckets_ago=ago), author=person.pk)
    write(other, old_ids(1, buckets_ago=5), author=person.pk)
    html = page_of(sign_in(mona), person.pk)
    assert "Zoë" in html
    assert "@zoe" in html
    assert ">bot<" in html
    assert str(person.pk) in html
    assert "Account created</dt><dd><time" in squeeze(html)
    strips = html.split('class="strip activity-strip"')[1:]
    # The channel with the most comes first.
    assert [strip.count('class="bar"') for strip in strips] == [3, 1]
    assert html.index(f"/channels/{channel.pk}/") < html.index(f"/channels/{other.pk}/")


def test_activity_shows_messages_by_time_if_all_were_read_and_otherwise_periods(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, channel, other = make_chat_user(), make_channel(), make_channel()
    burst = [make_snowflake(now_ms() - 3 * 60_000 + number) for number in range(5)]
    write(channel, burst, author=person.pk)
    html = squeeze(page_of(sign_in(mona), person.pk))
    # A burst of a moment is a bar among many, not all of the time since the account was created.
    ((slot, width),) = re.findall(r'<rect class="slot" x="([\d.]+)" y="0" width="([\d.]+)"', html)
    assert 0 < float(slot) < activity.WIDTH
    assert float(width) <= activity.WIDTH / 15
    assert "The tallest bar is 5\xa0messages" in html or "The tallest bar is 5 messages" in html
    assert "<span>now</span>" in html
    write(other, old_ids(1), author=person.pk)
    monkeypatch.setattr(recent_posts, "MAX_PLACES", 1)
    html = squeeze(page_of(sign_in(mona), person.pk))
    assert "Bars show when there are messages" in html
    assert "<span>today</span>" in html


def test_the_handle_is_shown_even_if_it_is_the_name(mona: User, sign_in: SignIn) -> None:
    person = make_chat_user(name=(name := f"zoe{secrets.token_hex(4)}"), shown="")
    assert f">@{name}<" in page_of(sign_in(mona), person.pk)


def test_a_user_is_not_seen_before_the_account_was_created(mona: User, sign_in: SignIn) -> None:
    made = now_ms()
    person = ChatUser.objects.create(pk=make_snowflake(made) | secrets.randbits(22), name="zoe")
    authors.ensure_author_bucket(person.pk, make_channel().pk, bucket_at(made))
    html = squeeze(page_of(sign_in(mona), person.pk))
    days = format_short_days(time_of(person.pk).date(), last_day_of(bucket_at(made)))
    shown = re.findall(r"(?:First seen|Last message)</dt><dd>([^<]+)<", html)
    assert [text.strip() for text in shown] == [days, days]


@pytest.mark.parametrize("are_all_read", [True, False])
def test_the_last_message_of_a_channel_has_its_time_or_if_unread_the_days_of_its_bucket_until_today(
    mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch, are_all_read: bool
) -> None:
    person, opened, closed = make_chat_user(), make_channel(), make_channel()
    ids = {opened: recent_ids(1), closed: old_ids(1, buckets_ago=3)}
    for channel, posted in ids.items():
        write(channel, posted, author=person.pk)
    if not are_all_read:
        monkeypatch.setattr(recent_posts, "MAX_PLACES", 1)
    activity = page_of(sign_in(mona), person.pk).split('id="activity"')[1]
    for channel, (message_id,) in ids.items():
        bucket = bucket_of(message_id)
        days = format_days(bucket_days(bucket)[0], last_day_of(bucket))
        line = activity.split(f"/channels/{channel.pk}/#end")[1]
        is_read = are_all_read or channel == opened
        at = f'<time datetime="{time_of(message_id).isoformat()}"' if is_read else f"{days}<"
        assert f"last message: {at}" in line.split("</li>")[0]


def test_servers_are_those_of_all_channels_that_the_viewer_may_open_also_of_channels_not_listed(
    sign_in: SignIn,
) -> None:
    person, reader = make_chat_user(), make_user("rita", group=None)
    channels = [make_channel(guild=f"Quay {number}") for number in range(23)]
    for channel in channels:
        authors.ensure_author_bucket(person.pk, channel.pk, bucket_at(now_ms()) - 3)
    for channel in channels[:15]:
        give(reader, Role.MODERATOR, guild_id=channel.guild_id)
    servers = page_of(sign_in(reader), person.pk).split('id="servers"')[1].split("</section>")[0]
    assert set(re.findall(r"Quay \d+", servers)) == {f"Quay {number}" for number in range(15)}
    for channel in channels[15:]:
        give(reader, Role.MODERATOR, guild_id=channel.guild_id)
    servers = page_of(sign_in(reader), person.pk).split('id="servers"')[1].split("</section>")[0]
    assert len(set(re.findall(r"Quay \d+", servers))) == 20
    assert "and 3 more servers" in re.sub(r"\s+", " ", servers)


def test_messages_in_a_server_are_deleted_by_its_row_where_the_viewer_may_delete(sign_in: SignIn) -> None:
    person, gus = make_chat_user(), make_user("gus", group=None)
    moderated, read, emptied = (make_channel(guild=name) for name in ("Harbour", "Quay", "Pier"))
    for channel in (moderated, read, emptied):
        write(channel, old_ids(3), author=person.pk)
        give(gus, Role.AUDITOR if channel == read else Role.MODERATOR, guild_id=channel.guild_id)
    purge_now(gus, choose(emptied.pk, author_ids=[person.pk]))
    client = sign_in(gus)
    servers = page_of(client, person.pk).split('id="servers"')[1].split("</section>")[0]
    assert all(name in servers for name in ("Harbour", "Quay", "Pier"))
    (link,) = re.findall(r'href="(/delete/[^"]*)"', servers)
    assert unescape(link) == f"/delete/?author={person.pk}&guild={moderated.guild_id}"
    # Beside a page there are buttons for its own server.
    assert "/delete/?" not in client.get(f"/users/{person.pk}/panel/").content.decode()
    form = client.get(unescape(link)).content.decode()
    for name, value in (("authors", person.pk), ("guild", moderated.guild_id)):
        assert re.search(rf'<input[^>]* name="{name}"[^>]* value="{value}"', form), name


def test_more_than_twelve_channels_are_counted(mona: User, sign_in: SignIn) -> None:
    person = make_chat_user()
    for _ in range(15):
        write(make_channel(), old_ids(1), author=person.pk)
    html = page_of(sign_in(mona), person.pk)
    assert html.count('class="strip activity-strip"') == 12
    assert "and 3 more channels" in html


def test_an_unknown_user_is_shown_by_their_id(mona: User, sign_in: SignIn) -> None:
    stranger, channel = secrets.randbits(21), make_channel()
    authors.ensure_author_bucket(stranger, channel.pk, bucket_at(now_ms()))
    html = page_of(sign_in(mona), stranger)
    assert f"user {stranger}" in html
    assert "not in the member list" in html
    assert 'Account created</dt><dd><span class="quiet">unknown<' in squeeze(html)


def test_an_id_without_messages_is_not_found(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    for unknown in (secrets.randbits(60), -(1 << 63), (1 << 63) - 1):
        assert client.get(f"/users/{unknown}/").status_code == 404, unknown


def test_purges_of_the_user_s_messages_are_listed_with_counts(mona: User, sign_in: SignIn) -> None:
    person, channel, ids = make_chat_user(), make_channel(), old_ids(60)
    write(channel, ids[:25], author=person.pk)
    write(channel, ids[25:], author=secrets.randbits(60))
    first = purge_now(mona, choose(channel.pk, before_id=ids[10]))
    second = purge_now(mona, choose(channel.pk, everything=True))
    preview(mona, choose(channel.pk, everything=True))
    html = page_of(sign_in(mona), person.pk)
    assert [int(i) for i in re.findall(r'class="title" href="/purges/(-?\d+)/"', html)] == [second.pk, first.pk]
    assert "15 messages by <bdi>Zoë</bdi>" in html
    assert "10 messages by <bdi>Zoë</bdi>" in html
    assert f'href="/purges/{first.pk}/messages/?author={person.pk}"' in html
    assert "Purges</dt><dd>2<" in squeeze(html)


def test_a_purge_that_waits_for_approval_is_named_and_not_counted(mona: User, sign_in: SignIn) -> None:
    person, channel = make_chat_user(), make_channel()
    write(channel, old_ids(5), author=person.pk)
    write(channel, old_ids(2, buckets_ago=3), author=secrets.randbits(60))
    purge = preview(mona, choose(channel.pk, everything=True))
    client = sign_in(mona)
    assert f"/purges/{purge.pk}/" not in page_of(client, person.pk)
    PurgeApproval.objects.create(purge=purge, requested_by=mona, reason="raid", manifest_hash=purge.manifest_hash)
    html, panel = page_of(client, person.pk), client.get(f"/users/{person.pk}/panel/").content.decode()
    for purges in (html.split('id="purges"')[1], panel.split('id="panel-purges"')[1]):
        assert f'class="title" href="/purges/{purge.pk}/"' in purges
        assert "waiting for approval" in purges
    assert "5 messages by <bdi>Zoë</bdi>" in html
    assert "No purge includes messages" not in html
    for shown in (html, panel):
        assert re.search(r"Purges</dt><dd>\s*0\s*<span[^>]*>\+ 1 waiting for approval", squeeze(shown))
    assert "included in a purge" not in html.split('id="activity"')[1]


def test_each_purge_states_whether_it_has_deleted_the_messages_or_will(mona: User, sign_in: SignIn) -> None:
    person, channel, ids = make_chat_user(), make_channel(), old_ids(20)
    write(channel, ids, author=person.pk)
    purge_now(mona, choose(channel.pk, before_id=ids[10]))
    waiting = preview(mona, choose(channel.pk, everything=True))
    client = sign_in(mona)
    line = rf'class="title" href="/purges/{waiting.pk}/".*?</li>'

    def lines() -> list[str]:
        pages = (page_of(client, person.pk), client.get(f"/users/{person.pk}/panel/").content.decode())
        return [found for page in pages for found in re.findall(line, page, re.DOTALL)]

    PurgeApproval.objects.create(
        purge=waiting, requested_by=mona, reason="raid", manifest_hash=waiting.manifest_hash or b""
    )
    assert ["To be deleted once the purge is approved" in shown for shown in lines()] == [True, True]
    waiting.approvals.all().delete()
    confirm(mona, waiting)
    assert [">To be deleted<" in shown for shown in lines()] == [True, True]
    # Behind an import it waits before it deletes anything, as its own page says.
    Purge.objects.filter(pk=waiting.pk).update(state=PurgeState.WAITING)
    assert [">To be deleted<" in shown for shown in lines()] == [True, True]
    Purge.objects.filter(pk=waiting.pk).update(state=PurgeState.QUEUED)
    assert "messages included in 2 purges (not finished)" in activity_of(client, person.pk)
    run_to_end(waiting)
    assert [">Deleted<" in shown for shown in lines()] == [True, True]
    assert "(not finished)" not in activity_of(client, person.pk)
    assert page_of(client, person.pk).count(">Deleted<") == 2


def activity_of(client: Client, user_id: int) -> str:
    return " ".join(page_of(client, user_id).split('id="activity"')[1].split('id="purges"')[0].split())


def test_messages_of_several_purges_are_not_summed_up(mona: User, sign_in: SignIn) -> None:
    person, channel = make_chat_user(), make_channel()
    write(channel, old_ids(4), author=person.pk)
    client = sign_in(mona)
    purge = purge_now(mona, choose(channel.pk, author_ids=[person.pk]))
    request_undo(purge.pk, moderator=mona, part=UndoPart(), reason="Appeal accepted")
    run_to_end(purge)
    restored = page_of(client, person.pk).split('id="activity"')[1].split('id="purges"')[0]
    assert "4 messages included in a purge (restored)" in " ".join(restored.split())
    purge_now(mona, choose(channel.pk, author_ids=[person.pk]))
    twice = page_of(client, person.pk).split('id="activity"')[1].split('id="purges"')[0]
    assert "messages included in 2 purges" in twice
    assert "8 messages" not in twice
    assert "(restored)" not in twice


def test_a_purge_of_nothing_but_the_user_s_messages_names_their_number_once(mona: User, sign_in: SignIn) -> None:
    person, channel = make_chat_user(shown=f"Zoë {secrets.token_hex(4)}"), make_channel()
    write(channel, old_ids(3), author=person.pk)
    purge_now(mona, choose(channel.pk, author_ids=[person.pk]))
    purges = page_of(sign_in(mona), person.pk).split('id="purges"')[1]
    assert f"3 messages by {person} in #room" in purges
    assert purges.count("3 messages") == 1


def test_an_emptied_channel_is_not_listed_as_active(mona: User, sign_in: SignIn) -> None:
    person, emptied, other = make_chat_user(), make_channel(), make_channel()
    for channel in (emptied, other):
        write(channel, old_ids(20), author=person.pk)
    purge_now(mona, choose(emptied.pk, author_ids=[person.pk]))
    purge_now(mona, choose(other.pk, message_ids=old_ids(20)[:3]))
    client = sign_in(mona)
    html = page_of(client, person.pk)
    for shown in (html, client.get(f"/users/{person.pk}/panel/").content.decode()):
        assert "Active channels</dt><dd>1</dd>" in squeeze(shown)
    lines = html.split('id="activity"')[1].split("<li>")
    (there,) = (line for line in lines if f"/channels/{emptied.pk}/" in line)
    (here,) = (line for line in lines if f"/channels/{other.pk}/" in line)
    assert "no messages left" in there
    assert "20 messages included in a purge" in there
    assert 'class="bar"' not in there
    assert 'class="bar"' in here
    assert "3 messages included in a purge" in here


def test_a_channel_in_which_only_others_have_messages_left_is_not_drawn_as_active(mona: User, sign_in: SignIn) -> None:
    person, channel, ids = make_chat_user(), make_channel(), old_ids(20)
    write(channel, ids[:10], author=person.pk)
    write(channel, ids[10:])
    purge_now(mona, choose(channel.pk, author_ids=[person.pk]))
    client = sign_in(mona)
    assert "no messages left" in client.get(f"/users/{person.pk}/panel/").content.decode()
    activity = page_of(client, person.pk).split('id="activity"')[1]
    assert "no messages left" in activity
    assert 'class="bar"' not in activity


def test_a_history_cut_by_the_deadline_shows_how_far_it_was_read(mona: User, sign_in: SignIn) -> None:
    person, channel = make_chat_user(), make_channel()
    today = bucket_at(now_ms())
    authors.ensure_author_buckets({(person.pk, today - n, channel.pk) for n in range(BUCKETS_PER_CHECK + 5)})
    assert "Searched back to" not in page_of(sign_in(mona), person.pk)
    with override_settings(PAGE_DEADLINE_SECONDS=1e-9):
        html = page_of(sign_in(mona), person.pk)
    last_read = last_day_of(today - BUCKETS_PER_CHECK + 1)
    assert f"Searched back to {format_short_day(last_read)}" in " ".join(html.split())


def test_a_hostile_name_breaks_nothing(mona: User, sign_in: SignIn) -> None:
    person = make_chat_user(name="<b>\u202egnp", shown="<script>alert(1)</script>\u202e")
    authors.ensure_author_bucket(person.pk, make_channel().pk, bucket_at(now_ms()))
    html = page_of(sign_in(mona), person.pk)
    check_harmless(html)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[RLO]" in html


def test_a_timeline_links_to_authors_for_users_with_permission(mona: User, otto: User, sign_in: SignIn) -> None:
    person, channel, ids = make_chat_user(), make_channel(), old_ids(3)
    write(channel, ids, author=person.pk)
    path = f"/channels/{channel.pk}/"
    assert f'href="/users/{person.pk}/"' in sign_in(mona).get(path).content.decode()
    assert "/users/" not in sign_in(otto).get(path).content.decode()
    assert sign_in(otto).get(f"/users/{person.pk}/").status_code == 403


def test_results_show_when_a_user_was_active_by_days(mona: User, sign_in: SignIn) -> None:
    person, channel, (message_id,) = make_chat_user(), make_channel(), old_ids(1, buckets_ago=3)
    write(channel, [message_id], author=person.pk)
    html = squeeze(sign_in(mona).get("/find/", {"q": str(person.pk)}).content.decode())
    bucket = bucket_of(message_id)
    days = format_days(bucket_days(bucket)[0], last_day_of(bucket))
    assert re.search(rf'data-label="Last posted during"> ?<span class="nowrap">{days}</span> ?</td>', html)


def test_results_show_no_days_before_the_account(mona: User, sign_in: SignIn) -> None:
    channel, (message_id,) = make_channel(), old_ids(1, buckets_ago=3)
    first, last = bucket_days(bucket_of(message_id))[0], last_day_of(bucket_of(message_id))
    made_on = last - dt.timedelta(days=1)
    made_ms = unix_ms(dt.datetime.combine(made_on, dt.time(12), dt.UTC))
    person = ChatUser.objects.create(pk=make_snowflake(made_ms) | secrets.randbits(22), name="new-here")
    write(channel, [message_id], author=person.pk)
    html = squeeze(sign_in(mona).get("/find/", {"q": str(person.pk)}).content.decode())
    assert first < made_on
    days = format_days(made_on, last)
    assert re.search(rf'data-label="Last posted during"> ?<span class="nowrap">{days}</span> ?</td>', html)


def test_the_search_leads_to_the_user(mona: User, sign_in: SignIn) -> None:
    person = make_chat_user()
    assert f'href="/users/{person.pk}/"' in sign_in(mona).get("/find/", {"q": str(person.pk)}).content.decode()


def test_results_lead_those_who_may_delete_to_a_purge_in_all_channels(mona: User, sign_in: SignIn) -> None:
    person, channel = make_chat_user(), make_channel()
    link, found = f'href="/delete/?author={person.pk}"', {"q": str(person.pk)}
    assert link not in sign_in(mona).get("/find/", found).content.decode()
    write(channel, old_ids(1), author=person.pk)
    assert link in sign_in(mona).get("/find/", found).content.decode()
    assert link not in sign_in(make_user("aron", group="auditors")).get("/find/", found).content.decode()
