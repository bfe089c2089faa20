"""`manage.py purge_show ID`: shows the state and the totals of a purge."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatstore.domain.errors import BadInput
from chatstore.domain.snowflakes import parse_snowflake
from chatstore.management.inert import InertCommand
from moderation.models import Purge
from moderation.operations.preview import purge_summary
from moderation.operations.purging.failures import failures_of
from moderation.operations.purging.wait_reasons import format_wait, wait_of
from moderation.operations.selection.summary import selection_summary


class Command(InertCommand):
    help = "Show a purge: its summary, totals and state."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("purge", metavar="ID")
        parser.add_argument("--json", action="store_true", help="print the same JSON object as manage.py purge --json")

    def handle(self, *args: Any, **options: Any) -> None:
        purge = find_purge(options["purge"])
        summary = purge_summary.purge_as_json(purge)
        if options["json"]:
            self.stdout.write(json.dumps(summary))
            return
        self.stdout.write(f"purge {purge.id}: {selection_summary(purge)}")
        self.stdout.write(f"{purge.get_state_display()}, by {purge.moderator}: {purge.reason or 'no reason yet'}")
        wait = wait_of(None, purge)
        if wait is not None:
            self.stdout.write(format_wait(wait))
        self.stdout.write(purge_summary.format_totals(purge))
        for line in failures_of(purge).as_lines():
            self.stdout.write(line)


def find_purge(text: str) -> Purge:
    """Return the purge with that id. Exits with 2 if the id is invalid or unknown."""
    try:
        return Purge.objects.get(id=parse_snowflake(text))
    except (BadInput, Purge.DoesNotExist) as error:
        message = str(error) if isinstance(error, BadInput) else f"There is no purge {text}."
        raise CommandError(message, returncode=2) from None
