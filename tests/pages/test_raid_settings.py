"""Leads change the raid settings of their guild on a page, and every change is in the audit log."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from django.test import Client

from chatstore.domain.errors import BadInput, Forbidden, NotFound
from chatstore.domain.roles import Role
from chatstore.models import Channel
from chatstore.models.users import User
from moderation.models import AuditEntry, RaidSettings
from moderation.operations.lookup.audit_log import AuditQuery, list_entries
from moderation.operations.raids.reading import settings_of
from moderation.operations.raids.settings import FIELDS, raid_settings_for, set_raid_settings
from tests.conftest import give, make_user
from tests.moderation.limits import make_guild_channel, member

SignIn = Callable[[User], Client]


@pytest.fixture
def channel() -> Channel:
    return make_guild_channel()


@pytest.fixture
def lena(channel: Channel) -> User:
    return member("lena", Role.LEAD, channel)


def url_of(channel: Channel) -> str:
    return f"/guilds/{channel.guild_id}/raid-settings/"


def guild_of(channel: Channel) -> int:
    assert channel.guild_id
    return channel.guild_id


def typed(**changed: object) -> dict[str, object]:
    defaults = RaidSettings()
    values = {name: getattr(defaults, name) for name in FIELDS if name != "is_enabled"}
    return {**values, "is_enabled": "on", **changed}


def test_a_lead_changes_them_and_restores_the_defaults(lena: User, channel: Channel, sign_in: SignIn) -> None:
    client = sign_in(lena)
    shown = client.get(url_of(channel)).content.decode()
    assert "Default: 20." in shown
    assert 'value="20"' in shown
    saved = client.post(url_of(channel), typed(messages_per_minute=35, is_enabled=""), follow=True).content.decode()
    assert "Settings saved." in saved
    assert 'value="35"' in saved
    stored = settings_of([channel.guild_id])[channel.guild_id]
    assert (stored.messages_per_minute, stored.accounts, stored.is_enabled) == (35, 4, False)
    client.post(url_of(channel), {"reset": "1"})
    stored = settings_of([channel.guild_id])[channel.guild_id]
    assert (stored.messages_per_minute, stored.is_enabled) == (20, True)


def test_each_change_is_in_the_audit_log_of_the_guild(lena: User, channel: Channel, sign_in: SignIn) -> None:
    client = sign_in(lena)
    for number in (35, 35, 36):
        client.post(url_of(channel), typed(messages_per_minute=number))
    entries = list_entries(lena, AuditQuery(action="raid_settings_changed")).entries
    changes = [(one.entry.actor, one.entry.details["before"], one.entry.details["after"]) for one in entries]
    assert changes == [
        (lena, {"messages_per_minute": "35"}, {"messages_per_minute": "36"}),
        (lena, {"messages_per_minute": "20"}, {"messages_per_minute": "35"}),
    ]
    page = client.get(f"/audit/?server={channel.guild_id}&action=raid_settings_changed").content.decode()
    assert "Raid settings changed" in page


def test_a_value_that_is_not_valid_is_refused(lena: User, channel: Channel, sign_in: SignIn) -> None:
    for wrong in ("0", "10001", "many", "", "9" * 30):
        response = sign_in(lena).post(url_of(channel), typed(messages_per_minute=wrong))
        assert response.status_code == 400
        assert 'class="field-error"' in response.content.decode()
    with pytest.raises(BadInput, match="less than or equal to 1000"):
        set_raid_settings(guild_of(channel), {"accounts": 1_001}, actor=lena)
    assert not RaidSettings.objects.filter(guild=channel.guild_id).exists()


def test_only_leads_and_administrators_of_the_guild_may(lena: User, channel: Channel) -> None:
    other = make_guild_channel("Gophers")
    set_raid_settings(guild_of(channel), {"accounts": 5}, actor=member("ada", Role.ADMIN, channel))
    elsewhere = member("leo", Role.LEAD, other)
    both = member("bo", Role.LEAD, other)
    give(both, Role.MODERATOR, guild_id=channel.guild_id)
    of_a_channel = make_user("cleo", group=None)
    give(of_a_channel, Role.LEAD, channel_id=channel.pk)
    refused = [
        (member("mona", Role.MODERATOR, channel), Forbidden),
        (elsewhere, NotFound),
        (both, Forbidden),
        (of_a_channel, Forbidden),
    ]
    for person, error in refused:
        with pytest.raises(error):
            raid_settings_for(person, guild_of(channel))
        with pytest.raises(error):
            set_raid_settings(guild_of(channel), {"accounts": 9}, actor=person)
    assert raid_settings_for(lena, guild_of(channel)).accounts == 5


def test_the_page_of_a_raid_links_to_them_for_those_who_may(lena: User, channel: Channel, sign_in: SignIn) -> None:
    for person, links in ((lena, True), (member("mona", Role.MODERATOR, channel), False)):
        page = html.unescape(sign_in(person).get(f"/raids/{channel.pk}/").content.decode())
        assert (url_of(channel) in page) is links


def test_a_change_in_the_admin_is_in_the_audit_log_of_the_guild(lena: User, channel: Channel, sign_in: SignIn) -> None:
    admin = make_user("ada", group="admins")
    added = sign_in(admin).post("/admin/moderation/raidsettings/add/", typed(guild=channel.guild_id))
    assert added.status_code == 302, added.content
    entry = AuditEntry.objects.get(actor=admin, action="raid_settings_added")
    assert entry.guild_id == channel.guild_id
    assert list_entries(lena, AuditQuery(action="raid_settings_added")).entries
