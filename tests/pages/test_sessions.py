"""Sessions are listed and can be ended, and end by themselves when their account loses something."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from chatstore.domain.roles import Grant, Role
from chatstore.models import RoleGrant
from chatstore.models.users import User
from moderation.models import AuditEntry, StaffSession
from moderation.operations.access.roles import give_roles, take_role
from moderation.operations.access.sessions import SECOND_FACTOR, delete_expired_sessions
from tests.conftest import make_user
from tests.pages.second_factors import (
    PASSWORD,
    code_of,
    pass_password,
    secret_on,
    set_password,
    set_up,
    show_code,
)

SignIn = Callable[[User], Client]

FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/18.5 Mobile/15E148 Safari/604.1"
)


@pytest.fixture
def account(mona: User) -> User:
    return set_password(mona)


def sign_in_from(account: User, *, address: str = "198.51.100.7", user_agent: str = FIREFOX) -> Client:
    client = Client(REMOTE_ADDR=address, HTTP_USER_AGENT=user_agent)
    client.post("/sign-in/", {"username": account.username, "password": PASSWORD})
    assert is_signed_in(client)
    return client


def signed_in(account: User) -> Client:
    """Return a client that is signed in, without the processor time of checking a password."""
    client = Client()
    client.force_login(account)
    assert is_signed_in(client)
    return client


def is_signed_in(client: Client) -> bool:
    return client.get("/preferences/").status_code == 200


def list_on_page(client: Client) -> list[str]:
    page = client.get("/account/").content.decode()
    lines = re.findall(r'<li class="session">(.*?)</li>', page, flags=re.DOTALL)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", line)).strip() for line in lines]


def buttons_on_page(client: Client) -> list[str]:
    return re.findall(r'name="session" value="(\w+)"', client.get("/account/").content.decode())


def test_sessions_are_listed_with_device_address_and_last_use(account: User) -> None:
    phone = sign_in_from(account, address="2001:db8::1", user_agent=IPHONE)
    here = sign_in_from(account)
    first, second = list_on_page(here)
    assert first.startswith("Firefox on Windows this session 198.51.100.7 Last used ")
    assert second.startswith("Safari on iPhone 2001:db8::1 Last used ")
    assert "Signed in" in first
    assert list_on_page(phone)[0].startswith("Safari on iPhone this session")


def test_a_hostile_user_agent_is_shown_as_an_unknown_device(account: User) -> None:
    client = sign_in_from(account, user_agent="<script>alert(1)</script>" * 100)
    assert list_on_page(client)[0].startswith("Unknown device this session")


def test_the_page_contains_no_key_of_a_session(account: User) -> None:
    client, other = signed_in(account), signed_in(account)
    page = client.get("/account/").content.decode()
    for key in (client.session.session_key, other.session.session_key):
        assert key is not None
        assert key not in page


def test_one_session_is_ended(account: User) -> None:
    phone, tablet, here = sign_in_from(account), sign_in_from(account), sign_in_from(account)
    newest = buttons_on_page(here)[0]
    assert here.post("/account/sessions/end/", {"session": newest}).status_code == 302
    assert sorted(map(is_signed_in, (phone, tablet))) == [False, True]
    assert is_signed_in(here)
    assert here.post("/account/sessions/end/", {"session": newest}).status_code == 404
    assert AuditEntry.objects.get(action="session_ended", actor=account).details == {
        "of_address": "198.51.100.7",
        "address": "198.51.100.7",
    }


def test_all_others_are_ended(account: User) -> None:
    phone, tablet, here = signed_in(account), signed_in(account), signed_in(account)
    here.post("/account/sessions/end/", {"others": "1"})
    assert [is_signed_in(client) for client in (phone, tablet, here)] == [False, False, True]
    assert AuditEntry.objects.get(action="sessions_ended", actor=account).details["sessions"] == 2


def test_a_session_of_somebody_else_cannot_be_ended(account: User, lena: User) -> None:
    theirs = signed_in(set_password(lena))
    signed_in(lena)
    stolen = buttons_on_page(theirs)[0]
    assert signed_in(account).post("/account/sessions/end/", {"session": stolen}).status_code == 404
    assert len(buttons_on_page(theirs)) == 1


def test_a_page_that_is_open_goes_to_sign_in_when_its_session_has_ended(account: User) -> None:
    client = signed_in(account)
    StaffSession.objects.filter(account=account).delete()
    fragment = client.get("/find/suggestions/?q=a", headers={"HX-Request": "true"}, follow=True)
    assert fragment["HX-Trigger"] == "reloadPage"
    assert client.get("/purges/")["Location"] == "/sign-in/?next=/purges/"


def test_a_new_password_ends_all_other_sessions(account: User) -> None:
    phone, here = signed_in(account), signed_in(account)
    new = "a quite new passphrase"
    posted = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert "Password changed." in here.post("/account/password/", posted, follow=True).content.decode()
    assert not is_signed_in(phone)
    assert is_signed_in(here)
    assert len(list_on_page(here)) == 1
    assert User.objects.get(pk=account.pk).check_password(new)
    assert AuditEntry.objects.filter(action="password_changed", actor=account).exists()


def test_a_password_that_is_wrong_or_weak_changes_nothing(account: User) -> None:
    client, new = signed_in(account), "a quite new passphrase"
    for old, first, second in ((PASSWORD, "12345", "12345"), (PASSWORD, new, "other"), ("wrong", new, new)):
        posted = {"old_password": old, "new_password1": first, "new_password2": second}
        assert client.post("/account/password/", posted).status_code == 400
    assert User.objects.get(pk=account.pk).check_password(PASSWORD)
    statuses = [
        client.post("/account/password/", {"old_password": "wrong", "new_password1": new, "new_password2": new})
        for _n in range(5)
    ]
    assert [answer.status_code for answer in statuses] == [400] * 3 + [429] * 2
    assert is_signed_in(client)


def test_a_password_that_an_admin_sets_ends_the_sessions(account: User, ada: User, sign_in: SignIn) -> None:
    client, new = signed_in(account), "a quite new passphrase"
    posted = {"usable_password": "true", "password1": new, "password2": new}
    assert sign_in(ada).post(f"/admin/auth/user/{account.pk}/password/", posted).status_code == 302
    assert not is_signed_in(client)


def test_the_admins_page_for_passwords_is_ours(account: User) -> None:
    assert signed_in(account).get("/admin/password_change/")["Location"] == "/account/password/"


def test_losing_a_role_ends_the_sessions(account: User, ada: User) -> None:
    client = signed_in(account)
    take_role(RoleGrant.objects.get(account=account, role=Role.DIRECT).pk, actor=ada)
    assert not is_signed_in(client)


def test_getting_a_role_keeps_the_sessions_unless_it_enforces_a_second_factor(
    account: User, ada: User, settings: Settings
) -> None:
    settings.SECOND_FACTOR_ROLES = ["lead"]
    client = signed_in(account)
    give_roles(account, [Grant(Role.OPERATOR)], actor=ada)
    assert is_signed_in(client)
    give_roles(account, [Grant(Role.LEAD)], actor=ada)
    assert not is_signed_in(client)


def test_a_session_with_a_second_factor_is_kept_when_the_account_gets_a_role_that_enforces_it(
    account: User, ada: User, settings: Settings
) -> None:
    settings.SECOND_FACTOR_ROLES = ["lead"]
    with_factor, without = signed_in(account), signed_in(account)
    session = with_factor.session
    session[SECOND_FACTOR] = True
    session.save()
    give_roles(account, [Grant(Role.LEAD)], actor=ada)
    assert (is_signed_in(with_factor), is_signed_in(without)) == (True, False)


def test_a_deactivated_account_has_no_sessions_when_it_is_activated_again(account: User) -> None:
    client = signed_in(account)
    account.is_active = False
    account.save()
    assert not is_signed_in(client)
    account.is_active = True
    account.save()
    assert not is_signed_in(client)


def test_resetting_a_second_factor_ends_the_sessions(account: User, ada: User, sign_in: SignIn) -> None:
    set_up(account)
    client = pass_password(account)
    client.post("/sign-in/code/", {"code": code_of(account)})
    assert is_signed_in(client)
    sign_in(ada).post(f"/account/{account.pk}/reset-second-factor/", {"reason": "Phone lost"})
    assert not is_signed_in(client)


def test_setting_up_a_second_factor_ends_the_others_that_a_password_alone_opened(account: User) -> None:
    phone, here = signed_in(account), signed_in(account)
    secret = secret_on(here.get("/account/second-factor/").content.decode())
    assert here.post("/account/second-factor/", {"code": show_code(secret)}).status_code == 200
    assert (is_signed_in(phone), is_signed_in(here)) == (False, True)
    assert AuditEntry.objects.get(action="sessions_ended", actor=account).details["sessions"] == 1


def test_turning_off_a_second_factor_ends_the_others_which_a_role_may_enforce_it_for_again(
    account: User, ada: User, settings: Settings
) -> None:
    set_up(account)
    clients = [pass_password(account), pass_password(account)]
    for client in clients:
        client.post("/sign-in/code/", {"code": code_of(account)})
        assert client.session[SECOND_FACTOR] is True
    response = clients[0].post("/account/second-factor/remove/", {"code": code_of(account)})
    assert response["Location"] == "/account/"
    assert [is_signed_in(client) for client in clients] == [True, False]
    settings.SECOND_FACTOR_ROLES = ["lead"]
    give_roles(account, [Grant(Role.LEAD)], actor=ada)
    assert not is_signed_in(clients[0])


def test_a_use_is_noted_once_a_minute(account: User) -> None:
    client = signed_in(account)

    def statements() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            client.get("/preferences/")
        return [query["sql"] for query in captured]

    usual = statements()
    assert not any(statement.startswith("UPDATE") for statement in usual)
    before = timezone.now() - dt.timedelta(seconds=61)
    StaffSession.objects.filter(account=account).update(last_used_at=before)
    assert [statement.split()[0] for statement in statements()].count("UPDATE") == 1
    assert len(statements()) == len(usual)
    assert StaffSession.objects.get(account=account).last_used_at > before


def test_an_ordinary_request_reads_the_session_and_the_account_once(account: User) -> None:
    client = signed_in(account)
    with CaptureQueriesContext(connection) as captured:
        client.get("/preferences/")
    tables = [re.findall(r'FROM "(\w+)"', query["sql"])[:1] for query in captured]
    assert tables.count(["moderation_staffsession"]) == 1
    assert tables.count(["auth_user"]) == 1


def test_expired_sessions_are_deleted(account: User) -> None:
    client, other = signed_in(account), signed_in(make_user_with_password())
    StaffSession.objects.filter(account=account).update(expire_date=timezone.now() - dt.timedelta(seconds=1))
    assert list_on_page(other)
    assert delete_expired_sessions() >= 1
    assert not StaffSession.objects.filter(account=account).exists()
    assert not is_signed_in(client)
    assert is_signed_in(other)


def make_user_with_password() -> User:
    return set_password(make_user("nora", group="moderators"))
