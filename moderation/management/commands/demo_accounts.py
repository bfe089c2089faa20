"""Makes the demo accounts mona, otto, ada and tess, with random passwords kept beside the local servers."""

from __future__ import annotations

import os
import secrets
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from chatstore.management.inert import InertCommand
from moderation.management.demo_accounts import CAST, set_demo_account

FILE = "accounts.txt"
PASSWORD_BYTES = 12
"""96 bits: nobody guesses it, and it still fits one line of a terminal."""


class Command(InertCommand):
    """`manage.py demo_accounts`: only on the local Postgres, since anyone who reads the file can sign in."""

    help = "Make the demo accounts (mona, lena, otto, ada, tess) on the local Postgres and keep their passwords."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """No password is taken as an argument: it would be seen in the list of processes."""
        parser.add_argument("--quiet", action="store_true", help="do not print the accounts")

    def handle(self, *args: Any, **options: Any) -> None:
        """Keeps the passwords it finds; the accounts get them again, so that both always fit."""
        if not settings.LOCAL_POSTGRES:
            raise CommandError("Demo accounts are made on the local Postgres only; DATABASE_URL names another one.")
        path = settings.STACK.folder / FILE
        passwords = read_passwords(path)
        for name in CAST:
            passwords.setdefault(name, secrets.token_urlsafe(PASSWORD_BYTES))
            set_demo_account(name, password=passwords[name])
        write_passwords(path, passwords)
        if not options["quiet"]:
            for name, (role, words) in CAST.items():
                self.stdout.write(f"{name}  {passwords[name]}  {role or 'no group'}: {words}")


def read_passwords(path: Path) -> dict[str, str]:
    """Passwords by name, of lines "name password"; none where there is no file."""
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {parts[0]: parts[1] for parts in lines if len(parts) == 2}


def write_passwords(path: Path, passwords: dict[str, str]) -> None:
    """Writes the file for its owner alone, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.writelines(f"{name} {password}\n" for name, password in passwords.items())
