"""The admin shows purges and audit entries as other pages do: states, summaries, actors, channels, dates."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from django.utils.text import capfirst

from chatstore.domain.controls import show_hidden
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.models import AuditEntry
from moderation.operations.access.audit import record_action
from moderation.operations.notes import add_note
from moderation.operations.selection.summary import selection_summary
from tests.chatstore.channels import fresh_id
from tests.moderation.limits import limit, make_guild_channel, preview_some, request
from tests.pages.conftest import PreviewedPurge
from tests.pages.reading import read_page
from tests.pages.test_failed_purges import purge_with_failures

SignIn = Callable[[User], Client]

AUDIT = "/admin/moderation/auditentry/"
PURGES = "/admin/moderation/purge/"


def statements_of(client: Client, url: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as found:
        assert client.get(url).status_code == 200
    return len(found)


def cells_of(html: str, name: str) -> list[str]:
    found = re.findall(rf'<td[^>]*class="[^"]*field-{name}\b[^"]*"[^>]*>(.*?)</td>', html, re.DOTALL)
    return [" ".join(cell.split()) for cell in found]


def test_a_purge_with_failures_is_labelled_as_on_its_own_page(ada: User, mona: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    url = f"{PURGES}?q={mona.username}"
    failed = purge_with_failures(mona, make_guild_channel())
    assert "done, 2 failed" in cells_of(read_page(client, url), "state_label")[0]
    assert "done, 2 failed" in read_page(client, f"{PURGES}{failed.pk}/change/")
    before = statements_of(client, url)
    purge_with_failures(mona, make_guild_channel())
    assert len(cells_of(read_page(client, url), "state_label")) == 2
    assert statements_of(client, url) == before


def test_a_purge_waits_for_the_approval_of_those_who_may_approve_it(ada: User, mona: User, sign_in: SignIn) -> None:
    channel = make_guild_channel()
    limit(channel, messages_without_approval=10)
    purge = preview_some(mona, 20, channel)
    request(mona, purge)
    for account, label in ((ada, "waiting for your approval"), (mona, "waiting for approval")):
        client = sign_in(account)
        assert label in cells_of(read_page(client, f"{PURGES}?q={mona.username}"), "state_label")[0]
        assert label in read_page(client, f"{PURGES}{purge.pk}/change/")


def test_an_automatic_action_names_its_actor_as_the_audit_log_does(ada: User, sign_in: SignIn) -> None:
    channel_id = fresh_id()
    entries = [
        record_action(action, actor=actor, channel_id=channel_id)
        for action, actor in (("hold_placed", ada), ("sign_in_failed", None), ("purge_finished", None))
    ]
    client = sign_in(ada)
    shown = cells_of(read_page(client, f"{AUDIT}?q={channel_id}"), "actor_label")
    assert [re.sub("<[^>]*>", "", cell).strip() for cell in shown] == ["automatic", "not signed in", ada.username]
    assert ">automatic<" in re.sub(r"\s*([<>])\s*", r"\1", read_page(client, f"{AUDIT}{entries[2].pk}/change/"))


def test_an_entry_names_its_purge_by_what_it_selects(ada: User, sign_in: SignIn, previewed: PreviewedPurge) -> None:
    channel_id = fresh_id()
    url = f"{AUDIT}?q={channel_id}"
    record_action("purge_paused", actor=ada, purge=previewed.purge, channel_id=channel_id)
    client = sign_in(ada)
    (cell,) = cells_of(read_page(client, url), "purge_link")
    assert re.search(rf'<a href="/purges/{previewed.purge.pk}/" [^>]*title="[^"]* in #room \(Harbour\)', cell)
    assert f"Purge {previewed.purge.pk}" not in cell
    before = statements_of(client, url)
    record_action("purge_resumed", actor=ada, purge=previewed.purge, channel_id=channel_id)
    assert statements_of(client, url) == before


def test_an_entry_names_the_channel_of_its_purge(ada: User, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(ada), f"{AUDIT}?q={ada.username}"

    def add_entry() -> tuple[AuditEntry, Channel]:
        channel = make_guild_channel()
        purge = preview_some(mona, 2, channel)
        return record_action("purge_paused", actor=ada, purge=purge, guild_id=channel.guild_id), channel

    entry, channel = add_entry()
    link = f'<a href="/channels/{channel.pk}/" class="text-primary-600">{show_hidden(channel.full_name)}</a>'
    assert link in cells_of(read_page(client, url), "place")[0]
    assert link in read_page(client, f"{AUDIT}{entry.pk}/change/")
    before = statements_of(client, url)
    _, other = add_entry()
    cells = cells_of(read_page(client, url), "place")
    for cell, named in zip(cells[:2], (other, channel), strict=True):
        assert f'href="/channels/{named.pk}/"' in cell
    assert statements_of(client, url) == before


def test_the_list_of_purges_names_and_links_them_by_what_they_select(ada: User, mona: User, sign_in: SignIn) -> None:
    client, url = sign_in(ada), f"{PURGES}?q={mona.username}"
    purge = preview_some(mona, 2, make_guild_channel())
    heads = re.findall(r'<th[^>]*class="[^"]*field-(\w+)[^"]*"[^>]*>(.*?)</th>', read_page(client, url), re.DOTALL)
    ((column, cell),) = heads
    summary = escape(show_hidden(capfirst(selection_summary(purge))))
    assert column == "selection_label"
    assert f'href="{PURGES}{purge.pk}/change/' in cell
    assert f">{purge.pk}<" not in read_page(client, url)
    assert f'<span title="{summary}">{summary}</span>' in cell
    before = statements_of(client, url)
    preview_some(mona, 2, make_guild_channel())
    assert statements_of(client, url) == before


def test_a_direct_message_is_named_without_a_number_sign(ada: User, sign_in: SignIn) -> None:
    direct = Channel.objects.create(pk=fresh_id(), name="victor, wilma", kind=Channel.Kind.DIRECT)
    record_action("hold_placed", actor=ada, channel_id=direct.pk)
    (cell,) = cells_of(read_page(sign_in(ada), f"{AUDIT}?q={direct.pk}"), "place")
    assert ">victor, wilma</a>" in cell


def test_an_entry_names_its_user_apart_from_others_of_the_name(ada: User, sign_in: SignIn) -> None:
    first, channel_id = fresh_id(), fresh_id()
    name, client, url = f"Victor {first}", sign_in(ada), f"{AUDIT}?q={channel_id}"
    ChatUser.objects.create(pk=first, name=f"victor.{first}", display_name=name)
    record_action("hold_placed", actor=ada, channel_id=channel_id, chat_user_id=first)
    assert f">{name}</a>" in cells_of(read_page(client, url), "chat_user")[0]
    before, other = statements_of(client, url), fresh_id()
    ChatUser.objects.create(pk=other, name=f"victor.{other}", display_name=name)
    record_action("hold_placed", actor=ada, channel_id=channel_id, chat_user_id=other)
    cells = cells_of(read_page(client, url), "chat_user")
    for cell, pk in zip(cells, (other, first), strict=True):
        assert f">{name} (@victor.{pk})</a>" in cell
    assert statements_of(client, url) == before


def test_an_entry_repeats_no_ids_of_what_it_links(ada: User, mona: User, sign_in: SignIn) -> None:
    person = ChatUser.objects.create(id=fresh_id(), name="wilma")
    note = add_note(person.pk, text="Met before", link="", actor=mona)
    entry = AuditEntry.objects.get(chat_user_id=person.pk, action="note_added")
    html = read_page(sign_in(ada), f"{AUDIT}{entry.pk}/change/")
    assert "Text: Met before" in html
    assert f"Note: {note.pk}" not in html
    assert f"User: {person.pk}" not in html


def test_an_entry_keeps_ids_of_what_it_does_not_link(ada: User, sign_in: SignIn) -> None:
    other = fresh_id()
    entry = record_action("note_added", actor=ada, chat_user_id=fresh_id(), details={"user": str(other)})
    assert f"User: {other}" in read_page(sign_in(ada), f"{AUDIT}{entry.pk}/change/")


def test_the_heading_of_an_entry_has_its_time_as_the_field(ada: User, sign_in: SignIn) -> None:
    guild = Guild.objects.create(pk=fresh_id(), name="Harbour")
    entry = record_action("note_added", actor=ada, guild_id=guild.pk)
    entry.refresh_from_db()
    day = f"{entry.at.day} {entry.at:%b %Y, %H:%M}"
    html = read_page(sign_in(ada), f"{AUDIT}{entry.pk}/change/")
    assert f"note added at {day}" in html.lower().replace(day.lower(), day)
    assert f"{entry.at:%Y-%m-%d}" not in html
