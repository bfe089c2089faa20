"""The demo accounts: random passwords, readable only by the owner, on the local Postgres only."""

from __future__ import annotations

import stat

import pytest
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from pytest_django import Settings

from moderation.management.commands.demo_accounts import FILE, read_passwords

PATH = settings.STACK.folder / FILE


def test_each_demo_account_can_sign_in_with_the_stored_password(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("demo_accounts")
    printed = capsys.readouterr().out
    passwords = read_passwords(PATH)
    assert set(passwords) == {"mona", "lena", "aron", "otto", "ada", "tess"}
    assert len(set(passwords.values())) == 6
    for name, password in passwords.items():
        user = authenticate(HttpRequest(), username=name, password=password)
        assert user is not None
        assert user.is_staff
        assert not user.is_superuser
        assert f"{name}  {password}" in printed


def test_the_password_file_is_readable_only_by_its_owner() -> None:
    call_command("demo_accounts", quiet=True)
    PATH.chmod(0o644)
    call_command("demo_accounts", quiet=True)
    assert stat.S_IMODE(PATH.stat().st_mode) == 0o600


def test_creating_the_accounts_again_changes_no_password() -> None:
    call_command("demo_accounts", quiet=True)
    before = PATH.read_text(encoding="utf-8")
    call_command("demo_accounts", quiet=True)
    assert PATH.read_text(encoding="utf-8") == before


def test_demo_accounts_are_not_created_on_an_external_postgres(settings: Settings) -> None:
    settings.LOCAL_POSTGRES = False
    with pytest.raises(CommandError, match="only be created on the local Postgres"):
        call_command("demo_accounts")
