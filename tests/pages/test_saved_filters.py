"""Filters are saved under a name, shared, applied by one click, and deleted by their owner."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from chatstore.domain.roles import Role
from chatstore.models import RoleGrant
from chatstore.models.users import User
from moderation.domain.filters import AnyWord, Words
from moderation.domain.selection import Selection
from moderation.models import AuditEntry, SavedFilter
from moderation.operations.access.roles import take_role
from moderation.operations.purging.lifecycle import draft_purge
from moderation.operations.selection.saved_filters import MAX_OWN_FILTERS
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
from tests.pages.test_hostile import check_harmless

SignIn = Callable[[User], Client]

TYPED = {"any_words": "nitro coins", "after": "last 20 minutes", "none-has": "link", "account_days": "7"}


@pytest.fixture
def name() -> str:
    return f"Raid {secrets.token_hex(4)}"


def save(client: Client, name: str, *, path: str = "/delete/", **fields: str) -> str:
    """Save a filter; return the URL that shows it."""
    answer = client.post(path, {**TYPED, "save": "1", "filter_name": name, **fields})
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    return str(answer["Location"])


def filled_in(page: str) -> bool:
    return 'value="nitro coins"' in page and 'value="last 20 minutes"' in page and 'value="7"' in page


def test_a_filter_is_applied_with_times_as_they_were_typed(mona: User, sign_in: SignIn, name: str) -> None:
    client, path = sign_in(mona), f"/channels/{make_channel().pk}/delete/"
    shown = save(client, name, path=path)
    assert shown.startswith(f"{path}?filter=")
    page = client.get(shown).content.decode()
    assert filled_in(page)
    assert re.search(rf'aria-current="true">\s*<bdi>{name}</bdi>', page)
    save(client, name, any_words="nitro coins", words="x" * 10)
    assert SavedFilter.objects.get(owner=mona, name=name).description["all"]["words"] == "x" * 10
    assert AuditEntry.objects.filter(actor=mona, action="filter_saved", details__name=name).count() == 2


def test_others_see_and_apply_only_shared_filters(mona: User, lena: User, sign_in: SignIn, name: str) -> None:
    shared, own = (
        save(sign_in(mona), f"{name} {n}", **extra) for n, extra in (("s", {"filter_shared": "1"}), ("o", {}))
    )
    client = sign_in(lena)
    page = client.get(shared).content.decode()
    assert filled_in(page)
    assert re.search(rf"{name} s</bdi>\s*<span[^>]*>\s*by ", page)
    assert f"{name} o" not in page
    assert client.get(own).status_code == 404
    filter_id = int(shared.rpartition("=")[2])
    assert client.post(f"/delete/filters/{filter_id}/delete/").status_code == 404
    assert sign_in(mona).post(f"/delete/filters/{filter_id}/delete/").status_code == 302
    assert not SavedFilter.objects.filter(pk=filter_id).exists()


def test_a_filter_needs_a_name_and_a_condition(mona: User, sign_in: SignIn, name: str) -> None:
    client = sign_in(mona)
    for fields, message in (
        ({**TYPED, "filter_name": " "}, "Enter a name"),
        ({"filter_name": name, "guild": "5"}, "Nothing to save"),
        ({**TYPED, "filter_name": "x" * 61}, "at most 60"),
    ):
        refused = client.post("/delete/", {**fields, "save": "1"})
        assert refused.status_code == 400
        assert message in refused.content.decode()
    assert not SavedFilter.objects.filter(name=name).exists()


def test_hostile_names_are_shown_as_text_and_their_number_is_limited(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    check_harmless(client.get(save(client, "<script>alert(1)</script>\u202e")).content.decode())
    kept = [
        SavedFilter(owner=mona, name=f"old {n}", description={"all": {"words": "x"}}) for n in range(MAX_OWN_FILTERS)
    ]
    SavedFilter.objects.bulk_create(kept)
    refused = client.post("/delete/", {**TYPED, "save": "1", "filter_name": "one more"})
    assert "Delete one first" in refused.content.decode()
    SavedFilter.objects.filter(owner=mona).delete()


def test_the_last_different_selections_are_offered_again(mona: User, sign_in: SignIn) -> None:
    word = f"w{secrets.token_hex(4)}"
    channel = make_channel()
    for where in (Words(word), AnyWord(f"{word} b"), Words(word)):
        draft_purge(moderator=mona, selection=Selection(channel_ids=(channel.pk,), where=where))
    draft_purge(moderator=mona, selection=Selection(channel_ids=(channel.pk,), message_ids=(5,)))
    client = sign_in(mona)
    page = client.get("/delete/").content.decode()
    offered = re.findall(r'href="(\?used=\d+)">([^<]*)</a>', page)
    assert [word in text for _, text in offered[:2]] == [True, True]
    assert f"containing the word “{word}”" in offered[0][1]
    assert len({text for _, text in offered}) == len(offered)
    applied = client.get(f"/delete/{offered[0][0]}").content.decode()
    assert re.search(rf'name="words"[^>]*value="{word}"', applied)
    assert "The new preview replaces" not in applied
    # In another channel it is applied to that one.
    other = make_channel()
    here = client.get(f"/channels/{other.pk}/delete/").content.decode()
    assert f"in {other.full_name}" in html.unescape(here)


@pytest.mark.parametrize("limit", ["one guild", "no direct messages"])
def test_moderators_see_no_shared_filter_of_those_who_may_delete_in_more_places(
    mona: User, name: str, sign_in: SignIn, limit: str
) -> None:
    channel = make_channel(guild=f"Harbour {secrets.token_hex(4)}")
    gus, gil = make_user("gus", group=None), make_user("gil", group=None)
    for account in (gus, gil):
        give(account, Role.MODERATOR, guild_id=channel.guild_id if limit == "one guild" else None)
    secret = save(sign_in(mona), name, filter_shared="1")
    own = save(sign_in(gil), f"{name} here", filter_shared="1")
    client = sign_in(gus)
    page = client.get("/delete/").content.decode()
    assert f"{name} here" in page
    assert page.count(name) == page.count(f"{name} here")
    assert (client.get(secret).status_code, client.get(own).status_code) == (404, 200)
    # A direct message of the owner's is one more place.
    give(gil, Role.MODERATOR, channel_id=make_channel().pk)
    assert client.get(own).status_code == 404


@pytest.mark.parametrize("end", ["taken", "past"])
def test_a_filter_stays_hidden_elsewhere_when_its_owner_has_lost_their_role(
    ada: User, name: str, sign_in: SignIn, end: str
) -> None:
    channels = [make_channel(guild=f"Harbour {secrets.token_hex(4)}") for _ in range(2)]
    gus, gil, former = (make_user(each, group=None) for each in ("gus", "gil", "former"))
    for account, channel in ((gus, channels[0]), (gil, channels[1]), (former, channels[1])):
        give(account, Role.MODERATOR, guild_id=channel.guild_id)
    secret = save(sign_in(former), name, filter_shared="1")
    granted = RoleGrant.objects.get(account=former)
    if end == "taken":
        take_role(granted.pk, actor=ada)
    else:
        now = timezone.now()
        RoleGrant.objects.filter(pk=granted.pk).update(given_at=now - timedelta(days=2), until=now - timedelta(days=1))
    elsewhere, colleague = sign_in(gus), sign_in(gil)
    assert name not in elsewhere.get("/delete/").content.decode()
    assert elsewhere.get(secret).status_code == 404
    assert colleague.get(secret).status_code == 200
