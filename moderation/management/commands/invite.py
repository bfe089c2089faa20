"""`manage.py invite USER ROLE`: a new staff account, and the link by which its owner sets the password."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.management.inert import InertCommand
from moderation.management.commands.purge import BAD_INPUT, find_moderator
from moderation.management.commands.role import add_actor, add_place, read_place
from moderation.operations.access.invitations import invite
from moderation.presentation.page_urls import invitation_link


class Command(InertCommand):
    help = (
        "Create a staff account with a role, and print the link by which its owner sets the password, once. "
        "The first administrator: invite NAME admin"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="new user name")
        add_place(parser)
        parser.add_argument("--name", default="", metavar="NAME", help="full name")
        add_actor(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = find_moderator(options["moderator"])
            grants, until = read_place(options, actor)
            account, token = invite(options["user"], grants, actor=actor, full_name=options["name"], until=until)
        except (BadInput, Forbidden) as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None
        self.stdout.write(f"{account.get_username()}: valid once, for {settings.INVITATION_HOURS} hours")
        self.stdout.write(invitation_link(token))
