"""Single sign-on at a provider of OpenID Connect that runs beside the tests."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django import Settings

from chatstore.domain.roles import Grant, Role
from chatstore.models.users import User
from chatstore.operations.rights import grants_of
from moderation.models import AuditEntry, StaffIdentity, StaffSession
from tests.conftest import make_user
from tests.pages.second_factors import code_of, set_up
from tests.waiting import wait_until

BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "moderation.single_sign_on.Backend",
    "moderation.sign_in.PasswordBackend",
]
START = "/sign-in/sso/"


class Provider:
    """A provider, and the people whom it knows."""

    def __init__(self, url: str) -> None:
        self.url = url

    def add(self, **claims: Any) -> str:
        """Add a person with these claims; return their subject."""
        subject = f"subject-{secrets.token_hex(6)}"
        requests.put(f"{self.url}/users/{subject}", json=claims, timeout=30).raise_for_status()
        return subject

    def authorize(self, url: str, subject: str) -> str:
        """Sign in there as a person; return where the browser is sent back to, without the host."""
        answer = requests.post(url, data={"sub": subject}, timeout=30, allow_redirects=False)
        back = urlsplit(answer.headers["Location"])
        assert back.netloc == "testserver"
        return f"{back.path}?{back.query}"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)], stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return requests.get(f"{url}/.well-known/openid-configuration", timeout=5).ok
        except requests.ConnectionError:
            return False

    try:
        wait_until(answers)
        yield Provider(url)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(autouse=True)
def _configured(settings: Settings, provider: Provider) -> None:
    settings.OIDC_ISSUER, settings.OIDC_NAME = provider.url, "Harbour ID"
    settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = "chatstore", "a secret"
    settings.OIDC_ROLES = [("chat mods", Grant(Role.MODERATOR)), ("chat leads", Grant(Role.LEAD))]
    settings.AUTHENTICATION_BACKENDS = BACKENDS


def sign_in_as(provider: Provider, subject: str, client: Client, *, query: str = "") -> Any:
    """Go through the whole flow; return the answer to the way back."""
    begun = client.get(f"{START}{query}")
    assert begun.status_code == 302, begun.content.decode()
    return client.get(provider.authorize(begun.headers["Location"], subject))


def roles_of(account: User) -> set[Role]:
    return {grant.role for grant in grants_of(User.objects.get(pk=account.pk))}


def new_name() -> str:
    return f"nora-{secrets.token_hex(4)}"


def test_the_first_sign_in_makes_an_account_with_the_mapped_roles(provider: Provider) -> None:
    name, client = new_name(), Client()
    subject = provider.add(preferred_username=name, name="Nora Quay", groups=["chat mods", "everyone"])
    answer = sign_in_as(provider, subject, client, query="?next=/purges/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/purges/")
    assert client.get("/purges/").status_code == 200
    account = User.objects.get(username=name)
    assert (account.get_full_name(), account.is_staff, account.has_usable_password()) == ("Nora Quay", True, False)
    assert grants_of(account) == (Grant(Role.MODERATOR),)
    assert StaffIdentity.objects.get(account=account).subject == subject
    actions = AuditEntry.objects.filter(actor=account).values_list("action", flat=True)
    assert {"identity_linked", "signed_in"} <= set(actions)
    assert AuditEntry.objects.filter(action="account_added", details__name=name).exists()


def test_the_same_person_gets_the_same_account_by_another_name(provider: Provider) -> None:
    name = new_name()
    subject = provider.add(preferred_username=name, groups=["chat mods"])
    sign_in_as(provider, subject, Client())
    requests.put(
        f"{provider.url}/users/{subject}", json={"preferred_username": "x", "groups": ["chat leads"]}, timeout=30
    )
    assert sign_in_as(provider, subject, Client()).status_code == 302
    account = User.objects.get(username=name)
    assert grants_of(account) == (Grant(Role.LEAD),)


def test_roles_that_an_administrator_gave_stay(provider: Provider) -> None:
    subject = provider.add(
        email=(address := f"{new_name()}@harbour.example"), email_verified=True, groups=["chat mods"]
    )
    account = make_user("otto", group="operators")
    before = roles_of(account)
    User.objects.filter(pk=account.pk).update(email=address)
    sign_in_as(provider, subject, Client())
    assert roles_of(account) == {*before, Role.MODERATOR}
    requests.put(f"{provider.url}/users/{subject}", json={"groups": []}, timeout=30)
    sign_in_as(provider, subject, Client())
    assert roles_of(account) == before


def test_a_lost_role_ends_the_sessions_that_had_it(provider: Provider) -> None:
    subject = provider.add(preferred_username=new_name(), groups=["chat leads"])
    first = Client()
    sign_in_as(provider, subject, first)
    assert first.get("/audit/").status_code == 200
    requests.put(f"{provider.url}/users/{subject}", json={"groups": ["chat mods"]}, timeout=30)
    sign_in_as(provider, subject, Client())
    assert first.get("/audit/").status_code == 302


def test_an_account_is_not_taken_over_by_its_name_or_an_unverified_address(provider: Provider, mona: User) -> None:
    User.objects.filter(pk=mona.pk).update(email=(address := f"{new_name()}@harbour.example"))
    by_name = provider.add(preferred_username=mona.username, groups=["chat mods"])
    by_address = provider.add(preferred_username=mona.username.upper(), email=address, groups=["chat mods"])
    for subject in (by_name, by_address):
        client = Client()
        answer = sign_in_as(provider, subject, client)
        assert answer.status_code == 403
        assert "An account with your name already exists" in answer.content.decode()
        assert client.get("/purges/").status_code == 302
    assert not StaffIdentity.objects.filter(account=mona).exists()


def test_a_superuser_is_never_linked(provider: Provider) -> None:
    address = f"{new_name()}@harbour.example"
    User.objects.create_superuser(new_name(), email=address)
    subject = provider.add(email=address, email_verified=True, groups=["chat mods"])
    answer = sign_in_as(provider, subject, Client())
    assert (answer.status_code, "cannot be used for single sign-on" in answer.content.decode()) == (403, True)


def test_groups_of_django_give_nothing_beside_it(mona: User, sign_in: Callable[[User], Client]) -> None:
    mona.user_permissions.set(Permission.objects.filter(codename="change_user"))
    assert not User.objects.get(pk=mona.pk).has_perm("auth.change_user")
    assert sign_in(mona).get("/admin/auth/user/").status_code == 403
    mona.user_permissions.clear()


def test_an_account_that_has_become_a_superuser_signs_in_by_password_only(provider: Provider) -> None:
    name = new_name()
    subject = provider.add(preferred_username=name, groups=["chat mods"])
    sign_in_as(provider, subject, Client())
    User.objects.filter(username=name).update(is_superuser=True)
    answer = sign_in_as(provider, subject, Client())
    assert (answer.status_code, "cannot be used for single sign-on" in answer.content.decode()) == (403, True)


def test_a_link_with_an_error_signs_nobody_out(mona: User, sign_in: Callable[[User], Client]) -> None:
    client = sign_in(mona)
    assert client.get(f"{START}callback/?error=access_denied").status_code == 403
    assert client.get("/purges/").status_code == 200


def test_who_gets_no_role_gets_no_account(provider: Provider) -> None:
    name = new_name()
    answer = sign_in_as(provider, provider.add(preferred_username=name, groups=["everyone"]), Client())
    assert (answer.status_code, "None of your groups gives you access" in answer.content.decode()) == (403, True)
    assert not User.objects.filter(username=name).exists()


def test_a_deactivated_account_does_not_come_in(provider: Provider) -> None:
    name = new_name()
    subject = provider.add(preferred_username=name, groups=["chat mods"])
    sign_in_as(provider, subject, Client())
    account = User.objects.get(username=name)
    account.is_active = False
    account.save()
    client = Client()
    assert sign_in_as(provider, subject, client).status_code == 403
    assert not StaffSession.objects.filter(account=account).exists()


def test_an_account_with_a_second_factor_enters_its_code(provider: Provider, settings: Settings) -> None:
    name = new_name()
    subject = provider.add(preferred_username=name, groups=["chat mods"])
    sign_in_as(provider, subject, Client())
    account = User.objects.get(username=name)
    set_up(account)
    client = Client()
    answer = sign_in_as(provider, subject, client, query="?next=/purges/")
    assert answer.headers["Location"] == "/sign-in/code/"
    assert client.get("/purges/").status_code == 302
    assert client.post("/sign-in/code/", {"code": code_of(account)}).headers["Location"] == "/purges/"
    settings.OIDC_PASSES_SECOND_FACTOR = True
    client = Client()
    sign_in_as(provider, subject, client)
    assert client.get("/purges/").status_code == 200


def test_an_enforced_second_factor_is_set_up_first(provider: Provider, settings: Settings) -> None:
    settings.SECOND_FACTOR_ROLES = ["moderator"]
    subject = provider.add(preferred_username=new_name(), groups=["chat mods"])
    assert sign_in_as(provider, subject, Client()).headers["Location"] == "/sign-in/set-up/"


def test_a_code_is_good_for_one_browser_and_once(provider: Provider) -> None:
    subject, victim, attacker = provider.add(preferred_username=new_name(), groups=["chat mods"]), Client(), Client()
    begun = attacker.get(START)
    back = provider.authorize(begun.headers["Location"], subject)
    victim.get(START)
    refused = victim.get(back)
    assert (refused.status_code, "answer is not valid" in refused.content.decode()) == (403, True)
    assert attacker.get(back).status_code == 302
    assert attacker.get(back).status_code == 403


def test_the_request_has_a_state_a_nonce_and_a_challenge(provider: Provider) -> None:
    asked = parse_qs(urlsplit(Client().get(START).headers["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["state"][0]) == len(asked["nonce"][0]) == 32
    assert asked["redirect_uri"] == ["http://testserver/sign-in/sso/callback/"]
    assert "prompt" not in asked
    again = parse_qs(urlsplit(Client().get(f"{START}?again=1").headers["Location"]).query)
    assert (again["prompt"], again["max_age"]) == (["login"], ["0"])


@pytest.mark.parametrize("query", ["", "?error=access_denied", "?code=x&state=y", "?code=%00&state=%00", "?state=1"])
def test_a_wrong_way_back_is_explained(query: str) -> None:
    client = Client()
    client.get(START)
    answer = client.get(f"{START}callback/{query}")
    assert answer.status_code == 403
    assert "Try again." in answer.content.decode()
    assert "_auth_user_id" not in client.session


def test_no_other_site_is_continued_at(provider: Provider) -> None:
    subject = provider.add(preferred_username=new_name(), groups=["chat mods"])
    for query in ("?next=https://evil.example/", "?next=//evil.example/"):
        assert sign_in_as(provider, subject, Client(), query=query).headers["Location"] in ("/", "home")


def test_a_token_for_another_client_is_refused(provider: Provider, settings: Settings) -> None:
    subject, client = provider.add(preferred_username=new_name(), groups=["chat mods"]), Client()
    begun = client.get(START)
    back = provider.authorize(begun.headers["Location"], subject)
    settings.OIDC_RP_CLIENT_ID = "another"
    assert client.get(back).status_code == 403


def test_a_provider_that_is_away_is_explained(settings: Settings) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:9"
    answer = Client().get(START)
    assert (answer.status_code, "cannot be reached" in answer.content.decode()) == (503, True)
    # Passwords work without it.
    assert Client().get("/sign-in/").status_code == 200


def test_a_provider_that_says_it_is_another_is_refused(provider: Provider, settings: Settings) -> None:
    settings.OIDC_ISSUER = provider.url.replace("127.0.0.1", "localhost") + "/"
    assert Client().get(START).status_code == 503


def test_the_page_offers_it_beside_the_password(client: Client, settings: Settings) -> None:
    page = client.get("/sign-in/?next=/purges/").content.decode()
    assert 'href="/sign-in/sso/?next=%2Fpurges%2F"' in page
    assert "Sign in with Harbour ID" in page
    settings.OIDC_ISSUER = ""
    assert "sso" not in client.get("/sign-in/").content.decode()
    assert client.get(START).status_code == client.get(f"{START}callback/").status_code == 404


def test_an_older_sign_in_there_confirms_nothing(provider: Provider) -> None:
    client = Client()
    sign_in_as(provider, provider.add(preferred_username=new_name(), groups=["chat leads"], auth_time=5), client)
    assert client.post("/holds/1/lift/", {"reason": "closed"}).status_code == 403


def test_who_has_no_password_confirms_by_signing_in_again(
    provider: Provider, sign_in: Callable[[User], Client]
) -> None:
    name, client = new_name(), Client()
    subject = provider.add(preferred_username=name, groups=["chat leads"])
    sign_in_as(provider, subject, client)
    assert client.post("/holds/1/lift/", {"reason": "closed"}).status_code == 404
    session = client.session
    session["confirmed_at"] = time.time() - 3_600
    session.save()
    asked = client.post("/holds/1/lift/", {"reason": "closed"})
    page = asked.content.decode()
    assert (asked.status_code, "Sign in again" in page) == (403, True)
    assert "/sign-in/sso/?again=1" in page
    # The provider says when they entered their password there: now.
    sign_in_as(provider, subject, client, query="?again=1")
    assert client.post("/holds/1/lift/", {"reason": "closed"}).status_code == 404
