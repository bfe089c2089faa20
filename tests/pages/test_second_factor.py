"""With a second factor a password alone opens no page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from axes.models import AccessAttempt
from django.conf import settings as django_settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice
from pytest_django import Settings

from chatstore.models.users import User
from moderation.models import AuditEntry
from tests.conftest import make_user
from tests.pages.access_table import CASES
from tests.pages.conftest import PreviewedPurge
from tests.pages.second_factors import (
    PASSWORD,
    code_of,
    pass_password,
    secret_on,
    set_password,
    set_up,
    show_code,
    wrong_code,
)

SignIn = Callable[[User], Client]

CODE = "/sign-in/code/"
HOME, ELSEWHERE = "198.51.100.7", "203.0.113.9"


@pytest.fixture
def account(mona: User) -> User:
    """Mona, who has a password and a second factor."""
    set_password(mona)
    set_up(mona)
    return mona


def codes_on(page: str) -> list[str]:
    return re.findall(r"<li>([a-z2-9]{5}-[a-z2-9]{5})</li>", page)


def actions_of(account: User) -> list[str]:
    return list(AuditEntry.objects.filter(actor=account).order_by("id").values_list("action", flat=True))


def test_a_second_factor_is_set_up_and_asked_for_at_the_next_sign_in(mona: User, sign_in: SignIn) -> None:
    client = sign_in(set_password(mona))
    page = client.get("/account/second-factor/").content.decode()
    assert "<svg viewBox" in page
    codes = codes_on(client.post("/account/second-factor/", {"code": show_code(secret_on(page))}).content.decode())
    assert len(codes) == 10
    # They are shown once.
    assert codes_on(client.get("/account/").content.decode()) == []
    assert "10 recovery codes are left." in client.get("/account/").content.decode()
    next_time = pass_password(mona, then="/preferences/")
    assert next_time.get("/preferences/").status_code == 302
    assert next_time.post(CODE, {"code": code_of(mona)})["Location"] == "/preferences/"
    assert next_time.get("/preferences/").status_code == 200
    assert actions_of(mona)[-2:] == ["second_factor_added", "signed_in"]


def test_a_wrong_code_sets_nothing_up(mona: User, sign_in: SignIn) -> None:
    client = sign_in(mona)
    secret = secret_on(client.get("/account/second-factor/").content.decode())
    for code in ("", "000000x", "１２３４５６", "\0", f"{(int(show_code(secret)) + 1) % 1_000_000:06}"):
        refused = client.post("/account/second-factor/", {"code": code})
        assert refused.status_code == 400
        # The same secret is shown again: it is in the app by now.
        assert secret_on(refused.content.decode()) == secret
    assert not TOTPDevice.objects.filter(user=mona).exists()


def test_after_the_password_every_page_answers_as_to_a_visitor(account: User, previewed: PreviewedPurge) -> None:
    client, names = pass_password(account), previewed.names
    for _route, method, url, statuses in CASES:
        if url.startswith("sign-"):
            continue
        path = "/" if url == "-" else "/" + url.format(**names)
        answer = client.post(path) if method == "POST" else client.get(path)
        assert answer.status_code == statuses["anonymous"], path
        if answer.status_code == 302:
            assert answer["Location"].startswith(("/sign-in/", "/admin/login/", "/admin/")), path
    assert client.get(CODE).status_code == 200


def test_who_has_passed_only_the_password_can_sign_out(account: User) -> None:
    client = pass_password(account)
    assert client.post("/sign-out/").status_code == 302
    assert client.get(CODE)["Location"] == "/sign-in/"


def test_the_code_page_is_closed_to_visitors(account: User) -> None:
    assert Client().get(CODE)["Location"] == "/sign-in/"
    assert Client().post(CODE, {"code": code_of(account)})["Location"] == "/sign-in/"


def test_the_admins_sign_in_page_asks_for_the_code_too(account: User) -> None:
    client = Client()
    assert client.get("/admin/", follow=True).request["PATH_INFO"] == "/sign-in/"
    client.post("/admin/login/", {"username": account.username, "password": PASSWORD})
    assert client.get("/admin/").status_code == 302


def test_the_answer_to_a_code_does_not_tell_why_it_was_refused(account: User) -> None:
    client = pass_password(account)
    wrong = client.post(CODE, {"code": wrong_code(account)})
    # A right code is refused as well, so soon after a wrong one.
    TOTPDevice.objects.filter(user=account).update(throttling_failure_count=20)
    right = client.post(CODE, {"code": show_code(TOTPDevice.objects.get(user=account).key)})
    unknown = client.post(CODE, {"code": "abcde-fghjk"})
    pages = [re.sub(r'value="[^"]*"', "", answer.content.decode()) for answer in (wrong, right, unknown)]
    assert len(set(pages)) == 1
    assert "This code is not valid." in pages[0]


def test_wrong_codes_pause_the_address_for_this_account_alone(account: User) -> None:
    client = pass_password(account)
    for _n in range(4):
        assert client.post(CODE, {"code": wrong_code(account)}).status_code == 200
        # Entering the password again does not restart the count.
        client = pass_password(account)
    assert client.post(CODE, {"code": wrong_code(account)}).status_code == 429
    assert client.post(CODE, {"code": code_of(account)}).status_code == 429
    posted = {"username": account.username, "password": PASSWORD}
    assert Client(REMOTE_ADDR=HOME).post("/sign-in/", posted).status_code == 429
    elsewhere = pass_password(account, address=ELSEWHERE)
    assert elsewhere.post(CODE, {"code": code_of(account)}).status_code == 302


def test_wrong_codes_are_recorded(account: User) -> None:
    pass_password(account).post(CODE, {"code": wrong_code(account)})
    entry = AuditEntry.objects.get(action="second_factor_failed", details__account=account.username)
    assert entry.details["address"] == HOME
    assert entry.actor is None


def test_a_code_works_once(account: User) -> None:
    code = code_of(account)
    assert pass_password(account).post(CODE, {"code": code}).status_code == 302
    assert pass_password(account).post(CODE, {"code": code}).status_code == 200


def test_a_recovery_code_works_once_and_is_recorded(mona: User) -> None:
    codes = set_up(set_password(mona))
    typed = codes[3].upper().replace("-", " ")
    assert pass_password(mona).post(CODE, {"code": typed}).status_code == 302
    assert pass_password(mona).post(CODE, {"code": typed}).status_code == 200
    entry = AuditEntry.objects.get(action="recovery_code_used", actor=mona)
    assert entry.details == {"address": HOME, "left": 9}


def test_recovery_codes_of_another_account_are_not_valid(account: User, lena: User) -> None:
    assert pass_password(account).post(CODE, {"code": set_up(lena)[0]}).status_code == 200


def test_recovery_codes_are_not_stored(mona: User) -> None:
    codes = {code.replace("-", "") for code in set_up(mona)}
    stored = set(StaticToken.objects.filter(device__user=mona).values_list("token", flat=True))
    assert len(stored) == 10
    assert not stored & codes
    assert not any(code in token for code in codes for token in stored)


def test_codes_are_not_stored_with_an_attempt(account: User) -> None:
    code = wrong_code(account)
    pass_password(account).post(CODE, {"code": code})
    assert code not in AccessAttempt.objects.get(username=account.username).post_data


def test_new_recovery_codes_replace_the_old_ones(account: User) -> None:
    client = pass_password(account)
    client.post(CODE, {"code": code_of(account)})
    assert client.post("/account/recovery-codes/", {"code": wrong_code(account)}).status_code == 400
    page = client.post("/account/recovery-codes/", {"code": code_of(account)}).content.decode()
    codes = codes_on(page)
    assert len(codes) == StaticToken.objects.filter(device__user=account).count() == 10
    assert pass_password(account).post(CODE, {"code": codes[0]}).status_code == 302


def test_removing_it_needs_a_code(account: User) -> None:
    client = pass_password(account)
    client.post(CODE, {"code": code_of(account)})
    assert client.post("/account/second-factor/remove/", {"code": wrong_code(account)}).status_code == 400
    assert client.post("/account/second-factor/remove/", {"code": code_of(account)})["Location"] == "/account/"
    assert not StaticToken.objects.filter(device__user=account).exists()
    assert client.get("/account/").status_code == 200
    assert pass_password(account).get("/account/").status_code == 200
    assert "second_factor_removed" in actions_of(account)


def test_guessing_codes_on_the_account_page_pauses_as_well(account: User) -> None:
    client = pass_password(account)
    client.post(CODE, {"code": code_of(account)})
    statuses = [client.post("/account/second-factor/remove/", {"code": "000"}).status_code for _n in range(6)]
    assert statuses == [400] * 4 + [429] * 2
    assert TOTPDevice.objects.filter(user=account).exists()


@pytest.mark.parametrize("change", ["password", "deactivation", "time"])
def test_the_second_stage_ends(account: User, change: str) -> None:
    client = pass_password(account)
    assert client.get(CODE).status_code == 200
    if change == "password":
        account.set_password("another one entirely")
        account.save()
    elif change == "deactivation":
        User.objects.filter(pk=account.pk).update(is_active=False)
    else:
        session = client.session
        session["sign_in_stage"] = {**session["sign_in_stage"], "at": session["sign_in_stage"]["at"] - 601}
        session.save()
    assert client.post(CODE, {"code": code_of(account)})["Location"] == "/sign-in/"


def test_a_role_can_enforce_it_at_the_next_sign_in(lena: User, settings: Settings) -> None:
    settings.SECOND_FACTOR_ROLES = ["admin", "lead"]
    client = pass_password(set_password(lena), then="/holds/")
    assert client.get("/holds/").status_code == 302
    assert client.get(CODE)["Location"] == "/sign-in/set-up/"
    page = client.get("/sign-in/set-up/").content.decode()
    shown = client.post("/sign-in/set-up/", {"code": show_code(secret_on(page))}).content.decode()
    assert len(codes_on(shown)) == 10
    assert 'href="/holds/"' in shown
    assert client.get("/holds/").status_code == 200
    refused = client.post("/account/second-factor/remove/", {"code": code_of(lena)})
    assert refused.status_code == 403
    assert TOTPDevice.objects.filter(user=lena).exists()


def test_it_is_not_enforced_for_other_roles(mona: User, settings: Settings) -> None:
    settings.SECOND_FACTOR_ROLES = ["admin", "lead"]
    assert pass_password(set_password(mona)).get("/").status_code == 200


def test_superusers_need_it_where_any_role_does(mona: User, settings: Settings) -> None:
    settings.SECOND_FACTOR_ROLES = ["admin"]
    set_password(mona)
    User.objects.filter(pk=mona.pk).update(is_superuser=True)
    assert pass_password(mona).get("/").status_code == 302


def test_a_session_from_before_it_was_enforced_is_taken_back(lena: User, sign_in: SignIn, settings: Settings) -> None:
    client = sign_in(lena)
    assert client.get("/holds/").status_code == 200
    settings.SECOND_FACTOR_ROLES = ["lead"]
    assert client.get("/holds/")["Location"] == "/sign-in/set-up/"
    assert client.get("/").status_code == 302


def test_a_session_that_was_signed_in_without_the_code_is_taken_back(account: User) -> None:
    """However it was signed in: the middleware knows no way around the code."""
    client = Client()
    client.force_login(account)
    assert client.get("/purges/?by=mona")["Location"] == CODE
    fragment = client.get("/find/suggestions/?q=a", headers={"HX-Request": "true"}, follow=True)
    assert fragment["HX-Trigger"] == "reloadPage"
    assert client.get("/metrics").status_code == 403
    assert client.post(CODE, {"code": code_of(account)})["Location"] == "/purges/?by=mona"
    assert client.get("/purges/").status_code == 200


def test_an_admin_resets_the_second_factor_of_another_account(ada: User, account: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    link = f"/account/{account.pk}/reset-second-factor/"
    assert link in client.get(f"/admin/auth/user/{account.pk}/change/").content.decode()
    assert client.get(link).status_code == 200
    assert client.post(link, {"reason": "Phone lost"}).status_code == 302
    assert pass_password(account).get("/").status_code == 200
    entry = AuditEntry.objects.get(action="second_factor_reset", actor=ada)
    assert (entry.details["account"], entry.details["reason"]) == (account.username, "Phone lost")


@pytest.mark.parametrize("reason", ["", " ", "a\0b", "x" * 1_001])
def test_a_reset_takes_a_reason(reason: str, ada: User, account: User, sign_in: SignIn) -> None:
    client, link = sign_in(ada), f"/account/{account.pk}/reset-second-factor/"
    page = client.get(link).content.decode()
    assert re.search(r'<textarea[^>]*name="reason"\s+required', page)
    refused = client.post(link, {"reason": reason})
    assert refused.status_code == 400
    assert 'role="alert"' in refused.content.decode()
    if len(reason) > 1_000:
        assert f">{reason}</textarea>" in refused.content.decode()
    assert TOTPDevice.objects.filter(user=account).exists()
    assert not AuditEntry.objects.filter(action="second_factor_reset", actor=ada).exists()


def test_others_cannot_reset_it(account: User, lena: User, ada: User, sign_in: SignIn) -> None:
    root = make_user("root", group=None)
    User.objects.filter(pk=root.pk).update(is_superuser=True)
    set_up(root)
    assert sign_in(lena).post(f"/account/{account.pk}/reset-second-factor/").status_code == 403
    assert sign_in(ada).post(f"/account/{ada.pk}/reset-second-factor/").status_code == 403
    assert sign_in(ada).post(f"/account/{root.pk}/reset-second-factor/").status_code == 403
    for unknown in (0, 10**30):
        assert sign_in(ada).post(f"/account/{unknown}/reset-second-factor/").status_code == 404
    assert TOTPDevice.objects.filter(user__in=[account, root]).count() == 2


def test_the_command_line_resets_it(account: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("second_factor_reset", account.username)
    assert capsys.readouterr().out == f"{account.username}: second factor removed\n"
    entry = AuditEntry.objects.get(action="second_factor_reset", details__account=account.username)
    assert entry.actor is not None
    assert entry.actor.username == "command-line"
    call_command("second_factor_reset", account.username)
    assert capsys.readouterr().out == f"{account.username} has no second factor\n"
    with pytest.raises(CommandError, match="There is no account"):
        call_command("second_factor_reset", "no such account")


def test_the_admin_shows_no_secrets(ada: User, sign_in: SignIn) -> None:
    User.objects.filter(pk=ada.pk).update(is_superuser=True)
    client = sign_in(ada)
    for path in ("otp_totp/totpdevice", "otp_static/staticdevice"):
        assert client.get(f"/admin/{path}/").status_code == 404


def test_an_ordinary_request_costs_no_statement_more(account: User, settings: Settings) -> None:
    def count(client: Client) -> int:
        assert client.get("/preferences/").status_code == 200
        with CaptureQueriesContext(connection) as captured:
            client.get("/preferences/")
        return len(captured)

    client = pass_password(account)
    client.post(CODE, {"code": code_of(account)})
    with_it = count(client)
    settings.MIDDLEWARE = [name for name in django_settings.MIDDLEWARE if "RequireSecondFactor" not in name]
    without_it = Client()
    without_it.cookies = client.cookies
    assert with_it == count(without_it)
