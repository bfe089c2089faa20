"""Creates the demo accounts, with random passwords stored next to the local servers."""

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
"""96 bits: infeasible to guess, and short enough for one line of a terminal."""


class Command(InertCommand):
    """`manage.py demo_accounts`: only on the local Postgres, because anyone who can read the file can sign in."""

    help = (
        "Create the demo accounts (mona, lena, aron, otto, ada, tess) on the local Postgres and store their passwords."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Passwords are not accepted as arguments, because they would be visible in the process list."""
        parser.add_argument("--quiet", action="store_true", help="do not print the accounts")

    def handle(self, *args: Any, **options: Any) -> None:
        """Reuse stored passwords; the accounts are set to them again, so that both always match."""
        if not settings.LOCAL_POSTGRES:
            raise CommandError(
                "Demo accounts can only be created on the local Postgres. DATABASE_URL refers to another one."
            )
        path = settings.STACK.folder / FILE
        passwords = read_passwords(path)
        for name in CAST:
            passwords.setdefault(name, secrets.token_urlsafe(PASSWORD_BYTES))
            set_demo_account(name, password=passwords[name])
        write_passwords(path, passwords)
        if not options["quiet"]:
            for name, (roles, description) in CAST.items():
                self.stdout.write(f"{name}  {passwords[name]}  {', '.join(roles) or 'no role'}: {description}")


def read_passwords(path: Path) -> dict[str, str]:
    """Return passwords by name from lines "name password"; none if there is no file."""
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {parts[0]: parts[1] for parts in lines if len(parts) == 2}


def write_passwords(path: Path, passwords: dict[str, str]) -> None:
    """Write the file, readable only by its owner from the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.writelines(f"{name} {password}\n" for name, password in passwords.items())
