"""Acts that others cannot undo take a password or a code of the last fifteen minutes, and lose nothing entered."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings

from chatstore.models import RoleGrant
from chatstore.models.users import User
from moderation.domain.states import PurgeState
from moderation.models import AuditEntry, Erasure, Hold, Purge
from moderation.operations.erasure.requests import request_erasure
from moderation.operations.holds import HoldRequest, place_hold
from tests.moderation.channels import VICTOR, make_channel
from tests.moderation.erasures import finished_purge
from tests.pages.conftest import PreviewedPurge
from tests.pages.second_factors import PASSWORD, code_of, set_password, set_up, wrong_code

SignIn = Callable[[User], Client]
FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


@pytest.fixture
def sign_in_earlier(sign_in: SignIn) -> SignIn:
    """Return a function that signs in, longer ago than a confirmation lasts."""

    def sign_in_then_wait(account: User) -> Client:
        client = sign_in(set_password(account))
        client.get("/preferences/")
        session = client.session
        session["confirmed_at"] -= 15 * 60 + 1
        session.save()
        return client

    return sign_in_then_wait


def asks(answer: Any) -> bool:
    return bool(answer.status_code == 403 and "Confirm it’s you" in answer.content.decode())


def kept_fields(answer: Any) -> dict[str, list[str]]:
    """Return the fields that the page posts again, as a browser would."""
    fields: dict[str, list[str]] = {}
    for name, value in FIELD.findall(answer.content.decode()):
        fields.setdefault(html.unescape(name), []).append(html.unescape(value))
    fields.pop("csrfmiddlewaretoken", None)
    return fields


def confirm_by(client: Client, path: str, answer: Any, secret: str) -> HttpResponse:
    posted = {**kept_fields(answer), "confirm_secret": secret}
    return client.post(path, posted)  # type: ignore[return-value]


def confirmation(purge: Purge, reason: str = "Raid") -> dict[str, str]:
    purge.refresh_from_db()
    assert purge.manifest_hash is not None
    return {"reason": reason, "manifest_hash": bytes(purge.manifest_hash).hex()}


def test_a_large_purge_takes_a_password_and_then_goes_on(
    previewed: PreviewedPurge, sign_in_earlier: SignIn, settings: Settings
) -> None:
    settings.CONFIRM_ABOVE_MESSAGES = 5
    client, path = sign_in_earlier(previewed.moderator), f"/purges/{previewed.purge.pk}/confirm/"
    reason = '"Raid" of <b>Victor</b> & others'
    asked = client.post(path, confirmation(previewed.purge, reason))
    assert asks(asked)
    assert kept_fields(asked)["reason"] == [reason]
    assert confirm_by(client, path, asked, PASSWORD).status_code == 302
    previewed.purge.refresh_from_db()
    assert previewed.purge.state != PurgeState.READY
    assert previewed.purge.reason == reason


def test_a_small_purge_takes_none(previewed: PreviewedPurge, sign_in_earlier: SignIn, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_MESSAGES = 6
    client, path = sign_in_earlier(previewed.moderator), f"/purges/{previewed.purge.pk}/confirm/"
    assert client.post(path, confirmation(previewed.purge)).status_code == 302


def test_a_recent_sign_in_is_a_confirmation(previewed: PreviewedPurge, sign_in: SignIn, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_MESSAGES = 5
    client, path = sign_in(previewed.moderator), f"/purges/{previewed.purge.pk}/confirm/"
    assert client.post(path, confirmation(previewed.purge)).status_code == 302


def test_a_wrong_password_does_nothing(previewed: PreviewedPurge, sign_in_earlier: SignIn, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_MESSAGES = 5
    account = previewed.moderator
    client, path = sign_in_earlier(account), f"/purges/{previewed.purge.pk}/confirm/"
    asked = client.post(path, confirmation(previewed.purge, "A reason"))
    again = confirm_by(client, path, asked, "wrong password")
    assert asks(again)
    assert kept_fields(again)["reason"] == ["A reason"]
    assert Purge.objects.get(pk=previewed.purge.pk).state == PurgeState.READY
    assert AuditEntry.objects.filter(action="sign_in_failed", details__account=account.username).exists()
    assert "wrong password" not in AccessAttempt.objects.get(username=account.username).post_data
    answers = [confirm_by(client, path, asked, "wrong password").status_code for _n in range(4)]
    assert answers == [403, 403, 403, 429]
    # Not even the right one now; the session goes on.
    assert confirm_by(client, path, asked, PASSWORD).status_code == 429
    assert client.get("/purges/").status_code == 200


def test_an_account_with_a_second_factor_enters_a_code(previewed: PreviewedPurge, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_MESSAGES = 5
    account = set_password(previewed.moderator)
    set_up(account)
    client, path = Client(), f"/purges/{previewed.purge.pk}/confirm/"
    client.post("/sign-in/", {"username": account.username, "password": PASSWORD})
    client.post("/sign-in/code/", {"code": code_of(account)})
    session = client.session
    session["confirmed_at"] = 0
    session.save()
    asked = client.post(path, confirmation(previewed.purge))
    assert asks(asked)
    assert asks(confirm_by(client, path, asked, PASSWORD))
    assert asks(confirm_by(client, path, asked, wrong_code(account)))
    assert confirm_by(client, path, asked, code_of(account)).status_code == 302


def test_requesting_and_approving_erasure_take_it(mona: User, lena: User, ada: User, sign_in_earlier: SignIn) -> None:
    purge = finished_purge(mona, make_channel())
    path = f"/purges/{purge.pk}/erase/"
    first, second = sign_in_earlier(lena), sign_in_earlier(ada)
    asked = first.post(path, {"reason": "Request 71"})
    assert asks(asked)
    assert not Erasure.objects.filter(purge=purge).exists()
    assert confirm_by(first, path, asked, PASSWORD).status_code == 302
    erasure = Erasure.objects.get(purge=purge)
    assert erasure.reason == "Request 71"
    asked = second.post(f"{path}approve/", {"erasure": str(erasure.pk), "is_final": "on"})
    assert asks(asked)
    assert not AuditEntry.objects.filter(action="erase_approved", purge=purge).exists()
    assert confirm_by(second, f"{path}approve/", asked, PASSWORD).status_code == 302
    assert AuditEntry.objects.filter(action="erase_approved", purge=purge).exists()


def test_rejecting_an_erasure_takes_none(mona: User, lena: User, ada: User, sign_in_earlier: SignIn) -> None:
    purge = finished_purge(mona, make_channel())
    erasure = request_erasure(purge.pk, moderator=lena, reason="Request 71")
    rejected = sign_in_earlier(ada).post(f"/purges/{purge.pk}/erase/reject/", {"erasure": str(erasure.pk)})
    assert rejected.status_code == 302


def test_lifting_a_hold_takes_it(lena: User, mona: User, sign_in_earlier: SignIn) -> None:
    channel = make_channel()
    hold = place_hold(HoldRequest(str(VICTOR), str(channel.pk), ""), reason="Case", actor=lena)
    client, path = sign_in_earlier(lena), f"/holds/{hold.pk}/lift/"
    asked = client.post(path, {"reason": "Closed"})
    assert asks(asked)
    assert Hold.objects.get(pk=hold.pk).lifted_at is None
    assert confirm_by(client, path, asked, PASSWORD).status_code == 302
    assert Hold.objects.get(pk=hold.pk).lift_reason == "Closed"
    # Who may not lift it is not asked.
    refused = sign_in_earlier(mona).post(path, {"reason": "Closed"})
    assert refused.status_code == 403
    assert not asks(refused)


def test_giving_a_role_takes_it(ada: User, mona: User, sign_in_earlier: SignIn) -> None:
    client, posted = sign_in_earlier(ada), {"person": mona.username, "role": "lead"}
    asked = client.post("/roles/", posted)
    assert asks(asked)
    assert not RoleGrant.objects.filter(account=mona, role="lead").exists()
    assert confirm_by(client, "/roles/", asked, PASSWORD).status_code == 302
    assert RoleGrant.objects.filter(account=mona, role="lead", given_by=ada).exists()


def test_inviting_takes_it(ada: User, sign_in_earlier: SignIn) -> None:
    client, name = sign_in_earlier(ada), f"nora-{secrets.token_hex(4)}"
    asked = client.post("/roles/invite/", {"people": name, "role": "lead"})
    assert asks(asked)
    assert not User.objects.filter(username=name).exists()
    assert confirm_by(client, "/roles/invite/", asked, PASSWORD).status_code == 200
    assert User.objects.filter(username=name).exists()


def test_setting_the_password_of_another_takes_it_before_anything_is_entered(
    ada: User, mona: User, sign_in_earlier: SignIn
) -> None:
    client, path = sign_in_earlier(ada), f"/admin/auth/user/{mona.pk}/password/"
    before = mona.password
    new = {"usable_password": "true", "password1": "a horse of 71", "password2": "a horse of 71"}
    asked = client.post(path, new)
    assert asks(asked)
    assert "a horse" not in asked.content.decode()
    assert kept_fields(asked) == {}
    asked = client.get(path)
    assert asks(asked)
    shown = confirm_by(client, path, asked, PASSWORD)
    assert (shown.status_code, shown.headers["Location"]) == (302, path)
    assert User.objects.get(pk=mona.pk).password == before
    assert client.get(path).status_code == 200
    assert client.post(path, new).status_code == 302
    assert User.objects.get(pk=mona.pk).check_password("a horse of 71")
    entry = AuditEntry.objects.get(action="password_set", actor=ada)
    assert (entry.details["name"], entry.details["fields"]) == (mona.username, ["password"])
    assert "horse" not in str(entry.details)


def test_who_may_not_set_the_password_is_not_asked(lena: User, mona: User, sign_in_earlier: SignIn) -> None:
    refused = sign_in_earlier(lena).get(f"/admin/auth/user/{mona.pk}/password/")
    assert refused.status_code == 403
    assert not asks(refused)


def test_changing_a_name_takes_none(ada: User, mona: User, sign_in_earlier: SignIn) -> None:
    posted = {"username": mona.username, "is_active": "on", "last_name": "Lisa"}
    assert sign_in_earlier(ada).post(f"/admin/auth/user/{mona.pk}/change/", posted).status_code == 302
    assert User.objects.get(pk=mona.pk).last_name == "Lisa"


def test_resetting_a_second_factor_takes_it(ada: User, mona: User, sign_in_earlier: SignIn) -> None:
    set_up(mona)
    client, path = sign_in_earlier(ada), f"/account/{mona.pk}/reset-second-factor/"
    asked = client.post(path, {"reason": "Phone lost"})
    assert asks(asked)
    assert confirm_by(client, path, asked, PASSWORD).status_code == 302


def test_cancelling_leads_back_to_the_page_but_to_no_other_site(lena: User, sign_in_earlier: SignIn) -> None:
    client = sign_in_earlier(lena)
    for referer, back in (
        ("http://testserver/holds/?a=1", "http://testserver/holds/?a=1"),
        ("http://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ):
        page = client.post("/holds/1/lift/", headers={"Referer": referer}).content.decode()
        assert f'href="{back}">Cancel</a>' in page


def test_a_visitor_cannot_try_passwords_by_it(mona: User) -> None:
    set_password(mona)
    answer = Client().post("/holds/1/lift/", {"confirm_secret": PASSWORD})
    assert answer.status_code == 302
    assert not AuditEntry.objects.filter(action="sign_in_failed", details__account=mona.username).exists()
