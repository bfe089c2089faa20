"""`manage.py second_factor_reset USER`: lets an account that lost its authenticator app sign in by password again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import Forbidden
from chatstore.management.inert import InertCommand
from chatstore.models.users import User
from moderation.management.commands.purge import BAD_INPUT, find_moderator
from moderation.operations.access.second_factors import reset_second_factor


class Command(InertCommand):
    help = "Remove the second factor of an account, for instance because the phone with the app was lost."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")

    def handle(self, *args: Any, **options: Any) -> None:
        account = User.objects.filter(username=options["user"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['user']!r}.", returncode=BAD_INPUT)
        try:
            had_one = reset_second_factor(account, actor=find_moderator(options["moderator"]))
        except Forbidden as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        name = account.get_username()
        self.stdout.write(f"{name}: second factor removed" if had_one else f"{name} has no second factor")
