"""The page of a raid selects the accounts that take part, shows who is kept, and leads to the preview in one step."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatstore.domain.milliseconds import MINUTE_MS, time_at
from chatstore.domain.snowflakes import ms_of, time_of
from chatstore.gateway import Member, save_members
from chatstore.models import ChatUser, Finding
from chatstore.models.users import User
from chatstore.operations.coordination.clock import postgres_now
from chatstore.store.activity import busy_channels
from moderation.domain.filters import All, Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import Purge, PurgeApproval
from moderation.operations.raids import reading
from moderation.operations.raids.detection import RAID, check_raids
from moderation.operations.raids.review import review_raid, select_raid
from moderation.operations.undo.requests import UndoPart, request_undo
from moderation.presentation.excerpts import unformatted
from moderation.presentation.formats import format_clock, format_deadline
from moderation.views.raid_page import MAX_SIMILAR, MAX_VARIANTS
from tests.chatstore.channels import fresh_id
from tests.moderation.channels import make_channel, now_ms, preview, purge_now, recent_ids, run_to_end, write
from tests.moderation.raids import Raid, forget_raids, write_raid
from tests.waiting import wait_until

SignIn = Callable[[User], Client]


@pytest.fixture(scope="module")
def raid(_open_databases: None) -> Iterator[Raid]:
    written = write_raid()
    wait_until(lambda: written.channel.pk in busy_channels(20))
    check_raids(postgres_now())
    yield written
    forget_raids()


def checked(html: str) -> set[int]:
    return {int(found) for found in re.findall(r'name="account" value="(\d+)"[^>]* checked', html)}


def included(html: str) -> dict[int, int]:
    found = re.findall(r'name="account" value="(\d+)"[^>]* data-included="(\d+)"', html)
    return {int(author_id): int(number) for author_id, number in found}


def test_those_who_take_part_are_selected_and_the_others_listed(raid: Raid, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    assert "Possible raid in #general (Tidewalkers)" in html[html.index("<h1>") : html.index("</h1>")]
    assert checked(html) == raid.raiders
    assert {int(found) for found in re.findall(r'name="account" value="(\d+)"', html)} == raid.raiders | raid.members
    assert "60 messages by 12 accounts that seem to take part" in " ".join(html.split())
    # The page begins with the minute of the raid's first message.
    assert re.search(r"\d+ messages by 6 other accounts", " ".join(html.split()))
    # What all have in common is above the list, once.
    of_all, rows = html.partition('<ul class="account-lines">')[::2]
    assert of_all.count('<span class="tag plain">new account</span>') == 1
    assert "new account</span>" not in rows
    seen = re.compile(r'<span class="tag plain">first seen (?:just now|\d+ \w+ ago)</span>')
    assert len(seen.findall(rows)) == (0 if seen.search(of_all) else 12)


def test_without_time_to_find_first_messages_accounts_have_the_day_before_which_they_were_not_seen(
    raid: Raid, mona: User, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FIRST_SEEN_SECONDS", -60)
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    seen = re.findall(r'<span class="tag plain">(first seen[^<]*|not seen[^<]*|may be new[^<]*)</span>', html)
    assert seen
    for text in seen:
        assert re.fullmatch(r"first seen today|not seen before \d+ \w+( \d{4})?", text), text


def test_messages_that_are_alike_are_grouped_with_counts_and_samples(raid: Raid, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    section = html[html.index('aria-labelledby="similar"') :].partition("</section>")[0]
    shown = [
        (int(messages), int(accounts), re.findall(r'class="similar-text[^>]*>([^<]+)</p>', group))
        for group in section.split('<li class="similar">')[1:]
        for messages, accounts in re.findall(r"<b>(\d+) messages?</b>.*?by (\d+) accounts?\b", group, re.DOTALL)
    ]
    similar = review_raid(mona, raid.channel.pk, start_ms=None, end_ms=None).assessment.similar
    assert len(similar) >= 2
    assert [(count, accounts) for count, accounts, _ in shown] == [
        (group.count, len(group.author_ids)) for group in similar[:MAX_SIMILAR]
    ]
    # The raid's words only; its messages differ in little.
    for (_, _, samples), group in zip(shown, similar, strict=False):
        assert [unescape(text).strip() for text in samples] == [
            unformatted(text) for text in group.texts[:MAX_VARIANTS]
        ]
    assert max(len(samples) for _, _, samples in shown) > 1


def test_each_bar_of_the_chart_says_its_time_and_numbers_and_a_table_has_the_same(
    raid: Raid, mona: User, sign_in: SignIn
) -> None:
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    chart = html[html.index('class="raid-chart"') :].partition("</figure>")[0]
    titles = re.findall(r"<title>(.+? to .+?): (\d+) messages? \((.+?)\)</title>", chart)
    assert len(titles) == chart.count("<title>") >= 2
    assert re.findall(r'tabindex="0" aria-label="([^"]+)"', chart) == re.findall(r"<title>([^<]+)</title>", chart)[-1:]
    rows = re.findall(r"<tr>\s*<td>\s*([^<]+?)\s*</td>" + r'\s*<td class="num">(\d+)</td>' * 3, chart)
    parts = [(time, total, *numbers_of(text)) for time, total, text in titles]
    assert [(time, total, int(raiders), int(others)) for time, total, raiders, others in rows] == parts
    assert sum(row[2] for row in parts) == 60


def numbers_of(parts: str) -> tuple[int, int]:
    """Return the numbers of a title's parts: "10 seem to take part, 2 others"; a part without messages is left out."""
    found = {label: int(count) for count, label in re.findall(r"(\d+) (seem to take part|others)", parts)}
    return found.get("seem to take part", 0), found.get("others", 0)


def test_accounts_that_had_just_joined_are_marked(raid: Raid, mona: User, sign_in: SignIn) -> None:
    guild_id = raid.channel.guild_id
    assert guild_id is not None
    joined = time_of(raid.raid_ids[0]) - dt.timedelta(minutes=4)
    save_members(guild_id, [Member(user_id, joined) for user_id in raid.raiders])
    save_members(guild_id, [Member(user_id, joined - dt.timedelta(days=400)) for user_id in raid.members])
    client = sign_in(mona)
    with CaptureQueriesContext(connection) as captured:
        html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    of_all, rows = html.partition('<ul class="account-lines">')[::2]
    assert of_all.count('<span class="tag plain">posted 4 minutes after joining</span>') == 1
    assert "after joining</span>" not in rows
    assert len([query for query in captured if "chatstore_guildmember" in query["sql"]]) == 1


def test_the_sample_of_an_account_with_a_shared_text_is_such_a_text(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), recent_ids(8, minutes_ago=5)
    accounts = recent_ids(4, minutes_ago=90, apart_ms=60_000)
    for number, account in enumerate(accounts):
        write(channel, ids[number : number + 1], author=account, content="free coins at coins.example tonight")
        write(channel, ids[number + 4 : number + 5], author=account, content="gg")
    html = sign_in(mona).get(f"/raids/{channel.pk}/").content.decode()
    assert html.count("same text as 3 others") == 1
    assert len(re.findall(r'<bdi class="clip quiet small">free coins at', html)) == 4
    assert '<bdi class="clip quiet small">gg' not in html


def test_accounts_and_groups_name_whom_and_what_their_texts_mention(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(guild="Harbour"), recent_ids(4, minutes_ago=5)
    pier, name = make_channel(guild=channel.guild, name="pier"), f"wilma{fresh_id()}"
    wilma = ChatUser.objects.create(id=fresh_id(), name=name)
    accounts = recent_ids(4, minutes_ago=90, apart_ms=60_000)
    for account, message_id in zip(accounts, ids, strict=True):
        text = f"**free coins** for <@{wilma.pk}> in <#{pier.pk}>, really"
        write(channel, [message_id], author=account, content=text)
    html = sign_in(mona).get(f"/raids/{channel.pk}/").content.decode()
    shown = f"free coins for @{name} in #pier, really"
    counts = [len(re.findall(rf'class="{css} small"[^>]*>\s*{shown}', html)) for css in ("clip quiet", "similar-text")]
    assert counts == [4, 3]


def test_the_form_leads_to_a_preview_of_these_accounts_in_this_time(raid: Raid, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    start = re.search(r'<select id="start".*?value="(\d+)" selected', html, re.DOTALL)
    assert start is not None
    fields = {"account": [str(i) for i in raid.raiders], "start": start[1], "end": ""}
    response = client.post(f"/raids/{raid.channel.pk}/", fields)
    # A double click leads to the same one.
    assert client.post(f"/raids/{raid.channel.pk}/", fields)["Location"] == response["Location"]
    purge = Purge.objects.get(pk=int(response["Location"].strip("/").split("/")[-1]))
    selection = Selection.from_json(purge.selection)
    assert isinstance(selection.where, All)
    assert Author(tuple(sorted(raid.raiders))) in selection.where.parts
    assert selection.first_id <= raid.raid_ids[0]


def test_a_purge_of_the_raid_that_is_under_way_is_named(raid: Raid, mona: User, lena: User, sign_in: SignIn) -> None:
    selection = select_raid(raid.channel.pk, raid.raiders, start_ms=ms_of(raid.raid_ids[0]), end_ms=None)
    purge = preview(mona, selection)
    client, url = sign_in(lena), f"/raids/{raid.channel.pk}/"
    assert notices_of(client.get(url).content.decode()) == []
    approval = PurgeApproval.objects.create(
        purge=purge, requested_by=mona, reason="raid", manifest_hash=purge.manifest_hash
    )
    page = client.get(url).content.decode()
    assert "waiting for your approval" in page
    # Opening it is the main action, and a second preview is not. The accounts of the raid are no "users" here.
    assert re.findall(r'class="button primary"[^>]*?(?: href="([^"]*)")?>', page) == [f"/purges/{purge.pk}/"]
    assert f"{len(raid.raiders)} users" not in page
    assert included(page) == dict.fromkeys(raid.raiders, 5)
    (notice,) = re.findall(
        rf'<p class="page-notice critical">(?:(?!</p>).)*/raids/{raid.channel.pk}/.*?</p>',
        client.get("/preferences/").content.decode(),
        re.DOTALL,
    )
    assert re.search(rf'<a href="/raids/{raid.channel.pk}/"[^>]*>Review</a>', notice)
    # What was posted later, or was excluded, is not part of it.
    later = dict(selection.as_json(), **{"except": [str(raid.raid_ids[0])]})
    Purge.objects.filter(pk=purge.pk).update(created_at=time_of(raid.raid_ids[-12]), selection=later)
    page = client.get(url).content.decode()
    assert sum(included(page).values()) == len(raid.raid_ids) - 12 - 1
    approval.delete()
    page = client.get(url).content.decode()
    assert included(page) == {}
    assert notices_of(page) == []
    assert re.search(r'<button class="button primary"\s+data-submit', page)


def notices_of(html: str) -> list[str]:
    """Return the texts of the notices about purges of the raid."""
    found = re.findall(r'<div class="notice warning under-way">\s*<p>(.*?)</p>', html, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", text)).split()) for text in found]


def test_a_purge_of_the_raid_is_named_with_what_has_become_of_its_messages(
    raid: Raid, mona: User, lena: User, sign_in: SignIn
) -> None:
    selection = select_raid(raid.channel.pk, raid.raiders, start_ms=ms_of(raid.raid_ids[0]), end_ms=None)
    purge = preview(mona, selection)
    client, url = sign_in(lena), f"/raids/{raid.channel.pk}/"
    approval = PurgeApproval.objects.create(
        purge=purge, requested_by=mona, reason="raid", manifest_hash=purge.manifest_hash
    )
    until = format_deadline(approval.expires_at)
    with CaptureQueriesContext(connection) as captured:
        html = client.get(url).content.decode()
    # Together with its state, which is "waiting for approval". A phone has room for one line of each.
    assert notices_of(html) == ["Nothing deleted yet: 60 messages"]
    assert f", until {until}" in unescape(re.sub(r"<[^>]+>", "", html))
    # The time of the request is read in place of its existence, in one statement.
    assert len([query for query in captured if f'"purge_id" IN ({purge.pk})' in query["sql"]]) == 1
    shown = {
        PurgeState.QUEUED: ["To be deleted: 60 messages"],
        PurgeState.RUNNING: ["Being deleted: 60 messages"],
        PurgeState.WAITING: ["To be deleted: 60 messages"],
        PurgeState.PAUSED: ["Not all deleted yet, paused: 60 messages"],
        PurgeState.CANCELLING: ["Deletion is being cancelled: 60 messages"],
        PurgeState.CANCELLED: [],
        PurgeState.DONE: [],
        PurgeState.DONE_WITH_FAILURES: [],
        PurgeState.UNDONE: [],
    }
    approval.delete()
    assert notices_of(client.get(url).content.decode()) == []
    for state, notices in shown.items():
        Purge.objects.filter(pk=purge.pk).update(state=state)
        html = client.get(url).content.decode()
        assert notices_of(html) == notices, state
        # What a purge that ends leaves in the channel can be deleted by another.
        will_delete = bool(notices) and state != PurgeState.CANCELLING
        assert bool(included(html)) == will_delete, state
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.READY)


def test_of_a_purge_that_is_being_restored_in_part_only_that_part_is_counted(
    mona: User, lena: User, sign_in: SignIn
) -> None:
    raid = write_raid()
    purge = purge_now(mona, select_raid(raid.channel.pk, raid.raiders, start_ms=ms_of(raid.raid_ids[0]), end_ms=None))
    assert (purge.state, purge.manifest) == (PurgeState.DONE, 60)
    part = UndoPart(message_ids=tuple(raid.raid_ids[:7]))
    request_undo(purge.pk, moderator=mona, part=part, reason="Appeal accepted")
    html = sign_in(lena).get(f"/raids/{raid.channel.pk}/").content.decode()
    assert notices_of(html) == ["Deleted, now being restored: 7 messages"]
    # What a purge leaves in the channel, or restores there, can be deleted by another.
    assert included(html) == {}
    run_to_end(purge)


def test_those_whose_messages_are_kept_are_shown_with_handle_and_age_of_the_account(
    raid: Raid, mona: User, sign_in: SignIn
) -> None:
    client, url = sign_in(mona), f"/raids/{raid.channel.pk}/"
    html = client.get(url).content.decode()
    kept = html[html.index('aria-labelledby="kept"') :].partition("</section>")[0]
    heads = re.findall(r"<header.*?</header>", kept, re.DOTALL)
    assert heads
    for head in heads:
        assert re.search(r'<bdi>(\w+)</bdi></a>\n<bdi class="handle quiet">@\w+_sails(?: \(\.\.\.\d{4}\))?</bdi>', head)
        assert re.search(r'<span class="age quiet">account created [^<]+</span>', head)
    # A handle that is the name itself is not repeated.
    ChatUser.objects.filter(pk__in=raid.members).update(display_name="")
    html = client.get(url).content.decode()
    kept = html[html.index('aria-labelledby="kept"') :].partition("</section>")[0]
    assert kept.count('<span class="age quiet">') == len(heads)
    assert 'class="handle' not in kept
    for user in ChatUser.objects.filter(pk__in=raid.members):
        user.display_name = user.name.removesuffix("_sails").capitalize()
        user.save()


def test_the_notice_on_other_pages_names_the_purge_in_one_statement(
    raid: Raid, mona: User, lena: User, sign_in: SignIn
) -> None:
    client, reading = sign_in(lena), 'selection" ->'
    selection = select_raid(raid.channel.pk, raid.raiders, start_ms=ms_of(raid.raid_ids[0]), end_ms=None)
    purge = preview(mona, selection)
    assert "A purge by" not in client.get("/preferences/").content.decode()
    approval = PurgeApproval.objects.create(
        purge=purge, requested_by=mona, reason="raid", manifest_hash=purge.manifest_hash
    )
    with CaptureQueriesContext(connection) as captured:
        page = client.get("/preferences/").content.decode()
    name = f'<bdi class="staff-name">{mona.username}</bdi>'
    assert f'<a href="/purges/{purge.pk}/">A purge by {name} is waiting for your approval</a>' in page
    assert len([query for query in captured if reading in query["sql"]]) == 1
    assert f'<a href="/purges/{purge.pk}/">Your purge is waiting for approval</a>' in (
        sign_in(mona).get("/preferences/").content.decode()
    )
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.PAUSED)
    assert "</bdi> is paused</a>" in client.get("/preferences/").content.decode()
    # Drafted before the raid, it is no answer to it.
    Purge.objects.filter(pk=purge.pk).update(created_at=time_of(raid.raid_ids[0]) - dt.timedelta(hours=1))
    assert "A purge by" not in client.get("/preferences/").content.decode()
    Finding.objects.filter(kind=RAID).update(closed_at=postgres_now())
    with CaptureQueriesContext(connection) as captured:
        client.get("/preferences/")
    assert [query["sql"] for query in captured if reading in query["sql"]] == []
    Finding.objects.filter(kind=RAID).update(closed_at=None)
    approval.delete()
    Purge.objects.filter(pk=purge.pk).update(state=PurgeState.READY)


def test_a_time_without_messages_has_nothing_to_select(mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/raids/{make_channel().pk}/").content.decode()
    assert "No messages in this time range." in html
    # It would be an all-clear about nothing.
    assert "No account looks as if it took part" not in html
    assert "data-submit" not in html


def test_a_time_without_messages_links_the_newest_messages_and_for_administrators_the_raid_settings(
    mona: User, ada: User, sign_in: SignIn
) -> None:
    channel = make_channel(guild="Harbour")
    for account, may_set in ((mona, False), (ada, True)):
        html = sign_in(account).get(f"/raids/{channel.pk}/").content.decode()
        offered = html.split("No messages in this time range.")[1].split("</section>")[0]
        assert f'href="/channels/{channel.pk}/#end">Newest messages<' in offered
        assert (f'href="/guilds/{channel.guild_id}/raid-settings/"' in offered) == may_set


def test_the_way_back_to_the_whole_time_is_offered_only_where_less_is_shown(
    raid: Raid, mona: User, sign_in: SignIn
) -> None:
    client, minute = sign_in(mona), now_ms() // MINUTE_MS
    for channel, label in ((raid.channel, "Show the whole raid"), (make_channel(), "Show the last half hour")):
        url = f"/raids/{channel.pk}/"
        assert 'value="all"' not in client.get(url).content.decode()
        assert label in client.get(f"{url}?start={minute}").content.decode()


def test_another_time_keeps_what_was_selected(raid: Raid, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    html = client.get(f"/raids/{raid.channel.pk}/").content.decode()
    start = re.search(r'<select id="start".*?value="(\d+)"', html, re.DOTALL)
    listed = re.search(r'name="listed" value="([\d ]+)"', html)
    assert start is not None
    assert listed is not None
    one, *_ = raid.members
    fields = {"account": [str(one)], "listed": listed[1], "start": start[1], "end": "", "show": "1"}
    html = client.post(f"/raids/{raid.channel.pk}/", fields).content.decode()
    assert checked(html) == {one}
    assert "1 of the selected accounts has been here for over a year." in " ".join(html.split())


def test_a_time_without_an_account_keeps_its_choice_for_the_next_one(raid: Raid, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(mona), f"/raids/{raid.channel.pk}/"
    html = client.get(url).content.decode()
    spared, *_ = raid.raiders
    added, *_ = raid.members
    chosen = raid.raiders - {spared} | {added}
    minute = now_ms() // MINUTE_MS
    empty_time = {"start": str(minute - 40), "end": str(minute - 30), "show": "1"}
    fields = {"account": [str(account) for account in chosen], **hidden_fields(html), **empty_time}
    html = client.post(url, fields).content.decode()
    assert checked(html) == set()
    html = client.post(url, {**hidden_fields(html), **empty_time}).content.decode()
    html = client.post(url, {**hidden_fields(html), "show": "all"}).content.decode()
    assert checked(html) == chosen


def hidden_fields(html: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(listed|chosen_elsewhere|only)" value="([\d ]*)"', html))


@pytest.mark.parametrize("fields", [{}, {"account": "7", "start": "yesterday"}, {"account": "x", "start": "1"}])
def test_what_selects_nothing_is_refused(fields: dict[str, str], raid: Raid, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).post(f"/raids/{raid.channel.pk}/", fields)
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()


def test_every_page_of_those_who_can_clear_it_names_the_raid(
    raid: Raid, mona: User, otto: User, sign_in: SignIn
) -> None:
    link = f'href="/raids/{raid.channel.pk}/"'
    page = sign_in(mona).get("/purges/").content.decode()
    assert link in page
    assert re.search(r"Possible raid in #general \(Tidewalkers\)[^<]*</span><span>began <time", page)
    assert link not in sign_in(otto).get("/purges/").content.decode()
    # Operators see it among the findings, with a link to a page that they may open.
    html = sign_in(otto).get("/health/").content.decode()
    assert "Possible raid in #general (Tidewalkers)" in html
    assert f'href="/channels/{raid.channel.pk}/"' in html


def test_the_axis_of_the_chart_has_its_first_and_its_last_time(raid: Raid, mona: User, sign_in: SignIn) -> None:
    html = sign_in(mona).get(f"/raids/{raid.channel.pk}/").content.decode()
    axis = re.search(r'<p class="raid-axis[^"]*"><span>([^<]+)</span><span>([^<]+)</span></p>', html)
    # The start is listed by its time alone, which the closed list of a phone shows whole.
    start = re.search(r'<optgroup label="Detected start">\s*<option [^>]*selected>([^<]+)<', html)
    assert axis is not None
    assert start is not None
    assert start[1] == axis[1]
    assert axis[2] == "now"


def test_the_chart_ends_shortly_after_the_newest_message_of_the_raid(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), recent_ids(8, minutes_ago=20)
    for number, author in enumerate(recent_ids(4, minutes_ago=90, apart_ms=60_000)):
        write(channel, ids[number::4], author=author, content="free coins at coins.example tonight")
    client, url = sign_in(mona), f"/raids/{channel.pk}/"
    html = client.get(url).content.decode()
    axis = re.search(r'<p class="raid-axis[^"]*"><span>([^<]+)</span><span>([^<]+)</span></p>', html)
    assert axis is not None
    last_ms = ms_of(ids[-1])
    ends = [format_clock(time_at(last_ms + minutes * MINUTE_MS)) for minutes in range(1, 6)]
    assert axis[2] in ends or any(axis[2].endswith(f", {end}") for end in ends)
    # What is selected still has no end.
    moments = json.loads(unescape(re.findall(r'data-moments="([^"]+)"', html)[0]))
    assert moments[-1] == ["", f"{axis[2]}, until now"]
    assert re.search(r'<select id="end" name="end">\s*<option value="" selected>now<', html)
    # An end that was chosen is that of the chart.
    minute = now_ms() // MINUTE_MS
    html = client.get(f"{url}?start={minute - 30}&end={minute - 1}").content.decode()
    moments = json.loads(unescape(re.findall(r'data-moments="([^"]+)"', html)[0]))
    assert moments[-1][0] == str(minute - 1)


def test_the_chart_has_the_newest_message_of_each_account_that_is_selected(mona: User, sign_in: SignIn) -> None:
    channel, ids = make_channel(), recent_ids(8, minutes_ago=20)
    for number, author in enumerate(recent_ids(4, minutes_ago=90, apart_ms=60_000)):
        write(channel, ids[number::4], author=author, content="free coins at coins.example tonight")
    other, (late,) = recent_ids(1, minutes_ago=100)[0], recent_ids(1, minutes_ago=5)
    write(channel, [late], author=other, content="good night")
    client, url = sign_in(mona), f"/raids/{channel.pk}/"
    html = client.get(url).content.decode()
    assert 0 < last_minute(html) < ms_of(late) // MINUTE_MS
    fields = {**hidden_fields(html), "account": [str(other)], "show": "1"}
    html = client.post(url, fields).content.decode()
    assert checked(html) == {other}
    assert last_minute(html) >= ms_of(late) // MINUTE_MS
    # An end that was chosen is that of the chart.
    end = ms_of(ids[-1]) // MINUTE_MS + 2
    assert last_minute(client.post(url, {**fields, "end": str(end)}).content.decode()) == end - 1


def last_minute(html: str) -> int:
    """Return the start of the last bar of the chart."""
    return int(json.loads(unescape(re.findall(r'data-moments="([^"]+)"', html)[0]))[-2][0])
