"""A preview is changed in the composer, which is filled in with its selection; the new preview replaces it."""

from __future__ import annotations

import datetime as dt
import html
import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from chatstore.models import Channel, ChatUser, Guild
from chatstore.models.users import User
from moderation.domain.datetimes import first_id_from, parse_datetime
from moderation.domain.filters import (
    All,
    AnyOf,
    AnyWord,
    Author,
    Before,
    Content,
    Filter,
    FirstSeenWithin,
    FromBot,
    Has,
    JoinedWithin,
    Not,
    Pattern,
    Similar,
    Since,
    Words,
    YoungAccount,
)
from moderation.domain.selection import Selection
from moderation.domain.states import PurgeState
from moderation.forms import Composer, presets_of
from moderation.models import Purge
from moderation.operations.preview.exclusions import exclude_messages
from moderation.operations.selection.parsing import describe_conditions, parse_selection
from tests.moderation.channels import VICTOR, WILMA, make_channel, old_ids, preview, purge_now, write

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    channel = make_channel()
    write(channel, old_ids(20))
    write(channel, old_ids(25)[20:], author=WILMA)
    return channel


@pytest.fixture
def draft(mona: User, channel: Channel) -> Purge:
    return preview(mona, Selection(channel_ids=(channel.pk,), where=All((Author((VICTOR, WILMA)), Words("hello")))))


def composer_of(client: Client, purge: Purge) -> str:
    page = client.get(f"/purges/{purge.pk}/").content.decode()
    link = re.search(r'href="([^"]*)"[^>]*>\s*Change the selection', page)
    assert link
    return client.get(html.unescape(link[1])).content.decode()


def test_the_composer_is_filled_in_with_the_selection(draft: Purge, mona: User, sign_in: SignIn) -> None:
    page = composer_of(sign_in(mona), draft)
    described = describe_conditions(Selection.from_json(draft.selection))
    assert described is not None
    assert described.all.authors.count(",") == 1
    assert re.search(rf'name="authors"[^>]*value="{re.escape(html.escape(described.all.authors))}"', page)
    assert re.search(r'name="words"[^>]*value="hello"', page)


def test_times_are_filled_in_as_pages_print_them(mona: User, channel: Channel) -> None:
    first = first_id_from(dt.datetime(2024, 3, 11, 14, 30, tzinfo=dt.UTC))
    for message_id, typed in ((first, "11 Mar 2024, 15:30"), (first + (7_001 << 22), "2024-03-11T15:30:07.001+01:00")):
        selection = Selection(channel_ids=(channel.pk,), where=All((Author((VICTOR,)), Since(message_id))))
        with timezone.override("Europe/Berlin"):
            described = describe_conditions(selection)
        assert described is not None
        assert described.all.after == typed


def test_the_new_preview_replaces_the_old_one(draft: Purge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    page = composer_of(client, draft)
    assert "The new preview replaces" in page
    field = re.search(r'<input type="hidden" name="preview" value="([^"]*)">', page)
    assert field
    channel_id = draft.selection["channels"][0]
    url = f"/channels/{channel_id}/delete/"
    refused = client.post(url, {"preview": field[1], "after": "tomorrow"})
    assert refused.status_code == 400
    assert field[0] in refused.content.decode()
    draft.refresh_from_db()
    assert draft.state == PurgeState.READY
    answer = client.post(url, {"preview": field[1], "authors": str(VICTOR)})
    changed = Purge.objects.get(pk=int(answer["Location"].split("/")[2]))
    assert changed.selection["channels"] == [channel_id]
    draft.refresh_from_db()
    assert draft.state == PurgeState.EXPIRED
    # The expired one can be previewed again.
    assert "Preview again" in client.get(f"/purges/{draft.pk}/").content.decode()


@pytest.mark.parametrize("everything", [True, False])
def test_a_preview_of_a_whole_channel_or_of_chosen_messages_is_replaced_by_conditions(
    channel: Channel, mona: User, sign_in: SignIn, *, everything: bool
) -> None:
    ids = () if everything else tuple(old_ids(20)[:3])
    draft = preview(mona, Selection(channel_ids=(channel.pk,), message_ids=ids, everything=everything))
    client, url = sign_in(mona), f"/channels/{channel.pk}/delete/"
    label = "Change the selection" if everything else "Select by conditions instead"
    assert re.search(
        rf'href="{url}\?preview={draft.pk}">\s*{label}', client.get(f"/purges/{draft.pk}/").content.decode()
    )
    page = client.get(f"{url}?preview={draft.pk}").content.decode()
    # In the form of conditions, and in that of the whole channel.
    assert page.count(f'<input type="hidden" name="preview" value="{draft.pk}">') == 2
    client.post(url, {"preview": str(draft.pk), "authors": str(WILMA)})
    draft.refresh_from_db()
    assert draft.state == PurgeState.EXPIRED


def test_the_composer_says_that_excluded_messages_are_included_again(draft: Purge, mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    assert "excluded there" not in composer_of(client, draft)
    exclude_messages(
        draft.pk,
        old_ids(20)[:2],
        moderator=mona,
        manifest_hash=bytes(Purge.objects.get(pk=draft.pk).manifest_hash or b""),
    )
    assert "2 messages that were excluded there are included again" in composer_of(client, draft)


def test_nobody_replaces_the_preview_of_somebody_else_or_a_confirmed_purge(
    draft: Purge, channel: Channel, mona: User, lena: User, sign_in: SignIn
) -> None:
    client = sign_in(lena)
    page = composer_of(client, draft)
    assert 'name="words"' in page
    assert "The new preview replaces" not in page
    fields = {"preview": str(draft.pk), "authors": str(VICTOR)}
    assert client.post(f"/channels/{channel.pk}/delete/", fields).status_code == 302
    draft.refresh_from_db()
    assert draft.state == PurgeState.READY
    done = purge_now(mona, Selection(channel_ids=(channel.pk,), where=Author((WILMA,))))
    page = sign_in(mona).get(f"/purges/{done.pk}/").content.decode()
    assert "Change the selection" not in page
    fields["preview"] = str(done.pk)
    assert sign_in(mona).post(f"/channels/{channel.pk}/delete/", fields).status_code == 302
    done.refresh_from_db()
    assert done.state == PurgeState.DONE


def since(day: str) -> Since:
    return Since(_first_id(day))


def _first_id(day: str) -> int:
    return first_id_from(parse_datetime(day, now=timezone.localtime()))


@pytest.mark.parametrize(
    "where",
    [
        Author((VICTOR,)),
        All((Author((VICTOR, WILMA, 7)), since("2024-03-11"), Before(_first_id("2024-03-11T14:30:07.123")))),
        All((Author((VICTOR,)), AnyOf((Words("free, nitro"), Has(Content.LINK), Has(Content.EMBED))))),
        All((Author((VICTOR,)), Words("free"), Not(Pattern("a+ b")), Not(Has(Content.MENTION)))),
        All((Author((VICTOR,)), Words("free"), Words("nitro"))),
        All((Author((VICTOR,)), AnyWord("free “click here”"), YoungAccount(7), Not(Similar("join\n now!")))),
        All((Author((VICTOR,)), AnyOf((JoinedWithin(10), FromBot())), Not(JoinedWithin(60)))),
        All((Author((VICTOR,)), FirstSeenWithin(24), AnyOf((FirstSeenWithin(1), FromBot())), Not(FirstSeenWithin(5)))),
    ],
    ids=str,
)
@pytest.mark.parametrize("with_pinned", [False, True])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_what_is_filled_in_selects_the_same(
    where: Filter, mona: User, channel: Channel, *, with_pinned: bool, zone: str
) -> None:
    guild = Guild.objects.get_or_create(pk=5_552, defaults={"name": "Harbour"})[0]
    Channel.objects.filter(pk=channel.pk).update(guild=guild)
    left_out = {"guild_id": guild.pk, "except_channel_ids": (channel.pk,)}
    for place in ({"channel_ids": (channel.pk,)}, {"guild_id": guild.pk}, left_out, {}):
        selection = Selection(**place, where=where, with_pinned=with_pinned)
        with timezone.override(zone):
            described = describe_conditions(selection)
            assert described is not None
            typed = Composer(presets_of(described)).read()
            assert parse_selection(typed, user=mona, now=timezone.localtime()) == selection


def test_an_author_is_filled_in_by_name_if_it_means_nobody_else(mona: User, channel: Channel) -> None:
    def filled_in(author_id: int) -> str:
        described = describe_conditions(Selection(channel_ids=(channel.pk,), where=Author((author_id,))))
        assert described is not None
        return described.all.authors

    ids = [ChatUser.objects.create(pk=secrets.randbits(50), name=f"{name}.{channel.pk}").pk for name in "ab"]
    assert filled_in(ids[0]) == str(ChatUser.objects.get(pk=ids[0]))
    ChatUser.objects.filter(pk__in=ids).update(name=f"twin.{channel.pk}", display_name=f"Twin {channel.pk}")
    assert filled_in(ids[1]) == str(ids[1])
    ChatUser.objects.filter(pk=ids[0]).update(name=f"a,b.{channel.pk}", display_name=f"A, B {channel.pk}")
    assert filled_in(ids[0]) == str(ids[0])


def test_what_cannot_be_typed_is_not_filled_in(channel: Channel) -> None:
    assert describe_conditions(Selection(channel_ids=(channel.pk,), everything=True)) is None
    assert describe_conditions(Selection(channel_ids=(channel.pk,), message_ids=(5,))) is None
    where = Not(AnyOf((Words("a"), Words("b"))))
    assert describe_conditions(Selection(channel_ids=(channel.pk,), where=where)) is None
