"""`manage.py role give|remove|list`: roles of staff accounts."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from chatstore.domain.errors import BadInput, Forbidden
from chatstore.domain.roles import Role
from chatstore.management.inert import InertCommand
from chatstore.models import RoleGrant
from chatstore.models.users import User
from moderation.management.commands.purge import BAD_INPUT, find_moderator
from moderation.operations.access.roles import give_roles, list_roles, take_role
from moderation.operations.lookup.audit_log import account_named
from moderation.operations.selection.places import parse_grants, parse_until


class Command(InertCommand):
    help = "Give a role to a staff account, remove it, or list who has which role."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", metavar="give|remove|list", required=True)
        give = acts.add_parser("give", help="give a role")
        give.add_argument("user", metavar="USER", help="user name")
        add_place(give)
        remove = acts.add_parser("remove", help="remove a role")
        remove.add_argument("id", type=int, metavar="ID", help="as `role list` shows it")
        listed = acts.add_parser("list", help="list roles, newest first")
        listed.add_argument("user", nargs="?", default="", metavar="USER", help="only this account's")
        listed.add_argument("--past", action="store_true", help="also those that were removed or have ended")
        for one in (give, remove, listed):
            add_actor(one)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = find_moderator(options["moderator"])
            {"give": self._give, "remove": self._remove, "list": self._list}[options["act"]](actor, options)
        except (BadInput, Forbidden) as error:
            raise CommandError(str(error), returncode=BAD_INPUT) from None

    def _give(self, actor: User, options: dict[str, Any]) -> None:
        account = _find_account(options["user"])
        grants, until = read_place(options, actor)
        for row in give_roles(account, grants, actor=actor, until=until):
            self.stdout.write(_describe(row))

    def _remove(self, actor: User, options: dict[str, Any]) -> None:
        self.stdout.write(_describe(take_role(options["id"], actor=actor)))

    def _list(self, actor: User, options: dict[str, Any]) -> None:
        if options["user"]:
            _find_account(options["user"])
        before: int | None = None
        while True:
            page = list_roles(actor, account=options["user"], with_past=options["past"], before=before)
            for row in page.grants:
                self.stdout.write(_describe(row))
            if page.older is None:
                return
            before = page.older


def add_place(parser: CommandParser) -> None:
    """Add the arguments of a role and its place."""
    parser.add_argument("role", choices=[role.value for role in Role], metavar="ROLE", help=", ".join(Role))
    parser.add_argument("--guild", default="", metavar="ID", help="or name; default: the whole installation")
    parser.add_argument(
        "--channel", action="append", default=[], metavar="ID", help="or name; may be repeated: only in these channels"
    )
    parser.add_argument("--until", default="", metavar="DATE", help="the last day, or a time; default: no end")


def add_actor(parser: CommandParser) -> None:
    """Add the argument of the acting account."""
    parser.add_argument("--as", dest="moderator", metavar="USER", help="acting account; default: 'command-line'")


def read_place(options: dict[str, Any], actor: User) -> tuple[Any, Any]:
    """Return the roles to give and their end. Raises `BadInput`."""
    grants = parse_grants(options["role"], guild=options["guild"], channels=",".join(options["channel"]), user=actor)
    return grants, parse_until(options["until"], now=timezone.localtime())


def _find_account(name: str) -> User:
    account = account_named(name)
    if account is None:
        raise BadInput(f"There is no account {name!r}. Use `manage.py invite` for a new one.")
    return account


def _describe(row: RoleGrant) -> str:
    place = "whole installation"
    if row.channel is not None:
        place = f"channel {row.channel_id} ({row.channel.name})"
    elif row.guild is not None:
        place = f"guild {row.guild_id} ({row.guild.name})"
    parts = [str(row.pk), row.account.get_username(), row.role, place, f"since {row.given_at:%Y-%m-%d %H:%M} UTC"]
    if row.until is not None:
        parts.append(f"until {row.until:%Y-%m-%d %H:%M} UTC")
    if row.taken_at is not None:
        parts.append(f"removed {row.taken_at:%Y-%m-%d %H:%M} UTC")
    return "  ".join(parts)
