"""Guessing a password pauses the guesser, never the moderator, and sign-ins are in the audit log."""

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
from moderation.models import AuditEntry
from tests.conftest import make_user

HOME, ELSEWHERE = "198.51.100.7", "203.0.113.9"
PASSWORD = secrets.token_hex(16)


@pytest.fixture
def account(mona: User) -> User:
    mona.set_password(PASSWORD)
    mona.save()
    return mona


def attempt(name: str, password: str, *, address: str = HOME, path: str = "/sign-in/") -> HttpResponse:
    posted = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post(path, posted)  # type: ignore[return-value]


def fail(name: str, *, times: int = 5, address: str = HOME) -> HttpResponse:
    return [attempt(name, f"wrong {number}", address=address) for number in range(times)][-1]


def test_the_fifth_wrong_password_pauses_the_address_for_this_account(account: User) -> None:
    assert fail(account.username, times=4).status_code == 200
    assert fail(account.username, times=1).status_code == 429
    refused = attempt(account.username, PASSWORD)
    assert refused.status_code == 429
    assert refused["Retry-After"] == "900"
    assert "Try again in 15 minutes." in refused.content.decode()


def test_the_moderator_still_signs_in_from_elsewhere(account: User) -> None:
    fail(account.username, times=6)
    assert attempt(account.username, PASSWORD, address=ELSEWHERE).status_code == 302


def test_the_pause_ends_although_attempts_went_on(account: User) -> None:
    fail(account.username, times=9)
    attempts = AccessAttempt.objects.filter(username=account.username)
    assert [attempt.failures_since_start for attempt in attempts] == [5]
    attempts.update(attempt_time=F("attempt_time") - dt.timedelta(minutes=16))
    assert attempt(account.username, PASSWORD).status_code == 302


def test_a_sign_in_forgets_the_failures_before_it(account: User) -> None:
    fail(account.username, times=4)
    assert attempt(account.username, PASSWORD).status_code == 302
    assert fail(account.username, times=4).status_code == 200


def test_answers_do_not_tell_whether_an_account_exists(account: User) -> None:
    unknown = f"nobody-{secrets.token_hex(6)}"
    for times in (1, 4):
        known, other = (fail(name, times=times) for name in (account.username, unknown))
        assert known.status_code == other.status_code
        pages = [page.content.decode() for page in (known, other)]
        assert [page.count("too many attempts") for page in pages] in ([0, 0], [1, 1])
        assert [page.count("password is wrong") for page in pages] in ([0, 0], [1, 1])


def test_the_admins_sign_in_page_is_ours(account: User) -> None:
    assert attempt(account.username, PASSWORD, path="/admin/login/")["Location"] == "/sign-in/"
    assert Client().get("/admin/login/?next=/admin/")["Location"] == "/sign-in/?next=%2Fadmin%2F"
    client = Client()
    client.force_login(make_user("guest", group=None, is_staff=False))
    # The admin would send them there again.
    assert client.get("/admin/", follow=True).status_code == 403


def test_a_stored_attempt_contains_no_password(account: User) -> None:
    wrong = f"wrong {secrets.token_hex(8)}"
    attempt(account.username, wrong)
    assert wrong not in AccessAttempt.objects.get(username=account.username).post_data


def test_sign_ins_are_recorded_with_their_address(account: User) -> None:
    attempt(account.username, PASSWORD, address=ELSEWHERE)
    entry = AuditEntry.objects.get(actor=account, action="signed_in")
    assert entry.details == {"address": ELSEWHERE}


def test_failed_sign_ins_are_recorded_once_and_refused_ones_not(account: User) -> None:
    fail(account.username, times=7)
    entries = AuditEntry.objects.filter(action="sign_in_failed", details__account=account.username)
    assert [entry.details["address"] for entry in entries] == [HOME] * 5
    assert not entries.filter(actor__isnull=False).exists()


def test_a_name_that_is_no_account_is_not_recorded() -> None:
    typed = f"my password {secrets.token_hex(6)}"
    address = f"2001:db8::{secrets.randbits(16):x}"
    attempt(typed, "whatever", address=address)
    entry = AuditEntry.objects.get(action="sign_in_failed", details__address=address)
    assert entry.details == {"address": address, "account": None}


def test_a_forwarded_address_counts_only_with_trusted_proxies(account: User, settings: Settings) -> None:
    def claim(forwarded: str) -> None:
        Client(REMOTE_ADDR=HOME, headers={"x-forwarded-for": forwarded}).post(
            "/sign-in/", {"username": account.username, "password": PASSWORD}
        )

    claim(ELSEWHERE)
    settings.TRUSTED_PROXIES = 1
    claim(f"192.0.2.1, {ELSEWHERE}")
    settings.TRUSTED_PROXIES = 3
    claim(f"192.0.2.1, {ELSEWHERE}")
    settings.TRUSTED_PROXIES = 1
    claim("not an address")
    entries = AuditEntry.objects.filter(actor=account, action="signed_in").order_by("at")
    assert [entry.details["address"] for entry in entries] == [HOME, ELSEWHERE, HOME, HOME]


def test_no_cache_may_store_a_page(account: User) -> None:
    client = Client()
    client.force_login(account)
    for path in ("/", "/purges/", "/sign-in/", "/no-such-page/"):
        assert {"private", "no-store"} <= set(client.get(path)["Cache-Control"].split(", ")), path


@pytest.mark.parametrize(
    ("referer", "page"),
    [
        ("http://testserver/purges/5/?page=2", "/purges/5/%3Fpage%3D2"),
        ("http://elsewhere.example/purges/5/", "/"),
        ("", "/"),
    ],
)
def test_a_form_that_is_sent_after_the_session_has_ended_leads_back_to_its_page(referer: str, page: str) -> None:
    refused = Client().post("/purges/5/confirm/", {"reason": "spam"}, headers={"Referer": referer})
    assert refused.status_code == 302
    assert refused["Location"] == f"/sign-in/?next={page}"
