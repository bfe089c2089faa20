"""The admin answers impossible ids and texts with an error, never with a 500."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client

from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import RaidSettings
from tests.pages.conftest import PreviewedPurge

SignIn = Callable[[User], Client]

NUL, DIGITS = "\0", "9" * 5_000
HOSTILE = {"NUL": NUL, "5,000 digits": DIGITS, "64 bits and more": "9" * 30, "a word": "harbour"}

CHANNELS = "/admin/chatstore/channel/"
RAID_SETTINGS = "/admin/moderation/raidsettings/"
AUTOCOMPLETE = "/admin/autocomplete/?app_label=chatstore&model_name=channel&field_name=guild&term={}"
URLS = (
    AUTOCOMPLETE,
    "/admin/autocomplete/?app_label={}&model_name=channel&field_name=guild&term=x",
    "/admin/search/?s={}",
    f"{CHANNELS}add/?guild={{}}",
    f"{CHANNELS}add/?id={{}}&name={{}}",
    f"{CHANNELS}?q={{}}",
    f"{CHANNELS}?guild__id__exact={{}}",
    f"{CHANNELS}?name={{}}",
    f"{CHANNELS}?p={{}}",
    f"{CHANNELS}?o={{}}",
    f"{CHANNELS}{{}}/change/",
    f"{CHANNELS}{{}}/history/",
    "/admin/chatstore/guild/?q={}",
    "/admin/chatstore/chatuser/?q={}",
    "/admin/moderation/purge/?q={}",
    "/admin/moderation/auditentry/?q={}",
    f"{RAID_SETTINGS}?q={{}}",
    f"{RAID_SETTINGS}add/?guild={{}}",
    "/admin/r/{}/{}/",
)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("url", URLS)
def test_no_admin_page_fails_on_hostile_input(url: str, value: str, ada: User, sign_in: SignIn) -> None:
    response = sign_in(ada).get(url.replace("{}", quote(value)), follow=True)
    assert response.status_code in {200, 400, 403, 404}


@pytest.mark.parametrize("value", [NUL, DIGITS], ids=["NUL", "5,000 digits"])
def test_autocomplete_refuses_an_impossible_name(value: str, mona: User, sign_in: SignIn) -> None:
    response = sign_in(mona).get(AUTOCOMPLETE.format(quote(value)))
    assert response.status_code == 400
    assert "Invalid request" in response.content.decode()


def test_autocomplete_finds_a_guild_by_a_part_of_its_name(
    previewed: PreviewedPurge, ada: User, sign_in: SignIn
) -> None:
    found = sign_in(ada).get(AUTOCOMPLETE.format(previewed.channel.guild_id)).json()["results"]
    assert [entry["id"] for entry in found] == [str(previewed.channel.guild_id)]


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("field", ["id", "guild", "name", "kind"])
def test_a_channel_is_not_added_with_hostile_input(
    field: str, value: str, previewed: PreviewedPurge, ada: User, sign_in: SignIn
) -> None:
    if field == "name" and "\0" not in value and len(value) <= 200:
        pytest.skip("it is a name")
    fields = {"id": "1", "guild": str(previewed.channel.guild_id), "kind": "text", "name": "harbour", field: value}
    before = Channel.objects.count()
    response = sign_in(ada).post(f"{CHANNELS}add/", fields)
    assert response.status_code in {200, 400}
    assert Channel.objects.count() == before


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_settings_of_raids_are_not_added_for_a_hostile_guild(value: str, ada: User, sign_in: SignIn) -> None:
    before = RaidSettings.objects.count()
    response = sign_in(ada).post(f"{RAID_SETTINGS}add/", {"guild": value, "messages_per_minute": "60"})
    assert response.status_code in {200, 400}
    assert RaidSettings.objects.count() == before


def test_settings_of_raids_are_found_by_their_guild(previewed: PreviewedPurge, ada: User, sign_in: SignIn) -> None:
    guild = previewed.channel.guild
    assert guild is not None
    RaidSettings.objects.get_or_create(guild=guild)
    for term in (guild.name, str(guild.pk)):
        assert guild.name in sign_in(ada).get(RAID_SETTINGS, {"q": term}).content.decode()


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_an_admin_action_on_hostile_input_does_nothing(value: str, ada: User, sign_in: SignIn) -> None:
    fields = {"action": "delete_selected", "_selected_action": value}
    assert sign_in(ada).post(CHANNELS, fields, follow=True).status_code in {200, 400}
