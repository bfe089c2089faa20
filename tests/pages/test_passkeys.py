"""Passkeys by requests: what is refused, and what is recorded. `browser/test_passkeys.py` uses real ones."""

from __future__ import annotations

import html
import json
import re
import secrets
from collections.abc import Callable

import pytest
from django.test import Client
from django_otp_webauthn.models import WebAuthnCredential

from chatstore.models.users import User
from moderation.models import AuditEntry
from moderation.operations.access.second_factors import reset_second_factor
from tests.pages.second_factors import PASSWORD, code_of, set_password, set_up

ANSWERS = (
    "",
    "{}",
    "[]",
    "null",
    '{"id": "x"}',
    "x" * 30_000,
    "[" * 15_000,
    '{"id":1,"rawId":"a","response":{}}',
    "\x00",
)

SignIn = Callable[[User], Client]


@pytest.fixture
def client(settings: object, mona: User) -> Client:
    """A browser at the domain of the passkeys, in which Mona has entered her password and a code."""
    set_up(set_password(mona))
    browser = Client(SERVER_NAME="localhost")
    browser.post("/sign-in/", {"username": mona.username, "password": PASSWORD})
    browser.post("/sign-in/code/", {"code": code_of(mona)})
    assert browser.get("/account/").status_code == 200
    return browser


def make_passkey(account: User, name: str = "Laptop") -> WebAuthnCredential:
    return WebAuthnCredential.objects.create(
        user=account, name=name, credential_id=secrets.token_bytes(16), public_key=b"key", transports=[], sign_count=0,
        backup_eligible=False, backup_state=False,
    )  # fmt: skip


def options_of(page: str) -> dict[str, object]:
    (options,) = re.findall(r'data-options="([^"]*)"', page)
    found: dict[str, object] = json.loads(html.unescape(options))
    return found


def test_the_browser_is_asked_for_a_passkey_of_this_site(client: Client, mona: User) -> None:
    options = options_of(client.get("/account/passkeys/add/").content.decode())
    assert options["rp"] == {"id": "localhost", "name": "Chatstore"}
    assert options["attestation"] == "none"
    first, second = (options_of(client.get("/account/passkeys/add/").content.decode()) for _ in range(2))
    assert first["challenge"] != second["challenge"]


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_no_other_answer_adds_one(answer: str, client: Client, mona: User) -> None:
    client.get("/account/passkeys/add/")
    refused = client.post("/account/passkeys/add/", {"name": "Laptop", "passkey": answer})
    assert refused.status_code == 400
    assert "could not be added" in refused.content.decode()
    assert not WebAuthnCredential.objects.filter(user=mona).exists()


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\x00b"])
def test_a_passkey_needs_a_name(name: str, client: Client) -> None:
    client.get("/account/passkeys/add/")
    refused = client.post("/account/passkeys/add/", {"name": name, "passkey": "{}"})
    assert (refused.status_code, "Enter a name" in refused.content.decode()) == (400, True)


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_no_other_answer_signs_in(answer: str, client: Client, mona: User) -> None:
    make_passkey(mona)
    browser = Client(SERVER_NAME="localhost")
    browser.post("/sign-in/", {"username": mona.username, "password": PASSWORD})
    page = browser.get("/sign-in/code/").content.decode()
    assert "Use a passkey" in page
    assert options_of(page)["rpId"] == "localhost"
    refused = browser.post("/sign-in/code/", {"passkey": answer})
    assert "was not accepted" in refused.content.decode()
    assert browser.get("/purges/").status_code == 302
    assert AuditEntry.objects.filter(action="second_factor_failed", details__account=mona.username).count() == 1
    assert browser.post("/sign-in/code/", {"code": code_of(mona)}).status_code == 302


def test_without_a_passkey_or_at_another_address_none_is_offered(client: Client, mona: User) -> None:
    for host, has_one in (("localhost", False), ("testserver", True)):
        if has_one:
            make_passkey(mona)
        browser = Client(SERVER_NAME=host)
        browser.post("/sign-in/", {"username": mona.username, "password": PASSWORD})
        assert "Use a passkey" not in browser.get("/sign-in/code/").content.decode()


def test_an_account_without_an_app_sets_that_up_first(lena: User, sign_in: SignIn) -> None:
    browser = sign_in(lena)
    assert "Add a passkey" not in browser.get("/account/", SERVER_NAME="localhost").content.decode()
    assert browser.get("/account/passkeys/add/", SERVER_NAME="localhost")["Location"] == "/account/"


def test_only_ones_own_is_removed(client: Client, mona: User, lena: User) -> None:
    own, other = make_passkey(mona, "Laptop"), make_passkey(lena, "Phone")
    assert client.post(f"/account/passkeys/{other.pk}/remove/").status_code == 404
    assert client.post(f"/account/passkeys/{own.pk}/remove/").status_code == 302
    assert [one.name for one in WebAuthnCredential.objects.filter(user__in=[mona, lena])] == ["Phone"]
    entry = AuditEntry.objects.get(action="passkey_removed", actor=mona)
    assert entry.details["name"] == "Laptop"


def test_adding_and_removing_take_a_confirmation(client: Client, mona: User) -> None:
    passkey = make_passkey(mona)
    session = client.session
    session["confirmed_at"] = 0
    session.save()
    for answer in (client.get("/account/passkeys/add/"), client.post(f"/account/passkeys/{passkey.pk}/remove/")):
        assert (answer.status_code, "Confirm it’s you" in answer.content.decode()) == (403, True)
        assert "Use a passkey" in answer.content.decode()


def test_a_reset_removes_passkeys_too(client: Client, mona: User, ada: User) -> None:
    make_passkey(mona)
    assert reset_second_factor(mona, actor=ada)
    assert not WebAuthnCredential.objects.filter(user=mona).exists()
