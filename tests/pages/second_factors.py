"""Second factors of test accounts, and the codes that their app would show."""

from __future__ import annotations

import base64
import re
import secrets

from django.test import Client
from django_otp.oath import totp
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from chatstore.models.users import User
from moderation.operations.access.second_factors import add_second_factor, new_secret
from tests.planted import plant

PASSWORD = plant("password", secrets.token_hex(16))


def set_password(account: User) -> User:
    account.set_password(PASSWORD)
    account.save()
    return account


def set_up(account: User) -> list[str]:
    """Give the account a second factor and return its recovery codes."""
    secret = plant("secret of an app", new_secret())
    return add_second_factor(account, secret, code=show_code(secret), current_key=None)


def secret_on(page: str) -> str:
    """Return the secret that a page shows as a QR code and a link."""
    found = re.search(r"otpauth://[^\"]*secret=([A-Z2-7]+)", page)
    assert found
    return base64.b32decode(found[1]).hex()


def show_code(secret: str) -> str:
    """Return what an app with this secret shows now."""
    return f"{totp(bytes.fromhex(secret)):06}"


def code_of(account: User) -> str:
    """Return a code that is valid: as if half a minute had passed since the last one, and longer since a wrong one."""
    TOTPDevice.objects.filter(user=account).update(last_t=-1)
    forget_wrong_codes(account)
    return show_code(TOTPDevice.objects.get(user=account).key)


def forget_wrong_codes(account: User) -> None:
    for model in (TOTPDevice, StaticDevice):
        model.objects.filter(user=account).update(throttling_failure_count=0, throttling_failure_timestamp=None)


def wrong_code(account: User) -> str:
    """Return six digits that are not valid now, nor half a minute before or after."""
    device = TOTPDevice.objects.get(user=account)
    key, step = bytes.fromhex(device.key), device.step
    valid = {totp(key, t0=offset * step) for offset in (-2, -1, 0, 1, 2)}
    return next(f"{number:06}" for number in range(10) if number not in valid)


def pass_password(account: User, *, address: str = "198.51.100.7", then: str = "") -> Client:
    """Return a client that has entered the password, and nothing after it."""
    client = Client(REMOTE_ADDR=address)
    client.post("/sign-in/", {"username": account.username, "password": PASSWORD, "next": then})
    return client
