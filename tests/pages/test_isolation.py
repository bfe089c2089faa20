"""A moderator of one guild sees nothing of another one: on no page, in no JSON, in no list and in no count."""

from __future__ import annotations

import io
import secrets
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from chatstore.domain.errors import Forbidden, NotFound
from chatstore.domain.roles import Role
from chatstore.models import Channel, ChatUser
from chatstore.models.users import User
from chatstore.operations.health.channel_health import read_channel_health
from chatstore.operations.health.channel_list import ChannelQuery, list_channels
from moderation.domain.filters import Author
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Hold, Note, Purge
from moderation.operations.holds import HoldRequest, lift_hold, list_holds, place_hold
from moderation.operations.lookup.audit_log import AuditQuery, list_entries
from moderation.operations.lookup.chat_users import profile_of
from moderation.operations.lookup.jump import suggest
from moderation.operations.lookup.message_history import history_of_message, locate
from moderation.operations.lookup.search import search_anything
from moderation.operations.notes import add_note, list_notes
from moderation.operations.preview.scan import scan_to_end
from moderation.operations.purging.controls import pause_purge
from moderation.operations.purging.lifecycle import confirm_purge, discard_preview, draft_purge
from moderation.operations.purging.listing import list_purges
from moderation.operations.reports.queue import count_open_cases, list_cases
from moderation.operations.reports.resolving import claim_case
from moderation.operations.undo.requests import UndoPart, request_undo
from tests.chatstore.reports import report
from tests.conftest import give, make_user
from tests.moderation.channels import by_victor, choose, make_channel, old_ids, preview, purge_now, write
from tests.pages.access_table import CASES

SignIn = Callable[[User], Client]


@dataclass(frozen=True, slots=True)
class Place:
    """A guild with its channel, the messages of one author there, and one of each thing that moderators make."""

    channel: Channel
    word: str
    author: int
    ids: list[int]
    deleted: Purge
    previewed: Purge
    hold: Hold
    case: int
    note: Note

    @property
    def names(self) -> dict[str, int | str]:
        """The values for the placeholders of a URL."""
        return {
            "channel": self.channel.pk,
            "message": self.ids[-1],
            "purge": self.deleted.pk,
            "audit": AuditEntry.objects.filter(purge=self.deleted).latest("id").pk,
            "guild": self.channel.guild_id or 0,
            "chatuser": self.author,
            "user": self.deleted.moderator_id,
            "case": self.case,
            "invitation": "none",
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that only those may read who may see the guild: its names, reasons and ids begin with them."""
        return self.word, str(self.channel.pk), str(self.deleted.pk), str(self.previewed.pk)


def make_place(author: int, *, guild: bool = True) -> Place:
    ada, word = make_user("ada", group="admins"), f"w{secrets.token_hex(6)}"
    channel = make_channel(guild=f"{word} guild" if guild else None, name=f"{word}-channel")
    ids = old_ids(10)
    write(channel, ids[:5], author=author, content=word)
    write(channel, ids[5:], author=author + 1, content=word)
    deleted = purge_now(ada, choose(channel.pk, after_id=ids[0], before_id=ids[2]))
    Purge.objects.filter(pk=deleted.pk).update(reason=f"{word} reason")
    note = add_note(author, text=f"{word} note", link=f"/channels/{channel.pk}/{ids[0]}/", actor=ada)
    return Place(
        channel=channel,
        word=word,
        author=author,
        ids=ids,
        deleted=deleted,
        previewed=preview(ada, Selection(channel_ids=(channel.pk,), where=Author((author,)))),
        hold=place_hold(HoldRequest(channel=str(channel.pk)), reason=f"{word} hold", actor=ada),
        case=report(channel, ids[-1], author=author + 1, text=f"{word} report").pk,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class World:
    """A moderator's guild, another one with messages by the same people, and a direct message."""

    here: Place
    there: Place
    direct: Place
    gus: User


@pytest.fixture(scope="module")
def world() -> World:
    author = secrets.randbits(40) + 2**41
    ChatUser.objects.create(pk=author, name=f"victor{author}")
    places = [make_place(author), make_place(author), make_place(author, guild=False)]
    gus = make_user("gus", group=None)
    give(gus, Role.MODERATOR, guild_id=places[0].channel.guild_id)
    give(gus, Role.AUDITOR, guild_id=places[0].channel.guild_id)
    here, there, direct = places
    return World(here, there, direct, gus)


def text_of(body: bytes) -> str:
    """Return the text of a page, of an archive that of all its files."""
    if not body.startswith(b"PK"):
        return body.decode()
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


@pytest.fixture(scope="module")
def pages(world: World) -> list[tuple[str, str]]:
    """Return (URL, page) of every page that the moderator can read, and of the forms."""
    client = Client()
    client.force_login(world.gus)
    pages = []
    for _, method, url, _ in CASES:
        if method == "GET" and not url.startswith(("sign", "admin/log", "invitation")):
            path = "/" if url == "-" else "/" + url.format(**world.here.names)
            response = client.get(path)
            body = response.getvalue() if response.streaming else response.content
            pages.append((path, text_of(body)))
    for query in (world.there.word, world.direct.word, world.there.channel.guild_id, f"victor{world.here.author}"):
        paths = (f"/find/?q={query}", f"/find/suggestions/?q={query}")
        # Pages repeat what was searched for.
        answers = ((path, client.get(path, follow=True).content.decode()) for path in paths)
        pages += [(path, page.replace(str(query), "")) for path, page in answers]
    return pages


@pytest.mark.parametrize("where", ["there", "direct"])
def test_no_page_names_another_guild_or_a_direct_message(
    where: str, world: World, pages: list[tuple[str, str]]
) -> None:
    other: Place = getattr(world, where)
    assert [(path, secret) for path, page in pages for secret in other.secrets if secret in page] == []
    assert any(world.here.word in page for _, page in pages)


@pytest.mark.parametrize("where", ["there", "direct"])
def test_what_may_not_be_seen_answers_like_what_does_not_exist(where: str, world: World, sign_in: SignIn) -> None:
    other: Place = getattr(world, where)
    client, wrong = sign_in(world.gus), []
    own = {"guild", "channel", "purge", "case", "audit"}
    for _, method, url, _ in CASES:
        named = {name for name in own if f"{{{name}}}" in url}
        if not named or url.startswith("admin/"):
            continue
        send = client.post if method == "POST" else client.get
        values = {**other.names, **({"guild": 404} if where == "direct" else {})}
        nothing = dict.fromkeys(own, 404)
        seen, absent = (send("/" + url.format(**{**values, **one})) for one in ({}, nothing))
        same = seen.status_code == absent.status_code
        if not same or seen.status_code == 200:
            wrong.append(f"{method} {url}: {seen.status_code}, {absent.status_code} for nothing")
    assert wrong == []


def test_lists_and_counts_have_the_own_guild_only(world: World) -> None:
    gus, here = world.gus, world.here
    assert {one.purge.pk for one in list_purges(gus).purges} == {here.deleted.pk, here.previewed.pk}
    assert [one.case.pk for one in list_cases(gus).cases] == [here.case]
    assert count_open_cases(gus).count == 1
    holds = {one.hold.pk for one in list_holds(gus)[0]}
    assert here.hold.pk in holds
    assert not {world.there.hold.pk, world.direct.hold.pk} & holds
    assert [one.note.pk for one in list_notes(gus, here.author).notes] == [here.note.pk]
    entries = list_entries(gus, AuditQuery()).entries
    assert entries
    assert {one.entry.guild_id for one in entries} == {here.channel.guild_id}


def test_the_page_of_a_user_counts_the_own_guild_only(world: World) -> None:
    profile = profile_of(world.gus, world.here.author)
    assert [one.channel.pk for one in profile.activity] == [world.here.channel.pk]
    assert (profile.purge_count, profile.more_channels) == (1, 0)
    assert {one.listed.purge.pk for one in profile.purges} == {world.here.deleted.pk}
    everything = profile_of(make_user("ada", group="admins"), world.here.author)
    assert (len(everything.activity), everything.purge_count) == (3, 3)


@pytest.mark.parametrize("where", ["there", "direct"])
def test_searches_find_nothing_elsewhere(where: str, world: World) -> None:
    other: Place = getattr(world, where)
    for query in (other.word, str(other.channel.pk), f"/channels/{other.channel.pk}/{other.ids[-1]}/"):
        found = search_anything(world.gus, query)
        assert (found.message, list(found.channels), list(found.users)) == (None, [], [])
        suggested = suggest(world.gus, query)
        assert (list(suggested.channels), suggested.message, suggested.purge) == ([], None, None)
    assert suggest(world.gus, str(other.deleted.pk)).purge is None
    assert locate(world.gus, other.ids[0]).channel_id != other.channel.pk
    with pytest.raises(NotFound):
        history_of_message(world.gus, other.channel.pk, other.ids[0])


@pytest.mark.parametrize("where", ["there", "direct"])
def test_operations_refuse_another_guild(where: str, world: World) -> None:
    other, gus = getattr(world, where), world.gus
    acts: list[Callable[[], object]] = [
        lambda: draft_purge(moderator=gus, selection=by_victor(other.channel)),
        lambda: confirm_purge(
            other.previewed.pk, moderator=gus, reason="x", manifest_hash=bytes(other.previewed.manifest_hash)
        ),
        lambda: discard_preview(other.previewed.pk, moderator=gus),
        lambda: pause_purge(other.deleted.pk, moderator=gus),
        lambda: request_undo(other.deleted.pk, moderator=gus, part=UndoPart(), reason="x"),
        lambda: place_hold(HoldRequest(channel=str(other.channel.pk)), reason="x", actor=gus),
        lambda: claim_case(other.case, actor=gus),
        lambda: add_note(other.author, text="x", link=f"/channels/{other.channel.pk}/{other.ids[0]}/", actor=gus),
    ]
    for act in acts:
        with pytest.raises(NotFound):
            act()


def test_operators_see_the_health_of_direct_messages_with_the_role_for_them_only(world: World) -> None:
    operator, direct = make_user("olga", group=None), world.direct.channel
    give(operator, Role.OPERATOR)
    assert list_channels(operator, ChannelQuery(name=world.here.word)).channels
    assert not list_channels(operator, ChannelQuery(name=world.direct.word)).channels
    with pytest.raises(NotFound):
        read_channel_health(operator, direct.pk)
    give(operator, Role.DIRECT)
    assert list_channels(operator, ChannelQuery(name=world.direct.word)).channels
    assert read_channel_health(operator, direct.pk).channel_id == direct.pk


def test_a_hold_everywhere_takes_a_role_for_the_whole_installation(world: World) -> None:
    with pytest.raises(Forbidden):
        place_hold(HoldRequest(author=str(world.here.author)), reason="x", actor=world.gus)


def test_a_lead_of_another_guild_lifts_no_hold(world: World) -> None:
    lead = make_user("leo", group=None)
    give(lead, Role.LEAD, guild_id=world.there.channel.guild_id)
    with pytest.raises(NotFound):
        lift_hold(world.here.hold.pk, actor=lead, reason="x")


def add_channel(place: Place, author: int) -> Channel:
    """Add a channel without a hold to a guild, with messages by an author."""
    channel = make_channel(guild=place.channel.guild, name=place.channel.name)
    write(channel, old_ids(3), author=author)
    return channel


def test_a_purge_everywhere_is_within_the_moderators_guilds(world: World, sign_in: SignIn) -> None:
    author = secrets.randbits(40) + 2**42
    own, _other = add_channel(world.here, author), add_channel(world.there, author)
    purge = draft_purge(moderator=world.gus, selection=Selection(where=Author((author,))))
    assert Purge.objects.get(pk=purge.pk).guild_ids is None
    page = sign_in(world.gus).get(f"/purges/{purge.pk}/").content.decode()
    assert f"in all of {world.here.channel.guild}" in page
    scan_to_end(purge.pk)
    purge.refresh_from_db()
    assert (purge.guild_ids, purge.channel_ids) == ([world.here.channel.guild_id], [own.pk])
    assert set(purge.manifest_buckets.values_list("channel_id", flat=True)) == {own.pk}
    discard_preview(purge.pk, moderator=world.gus)


def test_roles_that_came_later_do_not_widen_a_purge(world: World) -> None:
    author, gina = secrets.randbits(40) + 2**42, make_user("gina", group=None)
    own, _other = add_channel(world.here, author), add_channel(world.there, author)
    give(gina, Role.MODERATOR, guild_id=world.here.channel.guild_id)
    purge = draft_purge(moderator=gina, selection=Selection(where=Author((author,))))
    give(gina, Role.MODERATOR, guild_id=world.there.channel.guild_id)
    scan_to_end(purge.pk)
    assert set(purge.manifest_buckets.values_list("channel_id", flat=True)) == {own.pk}


def test_a_role_that_was_lost_after_the_preview_does_not_confirm_it(world: World) -> None:
    gina = make_user("gina", group=None)
    role = give(gina, Role.MODERATOR, guild_id=world.here.channel.guild_id)
    channel = make_channel()
    Channel.objects.filter(pk=channel.pk).update(guild_id=world.here.channel.guild_id)
    write(channel, old_ids(3))
    purge = preview(gina, Selection(channel_ids=(channel.pk,), everything=True))
    assert purge.state == PurgeState.READY
    role.delete()
    give(gina, Role.AUDITOR, guild_id=world.here.channel.guild_id)
    give(gina, Role.MODERATOR, guild_id=world.there.channel.guild_id)
    gina = User.objects.get(pk=gina.pk)
    with pytest.raises(Forbidden):
        confirm_purge(purge.pk, moderator=gina, reason="x", manifest_hash=bytes(purge.manifest_hash or b""))


def test_a_purge_of_several_guilds_is_seen_by_those_who_may_see_each(world: World) -> None:
    ada, gina = make_user("ada", group="admins"), make_user("gina", group=None)
    channels = (world.here.channel.pk, world.there.channel.pk)
    purge = preview(ada, Selection(channel_ids=channels, where=Author((world.here.author + 1,))))
    give(gina, Role.MODERATOR, guild_id=world.here.channel.guild_id)
    assert purge.pk not in {one.purge.pk for one in list_purges(gina).purges}
    give(gina, Role.AUDITOR, channel_id=world.there.channel.pk)
    assert purge.pk in {one.purge.pk for one in list_purges(User.objects.get(pk=gina.pk)).purges}
    # She may see both, and delete in one of them.
    with pytest.raises(Forbidden):
        discard_preview(purge.pk, moderator=User.objects.get(pk=gina.pk))


def test_a_moderator_of_a_channel_sees_its_purges_only(world: World) -> None:
    channel = make_channel()
    Channel.objects.filter(pk=channel.pk).update(guild_id=world.here.channel.guild_id)
    cleo = make_user("cleo", group=None)
    give(cleo, Role.MODERATOR, channel_id=channel.pk)
    write(channel, old_ids(3))
    purge = preview(cleo, Selection(channel_ids=(channel.pk,), everything=True))
    assert {one.purge.pk for one in list_purges(cleo).purges} == {purge.pk}
    with pytest.raises(NotFound):
        draft_purge(moderator=cleo, selection=by_victor(world.here.channel))
    guild_id = world.here.channel.guild_id
    whole = draft_purge(moderator=cleo, selection=Selection(guild_id=guild_id, where=Author((71,))))
    scan_to_end(whole.pk)
    assert set(whole.manifest_buckets.values_list("channel_id", flat=True)) == {channel.pk}


def test_an_auditor_without_direct_messages_reads_nothing_about_their_purges(mona: User, sign_in: SignIn) -> None:
    channel, reason = make_channel(), f"Reason {secrets.token_hex(6)}"
    assert channel.guild is None
    write(channel, old_ids(3))
    purge = preview(mona, by_victor(channel))
    confirm_purge(purge.pk, moderator=mona, reason=reason, manifest_hash=bytes(purge.manifest_hash or b""))
    auditor = make_user("aron", group=None)
    give(auditor, Role.AUDITOR)
    assert reason not in sign_in(auditor).get(f"/audit/?purge={purge.pk}").content.decode()
    give(auditor, Role.DIRECT)
    assert reason in sign_in(auditor).get(f"/audit/?purge={purge.pk}").content.decode()
