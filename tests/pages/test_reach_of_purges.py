"""A purge that names channels of two guilds is shown to people who may see both, also if it matched in one only."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import pytest
from django.db import connection
from django.test import Client

from chatstore.domain.errors import NotFound
from chatstore.domain.roles import Role
from chatstore.models import Channel, ChatUser, RoleGrant
from chatstore.models.users import User
from moderation.domain.filters import All, Author, Words
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, Purge
from moderation.operations.access.visibility import purge_for
from moderation.operations.lookup.audit_log import AuditQuery, list_entries
from moderation.operations.lookup.chat_users import profile_of
from moderation.operations.lookup.jump import suggest
from moderation.operations.preview.evidence import export_evidence
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.purging.listing import list_deleted, list_purges
from moderation.operations.selection import scope
from moderation.operations.selection.summary import describe_purges
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.conftest import give, make_user
from tests.moderation.channels import confirm, make_channel, old_ids, preview, purge_now, run_to_end, write

SignIn = Callable[[User], Client]


@dataclass(frozen=True, slots=True)
class Pair:
    """Channels of two guilds; the author wrote in the first one only. both: moderates both guilds."""

    here: Channel
    there: Channel
    author: int
    word: str
    ids: list[int]
    both: User

    @property
    def selection(self) -> Selection:
        """Messages with a word in both channels."""
        where = All((Author((self.author,)), Words(self.word)))
        return Selection(channel_ids=(self.here.pk, self.there.pk), where=where)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Texts that a moderator of the first guild may not read."""
        return str(self.there.pk), f"{self.word} elsewhere", f"{self.word} reason"


@pytest.fixture
def pair() -> Pair:
    word, author = f"w{secrets.token_hex(6)}", secrets.randbits(40) + 2**43
    ChatUser.objects.create(pk=author, name=f"v{author}")
    here, there = make_channel(guild="Gophers"), make_channel(guild="Crabs")
    Channel.objects.filter(pk=there.pk).update(name=f"{word} elsewhere")
    ids = old_ids(5)
    write(here, ids, author=author, content=word)
    both = make_user("bea", group=None)
    for channel in (here, there):
        give(both, Role.LEAD, guild_id=channel.guild_id)
    return Pair(here, there, author, word, ids, both)


@pytest.fixture
def lena(pair: Pair) -> User:
    account = make_user("lena", group=None)
    give(account, Role.LEAD, guild_id=pair.here.guild_id)
    return account


def purge_both(pair: Pair) -> Purge:
    purge = purge_now(pair.both, pair.selection)
    Purge.objects.filter(pk=purge.pk).update(reason=f"{pair.word} reason")
    return purge


def test_it_belongs_to_both_guilds_and_channels(pair: Pair) -> None:
    purge = purge_both(pair)
    assert set(purge.manifest_buckets.values_list("channel_id", flat=True)) == {pair.here.pk}
    purge.refresh_from_db()
    assert purge.guild_ids == sorted([pair.here.guild_id or 0, pair.there.guild_id or 0])
    assert purge.channel_ids == sorted([pair.here.pk, pair.there.pk])


def test_no_operation_returns_it_to_a_lead_of_one_guild(pair: Pair, lena: User) -> None:
    purge = purge_both(pair)
    for user, sees in ((pair.both, True), (lena, False)):
        assert (purge.pk in {one.purge.pk for one in list_purges(user, channel_id=pair.here.pk).purges}) is sees
        assert (purge.pk in {one.listed.purge.pk for one in list_deleted(user).purges}) is sees
        assert (suggest(user, str(purge.pk)).purge is not None) is sees
        assert bool(profile_of(user, pair.author).purges) is sees
    for read in (lambda: purge_for(lena, purge.pk), lambda: export_evidence(purge.pk, actor=lena)):
        with pytest.raises(NotFound):
            read()


def test_the_audit_log_of_one_guild_has_its_channel_only(pair: Pair, lena: User) -> None:
    purge = purge_both(pair)
    entries = list_entries(lena, AuditQuery(purge_id=purge.pk)).entries
    assert [(one.entry.action, one.channel) for one in entries] == [("channel_purged", pair.here)]
    # Its page would not be found.
    assert entries[0].purge is None
    assert list_entries(pair.both, AuditQuery(purge_id=purge.pk)).entries[0].purge is not None


def test_a_lead_of_one_guild_sees_what_was_deleted_there_and_by_whom(pair: Pair, lena: User, sign_in: SignIn) -> None:
    purge = purge_both(pair)
    client = sign_in(lena)
    timeline = client.get(f"/channels/{pair.here.pk}/?around={pair.ids[0]}").content.decode()
    assert "5 messages deleted" in timeline
    assert "in a purge that includes places you cannot see" in timeline
    assert "in the whole purge" not in timeline
    assert pair.both.get_username() in timeline
    message = client.get(f"/channels/{pair.here.pk}/{pair.ids[0]}/").content.decode()
    assert "The purge includes places you cannot see." in message
    assert profile_of(lena, pair.author).activity[0].matched == len(pair.ids)
    for url in (f"/purges/{purge.pk}/", f"/purges/{purge.pk}/panel/", f"/purges/{purge.pk}/live/"):
        assert client.get(url).status_code == 404


def test_no_page_tells_a_lead_of_one_guild_more(pair: Pair, lena: User, sign_in: SignIn) -> None:
    purge = purge_both(pair)
    client = sign_in(lena)
    entry = AuditEntry.objects.get(purge=purge, action="channel_purged")
    paths = [
        "/", "/purges/", "/purges/?view=deleted", f"/purges/?channel={pair.here.pk}", f"/users/{pair.author}/",
        f"/users/{pair.author}/panel/", f"/channels/{pair.here.pk}/?around={pair.ids[0]}",
        f"/channels/{pair.here.pk}/{pair.ids[0]}/", f"/audit/?purge={purge.pk}", f"/audit/{entry.pk}/",
        f"/audit/export.csv?purge={purge.pk}", f"/audit/export.json?purge={purge.pk}",
        f"/find/suggestions/?q={purge.pk}",
    ]  # fmt: skip
    told = []
    for path in paths:
        response = client.get(path, follow=True)
        page = (response.getvalue() if response.streaming else response.content).decode()
        told += [(path, text) for text in pair.hidden if text in page]
    assert told == []


def test_a_purge_of_a_whole_guild_is_not_shown_to_a_moderator_of_one_channel(pair: Pair) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, Role.MODERATOR, channel_id=pair.here.pk)
    purge = preview(pair.both, replace(pair.selection, channel_ids=(), guild_id=pair.here.guild_id))
    assert (purge.guild_ids, purge.channel_ids) == ([pair.here.guild_id], None)
    assert purge.pk not in {one.purge.pk for one in list_purges(cleo).purges}


def test_a_moderator_of_one_channel_does_not_see_it_if_the_other_channel_is_gone_from_postgres(pair: Pair) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, Role.MODERATOR, channel_id=pair.here.pk)
    purge = preview(pair.both, pair.selection)
    own = preview(cleo, replace(pair.selection, channel_ids=(pair.here.pk,)))
    assert [one.purge.pk for one in list_purges(cleo).purges] == [own.pk]
    pair.there.delete()
    assert [one.purge.pk for one in list_purges(cleo).purges] == [own.pk]
    with pytest.raises(NotFound):
        purge_for(cleo, purge.pk)


@pytest.fixture
def whole(pair: Pair) -> Purge:
    """A purge of a whole guild, whose reason and other channels those with a role in one channel may not read."""
    other = make_channel()
    Channel.objects.filter(pk=other.pk).update(guild=pair.here.guild_id, name=f"{pair.word} elsewhere")
    write(other, old_ids(3, buckets_ago=5), author=pair.author, content=pair.word)
    purge = purge_now(pair.both, replace(pair.selection, channel_ids=(), guild_id=pair.here.guild_id))
    Purge.objects.filter(pk=purge.pk).update(reason=f"{pair.word} reason")
    part = UndoPart(message_ids=(pair.ids[-1],))
    request_undo(purge.pk, part=part, moderator=pair.both, reason=f"{pair.word} reason")
    run_to_end(purge)
    return purge


@pytest.mark.parametrize("role", [Role.MODERATOR, Role.LEAD, Role.AUDITOR])
def test_a_role_in_one_channel_sees_what_a_purge_of_the_guild_deleted_there_when_and_by_whom(
    pair: Pair, whole: Purge, role: Role, sign_in: SignIn
) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, role, channel_id=pair.here.pk)
    client, who = sign_in(cleo), pair.both.get_username()
    around = f"/channels/{pair.here.pk}/?around={pair.ids[0]}"
    # The page of a message shows its saved copy, so the other three are left.
    for path, count in ((around, "4 messages"), (f"/channels/{pair.here.pk}/{pair.ids[0]}/", "3 messages")):
        page = client.get(path).content.decode()
        assert who in page, path
        assert "places you cannot see" in page, path
        assert f"{count} deleted" in page, path
    restored = client.get(f"/channels/{pair.here.pk}/{pair.ids[-1]}/").content.decode()
    assert f"Undo by {who}" in restored
    assert f"/channels/{pair.here.pk}/{pair.ids[0]}/" in client.get(f"/find/?q={pair.ids[0]}")["Location"]
    user = client.get(f"/users/{pair.author}/").content.decode()
    assert "5 messages in channels that you can see, in a purge that includes places you cannot see." in user
    profile = profile_of(cleo, pair.author)
    assert (profile.activity[0].matched, profile.hidden_matched, profile.purge_count) == (5, 5, 1)
    assert profile_of(pair.both, pair.author).hidden_matched == 0


@pytest.mark.parametrize("role", [Role.MODERATOR, Role.LEAD, Role.AUDITOR])
def test_a_role_in_one_channel_is_told_nothing_else_of_a_purge_of_the_guild(
    pair: Pair, whole: Purge, role: Role, sign_in: SignIn
) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, role, channel_id=pair.here.pk)
    client, hidden = sign_in(cleo), (f"{pair.word} elsewhere", f"{pair.word} reason")
    paths = [
        "/", "/purges/", "/purges/?view=deleted", f"/purges/?channel={pair.here.pk}", "/reports/", "/holds/",
        f"/users/{pair.author}/", f"/users/{pair.author}/panel/", f"/channels/{pair.here.pk}/?around={pair.ids[0]}",
        f"/channels/{pair.here.pk}/{pair.ids[0]}/", f"/channels/{pair.here.pk}/{pair.ids[-1]}/",
        f"/find/suggestions/?q={whole.pk}", f"/find/?q={pair.ids[0]}", "/sidebar/",
    ]  # fmt: skip
    if role is not Role.MODERATOR:
        paths += [f"/audit/{page}?purge={whole.pk}" for page in ("", "export.csv", "export.json")]
        paths += [f"/audit/?channel={pair.here.pk}&message={pair.ids[0]}"]
    told = []
    for path in paths:
        response = client.get(path, follow=True)
        assert response.status_code == 200, path
        page = (response.getvalue() if response.streaming else response.content).decode()
        told += [(path, text) for text in hidden if text in page]
    assert told == []
    pages = ("", "panel/", "live/", "messages/", "evidence.zip", "undo/")
    assert {client.get(f"/purges/{whole.pk}/{page}").status_code for page in pages} <= {403, 404}
    restore = client.post(f"/channels/{pair.here.pk}/{pair.ids[0]}/undo/", {"purge": str(whole.pk), "reason": "Mine"})
    assert restore.status_code in (403, 404)
    assert not whole.undos.exclude(moderator=pair.both).exists()


def test_the_audit_log_shows_a_lead_of_one_channel_the_numbers_of_a_purge_of_the_guild_there(
    pair: Pair, whole: Purge
) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, Role.LEAD, channel_id=pair.here.pk)
    (listed,) = [
        one for one in list_entries(cleo, AuditQuery(purge_id=whole.pk)).entries if one.entry.action == "channel_purged"
    ]
    assert (listed.channel, listed.purge) == (pair.here, None)
    details = listed.entry.details
    assert (details["deleted"], details["moderator"]) == (len(pair.ids), pair.both.get_username())


def test_a_purge_of_all_channels_names_no_places_that_its_viewer_cannot_see(pair: Pair, lena: User) -> None:
    everywhere = replace(pair.selection, channel_ids=(), except_channel_ids=(pair.there.pk,))
    purge = preview(pair.both, everywhere)
    assert [one.purge.pk for one in list_purges(lena).purges] == [purge.pk]
    assert "in all of Gophers and others but some " in describe_purges(lena, [purge])[0].summary
    assert f"but #{pair.word} elsewhere" in describe_purges(pair.both, [purge])[0].summary
    facts = export_evidence(purge_now(pair.both, everywhere).pk, actor=lena).facts()
    assert str(pair.there.pk) not in str(facts)
    assert str(pair.there.guild_id) not in str(facts)


def test_a_role_in_a_single_channel_hides_no_own_purge_of_many_channels(
    pair: Pair, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope, "MAX_CHANNELS_OF_PURGE", 1)
    write(pair.there, old_ids(3), author=pair.author, content=pair.word)
    cleo, other = make_user("cleo", group=None), make_user("other", group=None)
    for account in (cleo, other):
        give(account, Role.MODERATOR, guild_id=pair.here.guild_id)
    give(cleo, Role.MODERATOR, channel_id=pair.there.pk)
    purge = preview(cleo, replace(pair.selection, channel_ids=()))
    assert (purge.manifest, purge.channel_ids) == (len(pair.ids) + 3, None)
    assert sign_in(cleo).get(f"/purges/{purge.pk}/").status_code == 200
    assert confirm(cleo, purge).confirmed_at is not None
    assert [one.purge.pk for one in list_purges(cleo).purges] == [purge.pk]
    assert purge.pk not in {one.purge.pk for one in list_purges(other).purges}
    RoleGrant.objects.filter(account=cleo, channel=pair.there).delete()
    assert list_purges(User.objects.get(pk=cleo.pk)).purges == []


def test_the_draft_of_one_guild_stores_no_roles_in_others(pair: Pair) -> None:
    cleo = make_user("cleo", group=None)
    give(cleo, Role.MODERATOR, channel_id=pair.here.pk)
    give(cleo, Role.MODERATOR, guild_id=pair.there.guild_id)
    where = Author((pair.author,))
    purge = draft_purge(moderator=cleo, selection=Selection(guild_id=pair.here.guild_id, where=where))
    assert purge.selection["within"] == {
        "every_guild": False, "direct": False, "guilds": [], "channels": [str(pair.here.pk)],
    }  # fmt: skip


def test_purges_of_before_are_widened(pair: Pair) -> None:
    named = preview(pair.both, pair.selection)
    whole = preview(pair.both, replace(pair.selection, channel_ids=(), guild_id=pair.here.guild_id))
    one = preview(pair.both, replace(pair.selection, channel_ids=(pair.here.pk,)))
    purges = Purge.objects.filter(pk__in=(named.pk, whole.pk, one.pk))
    purges.update(guild_ids=[pair.here.guild_id], channel_ids=[pair.here.pk])
    with connection.cursor() as cursor:
        cursor.execute(import_module("moderation.migrations.0033_purge_reach").WIDEN_REACH)
    assert [(purge.guild_ids, purge.channel_ids) for purge in purges.order_by("id")] == [
        (sorted([pair.here.guild_id or 0, pair.there.guild_id or 0]), sorted([pair.here.pk, pair.there.pk])),
        ([pair.here.guild_id], None),
        ([pair.here.guild_id], [pair.here.pk]),
    ]
