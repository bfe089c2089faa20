"""Passkeys of staff accounts: instead of the code of the authenticator app, which an account sets up first.

What a browser signs is made and verified by `django_otp_webauthn`; a challenge is in the session and good for one
answer. A passkey cannot be guessed, so that wrong ones need no throttling of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django_otp_webauthn.exceptions import OTPWebAuthnApiError
from django_otp_webauthn.helpers import WebAuthnHelper
from django_otp_webauthn.models import WebAuthnCredential
from webauthn.helpers.exceptions import WebAuthnException

from chatstore.domain.errors import BadInput, NotFound
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from moderation.operations.access.audit import record_action

MAX_PASSKEYS = 10
MAX_NAME_CHARACTERS = 60
MAX_ANSWER_CHARACTERS = 20_000

_WRONG = (OTPWebAuthnApiError, WebAuthnException, KeyError, TypeError, ValueError, RecursionError)

_CHALLENGES = "passkey_challenges"
"""Key of the session: state of what the browser was asked, by "add" and "use"."""


def are_available(request: HttpRequest) -> bool:
    """Return whether browsers accept passkeys at the address of a request: it has to be the domain of the passkeys."""
    return request.get_host().partition(":")[0] == settings.OTP_WEBAUTHN_RP_ID


def list_passkeys(account: User) -> Sequence[WebAuthnCredential]:
    """Return the passkeys of an account, the oldest first."""
    return list(WebAuthnCredential.objects.filter(user=account, confirmed=True).order_by("pk"))


def ask_for_new(request: HttpRequest, account: User) -> str:
    """Return what a browser needs to make a passkey, as JSON."""
    options, state = WebAuthnHelper(request).register_begin(account)
    _remember(request, "add", state)
    return json.dumps(options)


def ask_for_one(request: HttpRequest, account: User) -> str:
    """Return what a browser needs to use a passkey of the account, as JSON; "" if there is none."""
    if not are_available(request) or not list_passkeys(account):
        return ""
    options, state = WebAuthnHelper(request).authenticate_begin(account, require_user_verification=False)
    _remember(request, "use", state)
    return json.dumps(options)


def add_passkey(request: HttpRequest, account: User, answer: str, *, name: str) -> None:
    """Store the passkey that a browser has made. Raises `BadInput`."""
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARACTERS or "\x00" in name:
        raise BadInput(_("Enter a name of at most %(count)s characters.", count=MAX_NAME_CHARACTERS))
    state = _take(request, "add")
    with transaction.atomic():
        lock_account(account)
        if len(list_passkeys(account)) >= MAX_PASSKEYS:
            raise BadInput(_("An account has at most %(count)s passkeys. Remove one first.", count=MAX_PASSKEYS))
        try:
            passkey = WebAuthnHelper(request).register_complete(account, state, _parse(answer))
        except _WRONG as error:
            raise BadInput(_("The passkey could not be added. Try again.")) from error
        WebAuthnCredential.objects.filter(pk=passkey.pk).update(name=name)
        record_action("passkey_added", actor=account, details={"name": name})


def verify_passkey(request: HttpRequest, account: User, answer: str) -> bool:
    """Return whether an answer proves one of the account's passkeys. A wrong one is recorded like a wrong code."""
    try:
        state = _take(request, "use")
        with transaction.atomic():
            passkey = WebAuthnHelper(request).authenticate_complete(account, state, _parse(answer))
            is_right = bool(passkey.user_id == account.pk and passkey.confirmed)
    except (BadInput, *_WRONG):
        is_right = False
    if not is_right:
        record_action("second_factor_failed", actor=None, details={"account": account.get_username()})
    return is_right


@transaction.atomic
def remove_passkey(account: User, passkey_id: int) -> None:
    """Remove a passkey of the account. Raises `NotFound`."""
    passkey = WebAuthnCredential.objects.filter(user=account, pk=passkey_id).first()
    if passkey is None:
        raise NotFound(_("There is no such passkey."))
    passkey.delete()
    record_action("passkey_removed", actor=account, details={"name": passkey.name})


def _remember(request: HttpRequest, kind: str, state: Mapping[str, Any]) -> None:
    request.session[_CHALLENGES] = {**request.session.get(_CHALLENGES, {}), kind: dict(state)}


def _take(request: HttpRequest, kind: str) -> dict[str, Any]:
    """Return the state of a challenge, which is good no more afterwards. Raises `BadInput`."""
    challenges = dict(request.session.get(_CHALLENGES, {}))
    state = challenges.pop(kind, None)
    request.session[_CHALLENGES] = challenges
    request.session.save()
    if state is None:
        raise BadInput(_("This page is too old. Reload it and try again."))
    return dict(state)


def _parse(answer: str) -> dict[str, Any]:
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise ValueError("too long")
    value = json.loads(answer)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value
