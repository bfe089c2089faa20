"""The page of the audit log: filters, pages by key, an entry in words, exports."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import secrets
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.text import capfirst

from chatstore.domain.milliseconds import MINUTE_MS
from chatstore.domain.roles import Role
from chatstore.domain.snowflakes import make_snowflake
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, Purge
from moderation.operations.access import audit_monitoring
from moderation.operations.access.audit import record_action
from moderation.operations.access.audit_chain import link_entries
from moderation.operations.holds import HoldRequest, place_hold
from moderation.operations.lookup.audit_log import ENTRIES_PER_PAGE
from moderation.operations.selection.summary import selection_summary
from moderation.presentation.audit import all_facts, facts_in_line, facts_in_short
from tests.conftest import give, make_user
from tests.moderation.channels import (
    VICTOR,
    choose,
    everything,
    make_channel,
    old_ids,
    preview,
    purge_now,
    write,
)
from tests.plans import explain

SignIn = Callable[[User], Client]


def page(client: Client, query: str = "") -> str:
    response = client.get(f"/audit/?{query}")
    assert response.status_code == 200, response.content
    return response.content.decode()


def listed(client: Client, query: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'class="audit-action" href="/audit/(\d+)/"', page(client, query))]


@pytest.fixture
def client(ada: User, sign_in: SignIn) -> Client:
    return sign_in(ada)


@pytest.fixture
def channel() -> Channel:
    """A channel with a guild of its own."""
    return make_channel(guild=f"Guild {secrets.token_hex(4)}")


@pytest.fixture
def held(channel: Channel, lena: User) -> AuditEntry:
    """Lena has placed a hold on a user's messages in the channel."""
    user = ChatUser.objects.create(pk=secrets.randbits(60), name="=victor<b>")
    requested = HoldRequest(str(user.pk), str(channel.pk), "")
    hold = place_hold(requested, reason="<i>police</i> case 71", actor=lena)
    return AuditEntry.objects.get(details__hold=str(hold.pk), action="hold_placed")


def test_an_entry_is_listed_in_words_with_links(client: Client, channel: Channel, held: AuditEntry, lena: User) -> None:
    shown = page(client, f"channel={channel.pk}")
    assert "Hold placed" in shown
    assert lena.get_username() in shown
    assert "&lt;i&gt;police&lt;/i&gt; case 71" in shown
    assert f'href="/channels/{channel.pk}/"' in shown
    assert f"({channel.guild})" in shown
    assert f'href="/users/{held.chat_user_id}/"' in shown
    assert "=victor&lt;b&gt;" in shown


def test_each_filter_finds_the_entry_and_no_others(
    client: Client, channel: Channel, held: AuditEntry, lena: User
) -> None:
    record_action("hold_lifted", actor=None)
    day = f"{held.at:%Y-%m-%d}"
    for query in (
        f"person={lena.get_username()}",
        f"channel={channel.pk}",
        f"server={quote(str(channel.guild))}",
        f"server={channel.guild_id}",
        f"user={held.chat_user_id}",
        f"user=https://chat.example/users/{held.chat_user_id}/",
        f"channel=/channels/{channel.pk}/%23end",
        f"channel=/channels/{channel.pk}/7/",
        f"person={lena.get_username()}&action=hold_placed&since={day}&until={day}",
    ):
        assert listed(client, query) == [held.pk], query
    assert held.pk in listed(client, "action=hold_placed")
    assert not listed(client, f"channel={channel.pk}&action=hold_lifted")
    assert not listed(client, f"channel={channel.pk}&until=2026-01-01")
    assert "No entries match these filters" in page(client, f"channel={channel.pk}&action=hold_lifted")


def test_a_channel_and_a_user_are_found_by_their_names(client: Client, channel: Channel, held: AuditEntry) -> None:
    name = f"pier-{secrets.token_hex(6)}"
    Channel.objects.filter(pk=channel.pk).update(name=name)
    assert held.chat_user_id is not None
    ChatUser.objects.filter(pk=held.chat_user_id).update(display_name=f"Victor, {name}")
    shown = page(client, f"channel=%23{name}&user=Victor, {name}")
    assert [int(pk) for pk in re.findall(r'class="audit-action" href="/audit/(\d+)/"', shown)] == [held.pk]
    picks = [json.loads(unescape(found)) for found in re.findall(r'data-picks="([^"]*)"', shown)]
    assert [pick[0]["value"] for pick in picks] == [str(channel.pk), str(held.chat_user_id)]
    (row,) = csv.DictReader(io.StringIO(client.get(f"/audit/export.csv?channel={name}").getvalue().decode()))
    assert row["id"] == str(held.pk)


def test_a_name_that_several_have_is_chosen_by_a_button_and_the_rest_is_kept(client: Client, held: AuditEntry) -> None:
    name, created = f"Victor {secrets.token_hex(4)}", make_snowflake(1_710_115_200_000) | secrets.randbits(20) << 1
    ids = (created, created + 1, created + 5 * MINUTE_MS * 2**22)
    twins = [ChatUser.objects.create(pk=pk, name=name, display_name=name) for pk in ids]
    refused = client.get("/audit/", {"user": name, "action": "hold_placed"})
    assert refused.status_code == 400
    shown = refused.content.decode()
    assert "Which one do you mean?" in shown
    assert "account created 11\u00a0Mar\u00a02024,\u00a000:05" in shown
    chosen = re.findall(r'class="button candidate" name="user" value="(\d+)"', shown)
    assert sorted(map(int, chosen)) == [user.pk for user in twins]
    # Two of the same minute are told apart by their IDs.
    assert [f"ID {user.pk}" in shown for user in twins] == [True, True, False]
    assert '<option value="hold_placed" selected>' in shown
    # The button is after the field, so its value counts.
    both = f"user={quote(name)}&user={held.chat_user_id}"
    assert listed(client, both) == [held.pk]


def test_the_suggestions_are_for_those_who_read_the_log_and_of_channels_whose_entries_they_see(
    sign_in: SignIn, mona: User
) -> None:
    name = f"pier-{secrets.token_hex(6)}"
    here, there = (make_channel(guild="Harbour", name=name) for _ in range(2))
    gina = make_user("gina", group=None)
    give(gina, Role.AUDITOR, guild_id=here.guild_id)
    give(gina, Role.MODERATOR, guild_id=there.guild_id)
    found = sign_in(gina).get("/audit/suggestions/", {"kind": "channels", "q": name}).json()["picks"]
    assert [pick["value"] for pick in found] == [str(here.pk)]
    assert sign_in(mona).get("/audit/suggestions/", {"q": "victor"}).status_code == 403


def test_a_purge_is_named_by_its_summary_and_found_by_its_link(client: Client, mona: User, sign_in: SignIn) -> None:
    channel = make_channel()
    write(channel, old_ids(20))
    purge = purge_now(mona, everything(channel))
    shown = page(client, f"purge=https://chat.example/purges/{purge.pk}/")
    assert f"Purge {purge.pk}" not in shown
    title = f"20 messages: {selection_summary(purge)}"
    assert shown.count(f'title="{title}') == 4
    assert f'<option value="{purge.pk}">{title}' in page(client)
    gina = make_user("gina", group=None)
    give(gina, Role.AUDITOR, channel_id=make_channel().pk)
    assert str(purge.pk) not in page(sign_in(gina))


def test_the_filter_by_a_purge_shows_its_summary_and_can_be_removed(
    client: Client, mona: User, sign_in: SignIn
) -> None:
    channel = make_channel()
    write(channel, old_ids(3))
    purge = purge_now(mona, everything(channel))
    shown = page(client, f"action=purge_confirmed&purge={purge.pk}")
    summary = capfirst(selection_summary(purge))
    assert f"<bdi>{summary}</bdi>" in shown
    assert f'<input type="hidden" name="purge" value="{purge.pk}">' in shown
    assert 'id="purge"' not in shown
    assert f'href="/audit/?action=purge_confirmed"\n                  aria-label="Remove {summary}"' in shown
    # Without the right to see the purge, the field has the ID that was entered, as for one that does not exist.
    gina = make_user("gina", group=None)
    give(gina, Role.AUDITOR, channel_id=make_channel().pk)
    for purge_id in (purge.pk, purge.pk + 1):
        shown = page(sign_in(gina), f"purge={purge_id}")
        assert re.search(rf'id="purge"\s+name="purge"\s+value="{purge_id}"', shown)
        assert summary not in shown


def test_entries_of_a_purge_of_one_channel_show_the_channel_with_its_server(
    client: Client, channel: Channel, mona: User
) -> None:
    other = make_channel(guild=channel.guild)
    write(channel, old_ids(3))
    purge = purge_now(mona, everything(channel))
    preview(mona, Selection(channel_ids=(channel.pk, other.pk), where=Author((VICTOR,))))
    shown = page(client, f"server={channel.guild_id}")
    places = re.findall(r'<span class="audit-where[^>]*>(.*?)</span>\n', shown, re.DOTALL)
    link = f'<a href="/channels/{channel.pk}/"><bdi>{channel.full_name}</bdi></a>'
    # Newest first: the draft of both channels, and what the purge of one recorded.
    assert [place.strip() for place in places] == [f"<bdi>{channel.guild}</bdi>", link, link, link, link]
    for entry_id in listed(client, f"purge={purge.pk}"):
        assert link in client.get(f"/audit/{entry_id}/").content.decode()


def test_a_user_whom_the_title_of_a_purge_names_is_not_named_again(client: Client, mona: User) -> None:
    channel, author = (
        make_channel(),
        ChatUser.objects.create(pk=secrets.randbits(60), name=f"zoe-{secrets.token_hex(4)}"),
    )
    write(channel, old_ids(3), author=author.pk)
    purge = purge_now(mona, choose(channel.pk, author_ids=(author.pk,)))
    shown = page(client, f"purge={purge.pk}")
    assert f"messages by {author.name}" in shown
    assert f'href="/users/{author.pk}/"' not in shown


def test_a_purge_and_an_entry_about_one_of_two_users_of_a_name_have_the_handle(client: Client, mona: User) -> None:
    channel, name = make_channel(), f"Victor {secrets.token_hex(4)}"
    author, _other = (
        ChatUser.objects.create(pk=secrets.randbits(60), name=handle, display_name=name)
        for handle in ("victor.deals", "victor")
    )
    write(channel, old_ids(3), author=author.pk)
    purge = purge_now(mona, choose(channel.pk, author_ids=(author.pk,)))
    shown = page(client, f"purge={purge.pk}")
    assert f"messages by {name} (@victor.deals) in #" in shown
    assert f'href="/users/{author.pk}/"' not in shown
    assert f"messages by {name} (@victor.deals) in #" in client.get(f"/purges/{purge.pk}/").content.decode()
    record_action("note_added", actor=mona, chat_user_id=author.pk)
    assert f"<bdi>{name} (@victor.deals)</bdi>" in page(client, f"user={author.pk}&action=note_added")


def test_resolutions_of_reports_and_states_are_in_words() -> None:
    assert facts_in_short({"resolution": "removed", "was": "done_with_failures"}) == [
        ("State before", "done, not all deleted"),
        ("Resolution", "message deleted"),
    ]
    assert all_facts({"resolution": "nothing"}) == [("Resolution", "no action")]


def test_a_resolved_report_is_listed_with_its_outcome(client: Client, mona: User) -> None:
    user = ChatUser.objects.create(pk=secrets.randbits(60), name="victor")
    record_action(
        "report_resolved", actor=mona, chat_user_id=user.pk, details={"resolution": "kept", "reason": "Harmless"}
    )
    html = client.get(f"/audit/?by={mona.username}").content.decode()
    line = html[html.index('class="audit-line"') :].partition("</li>")[0]
    assert re.search(r'Report resolved</a>\s*<span class="audit-outcome">message kept</span>', line)
    assert re.search(r'<time [^>]*title="[^"]*\d\d:\d\d:\d\d UTC', line)
    head = re.findall(
        r"<span[^>]*>([^<]*)</span>", html[html.index("audit-head") : html.index('class="list audit-list')]
    )
    assert head == ["When", "Who", "Action", "What", "Where"]


def test_a_line_without_a_purge_or_a_user_names_what_it_is_about(client: Client) -> None:
    account = f"nora-{secrets.token_hex(4)}"
    record_action("role_given", actor=None, details={"role": "moderator", "account": account, "grant": "7"})
    assert f"<bdi>Moderator · {account}</bdi>" in page(client, "action=role_given")
    assert facts_in_line({"address": "198.51.100.7"}) == ""


def test_the_entries_of_a_purge_and_of_a_message_in_it_are_one_click_away(client: Client, mona: User) -> None:
    channel = make_channel()
    ids = old_ids(20)
    write(channel, ids)
    purge = purge_now(mona, everything(channel))
    other: Purge = preview(mona, choose(channel.pk, message_ids=(ids[0],)))
    actions = ["purge_finished", "channel_purged", "purge_confirmed", "purge_drafted"]
    of_purge = listed(client, f"purge={purge.pk}")
    assert sorted(AuditEntry.objects.filter(pk__in=of_purge).values_list("action", flat=True)) == sorted(actions)
    message_page = client.get(f"/channels/{channel.pk}/{ids[3]}/").content.decode()
    link = f"/audit/?channel={channel.pk}&amp;message={ids[3]}"
    assert link in message_page
    of_message = listed(client, f"channel={channel.pk}&message={ids[3]}")
    # The page of the message has shown the saved copy.
    assert AuditEntry.objects.get(pk=of_message[0]).action == "copy_read"
    assert of_message[1:] == of_purge
    assert not set(of_message) & set(listed(client, f"purge={other.pk}"))


def test_a_name_leads_to_what_the_person_did_this_month(client: Client, held: AuditEntry, lena: User) -> None:
    shown = page(client, f"person={lena.get_username()}")
    month = f"{held.at:%Y-%m}-01"
    link = f"/audit/?person={lena.get_username()}&amp;since={month}"
    assert link in shown
    query = link.partition("?")[2].replace("&amp;", "&")
    assert listed(client, query) == [held.pk]
    # The field has the day as pages print it.
    assert f'name="since" value="{held.at:1 %b %Y}"' in " ".join(page(client, query).split())


def test_people_of_the_same_name_differ_by_their_user_names(client: Client, held: AuditEntry, lena: User) -> None:
    lena.first_name = "Mona"
    lena.save()
    assert f'title="What {lena.get_username()} did this month"' in page(client, f"person={lena.get_username()}")
    entry = client.get(f"/audit/{held.pk}/").content.decode()
    assert re.search(rf"<bdi>Mona[^<]*</bdi></a>\s*<bdi>{lena.get_username()}</bdi>", entry)


def test_lines_of_people_of_the_same_name_have_their_user_names(client: Client, lena: User, mona: User) -> None:
    name = f"Mona {secrets.token_hex(4)}"
    other = make_user("other", group=None)
    User.objects.filter(pk=lena.pk).update(first_name=name, last_name="")
    for actor in (lena, mona, other):
        record_action("hold_placed", actor=actor)

    def is_user_name_shown(account: User) -> bool:
        (line,) = page(client, f"person={account.username}").split('<span class="audit-who clip">')[1:]
        return f"</a>\n    <bdi>{account.username}</bdi>" in line

    assert not is_user_name_shown(lena)
    # One has the name in two parts, the other in one; only one of them is on the page.
    User.objects.filter(pk=mona.pk).update(first_name="Mona", last_name=name.removeprefix("Mona "))
    assert is_user_name_shown(lena)
    assert is_user_name_shown(mona)
    assert not is_user_name_shown(other)
    User.objects.filter(pk=mona.pk).update(first_name="", last_name="", username=name)
    assert is_user_name_shown(lena)


def test_older_entries_follow_by_key(client: Client, lena: User) -> None:
    # IDs of one millisecond are not in the order in which they were made.
    made = sorted(record_action("hold_placed", actor=lena).pk for _ in range(ENTRIES_PER_PAGE + 3))
    query = f"person={lena.get_username()}"
    first = page(client, query)
    assert listed(client, query) == made[: -ENTRIES_PER_PAGE - 1 : -1]
    older = re.search(r'href="\?([^"]*before=\d+[^"]*)"', first)
    assert older
    assert listed(client, older[1].replace("&amp;", "&")) == made[2::-1]
    for one in explain(lambda: client.get(f"/audit/?{query}")):
        assert "count(*) as" not in one.sql.lower().partition("from")[0] or "unlinkedentry" in one.sql
        assert "OFFSET" not in one.sql


def test_an_entry_shows_its_place_in_the_chain(client: Client, held: AuditEntry) -> None:
    url = f"/audit/{held.pk}/"
    assert "Not linked yet" in client.get(url).content.decode()
    while link_entries():
        pass
    shown = client.get(url).content.decode()
    assert "Not linked yet" not in shown
    assert "Position in the hash chain" in shown
    assert f'data-copy-id="{held.pk}"' in shown
    assert re.search(r'data-copy-id="[0-9a-f]{64}"', shown)


def test_each_button_that_copies_names_what(client: Client, held: AuditEntry) -> None:
    shown = client.get(f"/audit/{held.pk}/").content.decode()
    names = re.findall(r'data-copy-id="[^"]*">\s*Copy<span class="sr">: ([^<]+)</span>', shown)
    assert names[0] == "Entry ID"
    assert len(set(names)) == len(names) == shown.count("data-copy-id=") > 1


def test_hashes_are_monospaced(client: Client, lena: User) -> None:
    recorded = secrets.token_hex(32)
    record_action("evidence_exported", actor=lena, details={"sha256": recorded, "reason": "police"})
    (entry,) = AuditEntry.objects.filter(details__sha256=recorded)
    shown = client.get(f"/audit/{entry.pk}/").content.decode()
    assert f'<code class="audit-value">{recorded}</code>' in shown
    assert "<bdi>police</bdi>" in shown


def test_entries_that_are_linked_too_late_are_a_warning(
    client: Client, held: AuditEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning, url = "Check that workers and the scheduler are running.", f"/audit/{held.pk}/"
    monkeypatch.setattr(audit_monitoring, "UNLINKED_AFTER", dt.timedelta(days=3_650))
    assert warning not in page(client)
    assert "New entries are linked within seconds" in client.get(url).content.decode()
    monkeypatch.setattr(audit_monitoring, "UNLINKED_AFTER", dt.timedelta(0))
    assert warning in page(client)
    assert "Not linked yet. Entries are usually" in client.get(url).content.decode()
    while link_entries():
        pass
    assert warning not in page(client)


def test_the_exports_have_the_same_entries(client: Client, channel: Channel, held: AuditEntry) -> None:
    while link_entries():
        pass
    text = client.get(f"/audit/export.csv?channel={channel.pk}").getvalue().decode()
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["id"], row["action"], row["user"]) == (str(held.pk), "hold_placed", "'=victor<b>")
    assert json.loads(row["details"]) == held.details
    assert int(row["position"]) > 0
    (entry,) = json.loads(client.get(f"/audit/export.json?channel={channel.pk}").getvalue())
    assert (entry["id"], entry["user"], entry["details"]) == (str(held.pk), "=victor<b>", held.details)


@pytest.mark.parametrize(
    "query",
    [
        "person=nobody-of-this-name",
        "action=nothing",
        "channel=no-such-channel-7",
        "channel=%00",
        "user=1e3",
        "purge=-",
        "since=soon",
        "until=99999-01-01",
        "since=0001-01-01",
        "message=7",
        "before=x",
        "server=%00",
    ],
)
def test_invalid_filters_are_explained(query: str, client: Client) -> None:
    for url in ("/audit/", "/audit/export.csv", "/audit/export.json"):
        if "before" in query and "export" in url:
            continue
        assert client.get(f"{url}?{query}").status_code == 400


def test_an_unknown_entry_is_not_found(client: Client) -> None:
    assert client.get("/audit/7/").status_code == 404


def test_dates_are_typed_as_pages_print_them_and_others_stay_in_their_field(
    client: Client, channel: Channel, held: AuditEntry
) -> None:
    made_on = timezone.localtime(held.at)
    day = f"{made_on.day} {made_on:%B %Y}"
    assert listed(client, f"channel={channel.pk}&since={day}&until={day}") == [held.pk]
    # Not "today": midnight may have passed since.
    assert listed(client, f"channel={channel.pk}&since=yesterday&until=today") == [held.pk]
    assert not listed(client, f"channel={channel.pk}&until=2+days+ago")
    response = client.get("/audit/?since=31+June")
    assert response.status_code == 400
    assert 'value="31 June"' in response.content.decode()


def test_a_sign_in_that_failed_was_by_a_visitor_and_what_a_job_did_is_automatic(client: Client) -> None:
    for action, actor in (("sign_in_failed", "not signed in"), ("role_expired", "automatic")):
        entry = AuditEntry.objects.create(action=action, details={"account": "no-such-account"})
        found = client.get(f"/audit/{entry.pk}/").content.decode()
        assert f'<span class="quiet">{actor}</span>' in found
