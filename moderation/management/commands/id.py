"""`manage.py id ID`: prints what an id says, and what it names."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from chatstore.domain.errors import BadInput
from chatstore.domain.row_ids import decode_row_id
from chatstore.domain.snowflakes import decode_snowflake, parse_snowflake
from chatstore.management.inert import InertCommand
from moderation.operations.lookup.ids import named_by


class Command(InertCommand):
    help = "Decode an id of the chat (a snowflake) or of a row in Postgres, and print what it names."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            number = parse_snowflake(options["id"])
        except BadInput as error:
            raise CommandError(str(error), returncode=2) from None
        row, snowflake = decode_row_id(number), decode_snowflake(number)
        of_row = f"shard {row.shard}, sequence {row.sequence}"
        of_chat = f"worker {snowflake.worker}, sequence {snowflake.sequence}"
        for kind, time, rest in (("row id", row.time, of_row), ("snowflake", snowflake.time, of_chat)):
            future = ", in the future" if time > timezone.now() else ""
            self.stdout.write(f"{kind:10} {time.isoformat(' ', 'milliseconds')}, {rest}{future}")
        for named in named_by(number):
            self.stdout.write(f"names      {named._meta.verbose_name}: {named}")
