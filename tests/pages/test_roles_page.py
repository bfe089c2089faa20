"""Roles are given, removed and listed on their page and by command; new staff are invited by a link that works once."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import make_password
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from chatstore.domain.roles import Role
from chatstore.models import Channel, Guild, RoleGrant
from chatstore.models.users import User
from moderation.models import AuditEntry, Invitation, StaffIdentity
from moderation.operations.access.roles import take_role
from moderation.operations.selection.places import parse_until
from tests.conftest import give, make_user
from tests.moderation.channels import make_channel
from tests.pages.second_factors import PASSWORD
from tests.pages.visitors import visitor_from_elsewhere

SignIn = Callable[[User], Client]

LINK = re.compile(r"/invitation/\?token=([\w-]+)")


@pytest.fixture
def channel() -> Channel:
    """A channel of a new guild."""
    return make_channel(guild=f"Harbour {secrets.token_hex(4)}")


@pytest.fixture
def nora() -> str:
    return f"nora-{secrets.token_hex(4)}"


def server_of(channel: Channel) -> str:
    assert channel.guild is not None
    return channel.guild.name


def current(account: User) -> list[tuple[str, int | None, int | None]]:
    rows = RoleGrant.objects.filter(account=account).in_force().order_by("id")
    return list(rows.values_list("role", "guild_id", "channel_id"))


def link_on(page: str) -> str:
    found = LINK.search(page)
    assert found is not None, page
    return found[0]


def accept(link: str, password: str, *, client: Client | None = None, again: str | None = None) -> int:
    posted = {"password": password, "password_again": password if again is None else again}
    return (client or visitor_from_elsewhere()).post(link, posted).status_code


def test_an_administrator_gives_and_takes_a_role(ada: User, tess: User, channel: Channel, sign_in: SignIn) -> None:
    client = sign_in(ada)
    posted = {"person": tess.username, "role": "moderator", "server": server_of(channel), "until": "2040-03-01"}
    assert client.post("/roles/", posted).status_code == 302
    assert current(tess) == [("moderator", channel.guild_id, None)]
    (row,) = RoleGrant.objects.filter(account=tess)
    assert (row.given_by, row.until) == (ada, dt.datetime(2040, 3, 2, tzinfo=dt.UTC))
    html = client.get(f"/roles/?account={tess.username}").content.decode()
    assert server_of(channel) in html
    assert f'given by <bdi class="staff-name">{ada.username}</bdi>' in html
    assert sign_in(tess).get(f"/channels/{channel.pk}/").status_code == 200
    assert client.post(f"/roles/{row.pk}/take/").status_code == 302
    assert current(tess) == []
    assert sign_in(tess).get(f"/channels/{channel.pk}/").status_code == 403
    assert tess.username not in client.get("/roles/").content.decode().split('id="give"')[0]
    past = client.get(f"/roles/?account={tess.username}&past=1").content.decode()
    assert f'Removed by <bdi class="staff-name">{ada.username}</bdi>' in past


def test_the_page_says_that_a_role_was_given_and_leads_to_it(
    ada: User, tess: User, channel: Channel, sign_in: SignIn
) -> None:
    posted = {"person": tess.username, "role": "moderator", "server": channel.guild_id}
    answer = sign_in(ada).post("/roles/", posted)
    (row,) = RoleGrant.objects.filter(account=tess)
    assert answer["Location"] == f"/roles/?saved=1#role-{row.pk}"
    shown = sign_in(ada).get("/roles/?saved=1").content.decode()
    assert "Role given." in shown
    assert f'id="role-{row.pk}"' in shown


def test_each_act_is_recorded_with_its_guild(ada: User, tess: User, channel: Channel, sign_in: SignIn) -> None:
    client = sign_in(ada)
    client.post("/roles/", {"person": tess.username, "role": "lead", "server": channel.guild_id})
    row = RoleGrant.objects.get(account=tess)
    client.post(f"/roles/{row.pk}/take/")
    entries = AuditEntry.objects.filter(actor=ada, action__in=("role_given", "role_taken")).order_by("id")
    assert [(entry.action, entry.guild_id) for entry in entries] == [
        ("role_given", channel.guild_id),
        ("role_taken", channel.guild_id),
    ]
    assert entries[0].details == {
        "role": "lead",
        "account": tess.username,
        "grant": str(row.pk),
        "guild": str(channel.guild_id),
        "address": "127.0.0.1",
    }


def test_a_role_for_some_channels_is_given_for_each(ada: User, tess: User, channel: Channel, sign_in: SignIn) -> None:
    other = make_channel()
    posted = {"person": tess.username, "role": "auditor", "channels": f"{channel.pk}, {other.pk}"}
    assert sign_in(ada).post("/roles/", posted).status_code == 302
    assert current(tess) == [("auditor", None, channel.pk), ("auditor", None, other.pk)]


def test_a_role_that_has_ended_gives_nothing(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    assert client.get("/purges/").status_code == 200
    earlier = timezone.now() - dt.timedelta(days=2)
    RoleGrant.objects.filter(account=mona).update(given_at=earlier, until=Now())
    assert client.get("/purges/").status_code == 403
    assert client.get("/").status_code == 200


def test_a_role_that_has_ended_can_be_given_again(ada: User, mona: User, sign_in: SignIn) -> None:
    earlier = timezone.now() - dt.timedelta(days=2)
    RoleGrant.objects.filter(account=mona).update(given_at=earlier, until=Now())
    assert sign_in(ada).post("/roles/", {"person": mona.username, "role": "moderator"}).status_code == 302
    assert ("moderator", None, None) in current(mona)


@pytest.mark.parametrize("text", ["1 March 2040", "2040/3/1", "1 Mar 2040"])
def test_the_last_day_of_a_role_is_typed_as_pages_print_it(text: str, ada: User, tess: User, sign_in: SignIn) -> None:
    assert sign_in(ada).post("/roles/", {"person": tess.username, "role": "lead", "until": text}).status_code == 302
    (row,) = RoleGrant.objects.filter(account=tess)
    assert row.until == dt.datetime(2040, 3, 2, tzinfo=dt.UTC)


def test_a_last_day_without_a_year_is_the_next_one() -> None:
    now = dt.datetime(2026, 11, 27, 8, tzinfo=dt.UTC)
    assert parse_until("31 March", now=now) == dt.datetime(2027, 4, 1, tzinfo=dt.UTC)
    assert parse_until("27 November", now=now) == dt.datetime(2026, 11, 28, tzinfo=dt.UTC)
    assert parse_until("28 November", now=now) == dt.datetime(2026, 11, 29, tzinfo=dt.UTC)
    assert parse_until("31 March 2020", now=now) == dt.datetime(2020, 4, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "posted",
    [
        {"role": "boss"},
        {"role": ""},
        {"role": "lead", "server": "no such server"},
        {"role": "lead", "server": "\0"},
        {"role": "lead", "channels": "no such channel"},
        {"role": "lead", "until": "2001-01-01"},
        {"role": "lead", "until": "soon"},
        # In Tokyo it would be in the year 10000, and the page of all roles could not be shown there.
        {"role": "lead", "until": "9999-12-31T20:00"},
        {"role": "lead", "until": "9999-12-30"},
        {"role": "operator", "server": "{guild}"},
        {"role": "direct", "channels": "{channel}"},
    ],
)
def test_what_cannot_be_given_is_refused_with_what_was_typed(
    posted: dict[str, str], ada: User, tess: User, channel: Channel, sign_in: SignIn
) -> None:
    places = {"guild": channel.guild_id, "channel": channel.pk}
    filled = {name: value.format(**places) for name, value in posted.items()}
    response = sign_in(ada).post("/roles/", {"person": tess.username, **filled})
    assert response.status_code == 400
    assert 'role="alert"' in response.content.decode()
    assert current(tess) == []


def test_an_administrator_of_a_guild_gives_roles_there_only(
    tess: User, lena: User, channel: Channel, sign_in: SignIn
) -> None:
    gil, elsewhere = make_user("gil", group=None), make_channel()
    give(gil, Role.ADMIN, guild_id=channel.guild_id)
    give(lena, Role.LEAD, channel_id=elsewhere.pk)
    client = sign_in(gil)
    assert client.post("/roles/", {"person": tess.username, "role": "lead"}).status_code == 400
    assert client.post("/roles/", {"person": tess.username, "role": "operator"}).status_code == 400
    assert (
        client.post("/roles/", {"person": tess.username, "role": "lead", "channels": elsewhere.pk}).status_code == 400
    )
    assert current(tess) == []
    for role in RoleGrant.objects.filter(account=lena):
        assert client.post(f"/roles/{role.pk}/take/").status_code == 404
    assert client.post("/roles/", {"person": tess.username, "role": "lead", "channels": channel.pk}).status_code == 302
    listed = client.get("/roles/").content.decode().split('id="give"')[0]
    assert tess.username in listed
    assert lena.username not in listed


def test_administrators_cannot_take_their_own_role(ada: User, sign_in: SignIn) -> None:
    row = RoleGrant.objects.get(account=ada)
    assert sign_in(ada).post(f"/roles/{row.pk}/take/").status_code == 400
    assert current(ada) == [("admin", None, None)]


def test_an_invited_person_sets_a_password_and_is_signed_in(
    ada: User, channel: Channel, nora: str, sign_in: SignIn
) -> None:
    posted = {"people": f"{nora} Nora Quist", "role": "moderator", "server": channel.guild_id}
    page = sign_in(ada).post("/roles/invite/", posted).content.decode()
    link, client = link_on(page), visitor_from_elsewhere()
    account = User.objects.get(username=nora)
    assert current(account) == [("moderator", channel.guild_id, None)]
    assert not account.has_usable_password()
    assert nora in client.get(link).content.decode()
    assert accept(link, PASSWORD, client=client) == 302
    assert client.get(f"/channels/{channel.pk}/").status_code == 200
    assert accept(link, PASSWORD) == 404
    assert Client().post("/sign-in/", {"username": nora, "password": PASSWORD}).status_code == 302
    actions = set(AuditEntry.objects.filter(details__account=nora).values_list("action", flat=True))
    assert actions == {"account_invited", "role_given"}
    assert AuditEntry.objects.filter(actor=account, action="invitation_accepted").exists()


def test_several_people_are_invited_at_once_with_a_link_each(ada: User, channel: Channel, sign_in: SignIn) -> None:
    names = sorted(f"invited-{secrets.token_hex(6)}" for _ in range(3))
    posted = {
        "people": f"{names[2]}\n\n {names[0]} Nora Quist\r\n{names[1]}",
        "role": "lead",
        "server": channel.guild_id,
    }
    tokens = dict.fromkeys(LINK.findall(sign_in(ada).post("/roles/invite/", posted).content.decode()))
    opened = [visitor_from_elsewhere().get(f"/invitation/?token={token}").content.decode() for token in tokens]
    assert [name in page for name, page in zip(names, opened, strict=True)] == [True] * 3
    for name in names:
        assert current(User.objects.get(username=name)) == [("lead", channel.guild_id, None)]
    assert User.objects.get(username=names[0]).get_full_name() == "Nora Quist"


def test_if_one_person_cannot_be_invited_none_is(ada: User, mona: User, nora: str, sign_in: SignIn) -> None:
    posted = {"people": f"{nora}\n{mona.username}", "role": "auditor"}
    response = sign_in(ada).post("/roles/invite/", posted)
    assert response.status_code == 400
    page = response.content.decode()
    assert f"The account {mona.username} already exists" in page
    # What was typed is still there.
    assert f"{nora}\n{mona.username}</textarea>" in page
    assert not User.objects.filter(username=nora).exists()


def test_a_link_is_stored_as_a_hash_only(ada: User, nora: str, sign_in: SignIn) -> None:
    page = sign_in(ada).post("/roles/invite/", {"people": nora, "role": "auditor"}).content.decode()
    token = link_on(page).partition("token=")[2]
    invitation = Invitation.objects.get(account__username=nora)
    assert len(bytes(invitation.token_hash)) == 32
    assert token not in str([entry.details for entry in AuditEntry.objects.filter(actor=ada)])


def test_a_link_that_has_expired_or_was_replaced_does_not_work(ada: User, nora: str, sign_in: SignIn) -> None:
    client, posted = sign_in(ada), {"people": nora, "role": "auditor"}
    first = link_on(client.post("/roles/invite/", posted).content.decode())
    second = link_on(client.post("/roles/invite/", posted).content.decode())
    visitor = visitor_from_elsewhere()
    assert accept(first, PASSWORD, client=visitor) == 404
    Invitation.objects.filter(account__username=nora, ended_at=None).update(expires_at=Now())
    assert accept(second, PASSWORD, client=visitor) == 404
    assert not User.objects.get(username=nora).has_usable_password()


def test_an_account_with_a_password_cannot_be_invited(ada: User, sign_in: SignIn) -> None:
    account = make_user("mika", group=None)
    account.set_password(PASSWORD)
    account.save()
    response = sign_in(ada).post("/roles/invite/", {"people": account.username, "role": "admin"})
    assert response.status_code == 400
    assert not Invitation.objects.filter(account=account).exists()


def guild_administrator(channel: Channel) -> User:
    account = make_user("gina", group=None)
    give(account, Role.ADMIN, guild_id=channel.guild_id)
    return account


def test_a_link_does_not_open_roles_that_its_inviter_could_not_give(
    ada: User, channel: Channel, nora: str, sign_in: SignIn
) -> None:
    posted = {"people": nora, "role": "moderator", "server": server_of(channel)}
    link = link_on(sign_in(guild_administrator(channel)).post("/roles/invite/", posted).content.decode())
    assert visitor_from_elsewhere().get(link).status_code == 200
    assert sign_in(ada).post("/roles/", {"person": nora, "role": "lead"}).status_code == 302
    visitor = visitor_from_elsewhere()
    assert visitor.get(link).status_code == 404
    assert accept(link, PASSWORD, client=visitor) == 404
    assert not User.objects.get(username=nora).has_usable_password()
    other = link_on(sign_in(ada).post("/roles/invite/", {"people": nora, "role": "lead"}).content.decode())
    assert accept(other, PASSWORD, client=visitor) == 302


def test_a_link_ends_when_its_inviter_is_no_administrator_any_more(
    ada: User, channel: Channel, nora: str, sign_in: SignIn
) -> None:
    gina = guild_administrator(channel)
    posted = {"people": nora, "role": "admin", "server": server_of(channel)}
    link = link_on(sign_in(gina).post("/roles/invite/", posted).content.decode())
    take_role(RoleGrant.objects.get(account=gina).pk, actor=ada)
    assert accept(link, PASSWORD, client=visitor_from_elsewhere()) == 404


def test_an_account_of_single_sign_on_cannot_be_invited(ada: User, sign_in: SignIn) -> None:
    account = make_user("sso", group="admins")
    account.set_unusable_password()
    account.save()
    StaffIdentity.objects.create(issuer="https://id.example", subject=account.username, account=account)
    response = sign_in(ada).post("/roles/invite/", {"people": account.username, "role": "auditor"})
    assert response.status_code == 400
    assert not Invitation.objects.filter(account=account).exists()


def test_who_may_not_give_all_roles_of_an_invited_account_gets_no_link_for_it(
    ada: User, nora: str, channel: Channel, sign_in: SignIn
) -> None:
    link = link_on(sign_in(ada).post("/roles/invite/", {"people": nora, "role": "lead"}).content.decode())
    posted = {"people": nora, "role": "moderator", "server": server_of(channel)}
    response = sign_in(guild_administrator(channel)).post("/roles/invite/", posted)
    assert (response.status_code, "already" in response.content.decode()) == (400, True)
    assert accept(link, PASSWORD) == 302


def test_a_link_ends_when_the_account_gets_a_password_or_every_right(ada: User, sign_in: SignIn) -> None:
    for change in ({"password": make_password(PASSWORD)}, {"is_superuser": True}):
        name = f"nils-{secrets.token_hex(4)}"
        link = link_on(sign_in(ada).post("/roles/invite/", {"people": name, "role": "lead"}).content.decode())
        User.objects.filter(username=name).update(**change)
        assert accept(link, "another passphrase of ours") == 404


def test_a_name_that_looks_like_another_is_the_same_name(ada: User, mona: User, sign_in: SignIn) -> None:
    wide = mona.username.replace("m", "\N{FULLWIDTH LATIN SMALL LETTER M}")
    response = sign_in(ada).post("/roles/invite/", {"people": wide, "role": "lead"})
    assert (response.status_code, "already" in response.content.decode()) == (400, True)


def test_nobody_gives_a_role_that_lasts_longer_than_their_own(tess: User, channel: Channel, sign_in: SignIn) -> None:
    account = make_user("tom", group=None)
    tomorrow = timezone.now() + dt.timedelta(days=1)
    RoleGrant.objects.create(account=account, role=Role.ADMIN, until=tomorrow)
    posted = {"person": tess.username, "role": "lead"}
    assert sign_in(account).post("/roles/", posted).status_code == 400
    assert sign_in(account).post("/roles/", {**posted, "until": "2090-01-01"}).status_code == 400
    assert sign_in(account).post("/roles/", {**posted, "until": timezone.now().date().isoformat()}).status_code == 302
    assert sign_in(account).post("/roles/", {**posted, "person": account.username}).status_code == 400
    assert current(account) == [("admin", None, None)]


def test_a_role_in_another_server_does_not_make_an_own_one_last_longer(
    tess: User, channel: Channel, sign_in: SignIn
) -> None:
    account = make_user("tom", group=None)
    tomorrow = timezone.now() + dt.timedelta(days=1)
    other = Guild.objects.create(pk=channel.pk - 2, name=f"Quarry {secrets.token_hex(4)}")
    give(account, Role.ADMIN, guild_id=other.pk)
    RoleGrant.objects.create(account=account, role=Role.ADMIN, guild=channel.guild, until=tomorrow)
    client = sign_in(account)
    here = {"person": tess.username, "role": "lead", "server": server_of(channel)}
    assert client.post("/roles/", here).status_code == 400
    assert client.post("/roles/", {**here, "channels": str(channel.pk)}).status_code == 400
    assert client.post("/roles/invite/", {**here, "people": f"nils-{secrets.token_hex(4)}"}).status_code == 400
    assert current(tess) == []
    assert client.post("/roles/", {**here, "until": timezone.now().date().isoformat()}).status_code == 302
    assert client.post("/roles/", {**here, "server": other.name}).status_code == 302
    assert current(tess) == [("lead", channel.guild_id, None), ("lead", other.pk, None)]


@pytest.mark.parametrize(
    ("password", "again"), [("12345678", None), ("short", None), ("correct horse battery", "correct horse")]
)
def test_a_weak_or_mistyped_password_is_refused(
    password: str, again: str | None, ada: User, nora: str, sign_in: SignIn
) -> None:
    link = link_on(sign_in(ada).post("/roles/invite/", {"people": nora, "role": "auditor"}).content.decode())
    assert accept(link, password, again=again) == 400
    assert accept(link, PASSWORD) == 302


def test_a_role_that_enforces_a_second_factor_has_it_set_up_first(
    ada: User, nora: str, sign_in: SignIn, settings: Settings
) -> None:
    link = link_on(sign_in(ada).post("/roles/invite/", {"people": nora, "role": "lead"}).content.decode())
    settings.SECOND_FACTOR_ROLES = ["lead"]
    client = visitor_from_elsewhere()
    assert accept(link, PASSWORD, client=client) == 302
    assert client.get("/holds/").status_code == 302
    assert client.get("/sign-in/set-up/").status_code == 200


def test_wrong_links_make_the_address_pause(settings: Settings) -> None:
    visitor = visitor_from_elsewhere()
    statuses = [visitor.get(f"/invitation/?token={secrets.token_urlsafe(32)}").status_code for _ in range(7)]
    assert statuses[:4] == [404] * 4
    assert statuses[-1] == 429


def test_the_first_administrator_is_made_by_command(nora: str, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("invite", nora, "admin", "--name", "Nora Quist")
    assert accept(link_on(capsys.readouterr().out), PASSWORD) == 302
    account = User.objects.get(username=nora)
    assert (account.first_name, account.is_superuser) == ("Nora Quist", False)
    assert current(account) == [("admin", None, None)]
    entry = AuditEntry.objects.get(action="account_invited", details__account=nora)
    assert entry.actor is not None
    assert entry.actor.username == "command-line"
    assert entry.details["by"].startswith("command line (")


def test_the_command_gives_lists_and_removes_roles(
    tess: User, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("role", "give", tess.username, "moderator", "--guild", str(channel.guild_id))
    given = capsys.readouterr().out
    row = RoleGrant.objects.get(account=tess)
    assert given.startswith(f"{row.pk}  {tess.username}  moderator  guild {channel.guild_id}")
    call_command("role", "list", tess.username)
    assert capsys.readouterr().out == given
    call_command("role", "remove", str(row.pk))
    call_command("role", "list", tess.username)
    assert "removed" in capsys.readouterr().out.splitlines()[0]
    assert current(tess) == []
    with pytest.raises(CommandError, match="There is no account"):
        call_command("role", "give", "no such account", "lead")
    with pytest.raises(CommandError, match="There is no server"):
        call_command("role", "give", tess.username, "lead", "--guild", "no such server")


def test_the_list_shows_the_last_day_as_it_was_entered_and_links_that_were_not_used(
    ada: User, nora: str, sign_in: SignIn
) -> None:
    client = sign_in(ada)
    posted = {"people": nora, "role": "lead", "until": "2040-03-01"}
    link = link_on(client.post("/roles/invite/", posted).content.decode())
    page = client.get(f"/roles/?account={nora}").content.decode()
    assert "Last day 1 Mar 2040" in page
    assert "Invited, link not used yet, valid until" in page
    Invitation.objects.filter(account__username=nora).update(expires_at=Now())
    assert "Invitation expired." in client.get(f"/roles/?account={nora}").content.decode()
    Invitation.objects.filter(account__username=nora).update(expires_at=timezone.now() + dt.timedelta(hours=1))
    assert accept(link, PASSWORD) == 302
    page = client.get(f"/roles/?account={nora}").content.decode()
    assert "Invit" not in page.split('id="given"')[1].split('id="give"')[0]


def test_people_of_the_same_name_are_told_apart_by_their_user_names(ada: User, tess: User, sign_in: SignIn) -> None:
    tess.first_name = "Mona"
    tess.save()
    give(tess, Role.LEAD)
    page = sign_in(ada).get(f"/roles/?account={tess.username}").content.decode()
    assert f'<bdi class="quiet small">{tess.username}</bdi>' in page
    ada_page = sign_in(ada).get(f"/roles/?account={ada.username}").content.decode()
    assert '<bdi class="quiet small">' not in ada_page.split('id="given"')[1].split('id="give"')[0]


def test_a_role_that_ends_during_a_day_is_listed_with_its_time(ada: User, tess: User, sign_in: SignIn) -> None:
    RoleGrant.objects.create(account=tess, role=Role.LEAD, until=dt.datetime(2040, 3, 1, 15, 30, tzinfo=dt.UTC))
    assert "15:30 UTC" in sign_in(ada).get(f"/roles/?account={tess.username}").content.decode()


def test_the_command_lists_no_roles_of_an_account_that_does_not_exist(nora: str) -> None:
    with pytest.raises(CommandError, match="There is no account"):
        call_command("role", "list", nora)
