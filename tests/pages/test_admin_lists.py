"""Lists of the admin are paged by key and count nothing, so that they are quick with millions of rows."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from chatstore import admin_lists
from chatstore.admin_lists import MAX_COUNTED, ROWS_PER_PAGE
from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.models import AuditEntry, RaidSettings
from moderation.operations.access.audit import record_action
from tests.chatstore.channels import fresh_id
from tests.plans import explain

SignIn = Callable[[User], Client]

AUDIT = "/admin/moderation/auditentry/"


@pytest.fixture
def entries(ada: User) -> list[AuditEntry]:
    """More audit entries than a page has."""
    return [record_action("hold_placed", actor=ada, channel_id=7) for _ in range(ROWS_PER_PAGE + 20)]


def ids_on(page: str) -> list[int]:
    return [int(found) for found in re.findall(rf'href="{AUDIT}(\d+)/change/', page)]


@pytest.mark.parametrize(
    "url",
    [
        AUDIT,
        f"{AUDIT}?action=hold_placed",
        f"{AUDIT}?q=7",
        f"{AUDIT}?q=mona",
        "/admin/moderation/purge/",
        "/admin/chatstore/channel/",
        "/admin/chatstore/channel/?q=general",
        "/admin/chatstore/chatuser/",
        "/admin/chatstore/chatuser/?q=vic",
    ],
)
def test_no_list_counts_or_skips_rows(url: str, ada: User, sign_in: SignIn, entries: list[AuditEntry]) -> None:
    client = sign_in(ada)
    statements = explain(lambda: client.get(url))
    assert len(statements) > 1
    for one in statements:
        is_bounded = f"LIMIT {MAX_COUNTED + 1}" in one.sql
        assert is_bounded or not re.search(r"COUNT\(", one.sql), one.sql
        assert not re.search(r"OFFSET|SELECT DISTINCT", one.sql), one.sql


def test_older_entries_follow_page_by_page(ada: User, sign_in: SignIn, entries: list[AuditEntry]) -> None:
    client = sign_in(ada)
    newest_first = [entry.pk for entry in reversed(entries)]
    page = client.get(f"{AUDIT}?action=hold_placed&q={ada.username}").content.decode()
    older = re.search(r'href="(\?[^"]*before=\d+[^"]*)"', page)
    assert older is not None
    assert "action=hold_placed" in older[1]
    second = client.get(AUDIT + older[1].replace("&amp;", "&")).content.decode()
    assert ids_on(page) == newest_first[:ROWS_PER_PAGE]
    assert ids_on(second) == newest_first[ROWS_PER_PAGE:]


@pytest.mark.parametrize("query", ["", "?action=hold_placed", "?before=no+key"])
def test_a_page_does_not_claim_to_know_the_number_of_rows(
    query: str, ada: User, sign_in: SignIn, entries: list[AuditEntry]
) -> None:
    page = sign_in(ada).get(AUDIT + query).content.decode()
    assert len(ids_on(page)) == ROWS_PER_PAGE
    assert "Show all" not in page
    assert not re.search(r"\d results?", page)


def test_a_list_of_one_page_has_its_number_of_rows(ada: User, sign_in: SignIn, entries: list[AuditEntry]) -> None:
    client, word = sign_in(ada), secrets.token_hex(6)
    for number in range(2):
        Channel.objects.create(id=fresh_id(), name=f"{word}-{number}")
    assert re.search(r"<span>\s*2 rows\s*</span>", client.get(f"/admin/chatstore/channel/?q={word}").content.decode())
    first = client.get(f"{AUDIT}?q={ada.username}").content.decode()
    (before,) = re.findall(r"before=(\d+)", first)
    last = client.get(f"{AUDIT}?q={ada.username}&before={before}").content.decode()
    assert not [page for page in (first, last) if re.search(r"\d rows?\s*</span>", page)]


def test_a_small_table_is_counted_whatever_the_statistics_are(
    ada: User, sign_in: SignIn, entries: list[AuditEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sign_in(ada)
    monkeypatch.setattr(admin_lists, "estimate_rows", lambda _model: 94)
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", 10**6)
    page = client.get(AUDIT).content.decode()
    (shown,) = re.findall(r"<span>\s*([\d,]+) rows\s*</span>", page)
    # Others may act meanwhile.
    assert len(entries) <= int(shown.replace(",", "")) <= AuditEntry.objects.count()
    # The table has more rows than its statistics.
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", ROWS_PER_PAGE)
    monkeypatch.setattr(admin_lists, "estimate_rows", lambda _model: ROWS_PER_PAGE - 1)
    assert f"more than {ROWS_PER_PAGE} rows" in re.sub(r"\s+", " ", client.get(AUDIT).content.decode())


def test_times_of_a_list_name_their_zone(ada: User, sign_in: SignIn, entries: list[AuditEntry]) -> None:
    page = sign_in(ada).get(f"{AUDIT}?q={ada.username}").content.decode()
    assert re.search(r">\s*\d+ \w+ \d{4}, \d\d:\d\d UTC\s*<", page)


def test_a_list_without_rows_says_why(ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    RaidSettings.objects.all().delete()
    page = client.get("/admin/moderation/raidsettings/").content.decode()
    assert "All servers use the default settings. Add settings for a server to change them." in page
    searched = client.get(f"{AUDIT}?q={secrets.token_hex(20)}").content.decode()
    assert "No rows match the search and the filters." in searched
    for text in (page, searched):
        assert "yielded" not in text


def test_actions_have_labels(ada: User, sign_in: SignIn, entries: list[AuditEntry]) -> None:
    page = sign_in(ada).get(AUDIT).content.decode()
    assert "Hold placed" in page
    assert ">hold_placed<" not in page


def test_an_entry_names_its_channel_with_the_server_or_the_server(ada: User, sign_in: SignIn) -> None:
    guild = Guild.objects.create(pk=fresh_id(), name="Harbour <b>")
    channel = Channel.objects.create(pk=fresh_id(), name="general", guild=guild)
    record_action("hold_placed", actor=ada, channel_id=channel.pk, guild_id=guild.pk)
    entry = AuditEntry.objects.get(channel_id=channel.pk)
    record_action("guild_added", actor=ada, guild_id=guild.pk)
    client = sign_in(ada)
    one, page = (
        client.get(path).content.decode() for path in (f"{AUDIT}{entry.pk}/change/", f"{AUDIT}?q={ada.username}")
    )
    for shown in (one, page):
        assert f'href="/channels/{channel.pk}/" class="text-primary-600">#general (Harbour &lt;b&gt;)</a>' in shown
    assert "hold placed at" in one
    assert f'href="/audit/?server={guild.pk}" class="text-primary-600">Harbour &lt;b&gt;</a>' in page


def test_an_entry_is_found_by_each_of_its_ids(ada: User, sign_in: SignIn) -> None:
    channel_id = fresh_id()
    entry = record_action("hold_placed", actor=ada, channel_id=channel_id)
    client = sign_in(ada)
    for text in (str(entry.pk), str(channel_id)):
        assert set(ids_on(client.get(f"{AUDIT}?q={text}").content.decode())) == {entry.pk}
    assert ids_on(client.get(f"{AUDIT}?q={fresh_id()}").content.decode()) == []


def test_chat_users_and_channels_are_found_by_id_and_by_a_part_of_the_name(ada: User, sign_in: SignIn) -> None:
    client, word = sign_in(ada), secrets.token_hex(6)
    user = ChatUser.objects.create(id=fresh_id(), name=f"a-{word}-b")
    channel = Channel.objects.create(id=fresh_id(), name=f"a-{word}-b")
    for model, row in (("chatuser", user), ("channel", channel)):
        for text in (word, str(row.pk)):
            assert f"/{row.pk}/change/" in client.get(f"/admin/chatstore/{model}/?q={text}").content.decode()


def test_a_user_without_a_name_is_opened_by_the_id(ada: User, sign_in: SignIn) -> None:
    user = ChatUser.objects.create(pk=fresh_id(), name="")
    html = sign_in(ada).get(f"/admin/chatstore/chatuser/?q={user.pk}").content.decode()
    assert re.search(rf'<a href="/admin/chatstore/chatuser/{user.pk}/change/[^"]*"[^>]*>\s*{user.pk}\s*</a>', html)


def test_an_entry_of_the_audit_log_is_in_words_and_names_its_user(ada: User, sign_in: SignIn) -> None:
    # Users of the same name, of other tests too, are shown with their handles.
    name = f"Victor {secrets.token_hex(6)}"
    person = ChatUser.objects.create(id=fresh_id(), name="victor", display_name=f"{name} <b>")
    details = {"resolution": "removed", "reason": "<i>spam</i>"}
    entry = record_action("report_resolved", actor=ada, chat_user_id=person.pk, details=details)
    client = sign_in(ada)
    link = f'<a href="/users/{person.pk}/" class="text-primary-600">{name} &lt;b&gt;</a>'
    assert link in client.get(AUDIT).content.decode()
    page = client.get(f"{AUDIT}{entry.pk}/change/").content.decode()
    assert link in page
    assert "Reason: &lt;i&gt;spam&lt;/i&gt;<br>Resolution: message deleted" in page
    assert "removed" not in page


def cells_of(page: str, name: str) -> list[str]:
    """Return the texts of a column, without its heading."""
    cells = re.findall(rf'<(?:td|th) class="field-{name}\b[^>]*>(.*?)</(?:td|th)>', page, re.DOTALL)
    return [unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in cells]


def test_names_of_channels_and_servers_are_as_on_other_pages(ada: User, sign_in: SignIn) -> None:
    client, word = sign_in(ada), secrets.token_hex(6)
    guild = Guild.objects.create(pk=fresh_id(), name=f"Har\u200bbour {word}")
    hidden = Channel.objects.create(pk=fresh_id(), name=f"gen\u202eeral-{word}", guild=guild)
    direct = Channel.objects.create(pk=fresh_id(), name=f"victor, {word}", kind=Channel.Kind.DIRECT)
    user = ChatUser.objects.create(pk=fresh_id(), name=f"vic\u200btor.{word}", display_name=f"Vic\u202etor {word}")

    def read(model: str, pk: int) -> str:
        return client.get(f"/admin/chatstore/{model}/?q={pk}").content.decode()

    page = read("channel", hidden.pk)
    assert cells_of(page, "shown_name") == [f"#gen[RLO]eral-{word}"]
    assert cells_of(page, "shown_guild") == [f"Har[ZWSP]bour {word}"]
    page = read("channel", direct.pk)
    assert (cells_of(page, "shown_name"), cells_of(page, "shown_guild")) == ([f"victor, {word}"], ["–"])
    assert cells_of(read("guild", guild.pk), "shown_name") == [f"Har[ZWSP]bour {word}"]
    page = read("chatuser", user.pk)
    assert cells_of(page, "shown_name") == [f"vic[ZWSP]tor.{word}"]
    assert cells_of(page, "shown_display_name") == [f"Vic[RLO]tor {word}"]


def test_a_channel_without_figures_shows_a_dash_as_the_table_of_all_channels_does(ada: User, sign_in: SignIn) -> None:
    channel = Channel.objects.create(id=fresh_id(), name=f"quay-{secrets.token_hex(6)}")
    page = sign_in(ada).get(f"/admin/chatstore/channel/?q={channel.name}").content.decode()
    for name in ("tombstones", "size"):
        (cell,) = re.findall(rf"field-{name}\b[^>]*>(.*?)</td>", page, re.DOTALL)
        assert re.sub("<[^>]*>", "", cell).strip() == "–"
