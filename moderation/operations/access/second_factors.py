"""Second factors of staff accounts: an authenticator app, and recovery codes in case it is lost.

Codes are checked with the rows of `django_otp`, which throttle guesses: after each wrong code the next one is refused
for twice as long. Recovery codes are stored as keyed hashes, so that a copy of the database contains none.
"""

from __future__ import annotations

import secrets
import string
import time
from base64 import b32encode, urlsafe_b64encode

from django.conf import settings
from django.db import transaction
from django.utils.crypto import salted_hmac
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice
from django_otp.util import random_hex
from django_otp_webauthn.models import WebAuthnCredential

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.texts import gettext_lazy as _
from chatstore.models.users import User
from chatstore.operations.coordination.account_lock import lock_account
from chatstore.operations.rights import grants_of, require
from moderation.operations.access.audit import record_action
from moderation.operations.access.reasons import check_reason
from moderation.operations.access.sessions import (
    end_all_sessions,
    end_other_sessions,
    end_sessions_without_factor,
)

CHANGE_ACCOUNTS = "auth.change_user"
"""Change staff accounts: their names, and whether they are active."""

RECOVERY_CODES = 10
MAX_CODE_CHARACTERS = 40
"""Longest code that is read; what people type between its characters is not counted."""

_DEVICE_NAME = "authenticator"
_CODE_LETTERS = "".join(sorted(set(string.ascii_lowercase + string.digits) - set("0o1li")))
_HASH_CHARACTERS = 16
"""Length of django_otp's column; 96 bits."""


def second_factor_of(account: User) -> TOTPDevice | None:
    """Return the account's authenticator app; None if it has none."""
    device: TOTPDevice | None = TOTPDevice.objects.filter(user=account, confirmed=True).first()
    return device


def has_second_factor(account: User) -> bool:
    """Return whether sign-ins of the account need a code."""
    return second_factor_of(account) is not None


def must_have_second_factor(account: User) -> bool:
    """Return whether a role of the account enforces it. Where any role does, superusers need one too."""
    enforced = settings.SECOND_FACTOR_ROLES
    if not enforced:
        return False
    return account.is_superuser or any(grant.role in enforced for grant in grants_of(account))


def count_recovery_codes(account: User) -> int:
    """Return how many recovery codes are left."""
    return int(StaticToken.objects.filter(device__user=account).count())


def new_secret() -> str:
    """Return a secret for an authenticator app, in hexadecimal."""
    return str(random_hex(20))


def link_of_secret(account: User, secret: str) -> str:
    """Return the `otpauth:` link that authenticator apps read from a QR code."""
    return str(TOTPDevice(user=account, key=secret).config_url)


def text_of_secret(secret: str) -> str:
    """Return the secret as people type it: base 32 in groups of four."""
    text = b32encode(bytes.fromhex(secret)).decode()
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


@transaction.atomic
def add_second_factor(account: User, secret: str, *, code: str, current_key: str | None) -> list[str]:
    """Store an authenticator app that shows the right code; return the recovery codes.

    Other sessions than the current one end that a password alone opened. Raises `BadInput` if the code is wrong, or if
    the account has a second factor already.
    """
    lock_account(account)
    if has_second_factor(account):
        raise BadInput(_("This account already has a second factor. Remove it first."))
    totp, typed = TOTP(bytes.fromhex(secret)), _normalise(code)
    totp.time = time.time()
    if not (_is_app_code(typed) and totp.verify(int(typed), tolerance=1)):
        raise BadInput(_("This code is not valid. Enter the code that the app shows now."))
    TOTPDevice.objects.filter(user=account).delete()
    # The code that was just used is not valid again.
    TOTPDevice.objects.create(user=account, name=_DEVICE_NAME, key=secret, drift=totp.drift, last_t=totp.t())
    record_action("second_factor_added", actor=account)
    if ended := end_sessions_without_factor(account, current_key=current_key):
        record_action("sessions_ended", actor=account, details={"sessions": ended})
    return _replace_recovery_codes(account)


def verify_code(account: User, code: str) -> bool:
    """Return whether a code of the app, or a recovery code, is right. It cannot be used again.

    A wrong one is recorded like a wrong password; so is one that is refused because it follows a wrong one too soon.
    """
    typed = _normalise(code)
    with transaction.atomic():
        if _is_app_code(typed):
            apps = TOTPDevice.objects.select_for_update().filter(user=account, confirmed=True)
            is_right = any(device.verify_token(typed) for device in apps)
        else:
            lists = StaticDevice.objects.select_for_update().filter(user=account, confirmed=True)
            is_right = any(device.verify_token(_hash_of(account, typed)) for device in lists)
            if is_right:
                record_action("recovery_code_used", actor=account, details={"left": count_recovery_codes(account)})
        if not is_right:
            record_action("second_factor_failed", actor=None, details={"account": account.get_username()})
    return is_right


def make_recovery_codes(account: User, *, code: str) -> list[str]:
    """Replace the recovery codes and return the new ones. Raises `BadInput` if the code of the app is wrong."""
    _require_code(account, code)
    with transaction.atomic():
        record_action("recovery_codes_made", actor=account)
        return _replace_recovery_codes(account)


def remove_second_factor(account: User, *, code: str, current_key: str | None) -> None:
    """Remove it. Other sessions than the current one end. Raises `BadInput` if the code is wrong.

    Raises `Forbidden` if a group of the account enforces it.
    """
    if must_have_second_factor(account):
        raise Forbidden(_("Your role requires a second factor. Ask an administrator to reset it."))
    _require_code(account, code)
    with transaction.atomic():
        _delete_devices(account)
        record_action("second_factor_removed", actor=account)
        # They are marked as having passed it, and would be also if a role enforces one again.
        end_other_sessions(account, current_key=current_key)


@transaction.atomic
def reset_second_factor(account: User, *, actor: User, reason: str | None = None) -> bool:
    """Remove another account's second factor; return whether it had one. reason: None for a command, which asks none.

    Raises `Forbidden` without the right to change that account: a superuser's needs a superuser; `BadInput` if the
    reason is empty.
    """
    require(actor, CHANGE_ACCOUNTS)
    if account.is_superuser and not actor.is_superuser:
        raise Forbidden(_("Only superusers can change the account of a superuser."))
    if account == actor:
        raise Forbidden(_("You cannot reset your own second factor. Ask another administrator."))
    details = {"account": account.get_username()}
    if reason is not None:
        details["reason"] = check_reason(reason, missing=_("Enter a reason. It is stored in the audit log."))
    had_one = _delete_devices(account)
    if had_one:
        end_all_sessions([account.pk])
        record_action("second_factor_reset", actor=actor, details=details)
    return had_one


def _require_code(account: User, code: str) -> None:
    if not verify_code(account, code):
        raise BadInput(_("This code is not valid. Wait for the next one and try again."))


def _delete_devices(account: User) -> bool:
    deleted, _counts = TOTPDevice.objects.filter(user=account).delete()
    StaticDevice.objects.filter(user=account).delete()
    WebAuthnCredential.objects.filter(user=account).delete()
    return bool(deleted)


def _replace_recovery_codes(account: User) -> list[str]:
    StaticDevice.objects.filter(user=account).delete()
    device = StaticDevice.objects.create(user=account, name=_DEVICE_NAME)
    codes = ["".join(secrets.choice(_CODE_LETTERS) for _n in range(10)) for _m in range(RECOVERY_CODES)]
    StaticToken.objects.bulk_create(StaticToken(device=device, token=_hash_of(account, code)) for code in codes)
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def _hash_of(account: User, code: str) -> str:
    digest = salted_hmac("recovery code", f"{account.pk}:{code}", algorithm="sha256").digest()
    return urlsafe_b64encode(digest).decode()[:_HASH_CHARACTERS]


def _normalise(code: str) -> str:
    return "".join(code.split()).replace("-", "").lower()[:MAX_CODE_CHARACTERS]


def _is_app_code(typed: str) -> bool:
    return len(typed) == 6 and typed.isascii() and typed.isdigit()
