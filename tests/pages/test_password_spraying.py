"""Guessing one password for many accounts pauses the address of the guesser, and no other."""

from __future__ import annotations

import datetime as dt
import secrets

import pytest
from axes.models import AccessAttempt
from django.db.models import F
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from chatstore.models.users import User
from tests.conftest import make_user
from tests.pages.second_factors import PASSWORD, code_of, pass_password, set_password, set_up, wrong_code

ATTEMPTS = 6
CODE = "/sign-in/code/"


@pytest.fixture(autouse=True)
def _limit(settings: Settings) -> None:
    settings.SIGN_IN_ATTEMPTS_PER_ADDRESS = ATTEMPTS


@pytest.fixture
def address() -> str:
    """An address without failures so far."""
    return "100." + ".".join(str(secrets.randbelow(254) + 1) for _ in range(3))


@pytest.fixture
def account(mona: User) -> User:
    return set_password(mona)


def attempt(name: str, password: str, *, address: str) -> HttpResponse:
    posted = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post("/sign-in/", posted)  # type: ignore[return-value]


def spray(address: str, *, times: int = ATTEMPTS) -> list[int]:
    """Try one password with several accounts from an address; return the statuses of the answers."""
    return [attempt(f"spray-{secrets.token_hex(6)}", "wrong", address=address).status_code for _ in range(times)]


def test_the_address_has_to_pause_after_failures_of_many_accounts(account: User, address: str) -> None:
    assert spray(address) == [200] * (ATTEMPTS - 1) + [429]
    refused = attempt(account.username, PASSWORD, address=address)
    assert refused.status_code == 429
    assert refused["Retry-After"] == "900"


def test_the_pause_of_an_address_reads_like_that_of_an_account(account: User, address: str) -> None:
    guessed = [attempt(account.username, f"wrong {n}", address=address) for n in range(5)][-1]
    sprayed = [attempt(f"spray-{n}", "wrong", address=address) for n in range(ATTEMPTS)][-1]
    pages = [answer.content.decode() for answer in (guessed, sprayed)]
    assert pages[0].count("Try again in 15 minutes.") == pages[1].count("Try again in 15 minutes.") == 1


def test_other_addresses_are_not_affected(account: User, address: str) -> None:
    spray(address)
    assert attempt(account.username, PASSWORD, address="203.0.113.21").status_code == 302


def test_a_sign_in_to_an_account_of_ones_own_does_not_clear_the_others(account: User, address: str) -> None:
    spray(address, times=ATTEMPTS - 1)
    assert attempt(account.username, PASSWORD, address=address).status_code == 302
    assert spray(address, times=1) == [429]


def test_the_pause_ends_although_attempts_went_on(account: User, address: str) -> None:
    spray(address, times=ATTEMPTS + 3)
    failed = AccessAttempt.objects.filter(ip_address=address)
    assert failed.count() == ATTEMPTS
    failed.update(attempt_time=F("attempt_time") - dt.timedelta(minutes=16))
    assert attempt(account.username, PASSWORD, address=address).status_code == 302


def test_the_typing_errors_of_one_person_do_not_pause_their_office(account: User, address: str) -> None:
    colleague = set_password(make_user("mo", group="moderators"))
    for number in range(20):
        attempt(account.username, f"wrong {number}", address=address)
    assert attempt(account.username, PASSWORD, address=address).status_code == 429
    assert attempt(colleague.username, PASSWORD, address=address).status_code == 302


def test_a_person_who_is_signed_in_can_still_enter_a_code(account: User, address: str) -> None:
    set_up(account)
    client = pass_password(account, address=address)
    client.post(CODE, {"code": code_of(account)})
    spray(address)
    wrong = client.post("/account/recovery-codes/", {"code": wrong_code(account)})
    assert wrong.status_code == 400
    assert client.post("/account/recovery-codes/", {"code": code_of(account)}).status_code == 200


def test_codes_of_the_second_factor_count_and_are_refused_too(account: User, address: str) -> None:
    set_up(account)
    client = pass_password(account, address=address)
    assert client.post(CODE, {"code": wrong_code(account)}).status_code == 200
    assert spray(address, times=ATTEMPTS - 1)[-1] == 429
    assert client.post(CODE, {"code": code_of(account)}).status_code == 429


def test_without_a_limit_an_address_never_pauses_for_all_accounts(
    account: User, address: str, settings: Settings
) -> None:
    settings.SIGN_IN_ATTEMPTS_PER_ADDRESS = 0
    assert set(spray(address, times=2 * ATTEMPTS)) == {200}


def test_clients_behind_a_named_proxy_pause_each_for_themselves(account: User, settings: Settings) -> None:
    settings.TRUSTED_PROXIES = 1
    proxy, guesser, office = "127.0.0.1", f"100.64.7.{secrets.randbelow(254) + 1}", "203.0.113.22"

    def attempt_behind(forwarded: str, name: str, password: str) -> int:
        client = Client(REMOTE_ADDR=proxy, headers={"x-forwarded-for": forwarded})
        return client.post("/sign-in/", {"username": name, "password": password}).status_code

    # What the client itself claims to be makes no difference.
    for number in range(ATTEMPTS):
        attempt_behind(f"192.0.2.{number}, {guesser}", f"spray-{number}", "wrong")
    assert attempt_behind(f"192.0.2.99, {guesser}", account.username, PASSWORD) == 429
    assert attempt_behind(office, account.username, PASSWORD) == 302


def test_all_addresses_of_an_ipv6_network_count_as_one(account: User) -> None:
    network = f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}"
    for number in range(1, 6):
        attempt(account.username, "wrong", address=f"{network}::{number}")
    assert attempt(account.username, PASSWORD, address=f"{network}:1:2:3:4").status_code == 429
    assert attempt(account.username, PASSWORD, address=f"2001:db8:{secrets.token_hex(2)}::1").status_code == 302


def test_ipv4_addresses_that_are_written_as_ipv6_count_by_themselves(account: User, address: str) -> None:
    spray(f"::ffff:{address}")
    assert attempt(account.username, PASSWORD, address=address).status_code == 429
    assert attempt(account.username, PASSWORD, address="::ffff:203.0.113.23").status_code == 302
